//! What `why`, `watch` and `tune` watch: the options that they share, and the pipeline that these name.

use std::ffi::{OsStr, OsString};
use std::process::Command;
use std::time::{Duration, Instant};

use clap::Args;
use pipemark_sys::start::sigpipe_was_ignored;

use pipemark_console::{Destination, ExitError, WordChoice, destination, one_of};
use pipemark_proc::control_group::GroupName;

use crate::verbs::search_term::SearchTerm;
use crate::{ProcFile, SamplingOptions, Subject, Watcher, live};

/// The exit code if `why` itself fails. This code, and those of commands that can't be executed, are those of `env` and `timeout`. All other exit
/// codes are the pipeline's.
pub const FAILED: u8 = 125;
/// The options that `why` and `watch` share: what to watch, and how.
#[derive(Debug, Clone, Args)]
pub struct WatchedOptions {
    /// A pipeline in quotes, to run in your shell, or PIDs of a running one
    #[arg(value_name = "'A | B'|PID")]
    words: Vec<OsString>,
    /// A command and its arguments, to run without a shell
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    /// Sample the running pipelines that have a process of this name
    #[arg(long, value_name = "NAME", conflicts_with_all = ["words", "command"])]
    name: Option<String>,
    /// Sample the running pipelines of a unit of systemd, such as nightly.service
    #[arg(long, value_name = "UNIT", conflicts_with_all = ["words", "command", "name"])]
    unit: Option<String>,
    /// Sample the running pipelines in a container of docker or podman, given by its name or ID
    #[arg(long, value_name = "NAME", conflicts_with_all = ["words", "command", "name", "unit"])]
    container: Option<String>,
    /// Sample the running pipelines in the control group PATH, and in those below it
    #[arg(long, value_name = "PATH", conflicts_with_all = ["words", "command", "name", "unit", "container"])]
    cgroup: Option<String>,
    /// Write all results as JSON to FILE; '-' is standard output
    #[arg(long, value_name = "FILE|-", value_parser = destination)]
    pub json: Option<Destination>,
    /// Save the activity of each stage in the history; 'pipemark report' charts it over time
    #[arg(long)]
    pub record: bool,
    /// Never open a pipe, not even to read its capacity
    #[arg(long)]
    pub no_touch: bool,
    /// Don't sample which functions the busiest stages execute
    #[arg(long)]
    pub no_profile: bool,
    /// Whether to keep the sampled stacks.
    #[arg(skip)]
    pub keeps_stacks: bool,
    /// Read thread states from /proc/PID/FILE; if that file is unreadable, from the next in this list
    #[arg(long, value_name = "FILE", value_parser = one_of(&FILES), default_value = "syscall")]
    access: ProcFile,
}

/// The choices of `--access`: files in /proc/PID.
const FILES: [WordChoice<ProcFile>; 3] = [
    ("syscall", ProcFile::Syscall, "The system call in which a thread waits"),
    ("wchan", ProcFile::Wchan, "The kernel function in which a thread waits"),
    ("stat", ProcFile::Stat, "Whether a thread runs or sleeps"),
];

impl WatchedOptions {
    /// What running processes are looked for by; `None` if they are given otherwise.
    pub fn search_term(&self) -> Option<SearchTerm> {
        let name = self.name.clone().map(SearchTerm::Name);
        let unit = || self.unit.clone().map(GroupName::Unit);
        let container = || self.container.clone().map(GroupName::Container);
        let path = || self.cgroup.clone().map(GroupName::Path);
        name.or_else(|| unit().or_else(container).or_else(path).map(SearchTerm::Group))
    }

    /// Starts to sample these processes. Processes that were looked for may have ended since. Then, later ones that fit
    /// are sampled.
    pub fn start_watcher(&self, pids: &[u32]) -> Result<Watcher, ExitError> {
        const PATIENCE: Duration = Duration::from_secs(5);
        let end = Instant::now() + PATIENCE;
        let term = self.search_term();
        let mut pids = pids.to_vec();
        loop {
            let may_retry = term.is_some() && Instant::now() < end;
            if may_retry {
                pids.retain(|&pid| live::refusal(pid).is_none());
            }
            if !pids.is_empty() {
                let refusal = pids.iter().find_map(|&pid| live::refusal(pid));
                match (refusal, &term) {
                    (Some(_), Some(term)) if !may_retry => return Err(term.ended()),
                    (Some(stop), None) => return Err(stop),
                    // A process has ended since the line above.
                    (Some(_), Some(_)) => {}
                    (None, _) => {
                        let mut watcher = Watcher::new(Subject::Processes(pids), self.sampling());
                        if watcher.is_alive() || !may_retry {
                            return Ok(watcher);
                        }
                    }
                }
            }
            // Between two short processes, there may be none for a while.
            pids = match term.as_ref().map(SearchTerm::find) {
                Some(Ok(found)) => found,
                Some(Err(stop)) if !may_retry => return Err(stop),
                _ => Vec::new(),
            };
        }
    }

    /// A pipeline that was given as text; `None` for PIDs, names, single words and commands without a shell.
    pub fn typed_pipeline(&self) -> Option<OsString> {
        let text = match (&self.name, &self.words[..], &self.command[..]) {
            (None, [text], []) | (None, [], [text]) => text,
            _ => return None,
        };
        let bytes = text.as_encoded_bytes();
        let has_blank = bytes.trim_ascii().iter().any(u8::is_ascii_whitespace) || bytes.contains(&b'|');
        let is_number = bytes.iter().all(|byte| byte.is_ascii_digit() || byte.is_ascii_whitespace());
        (has_blank && !is_number).then(|| text.clone())
    }

    pub fn sampling(&self) -> SamplingOptions {
        SamplingOptions {
            touch: !self.no_touch,
            access: self.access,
            profile: !self.no_profile,
            keeps_stacks: self.keeps_stacks,
            period: Duration::from_millis(10),
        }
    }
}

/// What to watch.
pub enum WatchTarget {
    /// Nothing: list the live pipelines.
    Live,
    Processes(Vec<u32>),
    /// A command, and its text.
    Start(Command, OsString),
}

/// What to watch, according to the command line.
pub fn watch_target(options: &WatchedOptions) -> Result<WatchTarget, ExitError> {
    let usage = |sentence: &str| ExitError::with(FAILED, sentence);
    // The destination is checked now, before a pipeline runs for hours.
    if let Some(destination) = &options.json {
        destination.check("JSON").map_err(|error| ExitError::with(FAILED, error))?;
    }
    if let Some(term) = options.search_term() {
        return term.find().map(WatchTarget::Processes);
    }
    if !options.command.is_empty() {
        if !options.words.is_empty() {
            return Err(usage("give either a pipeline in quotes or a command after --, not both"));
        }
        // One word with blanks is a quoted pipeline.
        if let [pipeline] = &options.command[..]
            && pipeline.as_encoded_bytes().contains(&b' ')
        {
            return Ok(in_shell(pipeline));
        }
        return Ok(WatchTarget::Start(command_of(&options.command), options.command.join(OsStr::new(" "))));
    }
    if options.words.is_empty() {
        return Ok(WatchTarget::Live);
    }
    let joined = options.words.join(OsStr::new(" "));
    if joined.as_encoded_bytes().trim_ascii().is_empty() {
        return Err(usage("the pipeline is empty; 'pipemark why' without arguments lists running pipelines"));
    }
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = joined.to_str().filter(|text| text.split_whitespace().all(is_number));
    let pid = |word: &str| word.parse().map_err(|_| live::no_process(word));
    match (numbers, options.words.len()) {
        (Some(numbers), _) => {
            Ok(WatchTarget::Processes(numbers.split_whitespace().map(pid).collect::<Result<_, _>>()?))
        }
        (None, 1) => match bare_name(&joined) {
            Some(stop) => Err(stop),
            None => Ok(in_shell(&joined)),
        },
        _ => Err(usage("put the pipeline in quotes, or put a command after --")),
    }
}

/// The error for a single bare word, which may be meant as a process name; `None` for other words.
fn bare_name(word: &OsStr) -> Option<ExitError> {
    let word =
        word.to_str().filter(|word| word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)))?;
    Some(ExitError::with(
        FAILED,
        format_args!(
            "'{word}' is neither a PID nor a pipeline; use '--name {word}' to sample a running {word}, or '-- {word}' to start one"
        ),
    ))
}

fn in_shell(pipeline: &OsStr) -> WatchTarget {
    let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".into());
    WatchTarget::Start(command_of(&[shell, "-c".into(), pipeline.to_owned()]), pipeline.to_owned())
}

/// The command that these words form. If SIGPIPE is ignored, it stays ignored; std's Command alone would reset it.
fn command_of(words: &[OsString]) -> Command {
    let ignores: &[&str] =
        if sigpipe_was_ignored() { &["/bin/sh", "-c", "trap '' PIPE; exec \"$@\"", "sh"] } else { &[] };
    let words: Vec<&OsStr> = ignores.iter().map(OsStr::new).chain(words.iter().map(OsString::as_os_str)).collect();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command
}
