//! Checks of the documentation: links work, examples marked `run` work, the book and the README picture are up to date.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::PIPEMARK;
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

fn root() -> PathBuf {
    fs::canonicalize(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap()
}

/// README, changelog and all pages in docs.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md"), root().join("CHANGELOG.md")];
    let docs = fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    pages.extend(docs.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    pages.sort();
    pages
}

fn events(text: &str) -> Parser<'_> {
    Parser::new_ext(text, Options::ENABLE_TABLES)
}

/// The anchors that GitHub gives to headings.
fn anchors(text: &str) -> HashSet<String> {
    let mut anchors = HashSet::new();
    let mut counts: HashMap<String, usize> = HashMap::new();
    let mut heading = None;
    for event in events(text) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&text);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let heading = heading.take().unwrap().to_lowercase();
                let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
                let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
                let count = counts.entry(anchor.clone()).or_default();
                anchors.insert(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
                *count += 1;
            }
            _ => {}
        }
    }
    anchors
}

fn links(text: &str) -> Vec<String> {
    let link = |event| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => Some(dest_url.to_string()),
        _ => None,
    };
    events(text).filter_map(link).collect()
}

/// The fault of a link on `page`; `None` if the link works.
fn broken_link(page: &Path, text: &str, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor)));
    let target = if path.is_empty() { page.to_owned() } else { page.parent().unwrap().join(path) };
    if !target.exists() {
        return Some(format!("{}: {link} leads nowhere", page.display()));
    }
    let anchor = anchor?;
    let known = if path.is_empty() { anchors(text) } else { anchors(&fs::read_to_string(&target).unwrap()) };
    (!known.contains(anchor)).then(|| format!("{}: {link} has no such heading", page.display()))
}

#[test]
fn links_lead_somewhere() {
    let mut checked = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for link in links(&text) {
            assert_eq!(broken_link(&page, &text, &link), None);
            checked += 1;
        }
    }
    assert!(checked > 10, "only {checked} links");
    // The check itself detects broken links.
    let page = root().join("README.md");
    for link in ["docs/nowhere.md", "docs/method.md#nothing", "#nothing"] {
        assert!(broken_link(&page, "# One\n", link).is_some(), "{link}");
    }
    assert_eq!(broken_link(&page, "# One & two\n", "#one--two"), None);
}

/// The examples of a page: shell blocks marked `run`.
fn examples(text: &str) -> Vec<String> {
    let mut examples = Vec::new();
    let mut example = None;
    for event in events(text) {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(words))) if &*words == "sh run" => {
                example = Some(String::new());
            }
            Event::Text(text) => {
                if let Some(example) = &mut example {
                    example.push_str(&text);
                }
            }
            Event::End(TagEnd::CodeBlock) => examples.extend(example.take()),
            _ => {}
        }
    }
    examples
}

/// All Rust files in a directory.
fn rust_files(directory: &Path, found: &mut Vec<PathBuf>) {
    for path in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The words of `cargo test …` that select tests.
fn filters(command: &str) -> Vec<&str> {
    let mut words = command.split_ascii_whitespace().skip(2);
    let mut found = Vec::new();
    while let Some(word) = words.next() {
        match word {
            "-p" | "--test" | "--target" => drop(words.next()),
            _ if word.starts_with('-') => {}
            _ => found.push(word),
        }
    }
    found
}

/// `cargo test NAME` passes if no test has that name, so a page that names a test that was renamed promises nothing.
#[test]
fn tests_that_pages_name_exist() {
    let mut files = Vec::new();
    ["crates", "tests"].iter().for_each(|directory| rust_files(&root().join(directory), &mut files));
    let code: Vec<String> = files.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    // Functions, and the modules of files.
    let functions = code.iter().flat_map(|text| text.split("fn ").skip(1));
    let functions = functions.filter_map(|text| text.split(|c: char| !c.is_alphanumeric() && c != '_').next());
    let names: HashSet<&str> = files.iter().filter_map(|path| path.file_stem()?.to_str()).chain(functions).collect();
    let mut count = 0;
    for page in pages().into_iter().chain([root().join("CONTRIBUTING.md"), root().join("SECURITY.md")]) {
        let text = fs::read_to_string(&page).unwrap();
        for (at, _) in text.match_indices("cargo test ") {
            let command = text[at..].split(['`', '\n', '#']).next().unwrap();
            for filter in filters(command) {
                count += 1;
                let last = filter.trim_end_matches("::").rsplit("::").next().unwrap();
                assert!(
                    names.iter().any(|name| name.contains(last)),
                    "{}: no test or module is called {filter}",
                    page.display()
                );
            }
        }
    }
    assert!(count > 10, "{count}");
}

#[test]
fn examples_work_as_written() {
    let path = format!("{}:{}", Path::new(PIPEMARK).parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut run = 0;
    for page in pages() {
        let directory = tempfile::tempdir().unwrap();
        for example in examples(&fs::read_to_string(&page).unwrap()) {
            let mut shell = Command::new("bash");
            shell.args(["-euo", "pipefail", "-c", &example]).current_dir(directory.path());
            let output = shell.env("PATH", &path).env("XDG_DATA_HOME", directory.path().join("data")).output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && stderr.is_empty(), "{}:\n{example}\n{stderr}", page.display());
            run += 1;
        }
    }
    assert!(run >= 3, "only {run} examples");
}

/// The output names the rule of each finding, and docs must explain every such name.
#[test]
fn every_rule_of_findings_is_explained() {
    let directory = root().join("crates/pipemark-report/src/findings");
    let page = fs::read_to_string(root().join("docs/outputs.md")).unwrap();
    let mut rules = HashSet::new();
    for file in fs::read_dir(directory).unwrap() {
        let source = fs::read_to_string(file.unwrap().path()).unwrap();
        let tests = source.find("#[cfg(test)]").unwrap_or(source.len());
        for call in source[..tests].split("Candidate::new(").skip(1) {
            let rule = call.trim_start().strip_prefix('"').and_then(|rest| rest.split('"').next());
            rules.extend(rule.map(str::to_owned));
        }
    }
    // The rules that compare filters are in TOML files.
    for form in ["tools", "lines"] {
        let text = fs::read_to_string(root().join(format!("entrants/{form}/filters.toml"))).unwrap();
        rules.extend(text.split("rule = \"").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
    }
    assert!(rules.len() > 10 && rules.contains("lines-batching"), "{rules:?}");
    for rule in rules {
        assert!(page.contains(&format!("`{rule}`")), "docs/outputs.md does not explain the rule {rule}");
    }
}

/// `make lint` checks the whole tree with tests/prose.py; this checks that it detects violations.
#[test]
fn the_prose_check_fails_on_phrases_and_long_lines() {
    let check = |name: &str, text: &str| {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("docs")).unwrap();
        fs::write(directory.path().join(name), text).unwrap();
        let output =
            Command::new(root().join("tests/prose.py")).arg(name).current_dir(directory.path()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let long = "word ".repeat(30);
    for (name, text, line) in [
        ("docs/a.md", "One.\nThe runs are made in turns.\n", 2),
        ("docs/a.md", "The verdict is can't\ntell.\n", 1),
        ("a.rs", "/// Runs of two trials take\n/// turns.\n", 1),
        ("a.rs", "let text = \"runs take \\\n    turns\";\n", 1),
        ("docs/a.md", &*long, 1),
    ] {
        let (code, printed) = check(name, text);
        assert!(code == Some(1) && printed.starts_with(&format!("{name}:{line}: ")), "{text}: {code:?} {printed}");
    }
    for text in ["Runs alternate.\n", "```text\n1 can't tell\n```\n", &*format!("| {long} |\n")] {
        assert_eq!(check("docs/a.md", text), (Some(0), String::new()), "{text}");
    }
}

/// docs/picture.py draws the README picture from docs/why.txt, which holds output of `pipemark why`.
#[test]
fn the_readme_image_is_the_output_of_why() {
    let text = fs::read_to_string(root().join("docs/why.txt")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let drawn = directory.path().join("why.svg");
    let script = root().join("docs/picture.py");
    let output = Command::new(script).arg(root().join("docs/why.txt")).arg(&drawn).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let kept = fs::read_to_string(root().join("docs/why.svg")).unwrap();
    assert!(fs::read_to_string(&drawn).unwrap() == kept, "run docs/picture.py");
    // The current program prints output of the same form: a title, the same column headings, and lines for the pipes
    // between stages.
    let why = Command::new(PIPEMARK).args(["why", "yes | head -c 600m | tail -c 1"]).output().unwrap();
    let today = String::from_utf8(why.stderr).unwrap();
    let form = |text: &str| {
        let words = |line: &str| line.split_whitespace().take(7).map(str::to_owned).collect::<Vec<_>>();
        let heading = text.lines().find(|line| line.starts_with("stage ")).map(words);
        let title = text.lines().any(|line| line.starts_with("why · "));
        (title, heading, text.lines().any(|line| line.starts_with("  └ pipe ")))
    };
    assert_eq!(form(&text), form(&today), "print docs/why.txt again\n{today}");
    assert!(
        text.starts_with("$ pipemark why '") && text.lines().skip(1).all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

/// A reader sees at once what to run in a fresh clone.
#[test]
fn the_readme_is_short_and_names_the_two_commands_of_a_fresh_clone() {
    let text = fs::read_to_string(root().join("README.md")).unwrap();
    assert!(text.lines().count() <= 90, "{} lines", text.lines().count());
    for command in ["make run ", "make test "] {
        assert!(text.lines().any(|line| line.starts_with(command)), "{command}");
    }
}

/// The book lists every page once.
#[test]
fn the_book_has_all_pages() {
    let mut listed = links(&fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap());
    listed.sort();
    let docs =
        pages().into_iter().filter(|page| page.starts_with(root().join("docs")) && !page.ends_with("SUMMARY.md"));
    let names: Vec<String> = docs.map(|page| page.file_name().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(listed, names);
}
