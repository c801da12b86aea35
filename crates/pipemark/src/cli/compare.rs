//! `pipemark compare`: compares two measurements, or measures this machine's noise floor, with exit codes for scripts.

use clap::Args;

use pipemark_console::verdict::{criterion, threshold, verdict_code};
use pipemark_console::{ExitError, ExportOptions, Format, VerbResult, WordChoice, exit, github, one_of, say};
use pipemark_model::{Better, Document, Settings, Value, neutral};
use pipemark_report::sheet;
use pipemark_stats::diff::{Diff, SideInput};
use pipemark_stats::verdict::Verdict;

use crate::cli::output::DbOption;
use crate::cli::parameters::check_unique;
use crate::cli::{noise_floor, read};

/// The options of `compare`.
#[derive(Debug, Clone, Args)]
pub struct CompareOptions {
    /// The reference and the new measurement: a run number or label of the history, or a JSON file; - is standard input
    ///
    /// Runs with the same label are sessions of one measurement, as are the documents in one file. With --base and
    /// --new, one measurement is enough.
    #[arg(value_name = "BASE NEW", num_args = 1..=2, required_unless_present = "aa")]
    files: Vec<String>,
    /// Take trials with these parameters as the reference
    #[arg(long, value_name = "KEY=VALUE,…", value_delimiter = ',', value_parser = Value::parse_pair, requires = "new")]
    base: Vec<Value>,
    /// Compare the reference with the trials that differ only in these parameters
    #[arg(long, value_name = "KEY=VALUE,…", value_delimiter = ',', value_parser = Value::parse_pair, requires = "base")]
    new: Vec<Value>,
    /// Smallest change that counts, such as 5%
    ///
    /// A change is better or worse if its whole interval is beyond PERCENT, and same if its whole interval is within
    /// PERCENT. The default is 0.5 % for better and worse, and 3 % for same.
    #[arg(long, value_name = "PERCENT", value_parser = threshold)]
    threshold: Option<f64>,
    /// Exit with the verdict's code if a trial has this verdict; see 'pipemark help exit-codes'
    #[arg(long, value_name = "VERDICT,…", value_delimiter = ',', value_parser = one_of(&FAIL_ON))]
    fail_on: Vec<FailOn>,
    /// Compare one trial with itself on this machine; print the smallest detectable change
    #[arg(long, conflicts_with_all = ["files", "base", "new", "fail_on"])]
    aa: bool,
    /// Print all rows
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    floor: noise_floor::NoiseFloorOptions,
    #[command(flatten)]
    output: ExportOptions,
    #[command(flatten)]
    db: DbOption,
}

/// Conditions with an exit code, the most urgent first.
const FAIL_ON: [WordChoice<FailOn>; 7] = [
    ("worse", FailOn::Verdict(Verdict::Worse), "A trial is worse: code 10"),
    ("missing", FailOn::Missing, "A trial was not measured on one or both sides: code 11"),
    ("no-verdict", FailOn::NoVerdict, "A trial has no verdict, for example when each side has one session: code 15"),
    (
        "inconclusive",
        FailOn::Verdict(Verdict::Inconclusive),
        "A trial is inconclusive (or has no verdict, unless no-verdict is given): code 12",
    ),
    ("cant-tell", FailOn::Verdict(Verdict::Inconclusive), "Former name of inconclusive"),
    ("better", FailOn::Verdict(Verdict::Better), "A trial is better: code 13"),
    ("same", FailOn::Verdict(Verdict::Same), "A trial is unchanged: code 14"),
];

/// A condition that `--fail-on` gives an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FailOn {
    Verdict(Verdict),
    /// A trial was not measured on one or both sides.
    Missing,
    NoVerdict,
}

impl FailOn {
    fn applies(self, diff: &Diff) -> bool {
        match self {
            FailOn::Verdict(verdict) => diff.count(verdict) > 0,
            FailOn::Missing => !diff.missing.is_empty(),
            FailOn::NoVerdict => diff.without_verdict() > 0,
        }
    }

    fn code(self) -> u8 {
        match self {
            FailOn::Verdict(verdict) => verdict_code(verdict),
            FailOn::Missing => exit::MISSING,
            FailOn::NoVerdict => exit::NO_VERDICT,
        }
    }
}

/// Compares two measurements, or measures the noise floor.
pub fn run(options: &CompareOptions) -> VerbResult {
    let output = &options.output;
    output.targets().check()?;
    if options.aa {
        return noise_floor::run(&options.floor, criterion(options.threshold, Better::Higher), output);
    }
    read::refuse_to_replace(&options.files, &output.targets().destinations())?;
    let report = report(options)?;
    // The text output includes the warnings. With other formats, they are printed as messages.
    if output.targets().printed() != Some(Format::Text) {
        for warning in &report.warnings {
            say(format_args!("warning: {warning}"));
        }
    }
    let json = serde_json::to_string(&report)?;
    // Formats for programs have all rows.
    let sheet = |format| sheet::comparison(&report, options.all || format != Format::Text);
    output.targets().write(|format| format.of_sheet(&sheet(format), Some(&json)))?;
    if report.groups.is_empty() {
        return Err(ExitError::failed(
            "nothing was compared: no trial was measured on both sides; measure the same trials twice",
        ));
    }
    let failed = FAIL_ON.into_iter().find(|(_, what, _)| options.fail_on.contains(what) && what.applies(&report));
    let sheet = sheet(Format::Markdown);
    github::report("compare", &sheet, failed.map(|(word, ..)| word));
    match failed {
        Some((_, what, _)) => Err(ExitError::code(what.code())),
        None => Ok(()),
    }
}

fn report(options: &CompareOptions) -> Result<Diff, ExitError> {
    for (flag, settings) in [("--base", &options.base), ("--new", &options.new)] {
        check_unique(flag, settings)?;
    }
    let read = |name: &String| {
        let documents = read::sessions(name, &options.db)?;
        match documents.iter().any(Document::is_of_pipeline) {
            true => Err(ExitError::usage(format_args!(
                "{} is a recording of 'pipemark why', 'tune' or 'ab'; expected a measurement by 'pipemark run', bw, latency or chain",
                neutral(name)
            ))),
            false => Ok(documents),
        }
    };
    let (base, new) = match options.files.as_slice() {
        [one] if options.base.is_empty() => {
            return Err(ExitError::usage(format_args!(
                "nothing to compare {} with; name a second measurement, or select trials of this one, such as --base capacity=default --new capacity=1m",
                neutral(one)
            )));
        }
        [_] if Settings::of(options.base.clone()) == Settings::of(options.new.clone()) => {
            return Err(ExitError::usage("--base and --new select the same trials; select different ones"));
        }
        [one] => (read(one)?, None),
        [one, other] if one == "-" && other == "-" => {
            return Err(ExitError::usage("standard input ('-') holds one measurement; give the other as a file"));
        }
        [one, other] => (read(one)?, Some(read(other)?)),
        _ => return Err(ExitError::usage("compare needs two measurements, or one with --base and --new")),
    };
    let (one, other) = (&options.files[0], &options.files[options.files.len() - 1]);
    let history = if new.is_some() { read::similar_sessions(&base[0], &options.db) } else { Vec::new() };
    let base = SideInput { name: one, documents: &base, settings: &options.base };
    let new = SideInput { name: other, documents: new.as_deref().unwrap_or(base.documents), settings: &options.new };
    let criterion = |better| criterion(options.threshold, better);
    Diff::of(base, new, &history, &criterion).map_err(|refusal| ExitError::usage(neutral(&refusal.to_string())))
}
