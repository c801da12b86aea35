"""The kinds of sentences of why: for each a pattern, and what must hold for its figures."""

import re

from figures import NUMBER, is_printed

SHARE = r"(\d+) %"
COUNT = rf"({NUMBER}) (bytes?|KiB)"
# What a stage is busy with, and its field. Of other waits, the words say more than the field.
WAITS = {
    "computing": "computing",
    "waiting for a CPU": "waiting_for_cpu",
    "waiting for the disk": "disk",
    "waiting for the network": "network",
    "waiting for clients to connect": "network",
    "waiting for the terminal": "terminal",
    "sleeping": "sleep",
    "waiting for its children": "children",
    "waiting for a lock, a timer or another thread": "lock",
    "stopped": "stopped",
    "hidden": "unknown",
}
BUSY = r"busy (\d+) %(?:, waits (\d+) %)?(?: of the (\d+) % of the time for which it existed)?"


def waits(stage):
    names = ("disk", "network", "terminal", "sleep", "children", "lock", "stopped", "other")
    return min(sum(stage[name] for name in names), stage["busy"])


def check_share(sentence, shown, share, what):
    sentence.require(is_printed(shown, share * 100), f"{what}: {share:.1%}, not {shown} %")


def check_row(sentence, report, stage, heading, shown):
    cell = report.rows.get(stage["number"], {}).get(heading)
    sentence.require(cell in (None, f"{shown} %"), f"the table says {cell}")


def check_busy(sentence, report, name, words):
    """'busy 60 %, waits 22 %' is what the table shows."""
    stage = report.stage(name)
    busy, idle, present = re.fullmatch(BUSY, words).groups()
    check_share(sentence, busy, max(stage["busy"] - waits(stage), 0), "busy")
    check_row(sentence, report, stage, "busy", busy)
    check_share(sentence, idle or "0", waits(stage), "waits")
    sentence.require(bool(present) == (stage["present"] < 0.9), f"it existed for {stage['present']:.0%}")


def activity(sentence, stage, words, shown, of_cpu):
    field = WAITS.get(words, "other")
    share = stage["cpu"] if of_cpu else stage[field]
    # A description of another wait may be of the network too.
    if field == "other" and not is_printed(shown, share * 100):
        share = stage["network"]
    check_share(sentence, shown, share, words)
    return stage[field]


def holds(sentence, report, found):
    name, first, share, unit, children, second, other = found.groups()
    stage = report.stage(name)
    one = activity(sentence, stage, first, share, of_cpu=unit == "one CPU")
    if unit == "one CPU":
        check_row(sentence, report, stage, "CPU", share)
    if children:
        check_share(sentence, children, min(stage["cpu_of_children"] / stage["cpu"], 1), "child processes")
    if second:
        two = activity(sentence, stage, second, other, of_cpu=False)
        # Computing and waiting for a CPU come first if they outweigh the rest together.
        pair = one + (stage["waiting_for_cpu"] if first == "computing" else stage["computing"])
        kernel = stage["kernel"] or 0
        more = {"computing": pair, "waiting for a CPU": pair, "waiting for the disk": one + kernel}
        sentence.require(more.get(first, one) >= two, f"{second} takes longer")


def per_call(sentence, report, found):
    name, verb, count, unit, rate, letter = found.groups()
    stage = report.stage(name)
    check_mean(sentence, stage, verb, count, unit)
    calls = (stage["reads_per_second"] or 0) + (stage["writes_per_second"] or 0)
    sentence.require(is_printed(rate, calls, {" k": 1e3, " M": 1e6}.get(letter, 1)), f"{calls:.4g} calls/s")


def check_mean(sentence, stage, verb, count, unit):
    mean = stage["bytes_per_read" if verb == "reads" else "bytes_per_write"]
    sentence.require(is_printed(count, max(mean, 1), 1024 if unit == "KiB" else 1), f"{mean:.4g} bytes")


def small_calls(sentence, report, found):
    """A stage that computes also makes small calls; the sentence is about the stage of the sentence before."""
    verb, count, unit, share, whose = found.groups()
    check_mean(sentence, report.subject, verb, count, unit)
    if whose == "its":
        check_share(sentence, share, min(report.subject["kernel"] / report.subject["cpu"], 1), "system calls")


def others_wait(sentence, report, _found):
    for one in report.stages:
        if one is not report.subject:
            idle = one["starved"] + one["blocked"] + one["unknown"]
            sentence.require(idle >= 0.8 or one["present"] < 0.2, f"{one['name']} waits {idle:.0%}")


def bound(sentence, report, found):
    own, most, second = found.groups()
    share = [one["busy"] * one["present"] for one in (report.stage(own), report.stage(second))]
    of_shares = share[0] / max(share[1], 1e-9)
    sentence.require(float(most) >= 1, "less than once")
    sentence.require(float(most) <= of_shares * 1.35 + 0.3, f"the busy shares have the ratio {of_shares:.2f}")
    sentence.require(own != second, "the next bottleneck is the same stage")


def existed(sentence, report, found):
    check_share(sentence, found.group(1), report.subject["present"], "it existed")


def kinds_of_work(sentence, report, found):
    kinds = (report.subject.get("profile") or {}).get("kinds", [])
    shown = re.findall(r"(\d+) % ", found.group(1))
    for number, kind in zip(shown, kinds):
        check_share(sentence, number, kind["share"], kind.get("kind", "work"))
    sentence.require(len(shown) <= len(kinds), f"{len(kinds)} kinds of work")


def kind_of_work(sentence, report, found):
    kinds = (report.stage(found.group(1)).get("profile") or {}).get("kinds", [])
    shares = [kind["share"] * 100 for kind in kinds]
    sentence.require(any(is_printed(found.group(2), share) for share in shares), f"{shares}")


def has_read(sentence, report, found):
    number, unit, seconds = found.group("read", "unit", "silent")
    stage = report.stage(found.group("name"))
    scale = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}[unit]
    # A program reads other files too. What it has read of its pipe is at most what was written there.
    writers = [report.stages[pipe["from"] - 1] for pipe in report.pipes if pipe["to"] == stage["number"]]
    rates = [(one["bytes_per_write"] or 0) * (one["writes_per_second"] or 0) for one in writers]
    written = int(sum(rates) * stage["seconds_silent"])
    possible = [own for own in (stage["held_bytes"], written) if own]
    right = not possible or any(is_printed(number, own, scale) for own in possible)
    sentence.require(right, f"{possible} bytes")
    sentence.require(is_printed(seconds, stage["seconds_silent"]), f"{stage['seconds_silent']:.2f} s")


def runs_silently(sentence, report, found):
    silent = report.stage(found.group(1))["seconds_silent"]
    sentence.require(is_printed(found.group(2), silent), f"{silent:.2f} s")


def bursts(sentence, report, found):
    first, size, second, writer, waits_for_room, reader, waits_for_data = found.groups()
    pipe = report.pipe((first, second))
    sentence.require((first, second) == (writer, reader) and pipe, "no such pipe")
    sentence.require(float(size) > 1, "a pipe can hold that")
    if pipe:
        check_share(sentence, waits_for_room, pipe["writer_waits"], writer)
        check_share(sentence, waits_for_data, pipe["reader_waits"], reader)


def pipe_waits(sentence, report, ends, writer, reader):
    pipe = report.pipe(ends)
    sentence.require(pipe, "no such pipe")
    if pipe:
        check_share(sentence, writer, pipe["writer_waits"], "writer")
        check_share(sentence, reader, pipe["reader_waits"], "reader")


def small_pipe(sentence, report, found):
    pipe_waits(sentence, report, found.group(1, 2), *found.group(3, 4))


def stage_or_pipe(sentence, report, found):
    check_busy(sentence, report, found.group(1), found.group("busy"))
    pipe_waits(sentence, report, found.group("from", "to"), *found.group("writer", "reader"))


def tiny_pipe(sentence, report, found):
    pipe = report.pipe(found.group(1, 2))
    sentence.require(pipe and pipe["capacity"] == int(found.group(3)) * 1024, f"{pipe}")
    switches = [report.stage(name)["switches_per_second"] or 0 for name in found.group(1, 2)]
    sentence.require(is_printed(found.group(4), min(switches)), f"{switches} switches")


def alike(sentence, report, found):
    for name, busy in (found.group("one", "busy"), found.group("other", "busy2")):
        check_busy(sentence, report, name, busy)


def work_alike(sentence, report, found):
    for name, share in (found.group(1, 2), found.group(3, 4)):
        stage = report.stage(name)
        working = (stage["busy"] - stage["sleep"]) * stage["present"]
        sentence.require(float(share) <= working * 100 + 1, f"{name} is busy for {working:.0%}")


def cpus_shared(sentence, report, found):
    wanted = sum(((one["cpu"] or 0) + (one["cpu_wait"] or 0)) * one["present"] for one in report.stages)
    sentence.require(float(found.group(1)) <= wanted * 1.01 + 0.06, f"they need {wanted:.2f} CPUs")
    sentence.require(float(found.group(1)) > int(found.group(2)), "the CPUs are enough")


def waits_for_peer(sentence, report, found):
    stage = report.stage(found.group(1))
    own = [stage["network"] + stage["other"], stage["sleep"] + stage["network"] + stage["other"] + stage["lock"]]
    own += [stage["starved"], stage["blocked"], stage["starved"] + stage["other"], stage["lock"] + stage["sleep"]]
    sentence.require(any(is_printed(found.group(2), share * 100) for share in own), f"{[f'{one:.0%}' for one in own]}")
    peer, pid = stage["peer"], found.groupdict().get("pid")
    if pid and peer:
        shown = found.group("who"), int(pid)
        sentence.require(shown == (peer["name"], peer["pid"]), f"the peer is {peer['name']} (PID {peer['pid']})")


def starts(sentence, report, found):
    stage = report.stage(found.group(1))
    sentence.require(is_printed(found.group(2), stage["starts_per_second"]), f"{stage['starts_per_second']:.1f}")
    least, most = stage["cpu_of_children"] or 0, stage["cpu"]
    shown = float(found.group(3)) / 100
    sentence.require(least - 0.006 <= shown <= most + 0.006, f"between {least:.0%} and {most:.0%} of a CPU")


def in_vain(sentence, report, found):
    stage = report.stage(found.group(1))
    ratio = (stage["bytes_out_per_second"] or 0) / (stage["bytes_in_per_second"] or float("inf"))
    if found.group("share"):
        check_share(sentence, found.group("share"), ratio, "output")
    else:
        sentence.require(ratio > 0.98, f"its output is {ratio:.0%} of its input")


def stopped(sentence, report, found):
    check_share(sentence, found.group(2), report.stage(found.group(1))["stopped"], "stopped")


def deadlock(sentence, report, found):
    """Processes of stages have the names of the table, unless a stage has several."""
    by_pid = {one["pid"]: one["name"] for one in report.stages if one["processes"] == 1}
    for name, pid in re.findall(r"(\S+) \(PID (\d+)\)", found.group(0)):
        own = by_pid.get(int(pid), name)
        sentence.require(own == name, f"PID {pid} is {own} in the table")


def no_figures(_sentence, _report, _found):
    pass


def patterns(name):
    silent = rf"has read (?P<read>{NUMBER}) (?P<unit>B|KiB|MiB|GiB) and written nothing for (?P<silent>{NUMBER}) s"
    work = r"(.+?) \((\d+) % of (one CPU|the time)(?:, (\d+) % of it in child processes)?\)"
    pipe_shares = rf"its writer waits for room {SHARE} of the time, its reader waits for data {SHARE}"
    either = rf"(?P<one>{name[1:-1]}) \((?P<busy>{BUSY})\) (?:and|or) (?P<other>{name[1:-1]}) \((?P<busy2>{BUSY})\)"
    who = r"(?P<who>\S+)(?: \(PID (?P<pid>\d+)\))?"
    return [
        ("computing", rf"{name} holds the pipeline back: {work}(?:, and (.+?) \((\d+) %\))?\.", holds),
        (
            "calls",
            rf"{name} (reads|writes) {COUNT} per call \(({NUMBER})( [kM])? calls/s(?: in all)?\): "
            r"the calls cost more than the bytes\.",
            per_call,
        ),
        ("as many calls", rf"{name} must make just as many calls\.", no_figures),
        (
            "small calls",
            rf"It (reads|writes) {COUNT} per call: system calls take {SHARE} of (its|the calling thread's)"
            r" CPU time\.",
            small_calls,
        ),
        ("others wait", r"All other stages wait for it nearly all the time\.", others_wait),
        (
            "bound",
            rf"A faster {name} makes the pipeline at most ([\d.]+) times as fast; then {name} is the" r" bottleneck\.",
            bound,
        ),
        ("existed", rf"That stage existed for only {SHARE} of the time\.", existed),
        ("kinds of work", r"Of its CPU time: ([^.]*)\.", kinds_of_work),
        ("kind of work", rf"{name}: {SHARE} of its CPU time is [^.]*\.", kind_of_work),
        (
            "silent",
            rf"(?P<name>{name[1:-1]}) (?:buffers its output|stores all of its input|writes nothing before|"
            rf"fills its buffer|reads up to 5 s)[^.]*?{silent}\.(?: It writes to a pipe or a file only when its"
            r" buffer is full\.| The stages after \S+ can't work at the same time as those before it\.)?",
            has_read,
        ),
        (
            "runs silently",
            rf"{name} runs from time to time, but has written nothing for ({NUMBER}) s: [^.]*\.",
            runs_silently,
        ),
        (
            "bursts",
            rf"{name} sends bursts of about ({NUMBER}) MiB to {name}, more than a pipe can hold: {name} waits"
            rf" for room {SHARE} of the time, {name} waits for data {SHARE}\.",
            bursts,
        ),
        ("small pipe", rf"The pipe from {name} to {name} is too small to absorb bursts: {pipe_shares}\.", small_pipe),
        (
            "near a pipe's size",
            r"The bursts are about [\d.]+ MiB; even the largest pipe may not hold them\.",
            no_figures,
        ),
        (
            "stage or pipe",
            rf"Inconclusive: either {name} \((?P<busy>{BUSY})\) or the pipe from (?P<from>{name[1:-1]}) to"
            rf" (?P<to>{name[1:-1]}) \(its writer waits for room (?P<writer>\d+) % of the time, its reader"
            r" waits for data (?P<reader>\d+) %\) holds the pipeline back\.",
            stage_or_pipe,
        ),
        ("either", rf"Inconclusive after \d+ samples: either {either} holds the pipeline back\.", alike),
        (
            "balanced",
            rf"The pipeline is balanced: {either} are busy alike\. Making only one of them faster gains" r" little\.",
            alike,
        ),
        (
            "works alike",
            rf"The pipeline is balanced: {name} works for {SHARE} of the time and {name} {SHARE}\. Making"
            r" only one of them faster gains little\.",
            work_alike,
        ),
        (
            "tiny pipe",
            rf"The pipe from {name} to {name} holds only (\d+) KiB: its writer and reader wake each other"
            r" (\d+) times per second\.",
            tiny_pipe,
        ),
        (
            "CPUs",
            r"The stages compete for CPUs: together they need ([\d.]+) CPUs, but may use only (\d+)\. Making any"
            r" stage faster helps all of them\.",
            cpus_shared,
        ),
        (
            "peer",
            rf"{name} waits {SHARE} of the time for (?:room in a pipe to |data from |a lock on \S+, which )?{who}"
            r"(?:, a process outside this pipeline| to (?:send|accept its) data over [^.]*| holds)\.",
            waits_for_peer,
        ),
        ("rate limit", rf"{name} limits its own rate \([^)]*\): it waits {SHARE} of the time\.", waits_for_peer),
        (
            "starts",
            rf"{name} starts (\d+) processes per second; (?:starting them uses|they use) {SHARE} of one CPU"
            r"[^.]*\.",
            starts,
        ),
        (
            "in vain",
            rf"{name} compresses (?:in vain|what {name} has compressed): its output is (?:(?P<share>\d+) % of"
            r"|no smaller than) its input\.",
            in_vain,
        ),
        ("stopped", rf"\S+ traces {name}, which is stopped for {SHARE} of the time\.", stopped),
        (
            "stopped",
            rf"{name} is stopped {SHARE} of the time: another program, such as cpulimit, stops and resumes it"
            r" repeatedly\.",
            stopped,
        ),
        ("deadlock", r"Deadlock: .*?\.(?= [A-Z]|$)", deadlock),
        ("alarm", r"An alarm of one of these processes may end it; /proc doesn't show alarms\.", no_figures),
        (
            "locks of its own",
            rf"{name} holds the pipeline back: for {SHARE} of the time, more of its processes are"
            r" waiting for a file lock than are running\.",
            no_figures,
        ),
        (
            "input",
            rf"The (?:input|reader of the output) may hold the pipeline back: {name} waits {SHARE} of the time for"
            r" (?:data from|room in) a pipe whose (?:writer|reader) is not visible\.",
            no_figures,
        ),
        ("idle", r"No data moves: [^.]*\.", no_figures),
        (
            "polls",
            rf"{name} reads in a loop instead of waiting for input, so its {SHARE} of a CPU are mostly wasted\.",
            lambda sentence, report, found: check_row(
                sentence, report, report.stage(found.group(1)), "CPU", found.group(2)
            ),
        ),
        (
            "too short",
            r"(?:Too short for a verdict|Nothing to sample|The bottleneck may be)[^.]*?\.(?= [A-Z]|$)",
            no_figures,
        ),
        ("several", r"\d+ separate pipelines\.", no_figures),
        ("TCP", r"For \d+ % of that time, [^.]*\.", no_figures),
    ]
