"""The sentences of a document: its findings, and what the screen and the page say. Each is recomputed from the runs."""

import costs
import languages
import pipes
import screen
from filters import of_filters
from sentence import Sentence, check_ratios, check_settings
from trials import Document

RULES = {
    "best-block": pipes.best_block,
    "capacity": pipes.capacity,
    "zero-copy": pipes.zero_copy,
    "fresh-data": pipes.zero_copy,
    "place": pipes.place,
    "wait": pipes.wait,
    "gap": pipes.gap,
    "round-trip": pipes.round_trip,
    "tail": pipes.tail,
    "best-link": pipes.best_link,
    "crossing": pipes.crossing,
    "shared-memory": pipes.shared_memory,
    "harness": pipes.harness,
    "memory-copy": pipes.memory_copy,
    "recommended": pipes.recommended,
    "published": pipes.published,
    "chain-cost": costs.chain_cost,
    "chain-published": costs.chain_published,
    "call-cost": costs.call_cost,
    "message-cost": costs.message_cost,
    "place-groups": costs.place_groups,
    "tuning": languages.tuning,
    "language-gap": languages.language_gap,
    "start-up": languages.start_up,
    "language-by-block": languages.language_by_block,
    "language-best-block": languages.language_best_block,
}


def check_finding(document, finding):
    sentence = Sentence(document.document["suite"], finding["rule"], finding["text"])
    trials, pairs = document.trials_of(finding["evidence"]), document.pairs_of(finding["evidence"])
    check_ratios(sentence, pairs)
    check_settings(sentence, trials, finding["rule"])
    filters = trials and all("filter" in one.params for one in trials)
    rule = RULES.get(finding["rule"]) or (of_filters if filters else None)
    if rule is None:
        sentence.require(False, "no check knows this kind of sentence")
    else:
        rule(sentence, document, finding, trials, pairs)
    return sentence


def check(document, brief="", report=""):
    """All sentences of a document."""
    found = Document(document)
    findings = [check_finding(found, finding) for finding in document.get("findings", [])]
    return findings + screen.screen(document, brief) + screen.page(document, report)
