//! Imports figures from other tools: a time(1) log, hyperfine's JSON, or CSV. `--as` describes the imported trials.

use std::str::FromStr;

use serde::Deserialize;

use pipemark_model::{
    Document, Experiment, Host, IMPORTED, Job, Key, Outcome, RATE_UNITS, Sample, Settings, Stopped, Trial, Value,
    Verify, Volume, differing_keys, distinct, neutral,
};
use pipemark_report::findings::imported;
use pipemark_stats::records::{memory_copy, records};

use crate::cli::output::empty_document;

/// The largest file that is read, in bytes.
pub const MAX_BYTES: u64 = 64 << 20;
/// The largest plausible figures: a run of one year in seconds, the same run on 256 CPUs, and 1 PiB per second.
const MAX_SECONDS: f64 = 3.2e7;
const MAX_CPU_SECONDS: f64 = 256.0 * MAX_SECONDS;
const MAX_RATE: f64 = 1.2e15;

/// A parameter of the imported runs: `KEY=VALUE`, or `KEY` alone if the file has a value for each run.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportSetting {
    key: Key,
    value: Option<Value>,
}

impl FromStr for ImportSetting {
    type Err = String;

    fn from_str(text: &str) -> Result<ImportSetting, String> {
        let (key, value) = text.split_once('=').map_or((text, None), |(key, value)| (key, Some(value)));
        let key = Key::named(key).map_err(|error| error.to_string())?;
        let value = value.map(|value| Value::parse(key, value).map_err(|error| error.to_string())).transpose()?;
        Ok(ImportSetting { key, value })
    }
}

/// A figure of one run.
#[derive(Debug, Clone, Copy, PartialEq)]
enum ForeignFigure {
    Seconds {
        real: f64,
        user: f64,
        system: f64,
    },
    /// Bytes per second.
    Rate(f64),
}

impl ForeignFigure {
    /// # Errors
    /// If the number isn't a plausible time.
    fn seconds(real: f64) -> Result<ForeignFigure, String> {
        match real {
            real if real > 0.0 && real <= MAX_SECONDS => Ok(ForeignFigure::Seconds { real, user: 0.0, system: 0.0 }),
            real => Err(format!("{real} is not the time of a run in seconds")),
        }
    }

    fn rate(figure: f64, unit: f64) -> Result<ForeignFigure, String> {
        match figure * unit {
            rate if (1.0..=MAX_RATE).contains(&rate) => Ok(ForeignFigure::Rate(rate)),
            _ => Err(format!("{figure} is not a rate")),
        }
    }
}

/// A run in the file: its line number, the parameter values that the file gives, and its figure.
struct ForeignRun {
    line: usize,
    values: Vec<Value>,
    figure: ForeignFigure,
}

/// Reads a file of another tool. `name` is the file's name in the document.
///
/// # Errors
/// The error and its line. Nothing is imported from a file with an error.
pub fn read(name: &str, text: &str, settings: &[ImportSetting]) -> Result<Document, String> {
    let asked: Vec<Key> =
        settings.iter().filter(|setting| setting.value.is_none()).map(|setting| setting.key).collect();
    let runs = match text.trim_start().starts_with('{') {
        true => read_hyperfine(text, &asked)?,
        false if text.lines().any(|line| parse_time_line(line).is_some()) => read_time_log(text, &asked)?,
        false => read_csv(text, &asked)?,
    };
    if runs.is_empty() {
        return Err("the file has no figures".to_owned());
    }
    let mut outcomes: Vec<Outcome> = Vec::new();
    for run in runs {
        let at = |error: String| format!("line {}: {error}", run.line);
        let job = job(settings, &run.values).map_err(at)?;
        let id = job.id();
        let place = outcomes.iter().position(|outcome| outcome.trial.id == id).unwrap_or_else(|| {
            let trial =
                Trial { id, experiment: IMPORTED.to_owned(), job: job.clone(), baseline: None, published: None };
            outcomes.push(Outcome { stopped: Some(Stopped::Runs), ..Outcome::of(trial) });
            outcomes.len() - 1
        });
        let round = outcomes[place].samples.len() as u32;
        outcomes[place].samples.push(sample(round, &job, run.figure).map_err(at)?);
    }
    let jobs: Vec<&Job> = outcomes.iter().map(|outcome| &outcome.trial.job).collect();
    let experiment = Experiment {
        name: IMPORTED.to_owned(),
        title: format!("Measured by others: {}", neutral(name)),
        about: String::new(),
        varies: differing_keys(&jobs, &asked),
        across: None,
        headline: false,
        gains: None,
        known: distinct(settings.iter().map(|setting| setting.key)),
    };
    // The page size of the other machine is unknown, so 4 KiB is assumed.
    let trials = records(outcomes, 4096);
    Ok(Document {
        suite: "import".to_owned(),
        title: format!("measured by others: {}", neutral(name)),
        started: jiff::Timestamp::now().to_string(),
        host: Host { name: "elsewhere".to_owned(), ..Host::default() },
        memory_copy: memory_copy(&trials),
        findings: imported(&trials),
        experiments: vec![experiment],
        trials,
        ..empty_document()
    })
}

fn job(settings: &[ImportSetting], run_values: &[Value]) -> Result<Job, String> {
    let given = settings.iter().filter_map(|setting| setting.value.as_ref());
    let mut all = Settings::of(given.chain(run_values).cloned());
    // pipemark didn't verify these bytes.
    if all.get(Key::Verify).is_none() {
        all.set(Value::Verify(Verify::None));
    }
    Job::try_from(all).map_err(|error| error.to_string())
}

fn sample(round: u32, job: &Job, figure: ForeignFigure) -> Result<Sample, String> {
    let ns = |seconds: f64| (seconds * 1e9).round() as u64;
    let (bytes, real, user, system) = match (figure, job.volume()) {
        (ForeignFigure::Seconds { real, .. }, Volume::Total(total)) if total.0 as f64 / real > MAX_RATE => {
            return Err(format!("{real:?} s is too short for {} bytes", total.0));
        }
        (ForeignFigure::Seconds { user, system, .. }, _) if user.max(system) > MAX_CPU_SECONDS => {
            return Err(format!("{:?} s is not the CPU time of a run", user.max(system)));
        }
        (ForeignFigure::Seconds { real, user, system }, Volume::Total(total)) => (total.0, real, user, system),
        (ForeignFigure::Seconds { .. }, Volume::Time(_)) => {
            return Err(
                "a throughput can't be computed from a time alone; add the number of bytes: --as total=SIZE".to_owned()
            );
        }
        (ForeignFigure::Rate(rate), Volume::Total(total)) => (total.0, total.0 as f64 / rate, 0.0, 0.0),
        (ForeignFigure::Rate(rate), Volume::Time(_)) => (rate.round() as u64, 1.0, 0.0, 0.0),
    };
    let (ns_real, user_ns, sys_ns) = (ns(real).max(1), ns(user), ns(system));
    Ok(Sample { round, bytes, ns: ns_real, wall_ns: ns_real, user_ns, sys_ns, ..Sample::default() })
}

/// The word (`real`, `user` or `sys`) and the seconds in a line of a shell's time, such as `real 1m2.345s` or `real
/// 62.35`. `None` for other lines.
fn parse_time_line(line: &str) -> Option<(&str, Result<f64, String>)> {
    let (word, time) = line.trim().split_once(char::is_whitespace)?;
    if !["real", "user", "sys"].contains(&word) {
        return None;
    }
    let time = time.trim();
    let (minutes, seconds) = time.split_once('m').unwrap_or(("0", time));
    let number =
        |text: &str| text.replace(',', ".").parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    let seconds = number(minutes).zip(number(seconds.trim_end_matches('s')));
    Some((word, seconds.map(|(m, s)| m * 60.0 + s).ok_or_else(|| format!("'{}' is not a time", neutral(time)))))
}

/// Reads a time(1) log. If `--as` names a parameter without a value, its value for each time is the last line before
/// that time, except lines that belong to another time.
fn read_time_log(text: &str, asked: &[Key]) -> Result<Vec<ForeignRun>, String> {
    if asked.len() > 1 {
        return Err(
            "a time(1) log gives one parameter, on the line before each time; give the other --as parameters a value"
                .to_owned(),
        );
    }
    let mut runs: Vec<ForeignRun> = Vec::new();
    let mut before = "";
    for (line, number) in text.lines().zip(1..) {
        let at = |error: String| format!("line {number}: {error}");
        match parse_time_line(line) {
            Some(("real", seconds)) => {
                let values =
                    asked.iter().map(|key| Value::parse(*key, before.trim()).map_err(|error| at(error.to_string())));
                let values = values.collect::<Result<Vec<_>, _>>()?;
                let figure = ForeignFigure::seconds(seconds.map_err(at)?).map_err(at)?;
                runs.push(ForeignRun { line: number, values, figure });
            }
            Some((word, seconds)) => {
                let seconds = seconds.map_err(at)?;
                match runs.last_mut().map(|run| &mut run.figure) {
                    Some(ForeignFigure::Seconds { user, .. }) if word == "user" => *user = seconds,
                    Some(ForeignFigure::Seconds { system, .. }) => *system = seconds,
                    _ => return Err(at(format!("'{word}' comes before the first 'real' line"))),
                }
            }
            None if !line.trim().is_empty() => before = line,
            None => {}
        }
    }
    Ok(runs)
}

#[derive(Deserialize)]
struct Hyperfine {
    results: Vec<HyperfineResult>,
}

/// A command's result, in the schema of hyperfine 1 (`times`) or 2 (`measurements`).
#[derive(Deserialize)]
struct HyperfineResult {
    command: String,
    #[serde(default)]
    times: Vec<f64>,
    #[serde(default)]
    measurements: Vec<HyperfineMeasurement>,
    #[serde(default)]
    parameters: std::collections::BTreeMap<String, HyperfineParameter>,
}

/// A run, in the schema of hyperfine 2. Times are in seconds.
#[derive(Deserialize)]
struct HyperfineMeasurement {
    time_wall_clock: HyperfineValue,
    time_user: Option<HyperfineValue>,
    time_system: Option<HyperfineValue>,
}

#[derive(Deserialize)]
struct HyperfineValue {
    value: f64,
}

/// The value of a parameter: alone in schema 1, in an object in schema 2.
#[derive(Deserialize)]
#[serde(untagged)]
enum HyperfineParameter {
    InObject { value: serde_json::Value },
    Alone(serde_json::Value),
}

impl HyperfineResult {
    /// The figure of each run; an error names the wrong time.
    fn figures(&self) -> Result<Vec<ForeignFigure>, String> {
        let times = self.times.iter().map(|time| ForeignFigure::seconds(*time));
        let measured = self.measurements.iter().map(|measurement| {
            let cpu = |time: &Option<HyperfineValue>| time.as_ref().map_or(0.0, |time| time.value);
            let mut figure = ForeignFigure::seconds(measurement.time_wall_clock.value)?;
            if let ForeignFigure::Seconds { user, system, .. } = &mut figure {
                (*user, *system) = (cpu(&measurement.time_user), cpu(&measurement.time_system));
            }
            Ok(figure)
        });
        times.chain(measured).collect()
    }
}

fn read_hyperfine(text: &str, asked: &[Key]) -> Result<Vec<ForeignRun>, String> {
    let all: Hyperfine = serde_json::from_str(text).map_err(|error| {
        let what = neutral(&error.to_string());
        format!("line {}: not the format of hyperfine's --export-json: {what}", error.line())
    })?;
    let mut runs = Vec::new();
    for result in all.results {
        let command = neutral(&result.command);
        let line =
            text[..text.find(&serde_json::to_string(&result.command).unwrap_or_default()).unwrap_or(0)].lines().count();
        let at = |error: String| format!("line {line}: '{command}': {error}");
        let figures = result.figures().map_err(at)?;
        if figures.is_empty() {
            return Err(at(
                "the result has no times; export it with a version of hyperfine that writes them".to_owned()
            ));
        }
        let values = |key: &Key| {
            let value =
                result.parameters.get(key.name()).ok_or_else(|| at(format!("the result has no parameter '{key}'")))?;
            let (HyperfineParameter::Alone(value) | HyperfineParameter::InObject { value }) = value;
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            Value::parse(*key, &text).map_err(|error| at(error.to_string()))
        };
        let values = asked.iter().map(values).collect::<Result<Vec<_>, _>>()?;
        runs.extend(figures.into_iter().map(|figure| ForeignRun { line, values: values.clone(), figure }));
    }
    Ok(runs)
}

/// The unit in a column's heading. The inner `None` means seconds; otherwise it is the number of bytes in the unit of a
/// rate. The outer `None` means that the column has no figures. Examples: `MB/s`, `rate (MB/s)`, `seconds`, `real, s`.
fn unit_of(heading: &str) -> Option<Option<f64>> {
    let words = heading.split(|c: char| c.is_whitespace() || "(),[]_".contains(c));
    words.rev().find_map(|word| match word {
        "s" | "sec" | "seconds" => Some(None),
        word => RATE_UNITS.iter().find(|(unit, _)| *unit == word).map(|(_, bytes)| Some(*bytes)),
    })
}

fn read_csv(text: &str, asked: &[Key]) -> Result<Vec<ForeignRun>, String> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let wrong = |error: csv::Error| match error.position().map(csv::Position::line) {
        Some(line) => format!("line {line}: {}", neutral(&error.to_string())),
        None => neutral(&error.to_string()),
    };
    let headings = reader.headers().map_err(wrong)?.clone();
    let mut figures = headings.iter().enumerate().filter_map(|(at, heading)| Some((at, unit_of(heading)?)));
    let (column, unit) = figures.next().ok_or(
        "line 1: no column has a unit; name one 'seconds', or give a rate its unit, such as 'MB/s' or 'rate (MiB/s)'",
    )?;
    if let Some((other, _)) = figures.next() {
        let [one, other] = [column, other].map(|at| neutral(&headings[at]));
        return Err(format!("line 1: '{one}' and '{other}' both have a unit; keep only one of these columns"));
    }
    let places = asked.iter().map(|key| {
        let place = headings.iter().position(|heading| heading == key.name());
        place.map(|place| (*key, place)).ok_or_else(|| format!("line 1: there is no column '{key}'"))
    });
    let places = places.collect::<Result<Vec<_>, String>>()?;
    let mut runs = Vec::new();
    for row in reader.records() {
        let row = row.map_err(wrong)?;
        let line = row.position().map_or(0, csv::Position::line) as usize;
        let at = |error: String| format!("line {line}: {error}");
        let values =
            places.iter().map(|(key, place)| Value::parse(*key, &row[*place]).map_err(|error| at(error.to_string())));
        let values = values.collect::<Result<Vec<_>, _>>()?;
        let number: f64 =
            row[column].parse().map_err(|_| at(format!("'{}' is not a number", neutral(&row[column]))))?;
        let figure = match unit {
            None => ForeignFigure::seconds(number),
            Some(unit) => ForeignFigure::rate(number, unit),
        };
        runs.push(ForeignRun { line, values, figure: figure.map_err(at)? });
    }
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use pipemark_model::Figure;
    use pipemark_show::{Characters, Colour, Terminal};
    use proptest::prelude::*;

    use super::*;

    fn settings(words: &[&str]) -> Vec<ImportSetting> {
        words.iter().map(|word| word.parse().unwrap()).collect()
    }

    fn throughputs(text: &str, words: &[&str]) -> Vec<(String, usize, f64)> {
        let document = read("a file", text, &settings(words)).unwrap();
        let of = |record: &pipemark_model::Record| {
            let speed = record.estimate.as_ref().unwrap().throughput().median;
            (record.name.clone(), record.samples.len(), speed)
        };
        document.trials.iter().map(of).collect()
    }

    const LOG: &str = "0\n\nreal\t0m0.141s\nuser\t0m0.010s\nsys\t0m0.120s\n0\n\nreal\t0m0.150s\nuser\t0m0.010s\nsys\t0m0.120s\n\
                       1024\n\nreal\t6m45.044s\nuser\t0m1.5s\nsys\t13m0.2s\n";

    #[test]
    fn a_log_of_time_has_the_length_before_each_time() {
        let words = ["stage=cat", "length", "total=1050000000", "place=free"];
        let found = throughputs(LOG, &words);
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!((found[0].1, found[1].1), (2, 1));
        assert!((found[1].2 / (1.05e9 / 405.044) - 1.0).abs() < 1e-9, "{found:?}");
        let document = read("pipe-speed.log", LOG, &settings(&words)).unwrap();
        let real = document.trials[0].estimate.as_ref().unwrap().get(Figure::Real).unwrap().min;
        assert!((real / 0.141e9 - 1.0).abs() < 1e-9);
        assert_eq!(document.trials[1].samples[0].sys_ns, 780_200_000_000);
        assert_eq!(document.experiments[0].varies[0], Key::Length);
    }

    #[test]
    fn only_what_the_file_says_is_shown() {
        let words = ["stage=cat", "length", "total=1050000000"];
        let document = read("pipe-speed.log", LOG, &settings(&words)).unwrap();
        let text = pipemark_report::export::csv(&document).unwrap();
        let mut rows = csv::Reader::from_reader(text.as_bytes());
        let headings = rows.headers().unwrap().clone();
        let last = rows.records().last().unwrap().unwrap();
        let cell = |name: &str| last[headings.iter().position(|heading| heading == name).unwrap()].to_owned();
        for unknown in ["block", "capacity", "place", "link", "send", "switches_per_mib", "start_up_ns"] {
            assert_eq!(cell(unknown), "", "{unknown}");
        }
        assert_eq!(
            (cell("length"), cell("stage"), cell("real_ns")),
            ("1024".into(), "cat".into(), "405044000000".into())
        );
        let terminal = Terminal { width: 80, colour: Colour::Never, characters: Characters::Unicode };
        let sheets = [pipemark_report::sheet::brief(&document, &[]), pipemark_report::sheet::document(&document)];
        for sheet in sheets {
            let shown = terminal.render(&sheet);
            for invented in ["default pipe", "64 KiB", "CPUs", "Linux", "interleaved", "switches", "capacity"] {
                assert!(!shown.contains(invented), "{invented}: {shown}");
            }
        }
    }

    #[test]
    fn runs_and_columns_of_hyperfine_and_csv_are_read() {
        let json = r#"{"results": [
            {"command": "a 64k", "mean": 2.0, "times": [2.0, 2.1], "parameters": {"block": "64k", "who": "me"}},
            {"command": "a 1m", "mean": 1.0, "times": [1.0], "parameters": {"block": "1m"}}]}"#;
        let found = throughputs(json, &["block", "total=1g"]);
        assert_eq!(found.iter().map(|one| one.1).collect::<Vec<_>>(), [2, 1]);
        assert!((found[1].2 / (1u64 << 30) as f64 - 1.0).abs() < 1e-9);
        let json = r#"{"schema_version": 2, "primary_metric": "time_wall_clock", "results": [
            {"command": "a 1m", "parameters": {"block": {"value": "1m"}}, "measurements": [
                {"time_wall_clock": {"value": 1.0, "unit": "second"}, "time_user": {"value": 0.25, "unit": "second"},
                    "time_system": {"value": 0.5, "unit": "second"}, "exit_code": 0},
                {"time_wall_clock": {"value": 2.0, "unit": "second"}, "exit_code": 0}], "summary": {}}]}"#;
        assert_eq!(throughputs(json, &["block", "total=1g"])[0].1, 2);
        let samples = read("h.json", json, &settings(&["block", "total=1g"])).unwrap().trials[0].samples.clone();
        assert_eq!((samples[0].user_ns, samples[0].sys_ns, samples[1].user_ns), (250_000_000, 500_000_000, 0));
        let rates = "block,rate (MiB/s),note\n64,250.91,small\n65536,1096.92,\n65536,1100,again\n";
        let found = throughputs(rates, &["block", "place=0:1"]);
        assert_eq!(
            found.iter().map(|one| (one.0.as_str(), one.1)).collect::<Vec<_>>(),
            [("64 B blocks", 1), ("64 KiB blocks", 2)]
        );
        assert!((found[0].2 / (250.91 * 1_048_576.0) - 1.0).abs() < 1e-6);
        assert_eq!(throughputs("seconds\n2\n", &["total=2g"])[0].2, (1u64 << 30) as f64);
    }

    #[test]
    fn errors_name_the_line() {
        let error = |text: &str, words: &[&str]| read("a file", text, &settings(words)).unwrap_err();
        assert_eq!(error("seconds\n1\n-2\n", &["total=1g"]), "line 3: -2 is not the time of a run in seconds");
        assert_eq!(error("seconds\nNaN\n", &["total=1g"]), "line 2: NaN is not the time of a run in seconds");
        assert_eq!(error("MB/s\ninf\n", &[]), "line 2: inf is not a rate");
        assert!(error("speed\n1\n", &[]).starts_with("line 1: no column has a unit"));
        assert_eq!(error("seconds\n1e-9\n", &["total=1g"]), "line 2: 1e-9 s is too short for 1073741824 bytes");
        assert_eq!(
            error("real 1s\nuser 1s\nsys 1e300s\n", &["total=1g"]),
            "line 1: 1e300 s is not the CPU time of a run"
        );
        assert!(error("seconds,MB/s\n1,2\n", &[]).contains("both have a unit"));
        assert!(error("seconds\n1\n", &[]).contains("line 2: a throughput can't be computed from a time alone"));
        assert!(error("seconds\n1\n", &["block"]).contains("there is no column 'block'"));
        assert!(error("real\t0m-1s\n", &["total=1g"]).starts_with("line 1: '0m-1s' is not a time"));
        assert!(error("user\t0m1s\n", &["total=1g"]).contains("comes before the first 'real' line"));
        assert!(error("one\n\nreal\t0m1s\n", &["length", "total=1g"]).starts_with("line 3: "));
        assert!(error("{\"results\": [{\"command\": \"x\"}]}", &["total=1g"]).contains("has no times"));
        let negative = r#"{"results": [{"command": "x", "measurements": [{"time_wall_clock": {"value": -1}}]}]}"#;
        assert_eq!(error(negative, &["total=1g"]), "line 1: 'x': -1 is not the time of a run in seconds");
        assert!(error("{\"results\": 1}", &[]).starts_with("line 1: not the format of hyperfine"));
        assert_eq!(error("", &[]).lines().count(), 1);
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in "(real|user|sys|seconds|MB/s|[0-9.,m{}\":a-z\t ]{0,9}|\n){0,30}") {
            if let Ok(document) = read("a file", &text, &settings(&["total=1g"])) {
                prop_assert!(document.trials.iter().flat_map(|trial| &trial.samples).all(|sample| sample.ns > 0));
            }
        }
    }
}
