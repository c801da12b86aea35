//! `--figure 'NAME=REGEX'`: a figure that the command prints itself.

use std::str::FromStr;

use regex_lite::Regex;

use pipemark_model::{Better, neutral};

/// A figure, and the pattern that finds it.
#[derive(Debug, Clone)]
pub struct PrintedFigure {
    /// The figure's name, different from those of all other figures.
    pub name: String,
    /// The figure's unit; empty for a plain number.
    pub unit: String,
    /// Whether higher or lower is better.
    pub better: Better,
    regex: Regex,
}

impl std::fmt::Display for PrintedFigure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{},{}={}", self.name, self.unit, self.regex.as_str())
    }
}

impl FromStr for PrintedFigure {
    type Err = String;

    /// Parses `NAME[,UNIT][,higher|lower]=REGEX`. By default, higher is better if the unit (or, without a unit, the
    /// name) ends in `/s`, and otherwise lower is better.
    fn from_str(text: &str) -> Result<PrintedFigure, String> {
        let shown = neutral(text);
        let (head, regex) = text.split_once('=').ok_or_else(|| {
            format!("'{shown}' has no pattern; use NAME=REGEX, such as 'tok/s=([0-9.]+) tokens per second'")
        })?;
        let mut parts: Vec<&str> = head.split(',').map(str::trim).collect();
        let named = match parts.last() {
            Some(&"higher") => Some(Better::Higher),
            Some(&"lower") => Some(Better::Lower),
            _ => None,
        };
        if named.is_some() {
            parts.pop();
        }
        let (name, unit) = match parts.as_slice() {
            [name] => (*name, ""),
            [name, unit] => (*name, *unit),
            _ => return Err(format!("'{shown}': expected NAME, NAME,UNIT or NAME,UNIT,higher before the =")),
        };
        if name.is_empty() {
            return Err(format!("'{shown}': the figure has no name"));
        }
        let rate = if unit.is_empty() { name } else { unit }.ends_with("/s");
        let better = named.unwrap_or(if rate { Better::Higher } else { Better::Lower });
        let compiled =
            Regex::new(regex).map_err(|error| format!("'{}' is not a regular expression: {error}", neutral(regex)))?;
        if compiled.captures_len() > 2 {
            return Err(format!(
                "'{}' has several groups; use ( ) for the number only, and (?: ) for other groups",
                neutral(regex)
            ));
        }
        Ok(PrintedFigure { name: name.to_owned(), unit: unit.to_owned(), better, regex: compiled })
    }
}

impl PrintedFigure {
    /// Finds the figure in the standard output of a run, or otherwise in its standard error. The figure is the first
    /// match of the group, or of the whole pattern if it has no group.
    ///
    /// # Errors
    /// A message, if nothing matches, or if the match is not a number, is too large or is too small. So a missing
    /// figure is never taken as 0.
    pub fn find(&self, printed: [&[u8]; 2]) -> Result<f64, String> {
        let found = printed.iter().find_map(|text| {
            let text = String::from_utf8_lossy(text);
            let captures = self.regex.captures(&text)?;
            let matched = captures.get(1).or_else(|| captures.get(0))?;
            Some(matched.as_str().trim().to_owned())
        });
        let text = found.ok_or_else(|| format!("its output has no match of --figure {}", neutral(&self.name)))?;
        let number = text.replace(['_', ','], "").parse::<f64>().ok().filter(|number| has_ratios(*number));
        number.ok_or_else(|| {
            format!(
                "--figure {} matched '{}', which is not a number that can be compared",
                neutral(&self.name),
                neutral(&text)
            )
        })
    }
}

/// Whether the number is of a size for which the ratio of two such numbers is finite.
fn has_ratios(number: f64) -> bool {
    number == 0.0 || (1e-100..=1e100).contains(&number.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(text: &str) -> PrintedFigure {
        text.parse().unwrap()
    }

    #[test]
    fn a_figure_has_a_name_a_unit_and_a_direction() {
        let plain = figure("loss=loss: ([0-9.]+)");
        assert_eq!((plain.name.as_str(), plain.unit.as_str(), plain.better), ("loss", "", Better::Lower));
        assert_eq!(figure("tok/s=([0-9]+)").better, Better::Higher);
        assert_eq!(figure("speed,MB/s=([0-9]+)").better, Better::Higher);
        assert_eq!(figure("score,higher=([0-9]+)").better, Better::Higher);
        let full = figure("speed,frames/s,lower=fps=([0-9]+)");
        assert_eq!((full.unit.as_str(), full.better), ("frames/s", Better::Lower));
    }

    #[test]
    fn the_number_is_the_group_or_otherwise_the_whole_match() {
        let both = |text: &'static str| [text.as_bytes(), b"".as_slice()];
        assert_eq!(figure("x=took ([0-9.]+)").find(both("it took 2.5 s")), Ok(2.5));
        assert_eq!(figure("x=[0-9,]+").find(both("1,234 lines")), Ok(1234.0));
        assert_eq!(figure("x=(?m)^n ([0-9e-]+)$").find(both("m 1\nn 2e-3\n")), Ok(0.002));
        assert_eq!(figure("x=n ([0-9]+)").find([b"nothing", b"n 7"]), Ok(7.0), "standard error too");
    }

    #[test]
    fn no_match_is_an_error_and_never_zero() {
        let error = figure("x=took ([0-9.]+)").find([b"", b""]).unwrap_err();
        assert!(error.contains("no match of --figure x"), "{error}");
        let error = figure("x=took (.*)").find([b"took long", b""]).unwrap_err();
        assert!(error.contains("'long', which is not a number that can be compared"), "{error}");
        for number in [&b"inf"[..], b"NaN", b"1e308", b"-1e-308"] {
            assert!(figure("x=(.+)").find([number, b""]).is_err(), "{number:?}");
        }
        assert_eq!(figure("x=(.+)").find([b"-2e99", b""]), Ok(-2e99));
    }

    #[test]
    fn invalid_figures_are_refused() {
        for (text, words) in [
            ("speed", "no pattern"),
            ("=x", "no name"),
            ("a,b,c=x", "before the ="),
            ("x=(", "not a regular expression"),
            ("x=(a)(b)", "several groups"),
        ] {
            let error = text.parse::<PrintedFigure>().unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
