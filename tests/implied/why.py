"""The sentences of why, each recomputed from the stages and pipes of the report and from the table beside it."""

import re

from figures import NUMBER
from sentence import Sentence
from why_sentences import patterns

# Scripts that execute another program: the name as typed, the program that runs, and an option that it gets.
WRAPPERS = {"zcat": ("gzip", "-cd"), "gunzip": ("gzip", "-d"), "bzcat": ("bzip2", "-c"), "xzcat": ("xz", "-c")}


class Report:
    def __init__(self, report, text):
        self.report, self.stages, self.pipes = report, report["stages"], report["pipes"]
        names = sorted({one["name"] for one in self.stages}, key=len, reverse=True)
        self.name = "((?:" + "|".join(map(re.escape, names)) + r")(?: \(stage \d+\))?)"
        self.rows = rows_of(text)

    def stage(self, name):
        """The stage with this name, which has a number if several have the name; `None` if it's ambiguous."""
        numbered = re.fullmatch(r"(.*) \(stage (\d+)\)", name)
        if numbered:
            found = [one for one in self.stages if one["number"] == int(numbered.group(2))]
            return found[0] if found and found[0]["name"] == numbered.group(1) else None
        found = [one for one in self.stages if one["name"] == name]
        return found[0] if len(found) == 1 else None

    def pipe(self, ends):
        numbers = [self.stage(end)["number"] for end in ends]
        return next((one for one in self.pipes if [one["from"], one["to"]] == numbers), None)


def rows_of(text):
    """The rows of the table of stages, as far as their cells can be distinguished."""
    header = next((line for line in text.splitlines() if line.startswith("stage ")), "")
    headings, rows = re.findall(r"\S+", header)[1:], {}
    for line in text.splitlines():
        row = re.match(r"(\d+) (\S+)(?: ×\d+)?(?: ◀)?\s{2,}(.*)$", line)
        if row and headings:
            cells = re.findall(rf"–|{NUMBER} (?:[KMGT]iB/s|B/s|%)|[\d.]+(?:Ki|[kM])?", row.group(3))
            rows[int(row.group(1))] = dict(zip(headings, cells))
    return rows


def of_text(report, known, text, place):
    """The sentences of a verdict, or of a cause that was considered."""
    rest, sentences = " ".join(text.split()), []
    report.subject = report.stages[place - 1] if place else {}
    while rest:
        for kind, pattern, rule in known:
            found = re.match(pattern, rest)
            if found:
                break
        else:
            sentence = Sentence("why", "unknown", rest)
            sentence.require(False, "no check knows this sentence")
            return [*sentences, sentence]
        sentence = Sentence("why", kind, found.group(0))
        sentences.append(sentence)
        names = re.findall(report.name, found.group(0)) if kind not in ("deadlock", "peer") else []
        ambiguous = [name for name in names if report.stage(name) is None]
        sentence.require(not ambiguous, f"which stage is {ambiguous}?")
        if not ambiguous:
            if names:
                report.subject = report.stage(names[0])
            rule(sentence, report, found)
        rest = rest[found.end() :].lstrip()
    return sentences


def of_names(report):
    """Stages have the names that the user typed."""
    typed = re.findall(r"[\w.+-]+", report.report["pipeline"] or "")
    for one in report.stages:
        sentence = Sentence("why", "name", f"stage {one['number']} is {one['name']}")
        for name, (runs, option) in WRAPPERS.items():
            is_it = one["name"] == runs and name in typed and runs not in typed
            sentence.require(not (is_it and option in one["command"].split()), f"{name} was typed")
        yield sentence


def of_rivals(report):
    """If another stage gains about as much as the one that is named, the verdict names both."""
    verdict = report.report["verdict"]
    chosen = next((one for one in verdict["hypotheses"] if one["why_not"] is None), None)
    if not chosen or not chosen["gain"] or not chosen["stage"] or verdict["kind"] == "deadlock":
        return
    gains = {}
    for one in verdict["hypotheses"]:
        # A cause that was ruled out by another is no candidate.
        is_rival = one["why_not"] in (None, "gains less", "gains no more", "less specific")
        if one["stage"] and one["gain"] and is_rival:
            gains[one["stage"]] = max(gains.get(one["stage"], 0), one["gain"]["low"])
    own = gains[chosen["stage"]]
    sentence = Sentence("why", "rivals", verdict["text"])
    for number, low in gains.items():
        name = report.stages[number - 1]["name"]
        is_alike = number != chosen["stage"] and low > 1.05 and low >= 0.95 * own
        sentence.require(
            not is_alike or name in verdict["text"], f"{name} gains {low:.2f}, and the named one {own:.2f}"
        )
    yield sentence


def of_why(report, text):
    found = Report(report, text)
    known = patterns(found.name)
    verdict = report["verdict"]
    sentences = of_text(found, known, verdict["text"], verdict["stage"])
    for one in verdict["hypotheses"]:
        if one["why_not"] is not None:
            sentences += of_text(found, known, one["text"], one["stage"])
    return [*sentences, *of_names(found), *of_rivals(found)]
