"""Finds out what limits a pipeline, and measures pipes and commands, by the program pipemark.

    import pipemark
    print(pipemark.why("zcat access.log.gz | grep -v bot | sort | uniq -c").verdict.text)

Nothing is measured in Python: each function starts the program, and returns what it has written as JSON.
"""

from ._calls import ab, bw, tune, why
from ._errors import (
    Interrupted,
    MeasurementFailed,
    PipemarkError,
    ProgramNotFound,
    UsageError,
    VerificationFailed,
)
from ._results import (
    Ab,
    Bw,
    Command,
    Comparison,
    Estimate,
    Experiment,
    Fastest,
    Figure,
    Gain,
    Guess,
    Pipe,
    Prediction,
    Remedy,
    Result,
    Stage,
    Trial,
    Tune,
    TunedStage,
    Verdict,
    Why,
)

__all__ = [
    "Ab",
    "Bw",
    "Command",
    "Comparison",
    "Estimate",
    "Experiment",
    "Fastest",
    "Figure",
    "Gain",
    "Guess",
    "Interrupted",
    "MeasurementFailed",
    "Pipe",
    "PipemarkError",
    "Prediction",
    "ProgramNotFound",
    "Remedy",
    "Result",
    "Stage",
    "Trial",
    "Tune",
    "TunedStage",
    "UsageError",
    "Verdict",
    "VerificationFailed",
    "Why",
    "ab",
    "bw",
    "tune",
    "why",
]
