//! Follows docs/extending.md and docs/outside-links.md literally in an empty directory: writes the files that the pages
//! show and runs their commands.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::program::PIPEMARK;
use tempfile::TempDir;

const PAGE: &str = include_str!("../docs/extending.md");
const LINKS_PAGE: &str = include_str!("../docs/outside-links.md");

/// Writes the files of the page's section called `heading`; returns its commands.
fn follow(page: &str, heading: &str, directory: &Path) -> Vec<String> {
    let section = page.split("\n## ").find(|section| section.starts_with(heading)).expect("the section is there");
    let mut commands = Vec::new();
    let mut before = "";
    for part in section.split("\n```").collect::<Vec<_>>().chunks(2) {
        let [text, block] = part else { break };
        before = text.trim_end().lines().last().unwrap_or(before);
        let (language, content) = block.split_once('\n').unwrap();
        match language {
            "sh" => commands.extend(content.lines().map(str::to_owned)),
            _ => {
                let file = directory.join(before.trim_matches('`'));
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, format!("{content}\n")).unwrap();
            }
        }
    }
    commands
}

/// Runs a command of the page; returns the rows of its CSV.
fn rows(command: &str, directory: &Path) -> Vec<Vec<String>> {
    let words = command.strip_prefix("pipemark ").expect("the page's commands are pipemark's").split(' ');
    let output = Command::new(PIPEMARK)
        .args(words)
        .args(["--format", "csv"])
        .current_dir(directory)
        .env("XDG_DATA_HOME", directory.join("data"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    let mut reader = csv::Reader::from_reader(&output.stdout[..]);
    let header = reader.headers().unwrap().clone();
    let pairs = |row: csv::StringRecord| header.iter().zip(&row).map(|(key, value)| format!("{key}={value}")).collect();
    reader.records().map(|row| pairs(row.unwrap())).collect()
}

fn has(rows: &[Vec<String>], pairs: &[&str]) -> bool {
    rows.iter().any(|row| pairs.iter().all(|pair| row.iter().any(|found| found == pair)))
}

#[test]
fn a_new_filter() {
    let directory = TempDir::new().unwrap();
    let commands = follow(PAGE, "A new filter of lines", directory.path());
    assert_eq!(commands.len(), 1);
    let rows = rows(&commands[0], directory.path());
    assert!(has(&rows, &["filter=python", "status=ok", "verified=true"]), "{rows:?}");
    // A program is timed only if its output is correct.
    let program = directory.path().join("entrants/python-lines/spaces.py");
    let text = fs::read_to_string(&program).unwrap().replace("> 6", "> 5");
    fs::write(program, text).unwrap();
    let words = ["run", "./mine.toml", "--quiet", "--no-save", "--json", "-"];
    let output = Command::new(PIPEMARK).args(words).current_dir(&directory).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stdout).contains("the output of python is wrong"));
    // An unknown name gets a suggestion.
    let suite = fs::read_to_string(directory.path().join("mine.toml")).unwrap().replace("\"python\"", "\"pyhton\"");
    fs::write(directory.path().join("mine.toml"), suite).unwrap();
    let output = Command::new(PIPEMARK).args(words).current_dir(&directory).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("did you mean python?"));
}

#[test]
#[ignore = "long"]
fn long_a_new_language() {
    let directory = TempDir::new().unwrap();
    let commands = follow(PAGE, "A new language", directory.path());
    assert_eq!(commands.len(), 2);
    let listed = rows(&commands[0], directory.path());
    assert!(has(&listed, &["language=one-file", "name=Python in one file", "missing="]), "{listed:?}");
    let measured = rows(&commands[1], directory.path());
    for program in ["program=idiomatic", "program=tuned"] {
        assert!(has(&measured, &["language=one-file", program, "status=ok", "verified=true"]), "{measured:?}");
    }
}

/// The page's cause is one of pipemark's own.
#[test]
fn a_new_cause() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let directory = TempDir::new().unwrap();
    let commands = follow(PAGE, "A new cause of why", directory.path());
    let causes = Path::new("crates/pipemark-causes/src/causes");
    let [shown, own] =
        [directory.path(), &root].map(|at| fs::read_to_string(at.join(causes).join("incompressible.rs")));
    assert_eq!(shown.unwrap().trim_end(), own.unwrap().trim_end(), "docs/extending.md shows the file");
    assert!(fs::read_to_string(root.join(causes).join("mod.rs")).unwrap().contains("&incompressible::CAUSE"));
    let replay = commands.iter().find_map(|command| command.strip_prefix("pipemark ")).unwrap();
    let output = Command::new(PIPEMARK).args(replay.split(' ')).current_dir(&root).output().unwrap();
    let screen = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let screen = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        screen.contains("xz compresses what gzip has compressed: its output is no smaller than its input."),
        "{screen}"
    );
}

#[test]
fn a_link_of_your_own() {
    let directory = TempDir::new().unwrap();
    let commands = follow(LINKS_PAGE, "A link of your own", directory.path());
    assert_eq!(commands.len(), 2);
    let program = directory.path().join("links/mine/mine.py");
    let text = fs::read_to_string(&program).unwrap();
    assert!(text.lines().count() <= 50, "the page promises a short program");
    for command in &commands {
        let rows = rows(command, directory.path());
        assert!(has(&rows, &["link=mine", "status=ok", "verified=true"]), "{rows:?}");
    }
    // A program that doesn't show what arrived to the reference code gets no figure.
    fs::write(&program, text.replace("return link.received(memoryview(room)[:size])", "return size")).unwrap();
    let words = "bw --link mine --verify full --block 64 --runs 1 --limit 2s --no-save --json -";
    let output = Command::new(PIPEMARK).args(words.split(' ')).current_dir(&directory).output().unwrap();
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
