"""The trials of a document with the figures of their runs, and their ratios."""

from figures import GIB, estimate


class Trial:
    """A trial with the figures of its runs."""

    def __init__(self, record):
        self.record, self.id, self.experiment = record, record["id"], record["experiment"]
        self.params, self.samples = record["params"], record["samples"]
        self.volume = self.params.get("volume")

    def of(self, run, name):
        if name == "throughput":
            return run["bytes"] * 1e9 / run["ns"]
        if name == "cpu":
            cpu = (run["user_ns"] + run["sys_ns"]) / 1e9
            # A round trip has two messages.
            trips = (run.get("latency") or {}).get("round_trips")
            return cpu / (2 * trips / 1e6) if trips else cpu / (run["bytes"] / GIB)
        if name == "filter_cpu":
            own = (run.get("pipeline") or {}).get("filter")
            return (own["user_ns"] + own["sys_ns"]) / 1e9 / (run["bytes"] / GIB) if own else None
        if name == "filter_switches":
            processes = [one for one in (run.get("pipeline") or {}).values() if one]
            return sum(one["context_switches"] for one in processes) / (run["bytes"] / 2**20) if processes else None
        if name == "real":
            return float(run.get("real_ns") or run["wall_ns"])
        trip = run.get("latency") or {}
        return float(trip[name]) if trip.get(name) else None

    def figures(self, name):
        found = [self.of(run, name) for run in self.samples]
        return None if None in found or not found else found

    def median(self, name):
        found = self.figures(name)
        return estimate(found)[0] if found else None

    def ends(self, name):
        return estimate(self.figures(name))[1:]

    @property
    def is_latency(self):
        return any(run.get("latency") for run in self.samples)

    @property
    def speed_name(self):
        return "p50" if self.is_latency else "throughput"

    @property
    def speed(self):
        median = self.median(self.speed_name)
        return 1e9 / median if self.is_latency else median

    @property
    def block(self):
        return self.params.get("block")

    @property
    def capacity(self):
        asked = self.params.get("capacity")
        granted = next((run["capacity_granted"] for run in self.samples if run.get("capacity_granted")), None)
        return granted or (asked if isinstance(asked, int) else None)

    @property
    def is_measured(self):
        wrong = self.record["status"] != "ok" or self.record["verified"] is False
        above = [own for own in self.record["warnings"] if own["kind"] == "above-ceiling"]
        unusable = any(2 * own["above"] > own["runs"] or own["runs"] == 0 for own in above)
        return bool(self.samples) and not wrong and not unusable and self.record["estimate"] is not None

    def settings(self, without):
        """The parameters except some, to find the trials that differ only in these."""
        return {key: value for key, value in self.params.items() if key not in without}


def ratio(new, base, name):
    """The ratio of a figure within rounds: its estimate, and the ratio of the medians."""
    of_base = {run["round"]: base.of(run, name) for run in base.samples}
    of_new = [(run["round"], new.of(run, name)) for run in new.samples]
    ratios = [own / of_base[at] for at, own in of_new if own and of_base.get(at)]
    found = estimate(ratios)
    medians = new.median(name), base.median(name)
    if not found or None in medians:
        return None
    return *found, medians[0] / medians[1]


def inverse(found):
    median, low, high, of_medians = found
    return 1 / median, high and 1 / high, low and 1 / low, 1 / of_medians


def speed_ratio(new, base):
    name = new.speed_name
    found = ratio(new, base, name)
    return inverse(found) if found and name == "p50" else found


def equivalent(one, other):
    if one is None or other is None or one == other:
        return one == other
    (kind, value), (other_kind, other_value) = next(iter(one.items())), next(iter(other.items()))
    # A volume is rounded to whole blocks, and tables show volumes that are nearly equal beside each other.
    return kind == other_kind and kind == "total" and abs(value - other_value) <= 0.05 * max(value, other_value)


class Document:
    """A document, with the trials that a finding points to."""

    def __init__(self, document):
        self.document = document
        self.trials = [Trial(record) for record in document["trials"]]
        self.by_id = {(one.experiment, one.id): one for one in self.trials}

    def trials_of(self, evidence):
        """The trials that a finding points to."""
        found = []

        def collect(json):
            if isinstance(json, dict):
                if "trial" in json and "experiment" in json:
                    found.append(self.by_id[json["experiment"], json["trial"]])
                for value in json.values():
                    collect(value)
            elif isinstance(json, list):
                for value in json:
                    collect(value)

        collect(evidence)
        return list(dict.fromkeys(found))

    def pairs_of(self, evidence):
        """The pairs of trials that a finding compares."""
        found = []

        def collect(json):
            if isinstance(json, dict):
                ends = json.get("of"), json.get("to")
                if all(isinstance(end, dict) and "trial" in end for end in ends):
                    found.append([self.by_id[end["experiment"], end["trial"]] for end in ends])
                for value in json.values():
                    collect(value)
            elif isinstance(json, list):
                for value in json:
                    collect(value)

        collect(evidence)
        return found

    def beside(self, one, varies):
        """The measured trials of the same table that differ from one only in these parameters."""
        alike = [
            other
            for other in self.trials
            if other.experiment == one.experiment
            and other.is_measured
            and other.settings([*varies, "volume"]) == one.settings([*varies, "volume"])
            and equivalent(other.volume, one.volume)
        ]
        return alike
