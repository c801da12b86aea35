"""Figures in texts, and the statistics that they are of.

This follows docs/method.md, in another language than the program, so that a mistake of the program isn't
repeated here."""

import re
from math import isfinite, sqrt

GIB = 2**30
BINARY = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
TIMES = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9}
LETTERS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}

NUMBER = r"(?:\d+(?:\.\d+)?|<?\.001|<0\.001)"
SIZE = r"\d+(?:\.\d+)? (?:B|KiB|MiB|GiB)"
RATE = rf"({NUMBER}) (B|KiB|MiB|GiB|TiB)/s"
TIME = rf"({NUMBER}) (ns|µs|ms|s|min|h)\b"
RATIO = rf"({NUMBER})× \(({NUMBER})–({NUMBER})(, within rounds)?\)"
PERCENT = rf"({NUMBER}) % \(({NUMBER})–({NUMBER})(, within rounds)?\)"


def printed(number, unit=1.0):
    """The range of values that are printed as this number."""
    if "<" in number:
        return 0.0, 0.001 * unit
    digits = len(number.split(".")[1]) if "." in number else 0
    # From 100 on, a number has three digits or more, and its last may be rounded.
    half = 0.5 * 10.0**-digits
    value = float(number)
    return (value - half) * unit * (1 - 1e-9), (value + half) * unit * (1 + 1e-9)


def is_printed(number, value, unit=1.0):
    low, high = printed(number, unit)
    # Two roundings may lie between a value and its text, such as one to whole nanoseconds.
    slack = (high - low) * 0.06 + abs(value) * 1e-9
    return low - slack <= value <= high + slack


def size(text):
    number, unit = text.split(" ")
    return round(float(number) * BINARY[unit])


def geometric(one, other):
    return sqrt(one) * sqrt(other)


def estimate(values):
    """The Hodges-Lehmann estimate with its 95 % interval: (median, low, high). The ends are None if there are too few
    runs."""
    values = list(values)
    if not values or not all(isfinite(value) for value in values):
        return None
    mean = geometric if min(values) > 0 else lambda one, other: (one + other) / 2
    means = sorted(mean(one, other) for at, one in enumerate(values) for other in values[at:])
    count = len(means)
    middle = mean(means[(count - 1) // 2], means[count // 2])
    rank = signed_rank(len(values))
    if rank is None:
        return middle, None, None
    return middle, means[rank - 1], means[count - rank]


def signed_rank(runs):
    """The rank of the ends of the interval among the means: Wilcoxon's signed-rank test."""
    if runs < 5:
        return None
    ways = [1]
    for step in range(1, runs + 1):
        more = ways + [0] * step
        for at, count in enumerate(ways):
            more[at + step] += count
        ways = more
    below, rank = 0, 0
    for count in ways:
        below += count
        if 2 * below / 2**runs > 0.05 + 1e-12:
            break
        rank += 1
    return rank or 1


def line(points, relative):
    """The least-squares line through points: (intercept, slope, R²)."""
    weights = [1 / y**2 if relative else 1.0 for _, y in points]
    total = sum(weights)
    mean_x = sum(w * x for w, (x, _) in zip(weights, points)) / total
    mean_y = sum(w * y for w, (_, y) in zip(weights, points)) / total
    xx = sum(w * (x - mean_x) ** 2 for w, (x, _) in zip(weights, points))
    xy = sum(w * (x - mean_x) * (y - mean_y) for w, (x, y) in zip(weights, points))
    yy = sum(w * (y - mean_y) ** 2 for w, (_, y) in zip(weights, points))
    slope = xy / xx
    intercept = mean_y - slope * mean_x
    left = sum(w * (y - intercept - slope * x) ** 2 for w, (x, y) in zip(weights, points))
    return intercept, slope, 1.0 if yy == 0 else max(0.0, 1 - left / yy)


def differ(one, other, by=0.02):
    """Whether two ratios are too different to be called the same."""
    return abs(one / other - 1) > by


def all_figures(text):
    """All rates and times of a screen, in bytes per second and in nanoseconds, each with the range of its values."""
    rates = [printed(number, BINARY[unit]) for number, unit in re.findall(RATE, text)]
    # Compact tables: 3.01G bytes per second, 4.18µ seconds.
    compact = re.findall(rf"(?<![\w.])({NUMBER})([KMGT])(?![\w/])", text)
    rates += [printed(number, LETTERS[letter]) for number, letter in compact]
    times = [printed(number, TIMES[unit]) for number, unit in re.findall(TIME, text)]
    units = {"n": 1, "µ": 1e3, "m": 1e6}
    times += [printed(number, units[letter]) for number, letter in re.findall(rf"({NUMBER})([nµm])(?![\w])", text)]
    return rates, times


def is_among(value, ranges):
    return any(low * (1 - 1e-6) <= value <= high * (1 + 1e-6) for low, high in ranges)
