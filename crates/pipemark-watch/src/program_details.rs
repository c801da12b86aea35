//! Details of a stage's program that are read once: its arguments, the locale by whose rules it compares text, and its
//! language.

use std::fs::File;
use std::io::Read as _;
use std::time::Duration;

use pipemark_causes::exact_text::ExactText;
use pipemark_causes::interval::Interval;
use pipemark_proc::language;
use pipemark_proc::process::Process;

use crate::budget::Budget;
use crate::pipeline::stage::WatchedStage;

/// The arguments of a process, if they aren't these words: because they aren't UTF-8, are longer than what is read of
/// them as text, or end with empty ones. Those of another user's process are not used, because a command to paste would
/// run a program that this user has chosen; neither are those of a process that calls itself something else than what it
/// runs, unless the pipeline was typed here.
pub fn exact_arguments(process: &Process, words: &[String], is_typed: bool) -> Option<Vec<ExactText>> {
    if !process.is_own() {
        return Some(Vec::new());
    }
    let arguments = process.arguments();
    if !is_typed && arguments.first().is_none_or(|name| !process.runs_its_name(name)) {
        return Some(Vec::new());
    }
    let are_equal = arguments.iter().map(Vec::as_slice).eq(words.iter().map(String::as_bytes));
    (!are_equal).then(|| arguments.into_iter().map(ExactText).collect())
}

/// Whether a process runs a program of many names, such as busybox under the name of grep.
pub fn has_many_names(pid: u32) -> bool {
    const MANY: [&str; 4] = ["busybox", "toybox", "coreutils", "coreutils-rs"];
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    program.file_name().and_then(|name| name.to_str()).is_some_and(|name| {
        // As in busybox.static, or busybox-extras.
        MANY.iter()
            .any(|many| name.strip_prefix(many).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-'])))
    })
}

/// Whether a program compares text by locale rules. `environment` is the content of /proc/PID/environ.
pub fn collates(program: &str, environment: &[u8]) -> bool {
    const BY_ORDER: [&str; 5] = ["sort", "join", "comm", "uniq", "ls"];
    let value = |name: &str| {
        let mut all = environment.split(|&byte| byte == 0).filter_map(|one| std::str::from_utf8(one).ok());
        all.find_map(|one| one.strip_prefix(name)?.strip_prefix('=')).filter(|value| !value.is_empty())
    };
    let category = if BY_ORDER.contains(&program) { "LC_COLLATE" } else { "LC_CTYPE" };
    let language = value("LC_ALL").or_else(|| value(category)).or_else(|| value("LANG"));
    language.is_some_and(|language| !["C", "POSIX"].contains(&language))
}

/// The environment of a process when it started. If it is unreadable and this program started the process, returns this
/// program's own environment, which the process inherited.
pub fn environment(pid: u32, is_child: bool) -> Vec<u8> {
    // More than most environments have. Without a capacity, the kernel would be asked for a few bytes at a time.
    let mut bytes = Vec::with_capacity(16 << 10);
    let read = File::open(format!("/proc/{pid}/environ")).and_then(|mut file| file.read_to_end(&mut bytes));
    read.map(|_| bytes).unwrap_or_else(|_| if is_child { pipemark_causes::environment::own() } else { Vec::new() })
}

/// Whether a process uses the files of a locale. `maps` is the content of /proc/PID/maps. A locale that isn't installed
/// counts as C.
fn has_locale(maps: &str) -> bool {
    maps.lines()
        .any(|line| line.contains("/locale-archive") || line.contains("/LC_COLLATE") || line.contains("/LC_CTYPE"))
}

/// What is known of a stage's program.
#[derive(Debug, Clone, Default)]
pub struct StageProgram {
    /// Whether the stage uses the files of a locale; `None` if that hasn't been read.
    pub has_locale: Option<bool>,
    /// The language in which the program is written; `None` if unknown.
    pub language: Option<&'static str>,
    is_language_read: bool,
    /// Which of the stage's programs this is about.
    program: u32,
}

/// The observer of programs. Each detail is read once.
#[derive(Debug, Default)]
pub struct ProgramDetails {
    /// By place.
    pub stages: Vec<StageProgram>,
}

impl ProgramDetails {
    /// The living stages, each with what is known of its program.
    fn living<'s>(
        &'s mut self,
        stages: &'s [WatchedStage],
    ) -> impl Iterator<Item = (usize, &'s WatchedStage, &'s mut StageProgram)> {
        self.stages.resize(stages.len(), StageProgram::default());
        let all = stages.iter().zip(&mut self.stages).enumerate().map(|(place, (stage, own))| (place, stage, own));
        all.filter(|(_, stage, _)| stage.alive).map(|(place, stage, own)| {
            if own.program != stage.programs {
                *own = StageProgram { program: stage.programs, ..StageProgram::default() };
            }
            (place, stage, own)
        })
    }

    /// Checks once, when programs have set their locales, that these locales are installed.
    pub fn check_locales(&mut self, stages: &[WatchedStage], budget: &mut Budget) {
        /// About the CPU time of one check.
        const COST: Duration = Duration::from_micros(200);
        const SET: Duration = Duration::from_millis(200);
        for (_, stage, own) in self.living(stages) {
            let is_set = stage.since.is_some_and(|since| since.elapsed() >= SET);
            if !is_set || !stage.collates || own.has_locale.is_some() || !budget.affords(COST) {
                continue;
            }
            let maps = std::fs::read_to_string(format!("/proc/{}/maps", stage.naming_pid)).unwrap_or_default();
            own.has_locale = Some(maps.is_empty() || has_locale(&maps));
        }
    }

    /// Reads the languages of programs that make small writes, each once. Reading takes a few milliseconds.
    pub fn find_languages(&mut self, stages: &[WatchedStage], interval: &Interval, budget: &mut Budget) {
        /// About the CPU time of one reading.
        const COST: Duration = Duration::from_millis(3);
        const MIN_WRITES: u64 = 200;
        const MAX_BYTES_PER_WRITE: u64 = 2048;
        let small = |(bytes, writes)| writes >= MIN_WRITES && bytes <= writes * MAX_BYTES_PER_WRITE;
        let writes_little = |place: usize| {
            interval.stages.get(place).is_some_and(|counts| counts.wrote.zip(counts.writes).is_some_and(small))
        };
        for (place, stage, own) in self.living(stages) {
            if writes_little(place) && !own.is_language_read && budget.affords(COST) {
                own.is_language_read = true;
                own.language = language::language_of(stage.naming_pid);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_text_is_that_of_the_environment() {
        let of = |program: &str, environment: &str| collates(program, environment.replace(' ', "\0").as_bytes());
        assert!(of("sort", "LANG=de_DE.UTF-8") && of("grep", "LANG=de_DE.UTF-8"));
        assert!(!of("sort", "LANG=de_DE.UTF-8 LC_ALL=C") && !of("sort", "LC_ALL=POSIX") && !of("sort", "A=B"));
        assert!(!of("sort", "LANG=de_DE.UTF-8 LC_COLLATE=C") && of("grep", "LANG=de_DE.UTF-8 LC_COLLATE=C"));
        assert!(of("sort", "LC_ALL= LANG=C.UTF-8") && !of("grep", "LC_CTYPE=C"));
    }

    #[test]
    fn a_program_of_many_names_is_recognised() {
        let directory = std::env::temp_dir().join(format!("pipemark-names-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let grep = directory.join("grep");
        let under = |file: &str| {
            let program = directory.join(file);
            // Not written by this process, because others that it starts would inherit the descriptor.
            assert!(std::process::Command::new("cp").arg("/bin/sleep").arg(&program).status().unwrap().success());
            std::os::unix::fs::symlink(file, &grep).unwrap();
            let mut child = std::process::Command::new(&grep).arg("60").spawn().unwrap();
            let found = has_many_names(child.id());
            child.kill().unwrap();
            child.wait().unwrap();
            std::fs::remove_file(&grep).unwrap();
            found
        };
        assert!(under("busybox") && under("busybox.static") && under("coreutils"));
        assert!(!under("ugrep") && !under("busyboxes"));
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_locale_that_is_not_installed_is_not_in_memory() {
        let line = |path: &str| format!("7f00-7f10 r--p 00000000 fe:00 1 {path}\n");
        assert!(
            has_locale(&line("/usr/lib/locale/C.utf8/LC_CTYPE")) && has_locale(&line("/usr/lib/locale/locale-archive"))
        );
        assert!(!has_locale(&line("/usr/share/locale/de/LC_MESSAGES/coreutils.mo")));
    }

    #[test]
    fn the_environment_of_a_child_is_inherited() {
        let own = environment(u32::MAX, true);
        assert!(own.split(|&byte| byte == 0).any(|one| one.starts_with(b"PATH=")));
        assert!(environment(u32::MAX, false).is_empty());
    }
}
