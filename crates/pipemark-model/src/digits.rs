//! Formats numbers with few digits, for people.

/// Formats a number with two decimals below 10, one below 100 and none above: 0, 1.23, 12.3, 123, 1234.
pub fn three_digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        v if v < 9.995 => format!("{value:.2}"),
        v if v < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Formats a number with three significant digits and at most three decimals: 0.004, 0.125, 1.25, 12.5, 125.
pub fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        v if v < 0.0005 => "<.001".to_owned(),
        v if v < 0.9995 => format!("{value:.3}"),
        _ => three_digits(value),
    }
}

/// Formats a number with at most three decimals, none from 1000 up, without trailing zeros.
pub fn few_digits(value: f64) -> String {
    let text = match value.abs() {
        v if v >= 1000.0 => format!("{value:.0}"),
        v if (10.0..99.0).contains(&v) => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    };
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Formats a percentage without its sign, with one decimal below 10: 0.4, 4.5, 45, 450.
pub fn percent(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        v if v < 0.05 => "<.1".to_owned(),
        v if v < 9.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// A fraction as a signed percentage in at most six columns: `+1.5`, `-12.3`, `+250`.
pub fn signed_percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    match percent.abs() {
        p if p < 0.05 => "0.0".to_owned(),
        p if p < 99.95 => format!("{percent:+.1}"),
        p if p < 99_999.5 => format!("{percent:+.0}"),
        _ => format!("{percent:+.0e}"),
    }
}

/// Formats an interval from its two ends. If both ends have the same unit, the unit is printed once: `1.48–1.53 GiB/s`.
pub fn between(low: &str, high: &str) -> String {
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((value, unit)), Some((_, other))) if unit == other => format!("{value}–{high}"),
        _ => format!("{low}–{high}"),
    }
}
