//! Detects whether a trial is bimodal, and computes the share of time in each mode.
//!
//! The pieces of all runs are pooled. The dip test decides whether the distribution of their speeds has more than one
//! peak (Hartigan and Hartigan, 1985). The dip is the distance of that distribution from the nearest distribution with
//! one peak. Pieces of one run are correlated, so the test uses a smaller number of pieces: it is reduced by the
//! intraclass correlation of runs or the first autocorrelation of pieces, whichever reduces it more. The speeds are
//! divided into two modes where the spread within the modes is least (Otsu, 1979). The modes are reported if the test
//! finds several peaks, or if they are far apart and each occurs in several runs.
//!
//! No disturbance makes a link faster. So a mode that is much faster than the main mode is reported even if it is rare,
//! provided that it raises the mean.

use pipemark_model::{Cpu, EndStats, Nanos, Pieces, Sample, Warning};

use crate::sessions::mean;

/// The critical value of the dip times the square root of the number of pieces. Uniform speeds, the flattest
/// distribution with one peak, exceed this value in one of a hundred cases.
const CRITICAL_DIP: f64 = 0.65;

/// The minimum number of pieces for the dip test.
const MIN_PIECES: usize = 20;

/// The minimum share of time in either mode, 0 to 1.
const MIN_SHARE: f64 = 0.1;
/// The minimum ratio of the modes' speeds.
const MIN_RATIO: f64 = 1.25;

/// Modes are reported without the dip test if they are at least this many spreads apart and each occurs in enough runs.
const FAR_APART: f64 = 7.0;
/// The minimum number of runs in each of the modes that are reported without the dip test.
const MIN_RUNS_PER_MODE: usize = 3;

/// The minimum ratio of a rare mode's speed to the main mode's speed.
const RARE_RATIO: f64 = 1.3;
/// The minimum distance of a rare mode from the main mode, as a number of spreads.
const RARE_SPREADS: f64 = 4.0;
/// The minimum increase of the mean by a rare mode, as a fraction.
const RARE_EFFECT: f64 = 0.03;

/// An idle share below this, 0 to 1, doesn't make an end slow.
const MAX_AWAKE_IDLE: f64 = 0.1;

/// One of the two modes of a bimodal trial.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct SpeedMode {
    ns: f64,
    bytes: f64,
    switches: f64,
    /// Time off the CPU in nanoseconds, of sources and of sinks.
    idle_ns: [f64; 2],
    /// The part of `idle_ns` in which an end was runnable but waited for a CPU.
    waiting_ns: f64,
    /// The number of pieces in the mode.
    pieces: usize,
    /// The number of runs with pieces in the mode.
    runs: usize,
    /// The largest number of this mode's pieces in one run.
    most: usize,
}

impl SpeedMode {
    fn add(&mut self, pieces: &Pieces, nth: usize) {
        let at = |list: &[u64]| list.get(nth).copied().unwrap_or(0) as f64;
        let ns = at(&pieces.ns);
        self.ns += ns;
        self.bytes += at(&pieces.bytes);
        self.switches += at(&pieces.switches);
        self.waiting_ns += at(&pieces.waiting_ns);
        self.pieces += 1;
        for (idle, used) in self.idle_ns.iter_mut().zip([&pieces.source_ns, &pieces.sink_ns]) {
            *idle += (ns - at(used)).max(0.0);
        }
    }

    fn speed(&self) -> f64 {
        self.bytes * 1e9 / self.ns
    }
}

/// A warning with the two modes, if a stream of blocks of this size (in bytes) is bimodal.
pub(super) fn regimes(samples: &[Sample], block: u64) -> Option<Warning> {
    let runs: Vec<&Pieces> = samples.iter().filter_map(|sample| sample.pieces.as_ref()).collect();
    let pieces: Vec<Vec<(usize, f64)>> = runs.iter().map(|pieces| log_speeds(pieces)).collect();
    let speeds: Vec<Vec<f64>> = pieces.iter().map(|run| run.iter().map(|(_, speed)| *speed).collect()).collect();
    let mut pooled = speeds.concat();
    pooled.sort_unstable_by(f64::total_cmp);
    if pooled.len() < MIN_PIECES {
        return None;
    }
    let split_at = |threshold: f64| {
        let mut parts = [SpeedMode::default(); 2];
        for (run, pieces) in runs.iter().zip(&pieces) {
            let before = parts.map(|part| part.pieces);
            pieces.iter().for_each(|(nth, speed)| parts[usize::from(*speed >= threshold)].add(run, *nth));
            for (part, before) in parts.iter_mut().zip(before) {
                part.runs += usize::from(part.pieces > before);
                part.most = part.most.max(part.pieces - before);
            }
        }
        parts
    };
    let two_modes = || {
        let (threshold, apart) = split(&pooled)?;
        let [slow, fast] = split_at(threshold);
        let share = slow.ns / (slow.ns + fast.ns);
        let runs_apart = apart >= FAR_APART && slow.runs.min(fast.runs) >= MIN_RUNS_PER_MODE;
        let bimodal = runs_apart || dip(&pooled) * independent_pieces(&speeds).sqrt() >= CRITICAL_DIP;
        let apart = fast.speed() >= MIN_RATIO * slow.speed();
        (bimodal && apart && (MIN_SHARE..=1.0 - MIN_SHARE).contains(&share)).then_some([slow, fast])
    };
    let rare = || {
        let median = pooled[pooled.len() / 2];
        let mut off: Vec<f64> = pooled.iter().map(|speed| (speed - median).abs()).collect();
        off.sort_unstable_by(f64::total_cmp);
        let spread = 1.4826 * off[off.len() / 2];
        let [slow, fast] = split_at(median + RARE_RATIO.ln().max(RARE_SPREADS * spread));
        let mean = (slow.bytes + fast.bytes) * 1e9 / (slow.ns + fast.ns);
        // A fast mode with pieces mostly from one run is an outlier.
        let often = fast.pieces >= 3 && (runs.len() == 1 || 3 * fast.most <= 2 * fast.pieces);
        (often && mean >= (1.0 + RARE_EFFECT) * slow.speed()).then_some([slow, fast])
    };
    let [slow, fast] = two_modes().or_else(rare)?;
    let slow_percent = 100.0 * slow.ns / (slow.ns + fast.ns);
    let cause = cause(&slow, &fast, block, samples);
    Some(Warning::Regimes { slow: slow.speed(), slow_percent, fast: fast.speed(), cause })
}

/// The cause of the two modes as text; `None` if the kernel's counters don't show it.
fn cause(slow: &SpeedMode, fast: &SpeedMode, block: u64, samples: &[Sample]) -> Option<String> {
    let per_block = |regime: &SpeedMode| regime.switches * block as f64 / regime.bytes.max(1.0);
    let waiting = |regime: &SpeedMode| regime.waiting_ns / regime.ns;
    // A memory copy has a single end, which waits for no other.
    let alone = samples.iter().any(|sample| sample.sources.is_empty() && !sample.sinks.is_empty());
    if alone || slow.switches + fast.switches == 0.0 {
        return None;
    }
    let pins = |ends: fn(&Sample) -> &Vec<EndStats>| -> Vec<Cpu> {
        samples.iter().flat_map(ends).filter_map(|end| end.pinned.clone()).flatten().collect()
    };
    let (sources, sinks) = (pins(|sample| &sample.sources), pins(|sample| &sample.sinks));
    let free = sources.is_empty() || sinks.is_empty();
    let apart = sources.len() == samples.len() && !free && !sources.iter().any(|cpu| sinks.contains(cpu));
    // The kernel counts a wait only when the wait ends, which may be in a later piece.
    let in_all = (slow.waiting_ns + fast.waiting_ns) / (slow.ns + fast.ns);
    match waiting(fast) - waiting(slow) {
        more if more > 0.3 && free && waiting(slow) < 0.3 => {
            return Some("faster while both ends shared a CPU".to_owned());
        }
        less if less < -0.2 => return Some("slower while the ends waited for a CPU".to_owned()),
        _ if apart && in_all > 0.2 => {
            return Some(format!("the ends waited for a CPU {:.0} % of the time", 50.0 * in_all));
        }
        _ => {}
    }
    // The end that sleeps more is the end whose idle share is higher in the slow mode than in the fast mode.
    let idle = |regime: &SpeedMode| regime.idle_ns.map(|ns| ns / regime.ns);
    let (slow_idle, fast_idle) = (idle(slow), idle(fast));
    if slow_idle.iter().chain(&fast_idle).all(|share| *share < MAX_AWAKE_IDLE) {
        return Some("the ends hardly slept in either mode".to_owned());
    }
    let [source, sink] = [0, 1].map(|side| slow_idle[side] - fast_idle[side]);
    Some(match (per_block(slow), per_block(fast)) {
        (slow_often, fast_often) if slow_often < 1.5 * fast_often && fast_often < 1.5 * slow_often => {
            let each =
                |regime: &SpeedMode| Nanos((regime.idle_ns.iter().sum::<f64>() / regime.switches.max(1.0)) as u64);
            format!(
                "the ends slept about as often in both modes, for {} each time in the slow mode and {} in the fast mode",
                each(slow),
                each(fast)
            )
        }
        (slow, fast) => {
            let who = match source - sink {
                more if more > 0.1 => "mostly the source slept",
                less if less < -0.1 => "mostly the sink slept",
                _ => "both ends slept",
            };
            format!("{who} ({slow:.2} context switches per block in the slow mode, {fast:.2} in the fast mode)")
        }
    })
}

/// The index and log speed of each piece. Pieces in which no bytes arrived are omitted, because other processes used
/// the CPUs then.
fn log_speeds(pieces: &Pieces) -> Vec<(usize, f64)> {
    let speed = |(bytes, ns): (&u64, &u64)| (*bytes as f64 / (*ns).max(1) as f64).ln();
    pieces.bytes.iter().zip(&pieces.ns).map(speed).enumerate().filter(|(_, speed)| speed.is_finite()).collect()
}

/// The effective number of pieces: how many independent pieces would contain as much information.
fn independent_pieces(runs: &[Vec<f64>]) -> f64 {
    let runs: Vec<&[f64]> = runs.iter().map(Vec::as_slice).filter(|run| run.len() > 1).collect();
    let count = runs.iter().map(|run| run.len()).sum::<usize>() as f64;
    let all = runs.iter().map(|run| run.iter().sum::<f64>()).sum::<f64>() / count;
    let (mut within, mut between, mut next) = (0.0, 0.0, 0.0);
    for run in &runs {
        let own = mean(run);
        between += run.len() as f64 * (own - all).powi(2);
        within += run.iter().map(|speed| (speed - own).powi(2)).sum::<f64>();
        next += run.windows(2).map(|pair| (pair[0] - own) * (pair[1] - own)).sum::<f64>();
    }
    if within == 0.0 {
        return runs.len() as f64;
    }
    let per_run = count / runs.len() as f64;
    // In short runs the correlation is underestimated, because the mean of the same run is subtracted.
    let correlation = ((next / within) + 1.0 / per_run).clamp(0.0, 0.99);
    let by_neighbours = count * (1.0 - correlation) / (1.0 + correlation);
    if runs.len() < 2 {
        return by_neighbours;
    }
    let between = between / (runs.len() as f64 - 1.0);
    let within = within / (count - runs.len() as f64);
    let intraclass = ((between - within) / (between + (per_run - 1.0) * within)).max(0.0);
    // Correlation within runs also makes runs differ, so the stronger of the two corrections is enough.
    by_neighbours.min(count / (1.0 + (per_run - 1.0) * intraclass))
}

/// Splits sorted figures where the spread within both parts is least. Returns the first figure of the upper part, and
/// the distance between the parts as a multiple of that spread.
fn split(sorted: &[f64]) -> Option<(f64, f64)> {
    let (count, sum) = (sorted.len() as f64, sorted.iter().sum::<f64>());
    let all = sorted.iter().map(|figure| (figure - sum / count).powi(2)).sum::<f64>();
    let mut before = 0.0;
    let between = |(nth, figure): (usize, &f64)| {
        before += figure;
        let below = nth as f64 + 1.0;
        let apart = before / below - (sum - before) / (count - below);
        (below * (count - below) / count * apart * apart, apart.abs(), nth + 1)
    };
    let parts = sorted[..sorted.len() - 1].iter().enumerate().map(between);
    let (between, apart, first) = parts.max_by(|one, other| one.0.total_cmp(&other.0))?;
    Some((sorted[first], apart / ((all - between).max(0.0) / count).sqrt()))
}

/// The dip of sorted figures, 0 to 0.25: the distance of their distribution from the nearest distribution with one
/// peak. The interval in which the peak may lie is narrowed by the greatest convex minorant and the least concave
/// majorant (algorithm AS 217).
fn dip(x: &[f64]) -> f64 {
    let n = x.len();
    if n < 4 || x[0] == x[n - 1] {
        return 0.0;
    }
    // The minorant's corner before each figure, and the majorant's corner after it.
    let mut minor = vec![0; n];
    for j in 1..n {
        minor[j] = j - 1;
        loop {
            let (a, b) = (minor[j], minor[minor[j]]);
            if a == 0 || (x[j] - x[a]) * ((a - b) as f64) < (x[a] - x[b]) * ((j - a) as f64) {
                break;
            }
            minor[j] = b;
        }
    }
    let mut major = vec![n - 1; n];
    for k in (0..n - 1).rev() {
        major[k] = k + 1;
        loop {
            let (a, b) = (major[k], major[major[k]]);
            if a == n - 1 || (x[k] - x[a]) * (a as f64 - b as f64) < (x[a] - x[b]) * (k as f64 - a as f64) {
                break;
            }
            major[k] = b;
        }
    }
    let chain = |from: usize, to: usize, next: &[usize]| {
        let mut corners = vec![from];
        while *corners.last().expect("never empty") != to {
            corners.push(next[*corners.last().expect("never empty")]);
        }
        corners
    };
    let (mut low, mut high, mut dip) = (0, n - 1, 1.0f64);
    loop {
        let gcm = chain(high, low, &minor);
        let lcm = chain(low, high, &major);
        // The largest distance between minorant and majorant, and the corners at which it occurs.
        let (mut ig, mut ih, mut d) = (gcm.len() - 1, lcm.len() - 1, 0.0);
        if gcm.len() != 2 || lcm.len() != 2 {
            let (mut ix, mut iv) = (gcm.len() - 2, 1);
            loop {
                let (g, l) = (gcm[ix], lcm[iv]);
                if g > l {
                    let g1 = gcm[ix + 1];
                    let dx = (l as f64 - g1 as f64 + 1.0) - (x[l] - x[g1]) * ((g - g1) as f64) / (x[g] - x[g1]);
                    iv += 1;
                    if dx >= d {
                        (d, ig, ih) = (dx, ix + 1, iv - 1);
                    }
                } else {
                    let l1 = lcm[iv - 1];
                    let dx = (x[g] - x[l1]) * ((l - l1) as f64) / (x[l] - x[l1]) - (g as f64 - l1 as f64 - 1.0);
                    if dx >= d {
                        (d, ig, ih) = (dx, ix, iv);
                    }
                    ix = ix.saturating_sub(1);
                }
                iv = iv.min(lcm.len() - 1);
                if gcm[ix] == lcm[iv] {
                    break;
                }
            }
        } else {
            d = 1.0;
        }
        if d < dip {
            break;
        }
        // The distance of the figures from either curve, outside the remaining interval.
        let off = |from: usize, to: usize, sign: f64| {
            if to - from < 2 || x[to] == x[from] {
                return 1.0;
            }
            let slope = (to - from) as f64 / (x[to] - x[from]);
            let distance = |k: usize| sign * ((k - from) as f64 - (x[k] - x[from]) * slope) + 1.0;
            (from..=to).map(distance).fold(1.0, f64::max)
        };
        let lower = gcm[ig..].windows(2).map(|pair| off(pair[1], pair[0], 1.0)).fold(0.0, f64::max);
        let upper = lcm[ih..].windows(2).map(|pair| off(pair[0], pair[1], -1.0)).fold(0.0, f64::max);
        dip = dip.max(lower).max(upper);
        if low == gcm[ig] && high == lcm[ih] {
            break;
        }
        (low, high) = (gcm[ig], lcm[ih]);
    }
    dip / (2.0 * n as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::Dice;

    #[test]
    fn the_dip_is_small_for_one_peak_and_a_quarter_for_two() {
        // Evenly spaced figures have the smallest possible dip, half a step.
        let even: Vec<f64> = (0..100).map(f64::from).collect();
        assert!((dip(&even) - 0.005).abs() < 1e-9, "{}", dip(&even));
        // Two points of equal weight have the largest possible dip, a quarter.
        let two: Vec<f64> = (0..100).map(|n| f64::from(n / 50) + f64::from(n) * 1e-9).collect();
        assert!((dip(&two) - 0.25).abs() < 0.01, "{}", dip(&two));
        // The dip of 100 uniform figures has a median of 0.0354, and exceeds 0.0515 in one case of twenty.
        let mut dice = Dice::new(7);
        let mut dips: Vec<f64> = (0..2000)
            .map(|_| {
                let mut figures: Vec<f64> = (0..100).map(|_| dice.uniform()).collect();
                figures.sort_unstable_by(f64::total_cmp);
                dip(&figures)
            })
            .collect();
        dips.sort_unstable_by(f64::total_cmp);
        assert!((dips[1000] - 0.0354).abs() < 0.0015, "{}", dips[1000]);
        assert!((dips[1900] - 0.0515).abs() < 0.0025, "{}", dips[1900]);
    }

    /// Runs with pieces of 10 ms. `speed` returns the logarithm of a piece's speed, given the numbers of the run and
    /// the piece. It is called in the order of runs and pieces.
    fn runs(count: usize, pieces: usize, mut speed: impl FnMut(usize, usize) -> f64) -> Vec<Sample> {
        let run = |run: usize, speed: &mut dyn FnMut(usize, usize) -> f64| {
            let bytes = (0..pieces).map(|nth| (1e7 * speed(run, nth).exp()) as u64).collect();
            let pieces = Pieces { ns: vec![10_000_000; pieces], bytes, ..Pieces::default() };
            Sample { pieces: Some(pieces), ..Sample::default() }
        };
        (0..count).map(|nth| run(nth, &mut speed)).collect()
    }

    fn detection_rate(trials: usize, mut one: impl FnMut() -> Vec<Sample>) -> f64 {
        (0..trials).filter(|_| regimes(&one(), 65536).is_some()).count() as f64 / trials as f64
    }

    #[test]
    fn unimodal_runs_are_rarely_called_bimodal() {
        let mut dice = Dice::new(11);
        let quiet = detection_rate(300, || runs(8, 25, |_, _| 0.2 * dice.normal()));
        let even = detection_rate(300, || runs(8, 25, |_, _| dice.uniform()));
        let skewed = detection_rate(300, || runs(8, 25, |_, _| -0.5 * (0.8 * dice.normal()).exp()));
        let outliers = detection_rate(300, || {
            runs(8, 25, |_, _| 0.05 * dice.normal() - if dice.uniform() < 0.07 { 2.0 * dice.uniform() } else { 0.0 })
        });
        let by_run = detection_rate(300, || {
            let levels: Vec<f64> = (0..12).map(|_| 0.5 * dice.normal()).collect();
            runs(12, 10, |run, _| levels[run] + 0.03 * dice.normal())
        });
        let mut last = 0.0;
        let echoing = detection_rate(300, || {
            runs(8, 40, |_, _| {
                last = 0.9 * last + 0.2 * dice.normal();
                last
            })
        });
        let drifting =
            detection_rate(300, || runs(10, 25, |run, nth| 0.004 * (25 * run + nth) as f64 + 0.05 * dice.normal()));
        let all = [quiet, even, skewed, outliers, by_run, echoing, drifting];
        assert!(all.iter().all(|share| *share <= 0.02), "{all:?}");
    }

    #[test]
    fn bimodal_runs_are_detected() {
        let mut dice = Dice::new(12);
        let by_chance = detection_rate(200, || {
            runs(8, 25, |_, _| 0.15 * dice.normal() + if dice.uniform() < 0.3 { 1.35 } else { 0.0 })
        });
        let mut fast = false;
        // The trial stays in a mode for six pieces on average.
        let staying = detection_rate(200, || {
            runs(10, 25, |_, _| {
                fast ^= dice.uniform() < 0.16;
                0.15 * dice.normal() + if fast { 1.35 } else { 0.0 }
            })
        });
        assert!(by_chance > 0.95 && staying > 0.8, "{by_chance} {staying}");
    }

    #[test]
    fn modes_that_last_whole_runs_are_detected() {
        let mut dice = Dice::new(13);
        // Four of the twelve runs are fast.
        let few =
            detection_rate(200, || runs(12, 5, |run, _| 0.15 * dice.normal() + if run % 3 == 0 { 1.35 } else { 0.0 }));
        assert!(few > 0.9, "{few}");
    }

    #[test]
    fn a_rare_mode_that_moves_the_mean_is_detected_but_not_an_outlier() {
        let mut dice = Dice::new(14);
        let rare = detection_rate(200, || {
            runs(20, 10, |_, nth| 0.15 * dice.normal() + if nth == 3 && dice.uniform() < 0.5 { 1.9 } else { 0.0 })
        });
        // One run is fast, or too few pieces are fast to raise the mean.
        let one =
            detection_rate(200, || runs(20, 10, |run, _| 0.15 * dice.normal() + if run == 7 { 1.9 } else { 0.0 }));
        let no_matter = detection_rate(200, || {
            runs(20, 20, |run, nth| 0.15 * dice.normal() + if run % 10 == 0 && nth == 3 { 1.0 } else { 0.0 })
        });
        assert!(rare > 0.9 && one == 0.0 && no_matter == 0.0, "{rare} {one} {no_matter}");
    }

    #[test]
    fn each_mode_has_its_share_and_its_cause() {
        let mut samples =
            runs(5, 20, |_, nth| if nth % 10 < 7 { 0.02 * (nth % 7) as f64 } else { 1.4 + 0.01 * (nth % 3) as f64 });
        let bare = regimes(&samples, 65536).unwrap().to_string();
        assert!(bare.starts_with("bimodal: ") && bare.contains("70 % of the time") && bare.ends_with("30 %"), "{bare}");
        for pieces in samples.iter_mut().filter_map(|sample| sample.pieces.as_mut()) {
            let slow = |nth: usize| nth % 10 < 7;
            pieces.switches = pieces
                .bytes
                .iter()
                .enumerate()
                .map(|(nth, bytes)| bytes / 65536 * if slow(nth) { 2 } else { 0 })
                .collect();
            pieces.source_ns = vec![9_000_000; 20];
            pieces.sink_ns = (0..20).map(|nth| if slow(nth) { 3_000_000 } else { 9_000_000 }).collect();
        }
        let text = regimes(&samples, 65536).unwrap().to_string();
        assert!(
            text.contains("mostly the sink slept (") && text.contains("per block in the slow mode, 0.00"),
            "{text}"
        );
        let mut alone = samples.clone();
        alone.iter_mut().for_each(|sample| sample.sinks = vec![EndStats::default()]);
        let text = regimes(&alone, 65536).unwrap().to_string();
        assert!(text.ends_with("30 %"), "who copies memory waits for nobody: {text}");
        // The ends sleep as often but longer, so the cause is the time that waking another CPU takes.
        for pieces in samples.iter_mut().filter_map(|sample| sample.pieces.as_mut()) {
            pieces.switches = pieces.bytes.iter().map(|bytes| bytes / 65536).collect();
        }
        let text = regimes(&samples, 65536).unwrap().to_string();
        assert!(
            text.contains("about as often in both modes, for 49.5 µs each time in the slow mode and 3.20 µs"),
            "{text}"
        );
        // Both ends are awake nearly all the time, so sleep is not the cause.
        let mut awake = samples.clone();
        for pieces in awake.iter_mut().filter_map(|sample| sample.pieces.as_mut()) {
            pieces.sink_ns = vec![9_500_000; 20];
            pieces.source_ns = vec![9_100_000; 20];
        }
        let text = regimes(&awake, 65536).unwrap().to_string();
        assert!(text.ends_with("30 %; the ends hardly slept in either mode"), "{text}");
        for pieces in samples.iter_mut().filter_map(|sample| sample.pieces.as_mut()) {
            pieces.waiting_ns = (0..20).map(|nth| if nth % 10 < 7 { 0 } else { 9_000_000 }).collect();
        }
        let text = regimes(&samples, 65536).unwrap().to_string();
        assert!(text.ends_with("30 %; faster while both ends shared a CPU"), "{text}");
        // The ends are pinned to different CPUs and wait for other processes. The kernel may count a wait in a later
        // piece.
        for (ends, cpu) in [(0, 0), (1, 1)] {
            for sample in &mut samples {
                let end = EndStats { pinned: Some(vec![Cpu(cpu)]), ..EndStats::default() };
                [&mut sample.sources, &mut sample.sinks][ends].push(end);
            }
        }
        let text = regimes(&samples, 65536).unwrap().to_string();
        assert!(text.contains("30 %; the ends waited for a CPU 1"), "{text}");
        assert_eq!(regimes(&samples[..0], 65536), None);
    }
}
