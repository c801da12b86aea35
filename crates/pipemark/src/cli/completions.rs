//! Shell completions. The scripts and the man pages are files, made from the description of the command line by the test
//! below, so the program needs no code that makes them. `make install` installs both.

use std::io::{self, Write};

use clap::ValueEnum;
use flate2::read::GzDecoder;

use pipemark_console::{VerbResult, check_stdout};

/// A shell with a script of completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CompletedShell {
    Bash,
    Elvish,
    Fish,
    #[value(name = "powershell")]
    PowerShell,
    Zsh,
}

macro_rules! script {
    ($file:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $file, ".gz"))
    };
}

impl CompletedShell {
    /// The script, compressed by `build.rs`.
    fn script(self) -> &'static [u8] {
        match self {
            CompletedShell::Bash => script!("pipemark.bash"),
            CompletedShell::Elvish => script!("pipemark.elv"),
            CompletedShell::Fish => script!("pipemark.fish"),
            CompletedShell::PowerShell => script!("_pipemark.ps1"),
            CompletedShell::Zsh => script!("_pipemark"),
        }
    }
}

/// Writes a shell's completions to standard output.
pub fn completions(shell: CompletedShell) -> VerbResult {
    check_stdout()?;
    let mut out = io::stdout().lock();
    io::copy(&mut GzDecoder::new(shell.script()), &mut out)?;
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::Path;

    use clap::{Command, ValueEnum};

    use crate::cli::command;
    use crate::cli::dialect::tests::man_section;

    /// The command line with all that man pages tell. They leave out the text of options that -h doesn't list.
    fn told_in_full(command: Command) -> Command {
        command.mut_args(|arg| arg.hide_short_help(false)).mut_subcommands(told_in_full)
    }

    /// The files of the directories `completions` and `man`, by path, as the command line requires them.
    fn files() -> BTreeMap<String, String> {
        let directory = tempfile::tempdir().unwrap();
        for name in ["completions", "man"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        for shell in clap_complete::Shell::value_variants() {
            clap_complete::generate_to(*shell, &mut command(), "pipemark", directory.path().join("completions"))
                .unwrap();
        }
        clap_mangen::generate_to(told_in_full(command()), directory.path().join("man")).unwrap();
        let mut files = read(directory.path());
        for verb in command().get_subcommands() {
            if let Some(section) = man_section(verb.get_name()) {
                files.get_mut(&format!("man/pipemark-{}.1", verb.get_name())).unwrap().push_str(&section);
            }
        }
        let page = files.get_mut("man/pipemark.1").unwrap();
        page.push_str(&format!(".SH LICENSE\n{}\n", env!("CARGO_PKG_LICENSE")));
        let repository = env!("CARGO_PKG_REPOSITORY");
        if !repository.is_empty() {
            page.push_str(&format!(".SH \"REPORTING BUGS\"\n{repository}\n"));
        }
        files
    }

    fn read(directory: &Path) -> BTreeMap<String, String> {
        let files = ["completions", "man"].into_iter().flat_map(|name| {
            let entries = fs::read_dir(directory.join(name)).into_iter().flatten();
            entries.map(move |entry| format!("{name}/{}", entry.unwrap().file_name().to_str().unwrap()))
        });
        files.map(|path| (path.clone(), fs::read_to_string(directory.join(path)).unwrap())).collect()
    }

    #[test]
    fn completions_and_man_pages_are_up_to_date() {
        let (here, wanted) = (Path::new(env!("CARGO_MANIFEST_DIR")), files());
        let found = read(here);
        if std::env::var_os("PIPEMARK_BLESS").is_some() {
            for path in found.keys().filter(|path| !wanted.contains_key(*path)) {
                fs::remove_file(here.join(path)).unwrap();
            }
            for (path, text) in &wanted {
                fs::create_dir_all(here.join(path).parent().unwrap()).unwrap();
                fs::write(here.join(path), text).unwrap();
            }
            return;
        }
        let paths = found.keys().chain(wanted.keys()).filter(|path| found.get(*path) != wanted.get(*path));
        let changed: Vec<&String> = paths.collect();
        assert!(
            changed.is_empty(),
            "the command line has changed; run PIPEMARK_BLESS=1 cargo test -p pipemark --bins completions: {changed:?}"
        );
    }
}
