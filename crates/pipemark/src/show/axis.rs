//! Axes of charts, on the page and in the terminal: what is shown, on which scale, and where round figures stand.

use crate::model::{ByteSize, Nanos, Throughput, three_digits};

/// What the figures along an axis are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes per second.
    Throughput,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Time,
    /// A number of things.
    Count,
    /// How many times as fast.
    Times,
    /// A share q of all round trips, as −log10(1 − q): 1 is 90 %, 2 is 99 %.
    Nines,
}

impl Unit {
    /// A figure as people read it.
    pub fn show(self, value: f64) -> String {
        match self {
            Unit::Throughput => Throughput(value).to_string(),
            Unit::Bytes => ByteSize(value.round() as u64).to_string(),
            Unit::Time => Nanos(value.round() as u64).to_string(),
            Unit::Count => plain(value),
            Unit::Times => format!("{}×", three_digits(value)),
            Unit::Nines if value == 0.0 => "fastest".to_owned(),
            Unit::Nines => format!("{} %", plain(100.0 * (1.0 - 10f64.powf(-value)))),
        }
    }

    /// The same in as few characters as tell it: `2.4 G`, `810 M`, `4.1 µs`, `1.5×`.
    pub fn brief(self, value: f64) -> String {
        let two = |value: f64| if value < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") };
        match self {
            Unit::Throughput => {
                let (divisor, prefix) = unit_of(value, &BINARY);
                format!("{} {}", two(value / divisor), prefix.trim_end_matches("iB").trim_end_matches('B'))
                    .trim()
                    .to_owned()
            }
            Unit::Time => {
                let (divisor, unit) = unit_of(value, &TIMES);
                format!("{} {unit}", two(value / divisor))
            }
            Unit::Times => format!("{}×", two(value)),
            _ => self.show(value),
        }
    }

    /// A tick's label: no more digits than a round figure has.
    fn tick(self, value: f64) -> String {
        match self {
            Unit::Throughput => with_unit(value, &BINARY, "/s"),
            Unit::Bytes => with_unit(value, &BINARY, ""),
            Unit::Time => with_unit(value, &TIMES, ""),
            Unit::Times => format!("{}×", plain(value)),
            Unit::Count | Unit::Nines => self.show(value),
        }
    }

    /// The units that round figures are round in, the smallest first.
    fn steps(self) -> &'static [(f64, &'static str)] {
        match self {
            Unit::Throughput | Unit::Bytes => &BINARY,
            Unit::Time => &TIMES,
            Unit::Count | Unit::Times | Unit::Nines => &[(1.0, "")],
        }
    }
}

const BINARY: [(f64, &str); 5] =
    [(1.0, "B"), (1024.0, "KiB"), (1_048_576.0, "MiB"), (1_073_741_824.0, "GiB"), (1_099_511_627_776.0, "TiB")];
const TIMES: [(f64, &str); 4] = [(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")];

/// The largest unit that `value` is at least one of.
fn unit_of(value: f64, units: &[(f64, &'static str)]) -> (f64, &'static str) {
    let fits = |unit: &&(f64, &str)| value.abs() >= unit.0 * 0.9995;
    units.iter().rev().find(fits).or(units.first()).copied().unwrap_or((1.0, ""))
}

fn with_unit(value: f64, units: &[(f64, &'static str)], per: &str) -> String {
    let (divisor, unit) = unit_of(value, units);
    match value {
        0.0 => "0".to_owned(),
        _ => format!("{} {unit}{per}", plain(value / divisor)),
    }
}

/// Up to four significant digits without zeros at the end.
fn plain(value: f64) -> String {
    let text = match value.abs() {
        v if v >= 1000.0 => format!("{value:.0}"),
        v if v >= 99.0 => format!("{value:.3}"),
        v if v >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    };
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// How figures are laid along an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// In proportion.
    Linear,
    /// Equal steps for equal ratios.
    Log,
    /// As `Log`, but with a place for 0: the logarithm of 1 + the figure over this unit, which has to be above 0.
    LogWithZero(f64),
}

impl Scale {
    /// Where `value` stands, before the axis' ends are known.
    fn place(self, value: f64) -> f64 {
        match self {
            Scale::Linear => value,
            Scale::Log => value.max(f64::MIN_POSITIVE).log2(),
            Scale::LogWithZero(unit) => (value.max(0.0) / unit).ln_1p(),
        }
    }
}

/// One axis of a chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What stands beside it.
    pub title: String,
    /// How its figures are laid out.
    pub scale: Scale,
    /// Its lower end.
    pub low: f64,
    /// Its upper end, above `low`.
    pub high: f64,
    /// Labelled figures, ascending.
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    /// An axis from 0 to at least the largest of `values`.
    pub fn from_zero(title: &str, unit: Unit, values: impl IntoIterator<Item = f64>) -> Axis {
        let most = values.into_iter().filter(|value| value.is_finite()).fold(0.0, f64::max);
        let most = if most > 0.0 { most } else { 1.0 };
        let (divisor, _) = unit_of(most, unit.steps());
        let step = round_step(most / divisor / 5.0) * divisor;
        let count = (most / step - 1e-9).ceil().clamp(1.0, 20.0);
        let ticks = (0..=count as u32).map(|n| f64::from(n) * step);
        Axis {
            title: title.to_owned(),
            scale: Scale::Linear,
            low: 0.0,
            high: step * count,
            ticks: ticks.map(|tick| (tick, unit.tick(tick))).collect(),
        }
    }

    /// A logarithmic axis around all of `values` that are above 0.
    pub fn log(title: &str, unit: Unit, values: impl IntoIterator<Item = f64>) -> Axis {
        let values = values.into_iter().filter(|value| value.is_finite() && *value > 0.0);
        let (low, high) = values.fold((f64::INFINITY, 0.0f64), |(low, high), v| (low.min(v), high.max(v)));
        let (low, high) = if low <= high { (low, high) } else { (1.0, 10.0) };
        // Bytes are round in powers of two, times in powers of ten with 1, 2 and 5 between where there is room.
        let ticks = match unit {
            Unit::Throughput | Unit::Bytes | Unit::Times | Unit::Count => powers(2.0, low, high),
            Unit::Time | Unit::Nines => decades(low, high),
        };
        let (low, high) =
            (ticks.first().map_or(low, |first| first.min(low)), ticks.last().map_or(high, |last| last.max(high)));
        let high = if high > low { high } else { low * 2.0 };
        let ticks = ticks.into_iter().map(|tick| (tick, unit.tick(tick))).collect();
        Axis { title: title.to_owned(), scale: Scale::Log, low, high, ticks }
    }

    /// An axis whose ticks are the measured figures themselves, thinned out where there are more than twelve.
    pub fn at(title: &str, unit: Unit, scale: Scale, values: impl IntoIterator<Item = f64>) -> Axis {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let (low, high) = (values.first().copied().unwrap_or(0.0), values.last().copied().unwrap_or(1.0));
        let every = values.len().div_ceil(12).max(1);
        let ticks = values.into_iter().step_by(every).map(|tick| (tick, unit.tick(tick))).collect();
        let high = if high > low { high } else { low.abs().mul_add(1.0, low).max(low + 1.0) };
        Axis { title: title.to_owned(), scale, low, high, ticks }
    }

    /// Where a figure stands between the axis' ends: 0 is the lower, 1 the upper.
    pub fn share(&self, value: f64) -> f64 {
        let (low, high) = (self.scale.place(self.low), self.scale.place(self.high));
        (self.scale.place(value) - low) / (high - low)
    }
}

/// 1, 2, 2.5 or 5 times a power of ten, not below `rough`.
fn round_step(rough: f64) -> f64 {
    let power = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0];
    power * steps.into_iter().find(|step| step * power >= rough * (1.0 - 1e-9)).unwrap_or(10.0)
}

/// Powers of `base` around `low` to `high`, at most eight.
fn powers(base: f64, low: f64, high: f64) -> Vec<f64> {
    let (first, last) = (low.log(base).floor(), high.log(base).ceil());
    let every = ((last - first) / 7.0).ceil().max(1.0);
    let count = ((last - first) / every).ceil().clamp(0.0, 8.0) as u32;
    (0..=count).map(|n| base.powf(first + f64::from(n) * every)).collect()
}

/// Powers of ten around `low` to `high`; with 2 and 5 between them where they are few.
fn decades(low: f64, high: f64) -> Vec<f64> {
    if high / low > 400.0 {
        return powers(10.0, low, high);
    }
    let first = 10f64.powf(low.log10().floor());
    let all: Vec<f64> = (0..5).flat_map(|n| [1.0, 2.0, 5.0].map(|m| m * first * 10f64.powi(n))).collect();
    let begin = all.iter().rposition(|tick| *tick <= low * (1.0 + 1e-9)).unwrap_or(0);
    let end = all.iter().position(|tick| *tick >= high * (1.0 - 1e-9)).unwrap_or(all.len() - 1);
    all[begin..=end.max(begin)].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: f64 = 1_073_741_824.0;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_in_the_unit_that_people_read() {
        let axis = Axis::from_zero("", Unit::Throughput, [0.3 * GIB, 3.1 * GIB]);
        assert_eq!(labels(&axis), ["0", "1 GiB/s", "2 GiB/s", "3 GiB/s", "4 GiB/s"]);
        let axis = Axis::log("", Unit::Time, [4_100.0, 21_300.0]);
        assert_eq!(labels(&axis), ["2 µs", "5 µs", "10 µs", "20 µs", "50 µs"]);
        let axis = Axis::log("", Unit::Throughput, [60e6, 3.2 * GIB]);
        assert!(axis.low <= 60e6 && axis.high >= 3.2 * GIB && axis.ticks.len() <= 9, "{axis:?}");
    }

    #[test]
    fn figures_stand_between_the_ends() {
        let axis = Axis::at("", Unit::Count, Scale::LogWithZero(1.0), [0.0, 1.0, 2.0, 1024.0]);
        assert_eq!((axis.share(0.0), axis.share(1024.0)), (0.0, 1.0));
        assert!(axis.share(1.0) > 0.05);
        assert_eq!(Axis::log("", Unit::Bytes, [64.0, 65536.0]).share(64.0), 0.0);
    }

    #[test]
    fn strange_figures_make_an_axis_all_the_same() {
        for values in [&[][..], &[0.0], &[f64::NAN, f64::INFINITY], &[5.0, 5.0], &[1e-300, 1e300]] {
            for axis in [
                Axis::from_zero("", Unit::Time, values.iter().copied()),
                Axis::log("", Unit::Throughput, values.iter().copied()),
                Axis::log("", Unit::Time, values.iter().copied()),
                Axis::at("", Unit::Count, Scale::Linear, values.iter().copied()),
            ] {
                assert!(axis.low < axis.high && axis.ticks.len() < 30, "{values:?}: {axis:?}");
                assert!(axis.low.is_finite() && axis.high.is_finite(), "{values:?}: {axis:?}");
            }
        }
    }

    #[test]
    fn shares_are_told_in_nines() {
        assert_eq!(Unit::Nines.show(3.0), "99.9 %");
        assert_eq!(Unit::Nines.show(1.0), "90 %");
        assert_eq!(Unit::Throughput.brief(2.44 * GIB), "2.4 G");
        assert_eq!(Unit::Time.brief(4_123.0), "4.1 µs");
    }
}
