"""The sentences of a document's screen and page."""

import re

from figures import BINARY, RATE, all_figures, is_among, printed
from sentence import Sentence
from trials import Document


def screen(document, text):
    """The sentences of the screen: counts, the summary, and findings beside the tables that have their trials."""
    found = Document(document)
    requested = [one for one in found.trials if one.params.get("link") != "memory-copy"]
    measured = [one for one in requested if one.record["estimate"] is not None]
    sentences = []
    for count, all_of in re.findall(r": (\d+) of (\d+) trials$", text, re.M):
        sentence = Sentence(document["suite"], "rows", f"{count} of {all_of} trials")
        sentence.require(int(count) <= int(all_of) <= len(found.trials), "more than there are")
        sentences.append(sentence)
    summary = re.search(r"^Summary \((.*), (\d+) trials?\)$", text, re.M)
    if not summary:
        return sentences
    sentence = Sentence(document["suite"], "summary", summary.group(0))
    sentence.require(int(summary.group(2)) == len(measured), f"{len(measured)} trials were measured")
    sentences.append(sentence)
    above, below = text[: summary.start()], text[summary.end() :]
    rates, times = all_figures(above)
    named = re.findall(
        r"^  (?:default pipe|best with write and read|best, each byte new and checked)\s.*$", below, re.M
    )
    for line_of_summary in named:
        sentence = Sentence(document["suite"], "unit", line_of_summary.strip())
        sentence.require(re.search(RATE, line_of_summary), "this isn't a throughput")
        sentences.append(sentence)
    for row in re.findall(
        r"^  (default pipe|best with write and read|best, each byte new and checked)\s+" + RATE, below, re.M
    ):
        name, number, unit = row
        sentence = Sentence(document["suite"], "headline", f"{name}: {number} {unit}/s")
        low, high = printed(number, BINARY[unit])
        shown = any(low * 0.995 <= (one + other) / 2 <= high * 1.005 for one, other in rates)
        sentence.require(shown, "no row of the tables has this figure")
        sentences.append(sentence)
    wrapped = " ".join(below.split())
    for finding in document.get("findings", []):
        if " ".join(finding["text"].split()) in wrapped:
            sentence = Sentence(document["suite"], "beside", finding["text"])
            for one in found.trials_of(finding["evidence"]):
                ranges, value = (times, one.median("p50")) if one.is_latency else (rates, one.median("throughput"))
                sentence.require(
                    is_among(value, [(low * 0.995, high * 1.005) for low, high in ranges]), f"no row shows {one.id}"
                )
            sentences.append(sentence)
    return sentences


def page(document, text):
    found = Document(document)
    requested = [one for one in found.trials if one.params.get("link") != "memory-copy"]
    measured = sum(one.record["estimate"] is not None for one in requested)
    sentences = []
    facts = re.search(r"^(\d+) trials?, (\d+) runs? in", text, re.M)
    if facts:
        sentence = Sentence(document["suite"], "page", facts.group(0))
        sentence.require(int(facts.group(1)) == measured, f"{measured} trials were measured")
        sentence.require(int(facts.group(2)) == sum(len(one.samples) for one in requested), "another number of runs")
        sentences.append(sentence)
    return sentences
