//! Runs that are too short to settle a claim.

use pipemark_model::{ByteSize, Claim, MAX_START, Record, Sample, Unit, Volume, bytes_in_words, three_digits};
use pipemark_stats::estimate::median;

/// The figures that include process start. For chains, they are measured from the start of the first process to the end
/// of the last.
const INCLUDE_START: [&str; 7] =
    ["real_ns", "real_ns_per_gib", "per_hop", "user_time_ns", "system_time_ns", "system_percent", "cpus"];
/// Figures that don't depend on the duration of a run.
const EXACT: [&str; 2] = ["copies", "granted"];
/// The least duration of a run in nanoseconds. The ends begin within about 0.2 ms of each other, which is 2 % of such a
/// run.
const MIN_RUN: f64 = 10e6;
/// The least duration of a filter's run in nanoseconds. Its clock includes the start of the program, which takes about
/// 1 ms: 5 % of such a run.
const MIN_FILTER_RUN: f64 = 20e6;

/// The reason why the runs of a trial are too short for a claim.
pub struct Shortfall {
    /// The volume of a run that would be enough, relative to the measured volume.
    pub factor: f64,
    measured: String,
    needs: String,
    /// The share of the time taken by process start, 0 to 1; `None` if the runs are too short for another reason.
    start: Option<f64>,
}

impl Shortfall {
    /// Compares numbers of bytes, or of nanoseconds if the volume of a run is a time.
    fn of(volume: Volume, (measured, needs): (f64, f64), start: Option<f64>) -> Shortfall {
        let [of_run, enough] = [measured, needs.ceil()].map(|amount| match volume {
            Volume::Total(_) => bytes_in_words(amount as u64),
            Volume::Time(_) => Unit::Nanoseconds.show(amount),
        });
        Shortfall { factor: needs / measured, measured: of_run, needs: enough, start }
    }

    /// The reason, and the volume that would be enough.
    pub fn in_words(&self) -> String {
        let start = self.start.map_or_else(String::new, |share| {
            format!(" (starting the processes took {} %)", three_digits(share * 100.0))
        });
        format!("runs of {} are too short{start}; {} are needed", self.measured, self.needs)
    }
}

/// The reason why a trial is too short to settle a claim; `None` if it isn't. pipemark's own source and sink and
/// entrants start the clock when all processes have started, so only figures of chains include the start of processes.
/// The clock of other runs includes at most the first wakeups, or the start of a filter's program; such runs must last
/// at least [`MIN_RUN`] or [`MIN_FILTER_RUN`].
pub fn shortfall(claim: &Claim, record: &Record) -> Option<Shortfall> {
    let middle = |figure: &dyn Fn(&Sample) -> Option<f64>| {
        let figures: Option<Vec<f64>> = record.samples.iter().map(figure).collect();
        median(&figures?)
    };
    let volume = record.job.volume();
    let bytes = middle(&|sample| Some(sample.bytes as f64))?;
    let block = record.job.block().map_or(1, |block| block.0);
    let least = claim.least.max(claim.least_blocks.map(|blocks| blocks.saturating_mul(block)));
    if let Some(needs) = least.map(|least| least as f64).filter(|needs| bytes < *needs) {
        return Some(Shortfall::of(Volume::Total(ByteSize(bytes as u64)), (bytes, needs), None));
    }
    let inside = middle(&|sample| Some(sample.ns as f64))?;
    let includes_start = record.job.chain().is_some() && INCLUDE_START.contains(&claim.figure.as_str());
    if !includes_start {
        let least = if record.job.lines().is_some() { MIN_FILTER_RUN } else { MIN_RUN };
        let amount = if matches!(volume, Volume::Total(_)) { bytes } else { inside };
        let short = inside < least && !EXACT.contains(&claim.figure.as_str());
        return short.then(|| Shortfall::of(volume, (amount, amount * least / inside), None));
    }
    let start = middle(&|sample| Some(sample.real().saturating_sub(sample.ns) as f64))?;
    let share = start / (start + inside);
    // The start time doesn't depend on the volume, and the remaining time is proportional to it.
    let needs = bytes * (start / MAX_START - start) / inside;
    (share > MAX_START).then(|| Shortfall::of(volume, (bytes, needs), Some(share)))
}
