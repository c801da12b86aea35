"""The results of the program as dataclasses. ``raw`` has the whole JSON, whose form docs/*.schema.json describes."""

import html
import importlib
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Type, TypeVar, Union, cast, get_type_hints

Json = Mapping[str, Any]
Row = Dict[str, Union[str, int, float, bool, None]]
T = TypeVar("T")


def _decode(kind: Any, value: Any) -> Any:
    """The value of this type from JSON. Fields that the type lacks are left out."""
    arguments: Any = getattr(kind, "__args__", None) or ()
    origin = getattr(kind, "__origin__", None)
    if value is None:
        return None
    if origin is Union:
        return _decode(next(one for one in arguments if one is not type(None)), value)
    if origin in (list, List):
        return [_decode(arguments[0], one) for one in value]
    if origin in (dict, Dict):
        return {key: _decode(arguments[1], one) for key, one in value.items()}
    if is_dataclass(kind) and isinstance(kind, type):
        return decode(kind, value)
    if kind is float:
        return float(value)
    return value


def decode(kind: Type[T], value: Json) -> T:
    """The dataclass from a JSON object."""
    hints = get_type_hints(kind)
    found: Dict[str, Any] = {}
    for one in fields(cast(Any, kind)):
        key = one.metadata.get("json", one.name)
        if key in value:
            found[one.name] = _decode(hints[one.name], value[key])
    return kind(**found)


def _frame(rows: Sequence[Row], library: Optional[str]) -> Any:
    for name in ("pandas", "polars") if library is None else (library,):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        return module.DataFrame(list(rows))
    raise ImportError("to_frame() needs {}".format(library or "pandas or polars"))


def _html_table(rows: Sequence[Row]) -> str:
    if not rows:
        return ""

    def text(value: object) -> str:
        shown = "" if value is None else "{:.4g}".format(value) if isinstance(value, float) else str(value)
        return html.escape(shown)

    def line(tag: str, values: Sequence[object]) -> str:
        return "<tr>" + "".join("<{0}>{1}</{0}>".format(tag, text(value)) for value in values) + "</tr>"

    body = "".join(line("td", list(row.values())) for row in rows)
    return "<table><thead>{}</thead><tbody>{}</tbody></table>".format(line("th", list(rows[0])), body)


class Result:
    """What all results have."""

    def rows(self) -> List[Row]:
        """The table of the result: a row for each stage, experiment, command or trial."""
        raise NotImplementedError

    def conclusion(self) -> str:
        """The conclusion as a sentence."""
        raise NotImplementedError

    def to_frame(self, library: Optional[str] = None) -> Any:
        """The rows as a DataFrame of pandas or, without pandas, of polars. ``library`` names one of them."""
        return _frame(self.rows(), library)

    def _repr_html_(self) -> str:
        return "<p><b>{}</b></p>{}".format(html.escape(self.conclusion()), _html_table(self.rows()))


@dataclass(frozen=True)
class Estimate:
    """An estimate: seconds, bytes or bytes per second. ``low`` and ``high`` are the ends of its 95 % interval."""

    median: float
    min: float
    max: float
    runs: int
    low: Optional[float] = None
    high: Optional[float] = None


@dataclass(frozen=True)
class Gain:
    """How many times as fast the pipeline would be, as a range."""

    low: float
    high: Optional[float] = None


@dataclass(frozen=True)
class Remedy:
    """A way to remove a bottleneck, with a command for the shell; an empty one if there is none."""

    id: str
    text: str
    command: str = ""


@dataclass(frozen=True)
class Verdict:
    """What limits a pipeline."""

    kind: str
    text: str
    reason: str
    cause: str = ""
    stage: Optional[int] = None
    pipe: Optional[int] = None
    bound: Optional[float] = None
    sure: str = "sure"
    gain: Optional[Gain] = None
    remedies: List[Remedy] = field(default_factory=list)
    advice: List[str] = field(default_factory=list)


@dataclass(frozen=True)
class Stage:
    """A stage of a pipeline. Shares are of its time, from 0 to 1."""

    number: int
    name: str
    command: str
    pid: int
    processes: int
    threads: int
    busy: float
    starved: float
    blocked: float
    computing: float
    waiting_for_cpu: float
    cpu: Optional[float] = None
    bytes_in_per_second: Optional[float] = None
    bytes_out_per_second: Optional[float] = None


@dataclass(frozen=True)
class Pipe:
    """A pipe between two stages, which are given by their numbers."""

    number: int
    writer: int = field(metadata={"json": "from"})
    reader: int = field(metadata={"json": "to"})
    writer_waits: float
    reader_waits: float
    capacity: Optional[int] = None
    bytes_per_second: Optional[float] = None


@dataclass(frozen=True)
class Why(Result):
    """What ``why`` has found out about a pipeline."""

    pipeline: str
    verdict: Verdict
    stages: List[Stage]
    pipes: List[Pipe]
    seconds: float
    samples: int
    notes: List[str]
    # The exit code of the pipeline; that of the program for a running one.
    exit_code: int = 0
    raw: Json = field(default_factory=dict, repr=False, compare=False)

    def rows(self) -> List[Row]:
        return [
            {
                "stage": stage.number,
                "name": stage.name,
                "busy": stage.busy,
                "starved": stage.starved,
                "blocked": stage.blocked,
                "cpu": stage.cpu,
                "bytes_in_per_second": stage.bytes_in_per_second,
                "bytes_out_per_second": stage.bytes_out_per_second,
            }
            for stage in self.stages
        ]

    def conclusion(self) -> str:
        return self.verdict.text


@dataclass(frozen=True)
class TunedStage:
    """A stage of a pipeline that was run in variants."""

    number: int
    name: str
    command: str
    predicted: Optional[Gain] = None
    wrote: Optional[int] = None


@dataclass(frozen=True)
class Experiment:
    """A variant of a pipeline, compared with the pipeline."""

    id: str
    kind: str
    text: str
    runs: int
    stage: Optional[int] = None
    command: Optional[str] = None
    seconds: Optional[float] = None
    gain: Optional[float] = None
    low: Optional[float] = None
    high: Optional[float] = None
    verdict: Optional[str] = None
    same_output: Optional[bool] = None
    difference: Optional[str] = None
    failed: Optional[str] = None


@dataclass(frozen=True)
class Fastest:
    """The fastest pipeline that was found, and how many times as fast it is."""

    command: str
    changes: List[str]
    gain: float
    low: float
    high: float
    same_output: bool
    difference: Optional[str] = None


@dataclass(frozen=True)
class Guess:
    """A change that was faster, and whose output is known to be the same for this input only."""

    id: str
    text: str
    gain: float
    low: float
    high: float
    rounds: int
    stage: Optional[int] = None


@dataclass(frozen=True)
class Prediction:
    """What ``why`` concluded from the first run, and whether the experiments confirm it."""

    text: str
    cause: str
    stage: Optional[int] = None
    predicted: Optional[Gain] = None
    measured: Optional[float] = None
    confirmed: Optional[bool] = None


@dataclass(frozen=True)
class Tune(Result):
    """What ``tune`` has measured."""

    pipeline: str
    seconds: float
    runs: int
    interrupted: bool
    time: Estimate
    stages: List[TunedStage]
    experiments: List[Experiment]
    guesses: List[Guess]
    notes: List[str]
    untried: List[str]
    fastest: Optional[Fastest] = None
    prediction: Optional[Prediction] = None
    raw: Json = field(default_factory=dict, repr=False, compare=False)

    def rows(self) -> List[Row]:
        return [
            {
                "id": one.id,
                "kind": one.kind,
                "stage": one.stage,
                "text": one.text,
                "gain": one.gain,
                "low": one.low,
                "high": one.high,
                "verdict": one.verdict,
                "same_output": one.same_output,
            }
            for one in self.experiments
        ]

    def conclusion(self) -> str:
        if self.fastest is None:
            return "nothing made it faster: {}".format(self.pipeline)
        best = self.fastest
        return "{:.2f}× as fast ({:.2f} to {:.2f}): {}".format(best.gain, best.low, best.high, best.command)


@dataclass(frozen=True)
class Comparison:
    """A comparison of a command with the reference. ``change`` is 0.1 for 10 % more."""

    change: float
    p: float
    verdict: str
    low: Optional[float] = None
    high: Optional[float] = None


@dataclass(frozen=True)
class Figure:
    """A figure of a command. The reference has no comparison."""

    estimate: Estimate
    comparison: Optional[Comparison] = None
    verdict: Optional[str] = None
    why: Optional[str] = None


@dataclass(frozen=True)
class Command:
    """A command that was run."""

    command: str
    label: str
    figures: Dict[str, Figure]
    parameters: Dict[str, str] = field(default_factory=dict)
    rank: Optional[int] = None
    failed: Optional[str] = None
    same_output: bool = True


@dataclass(frozen=True)
class Ab(Result):
    """What ``ab`` has measured. ``by`` is the figure by which commands are ranked."""

    by: str
    reference: int
    commands: List[Command]
    warnings: List[str]
    interrupted: bool = False
    raw: Json = field(default_factory=dict, repr=False, compare=False)

    def rows(self) -> List[Row]:
        found: List[Row] = []
        for command in self.commands:
            figure = command.figures.get(self.by)
            estimate = figure.estimate if figure else None
            found.append(
                {
                    "command": command.label or command.command,
                    "rank": command.rank,
                    "median": estimate.median if estimate else None,
                    "low": estimate.low if estimate else None,
                    "high": estimate.high if estimate else None,
                    "runs": estimate.runs if estimate else 0,
                    "change": figure.comparison.change if figure and figure.comparison else None,
                    "verdict": figure.verdict if figure else command.failed,
                }
            )
        return found

    def conclusion(self) -> str:
        best = [one for one in self.commands if one.rank == 1]
        names = ", ".join(one.label or one.command for one in best)
        return "best by {}: {}".format(self.by, names) if best else "no command is best by {}".format(self.by)


@dataclass(frozen=True)
class Trial:
    """A measured setting. ``status`` is ok, skipped or failed, with the ``reason``."""

    id: str
    name: str
    status: str
    params: Dict[str, Any]
    estimate: Optional[Dict[str, Any]] = None
    reason: Optional[str] = None
    verified: Optional[bool] = None

    @property
    def throughput(self) -> Optional[Estimate]:
        """Bytes per second."""
        found = (self.estimate or {}).get("throughput")
        return decode(Estimate, found) if isinstance(found, dict) else None


@dataclass(frozen=True)
class Bw(Result):
    """What ``bw`` has measured."""

    trials: List[Trial]
    findings: List[str]
    partial: bool = False
    raw: Json = field(default_factory=dict, repr=False, compare=False)

    def rows(self) -> List[Row]:
        found: List[Row] = []
        for trial in self.trials:
            rate = trial.throughput
            row: Row = {"trial": trial.name, "status": trial.status}
            row["throughput"] = rate.median if rate else None
            row["low"] = rate.low if rate else None
            row["high"] = rate.high if rate else None
            row["verified"] = trial.verified
            row["reason"] = trial.reason
            found.append(row)
        return found

    def conclusion(self) -> str:
        rated = [(trial, trial.throughput) for trial in self.trials]
        best = max(((rate.median, trial.name) for trial, rate in rated if rate), default=None)
        return "no trial was measured" if best is None else "fastest: {}, {:.4g} bytes/s".format(best[1], best[0])
