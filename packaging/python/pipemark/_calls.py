"""Starts the program and reads its JSON."""

import json
import os
import shutil
import subprocess
import sysconfig
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from ._errors import ProgramNotFound, error_of
from ._results import Ab, Bw, Tune, Why, decode

Value = Union[str, int, float, bool, None, Sequence[Union[str, int, float]]]


def program() -> str:
    """The path of the program: $PIPEMARK, or the one installed with this module, or that on the PATH."""
    named = os.environ.get("PIPEMARK")
    if named:
        return named
    schemes = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", os.name + "_user")]
    beside = [Path(directory) / "pipemark" for directory in schemes if directory]
    found = next((str(path) for path in beside if os.access(str(path), os.X_OK)), None) or shutil.which("pipemark")
    if found is None:
        raise ProgramNotFound("the program pipemark isn't installed: pip install pipemark", 127)
    return found


def _flags(options: Mapping[str, Value], repeats: bool = False) -> List[str]:
    """The flags for keywords. Several values are joined by commas, or given one by one."""
    words: List[str] = []
    for name, value in options.items():
        flag = "--" + name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(flag)
        elif isinstance(value, (str, int, float)):
            words.append("{}={}".format(flag, value))
        elif repeats:
            words.extend("{}={}".format(flag, one) for one in value)
        else:
            words.append("{}={}".format(flag, ",".join(str(one) for one in value)))
    return words


def _run(words: Iterable[str], stdin: Optional[Any], show: bool) -> Tuple[Any, int]:
    """Runs a verb. Returns its JSON and its exit code. The verb's text and the commands' output are shown on request."""
    with tempfile.TemporaryDirectory(prefix="pipemark-") as directory:
        path = Path(directory) / "result.json"
        verb, *rest = words
        command = [program(), verb, "--json={}".format(path), *rest]
        to = None if show else subprocess.DEVNULL
        try:
            ended = subprocess.run(
                command,
                stdin=subprocess.DEVNULL if stdin is None else stdin,
                stdout=to,
                stderr=None if show else subprocess.PIPE,
            )
        except FileNotFoundError as error:
            raise ProgramNotFound("{} isn't there".format(command[0]), 127) from error
        if not path.exists():
            stderr = ended.stderr.decode("utf-8", "replace") if ended.stderr else ""
            raise error_of(ended.returncode, stderr)
        return json.loads(path.read_text(encoding="utf-8")), ended.returncode


def why(
    pipeline: Optional[str] = None,
    *,
    pid: Union[int, Sequence[int], None] = None,
    name: Optional[str] = None,
    unit: Optional[str] = None,
    container: Optional[str] = None,
    cgroup: Optional[str] = None,
    seconds: Optional[float] = None,
    options: Sequence[str] = (),
    stdin: Optional[Any] = None,
    show: bool = False,
) -> Why:
    """Names what limits a pipeline: one that is run in your shell, or a running one.

    A running one is given by the PID of a process, its name, a unit of systemd, a container or a control group.
    ``seconds`` limits the time of sampling. ``options`` are more options of ``pipemark why``.
    The output of the pipeline is discarded, unless ``show`` is set or the pipeline redirects it.
    """
    words = ["why", *_flags({"name": name, "unit": unit, "container": container, "cgroup": cgroup}), *options]
    if seconds is not None:
        words.append("--for={}ms".format(round(seconds * 1000)))
    if pid is not None:
        words.extend(str(one) for one in ([pid] if isinstance(pid, int) else pid))
    elif pipeline is not None:
        words.extend(["--", "{} ".format(pipeline)])
    elif not (name or unit or container or cgroup):
        raise TypeError("why() needs a pipeline, or pid, name, unit, container or cgroup")
    raw, code = _run(words, stdin, show)
    return replace(decode(Why, raw), exit_code=code, raw=raw)


def tune(
    pipeline: str,
    *,
    budget: Optional[str] = None,
    prepare: Optional[str] = None,
    threshold: Optional[str] = None,
    shell: Optional[str] = None,
    yes: bool = False,
    options: Sequence[str] = (),
    stdin: Optional[Any] = None,
    show: bool = False,
) -> Tune:
    """Runs a pipeline in variants, and returns the fastest one that writes the same, with its gain.

    Times are texts such as ``"1min"``. ``yes`` runs the pipeline repeatedly, whatever it changes.
    """
    flags = _flags({"budget": budget, "prepare": prepare, "threshold": threshold, "shell": shell, "yes": yes})
    raw, _ = _run(["tune", *flags, *options, "--", pipeline], stdin, show)
    return replace(decode(Tune, raw), raw=raw)


def ab(
    *commands: str,
    runs: Optional[int] = None,
    budget: Optional[str] = None,
    threshold: Optional[str] = None,
    names: Sequence[str] = (),
    parameter: Union[str, Sequence[str]] = (),
    prepare: Union[str, Sequence[str]] = (),
    shell: Optional[str] = None,
    options: Sequence[str] = (),
    stdin: Optional[Any] = None,
    show: bool = False,
) -> Ab:
    """Times commands in interleaved runs, and compares them with the first.

    ``parameter`` is a text such as ``"threads=1,2,4"``, which replaces ``{threads}`` in the commands.
    """
    flags = _flags({"runs": runs, "budget": budget, "threshold": threshold, "shell": shell})
    flags += _flags({"name": names, "parameter": parameter, "prepare": prepare}, repeats=True)
    words = [word for command in commands for word in ("--", command)]
    raw, _ = _run(["ab", *flags, *options, *words], stdin, show)
    return replace(decode(Ab, raw), raw=raw)


def bw(*, options: Sequence[str] = (), show: bool = False, **parameters: Value) -> Bw:
    """Measures the throughput of pipes and other links.

    The keywords are the options of ``pipemark bw``, such as ``block=["4k", "64k"], runs=5``.
    """
    raw, _ = _run(["bw", *_flags(parameters), *options], None, show)
    texts = [finding["text"] for finding in raw.get("findings", [])]
    return replace(decode(Bw, {**raw, "findings": texts}), raw=raw)
