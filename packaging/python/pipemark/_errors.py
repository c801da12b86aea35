"""The errors of the program as exceptions."""

from typing import Dict, Type


class PipemarkError(Exception):
    """The program has ended without a result. The text is its message."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class ProgramNotFound(PipemarkError):
    """The program pipemark isn't installed."""


class UsageError(PipemarkError):
    """An option or its value isn't valid, or a name doesn't exist."""


class MeasurementFailed(PipemarkError):
    """A command or trial failed, or a result could not be written."""


class VerificationFailed(PipemarkError):
    """Bytes arrived changed, or the output differs from run to run."""


class Interrupted(PipemarkError):
    """A signal ended the program."""


# 125: why itself failed, or was called wrongly. Other codes are those of the pipeline.
_BY_CODE: Dict[int, Type[PipemarkError]] = {
    1: MeasurementFailed,
    2: UsageError,
    3: VerificationFailed,
    125: UsageError,
    126: MeasurementFailed,
    127: MeasurementFailed,
    130: Interrupted,
}


def error_of(exit_code: int, stderr: str) -> PipemarkError:
    """The exception for an exit code, with the program's message."""
    lines = stderr.strip().splitlines()
    start = next((at for at, line in enumerate(lines) if line.startswith("pipemark: ")), None)
    if start is None:
        message = lines[-1] if lines else "exit code {}".format(exit_code)
    else:
        message = "\n".join(lines[start:])[len("pipemark: ") :]
    kind = Interrupted if exit_code < 0 else _BY_CODE.get(exit_code, PipemarkError)
    return kind(message, exit_code)
