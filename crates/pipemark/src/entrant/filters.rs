//! The commands of the filters of lines: ours, the tools that everyone has, and the document's four programs, which cargo
//! builds from entrants/lines.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs, thread};

use rustix::fs::{Access, access};
use serde::Deserialize;

use super::form::{BuildForm, ToolForm};
use super::workshop::Workshop;
use super::{Absent, Build, FOLDER};
use crate::model::Filter;

/// This program, whoever starts it: a process of a run has been this program before it becomes another.
const OURSELVES: &str = "/proc/self/exe";

/// The transform in awk. Replacing each space by itself counts them.
const AWK: &str = r#"{ n = gsub(/ /, " "); printf("[spaces: %s]%s\n", (n > 6 ? ">6" : n), $0) }"#;

/// The transform in perl.
const PERL: &str = r#"$n = tr/ //; print "[spaces: ", ($n > 6 ? ">6" : $n), "]", $_"#;

/// The transform in sed, which cannot count: what is no space is dropped, and what is left compared. The line waits in
/// the hold space meanwhile. The first t forgets that something was dropped.
const SED: &str = "h
s/[^ ]//g
t reset
:reset
s/^$/[spaces: 0]/
t end
s/^ $/[spaces: 1]/
t end
s/^  $/[spaces: 2]/
t end
s/^   $/[spaces: 3]/
t end
s/^    $/[spaces: 4]/
t end
s/^     $/[spaces: 5]/
t end
s/^      $/[spaces: 6]/
t end
s/^ *$/[spaces: >6]/
:end
G
s/\\n//";

/// The document's programs, prepared.
pub(super) struct Filters {
    workshop: Workshop,
    programs: BTreeMap<Filter, Vec<String>>,
}

/// entrants/lines/filters.toml.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    tools: Vec<ToolForm>,
    build: BuildForm,
    /// The command of each.
    run: BTreeMap<Filter, Vec<String>>,
}

impl Filters {
    /// Finds and builds them. That a tool is missing or they do not build shows in each one's command.
    ///
    /// # Errors
    /// Why there are none.
    pub(super) fn prepared(folder: Option<&Path>) -> Result<Filters, String> {
        let root = fs::canonicalize(folder.unwrap_or(Path::new(FOLDER)).join("lines")).map_err(|_| match folder {
            Some(folder) => format!("there is no folder 'lines' in {}", folder.display()),
            None => format!(
                "there is no folder '{FOLDER}/lines' here; start this in pipemark's source tree, or name the folder '{FOLDER}' with --entrants"
            ),
        })?;
        let file = root.join("filters.toml");
        let wrong = |error: String| format!("{}: {error}", file.display());
        let text = fs::read_to_string(&file).map_err(|error| wrong(error.to_string()))?;
        let form: Form = toml::from_str(&text).map_err(|error| wrong(error.message().to_owned()))?;
        let top = root.parent().and_then(Path::parent).unwrap_or(&root).to_owned();
        let out = top.join("build").join(FOLDER).join("lines");
        let mut workshop = Workshop::new(&form.tools, &form.build, root, out);
        let _ = workshop.prepare(Build::Stale);
        Ok(Filters { workshop, programs: form.run })
    }
}

/// The command of `filter`.
pub(super) fn words(filter: Filter, built: Option<&Result<Filters, String>>) -> Result<Vec<String>, Absent> {
    let own = |words: &[&str]| Ok([OURSELVES].iter().chain(words).map(|&word| word.to_owned()).collect());
    let tool = |words: &[&str], package: &str| match on_path(words[0]) {
        // Tools that know characters count bytes in this locale, as we do.
        Some(_) => Ok(["env", "LC_ALL=C"].iter().chain(words).map(|&word| word.to_owned()).collect()),
        None => Err(Absent::Missing(format!("{} is not installed; to install it: apt install {package}", words[0]))),
    };
    match filter {
        Filter::Sink => own(&["sink"]),
        Filter::LinesOne => own(&["lines", "--threads", "1"]),
        Filter::LinesAll => {
            let cpus = thread::available_parallelism().map_or(1, usize::from);
            own(&["lines", "--threads", &cpus.to_string()])
        }
        Filter::Pv => tool(&["pv", "-q"], "pv"),
        Filter::Awk => tool(&["awk", AWK], "gawk"),
        Filter::Mawk => tool(&["mawk", AWK], "mawk"),
        Filter::Perl => tool(&["perl", "-ne", PERL], "perl"),
        Filter::Sed => tool(&["sed", SED], "sed"),
        Filter::StdBaseline | Filter::Baseline | Filter::Streamer | Filter::Pipeline => match built {
            None => Err(Absent::Missing(format!("{filter} was not built"))),
            Some(Err(reason)) => Err(Absent::Missing(reason.clone())),
            Some(Ok(filters)) => match filters.programs.get(&filter) {
                Some(words) => filters.workshop.command(words),
                None => Err(Absent::Missing(format!("{FOLDER}/lines/filters.toml does not name {filter}"))),
            },
        },
    }
}

/// Where a shell would find `program`.
pub fn on_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file() && access(file, Access::EXEC_OK).is_ok())
}
