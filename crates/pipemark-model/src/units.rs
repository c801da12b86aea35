//! Quantities with units (bytes, nanoseconds, bytes per second): parsing, and formatting for people.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::bad_value::BadValue;
use crate::digits::{digits, few_digits, percent, three_digits};

/// A number of bytes. Written with binary suffixes: `64k` is 65,536; shown as KiB, MiB, GiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct ByteSize(pub u64);

impl ByteSize {
    /// The number as a `usize`. The conversion can't fail, because pipemark runs only on 64-bit Linux.
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).expect("64-bit system")
    }
}

/// Bytes per GiB, as a float.
pub const GIB: f64 = (1u64 << 30) as f64;

/// Units of rates that other programs print, each with its value in bytes per second.
pub const RATE_UNITS: [(&str, f64); 7] = [
    ("B/s", 1.0),
    ("kB/s", 1e3),
    ("KiB/s", 1024.0),
    ("MB/s", 1e6),
    ("MiB/s", 1_048_576.0),
    ("GB/s", 1e9),
    ("GiB/s", 1_073_741_824.0),
];

/// Splits text such as `12.5 ms` into number and unit.
fn split_unit(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '_'))).unwrap_or(text.len());
    (&text[..end], text[end..].trim())
}

/// `number × unit` as a whole number: exact for integers, rounded for decimal fractions such as `1.5`. `None` for
/// decimal fractions of the smallest unit, a byte or a nanosecond.
fn scaled(number: &str, unit: u64) -> Option<u64> {
    let number = number.replace('_', "");
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(unit);
    }
    let value = number.parse::<f64>().ok().filter(|_| unit > 1)? * unit as f64;
    (value.is_finite() && value < u64::MAX as f64).then_some(value.round() as u64)
}

impl FromStr for ByteSize {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (number, unit) = split_unit(text);
        let factor = match unit.to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "k" | "ki" | "kib" => 1 << 10,
            "m" | "mi" | "mib" => 1 << 20,
            "g" | "gi" | "gib" => 1 << 30,
            "t" | "ti" | "tib" => 1u64 << 40,
            "kb" | "mb" | "gb" | "tb" => {
                return Err(BadValue::new(format!(
                    "'{text}' is ambiguous; write {number}{} for a binary size (64k is 65536 bytes) or the plain number of bytes",
                    &unit[..1]
                )));
            }
            _ => {
                return Err(BadValue::new(format!(
                    "'{text}' is not a size; write bytes, or a number with k, m, g or t, such as 64k"
                )));
            }
        };
        if number.is_empty() {
            return Err(BadValue::new(format!("'{text}' is not a size; a size starts with a number, such as 64k")));
        }
        match scaled(number, factor) {
            Some(bytes) => Ok(ByteSize(bytes)),
            None => Err(BadValue::new(format!("'{text}' is not a whole number of bytes that fits 64 bits"))),
        }
    }
}

impl fmt::Display for ByteSize {
    /// Formats the size in the largest binary unit that fits, as a whole number or with three significant digits. Sizes
    /// below 16 KiB that aren't whole KiB are in bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 4] = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        for (unit, name) in UNITS {
            if self.0 >= unit {
                return if self.0.is_multiple_of(unit) {
                    f.pad(&format!("{} {name}", self.0 / unit))
                } else if self.0 < 16 * unit && unit == 1 << 10 {
                    f.pad(&format!("{} B", self.0))
                } else {
                    f.pad(&format!("{} {name}", three_digits(self.0 as f64 / unit as f64)))
                };
            }
        }
        f.pad(&format!("{} B", self.0))
    }
}

/// Formats the volume of a run. Whole numbers of MiB are in binary units, such as `10 GiB`. So are whole numbers of KiB
/// below 1 MiB. Other volumes are in decimal units, such as `1.05 GB`.
pub fn bytes_in_words(bytes: u64) -> String {
    let binary = if bytes < 1 << 20 { 1 << 10 } else { 1 << 20 };
    match [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")].into_iter().find(|(unit, _)| bytes as f64 >= *unit) {
        Some((unit, name)) if !bytes.is_multiple_of(binary) => format!("{} {name}", three_digits(bytes as f64 / unit)),
        _ => ByteSize(bytes).to_string(),
    }
}

/// A duration in whole nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The duration in seconds, as a float.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl From<Duration> for Nanos {
    fn from(duration: Duration) -> Self {
        Nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for Duration {
    fn from(nanos: Nanos) -> Self {
        Duration::from_nanos(nanos.0)
    }
}

impl FromStr for Nanos {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (number, unit) = split_unit(text);
        let factor = match unit {
            "ns" => 1,
            "us" | "µs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "min" => 60_000_000_000,
            "" if number.chars().all(|c| c == '0') && !number.is_empty() => 1,
            _ => 0,
        };
        scaled(number, factor).filter(|_| factor > 0).map(Nanos).ok_or_else(|| {
            BadValue::new(format!("'{text}' is not a time; write a number with ns, us, ms, s or min, such as 200ms"))
        })
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0 as f64;
        let text = match self.0 {
            0 => "0".to_owned(),
            1..1_000 => format!("{} ns", self.0),
            1_000..1_000_000 => format!("{} µs", three_digits(ns / 1e3)),
            1_000_000..1_000_000_000 => format!("{} ms", three_digits(ns / 1e6)),
            _ => format!("{} s", three_digits(ns / 1e9)),
        };
        f.pad(&text)
    }
}

/// Time that a reader or writer keeps its CPU busy per call. The value is the mean: each delay is a random time from
/// 0.5 to 1.5 times the mean, as in pipeflex. A number without a unit is in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Delay(pub Nanos);

impl FromStr for Delay {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if split_unit(text).1.is_empty() {
            return format!("{}us", text.trim()).parse().map(Delay).map_err(|_: BadValue| {
                BadValue::new(format!(
                    "'{text}' is not a delay; write a number of microseconds, or a number with ns, us, ms or s"
                ))
            });
        }
        text.parse().map(Delay)
    }
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A throughput: bytes per second that arrived at the sink.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Throughput(pub f64);

impl fmt::Display for Throughput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The factor 0.9995 keeps a rate just below a multiple from being shown as 1024 of the smaller unit.
        let multiple = BINARY.iter().find(|(multiple, _)| self.0 >= *multiple * 0.9995 && *multiple <= BINARY[1].0);
        let (multiple, unit) = multiple.unwrap_or(&BINARY[4]);
        f.pad(&format!("{} {unit}/s", three_digits(self.0 / multiple)))
    }
}

/// The unit of a figure or of a parameter's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unit {
    /// A word, not a number.
    Word,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Nanoseconds,
    /// Bytes per second.
    BytesPerSecond,
    /// A ratio of two figures.
    Ratio,
    /// Per cent.
    Percent,
    /// A count.
    Count,
    /// A count per second.
    PerSecond,
    /// A count per MiB.
    PerMib,
    /// Seconds per GiB.
    SecondsPerGib,
    /// Seconds per million messages or lines.
    SecondsPerMillion,
}

impl Unit {
    /// Formats a figure of this unit for people.
    pub fn show(self, figure: f64) -> String {
        match self {
            // Bytes are never negative, and far below 2^64. A difference of two times may be negative.
            Unit::Bytes => ByteSize(figure.round() as u64).to_string(),
            Unit::Nanoseconds if figure < 0.0 => format!("-{}", self.show(-figure)),
            Unit::Nanoseconds if figure < 1000.0 => format!("{} ns", three_digits(figure)),
            Unit::Nanoseconds => Nanos(figure.round() as u64).to_string(),
            Unit::BytesPerSecond => Throughput(figure).to_string(),
            Unit::Ratio => format!("{}×", three_digits(figure)),
            Unit::Percent => format!("{} %", percent(figure)),
            Unit::Count | Unit::PerSecond => self.brief(figure),
            _ => digits(figure),
        }
    }
}

/// Binary multiples, the largest first.
const BINARY: [(f64, &str); 5] =
    [(1_099_511_627_776.0, "TiB"), (1_073_741_824.0, "GiB"), (1_048_576.0, "MiB"), (1024.0, "KiB"), (1.0, "B")];
/// Times in nanoseconds, the largest first.
const TIMES: [(f64, &str); 4] = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];

impl Unit {
    /// Formats a figure in at most five characters if possible: `12.3G` bytes per second, `4.56µ` seconds, `12.3k` for
    /// a count.
    pub fn brief(self, value: f64) -> String {
        match self {
            Unit::BytesPerSecond | Unit::Bytes | Unit::Nanoseconds => {
                let (divisor, unit) = self.multiple(value);
                let letter = unit.chars().next().filter(|c| *c != 'B').map(String::from).unwrap_or_default();
                format!("{}{letter}", digits(value / divisor))
            }
            Unit::Ratio => format!("{}×", digits(value)),
            Unit::Count | Unit::PerSecond if value >= 1e6 => format!("{}M", digits(value / 1e6)),
            Unit::Count | Unit::PerSecond if value >= 1e4 => format!("{}k", digits(value / 1e3)),
            Unit::Count | Unit::PerSecond if value >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
            _ => digits(value),
        }
    }

    /// Formats a round figure for an axis, without trailing zeros.
    pub fn tick(self, value: f64) -> String {
        let (divisor, unit) = self.multiple(value);
        let figure = few_digits(value / divisor);
        match self {
            Unit::BytesPerSecond | Unit::Bytes | Unit::Nanoseconds if value == 0.0 => "0".to_owned(),
            Unit::BytesPerSecond => format!("{figure} {unit}/s"),
            Unit::Bytes | Unit::Nanoseconds => format!("{figure} {unit}"),
            Unit::Ratio => format!("{figure}×"),
            _ => figure,
        }
    }

    /// The named multiples of the unit, largest first.
    pub fn multiples(self) -> &'static [(f64, &'static str)] {
        match self {
            Unit::BytesPerSecond | Unit::Bytes => &BINARY,
            Unit::Nanoseconds => &TIMES,
            _ => &[(1.0, "")],
        }
    }

    /// The largest multiple of the unit that is at most `value`, with its name. A value that rounds up to a multiple
    /// counts as equal to the multiple.
    pub fn multiple(self, value: f64) -> (f64, &'static str) {
        let fits = |multiple: &&(f64, &'static str)| value.abs() >= multiple.0 * 0.9995;
        let multiples = self.multiples();
        multiples.iter().find(fits).copied().unwrap_or(multiples[multiples.len() - 1])
    }
}

/// The multiple of a unit in which a column shows all its figures.
#[derive(Debug, Clone, Copy)]
pub struct ColumnUnit {
    unit: Unit,
    divisor: f64,
    name: &'static str,
}

impl Unit {
    /// A common multiple for all figures: the largest one in which the smallest figure is at least 0.1 and the largest
    /// at least 1. If the largest figure then has five or more digits before the point, uses the next larger multiple,
    /// unless the smallest figure would be below 0.001.
    pub fn common(self, figures: impl IntoIterator<Item = f64>) -> ColumnUnit {
        let of = |(divisor, name)| ColumnUnit { unit: self, divisor, name };
        let figures = figures.into_iter().filter(|figure| figure.is_finite() && *figure > 0.0);
        let (least, most) = figures.fold((f64::MAX, 0.0_f64), |(least, most), own| (least.min(own), most.max(own)));
        let multiples = self.multiples();
        if most == 0.0 {
            return of(multiples[multiples.len() - 1]);
        }
        let fits = |multiple: &(f64, &'static str)| least >= multiple.0 * 0.0995 && most >= multiple.0 * 0.9995;
        let at = multiples.iter().position(fits).unwrap_or(multiples.len() - 1);
        let larger = at.checked_sub(1).map(|at| multiples[at]);
        of(larger
            .filter(|(larger, _)| most >= 9999.5 * multiples[at].0 && least >= larger * 0.001)
            .unwrap_or(multiples[at]))
    }
}

impl ColumnUnit {
    /// A figure with its unit: `0.997 GiB/s`.
    pub fn show(self, figure: f64) -> String {
        match self.unit {
            Unit::BytesPerSecond => format!("{} {}/s", digits(figure / self.divisor), self.name),
            Unit::Bytes | Unit::Nanoseconds => format!("{} {}", digits(figure / self.divisor), self.name),
            unit => unit.show(figure),
        }
    }

    /// A figure with the letter of the unit's multiple: `0.997G`.
    pub fn brief(self, figure: f64) -> String {
        match self.unit {
            Unit::BytesPerSecond | Unit::Bytes | Unit::Nanoseconds => {
                let letter = self.name.chars().next().filter(|c| *c != 'B').map(String::from).unwrap_or_default();
                format!("{}{letter}", digits(figure / self.divisor))
            }
            unit => unit.brief(figure),
        }
    }
}

/// Whether a higher or a lower figure is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// Neither: the figure only explains other figures.
    Neither,
}

/// Parses a budget or a time limit, from 1 ms to one day.
///
/// # Errors
/// If the text isn't a duration or the duration is out of range. The message says which.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let time: Nanos = text.parse().map_err(|error: BadValue| error.to_string())?;
    if !(1_000_000..=86_400_000_000_000).contains(&time.0) {
        return Err(format!("{time} is out of range; use 1ms to 1440min"));
    }
    Ok(time.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_negative_time_has_the_unit_of_its_size() {
        let shown = |figure: f64| Unit::Nanoseconds.show(figure);
        assert_eq!([shown(-66_224.0), shown(-5.0), shown(66_224.0)], ["-66.2 µs", "-5.00 ns", "66.2 µs"]);
    }

    #[test]
    fn sizes_are_binary() {
        assert_eq!("64k".parse(), Ok(ByteSize(65536)));
        assert_eq!("1M".parse(), Ok(ByteSize(1 << 20)));
        assert_eq!("1.5 GiB".parse(), Ok(ByteSize(3 << 29)));
        assert_eq!("4096".parse(), Ok(ByteSize(4096)));
        assert_eq!("1_000".parse(), Ok(ByteSize(1000)));
    }

    #[test]
    fn invalid_sizes_are_refused() {
        for text in [
            "",
            "k",
            "-1",
            "64kb",
            "64x",
            "1e3",
            "99999999999999999999",
            "16777216t",
            "1..5k",
            "0x10",
            "NaN",
            "1.5",
            "0.5b",
        ] {
            assert!(text.parse::<ByteSize>().is_err(), "{text} was taken as a size");
        }
    }

    #[test]
    fn sizes_are_shown_in_the_largest_whole_unit() {
        for (bytes, shown) in [
            (64, "64 B"),
            (1000, "1000 B"),
            (1025, "1025 B"),
            (65536, "64 KiB"),
            (1 << 20, "1 MiB"),
            (1_664_000_000, "1.55 GiB"),
        ] {
            assert_eq!(ByteSize(bytes).to_string(), shown);
        }
    }

    #[test]
    fn times_need_a_unit() {
        assert_eq!("200ms".parse(), Ok(Nanos(200_000_000)));
        assert_eq!("1.5s".parse(), Ok(Nanos(1_500_000_000)));
        assert_eq!("0".parse(), Ok(Nanos(0)));
        assert!("200".parse::<Nanos>().is_err());
        assert!("ms".parse::<Nanos>().is_err());
        assert_eq!("500".parse(), Ok(Delay(Nanos(500_000))));
    }

    #[test]
    fn throughput_has_three_digits() {
        assert_eq!(Throughput(1.5 * (1u64 << 30) as f64).to_string(), "1.50 GiB/s");
        assert_eq!(Throughput(250.91 * (1u64 << 20) as f64).to_string(), "251 MiB/s");
        assert_eq!(Throughput(1023.7 * (1u64 << 20) as f64).to_string(), "1.00 GiB/s");
    }

    proptest! {
        #[test]
        fn plain_bytes_survive_the_round_trip(bytes: u64) {
            prop_assert_eq!(bytes.to_string().parse(), Ok(ByteSize(bytes)));
        }

        #[test]
        fn no_text_makes_a_parser_panic(text in ".{0,24}") {
            let _ = text.parse::<ByteSize>();
            let _ = text.parse::<Nanos>();
            let _ = text.parse::<Delay>();
        }
    }

    #[test]
    fn a_column_has_one_unit() {
        const MIB: f64 = GIB / 1024.0;
        let column = |figures: &[f64]| {
            let unit = Unit::BytesPerSecond.common(figures.iter().copied());
            figures.iter().map(|figure| unit.brief(*figure)).collect::<Vec<_>>()
        };
        assert_eq!(column(&[1021.0 * MIB, 1.05 * GIB]), ["0.997G", "1.05G"]);
        assert_eq!(column(&[62.5 * MIB, 3.0 * GIB]), ["62.5M", "3072M"]);
        // The next larger multiple is used to avoid five digits before the point, unless the smallest figure would lose
        // its only digit.
        assert_eq!(column(&[5.0 * MIB, 40.0 * GIB]), ["0.005G", "40.0G"]);
        assert_eq!(column(&[645.0 * MIB, 55.4 * 1024.0 * GIB]), ["0.630G", "56730G"]);
        assert_eq!(column(&[0.0]), ["0"]);
        let times = Unit::Nanoseconds.common([634e6, 2.09e9]);
        assert_eq!([times.show(634e6), times.show(2.09e9)], ["0.634 s", "2.09 s"]);
    }
}
