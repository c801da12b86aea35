//! Releases: the check before a release, the order of the crates, the image. `make test-dist` tests the packages
//! themselves.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::program::{PIPEMARK, report_skip};

fn root() -> PathBuf {
    fs::canonicalize(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap()
}

fn run(directory: &Path, program: impl AsRef<std::ffi::OsStr>, words: &[&str]) -> Output {
    Command::new(program).args(words).current_dir(directory).output().unwrap()
}

fn git(directory: &Path, words: &[&str]) {
    let own = ["-c", "user.name=Tester", "-c", "user.email=tester@localhost", "-c", "commit.gpgsign=false"];
    let output = run(directory, "git", &[&own[..], words].concat());
    assert!(output.status.success(), "{words:?}: {output:?}");
}

/// A source tree with only the files that the check reads.
fn source(repository: &str, author: &str, heading: &str) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        fs::create_dir_all(directory.path().join(name).parent().unwrap()).unwrap();
        fs::write(directory.path().join(name), text).unwrap();
    };
    write(
        "Cargo.toml",
        &format!(
            "[workspace.package]\nversion = \"1.2.3\"\nlicense = \"MIT\"\nauthors = [\"{author}\"]\nrepository = \"{repository}\"\n\n\
             [workspace.dependencies]\npipeio = {{ path = \"crates/pipeio\", version = \"1.2.3\" }}\n"
        ),
    );
    write("crates/pipeio/Cargo.toml", "[package]\nname = \"pipeio\"\n");
    write("CHANGELOG.md", &format!("# Changelog\n\n## {heading}\n\n- All is new.\n"));
    for script in ["about.sh", "release-check.sh"] {
        write(&format!("packaging/{script}"), "");
        fs::copy(root().join("packaging").join(script), directory.path().join("packaging").join(script)).unwrap();
    }
    git(directory.path(), &["init", "-q"]);
    git(directory.path(), &["add", "."]);
    git(directory.path(), &["commit", "-qm", "All of it"]);
    directory
}

/// The errors that the check reports; none if the commit can be released.
fn complaints(source: &TempDir) -> Vec<String> {
    let output = run(source.path(), "sh", &["packaging/release-check.sh"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.success(), stderr.is_empty(), "{stderr}");
    stderr.lines().map(|line| line.strip_prefix("not to be released: ").expect(line).to_owned()).collect()
}

#[test]
fn a_release_needs_all_that_is_published() {
    let whole = ["https://git.example.org/pipemark", "Ann Other <ann@lab.example.org>", "1.2.3 - 2026-11-25"];
    let refused_with = |nth: usize, text: &str| {
        let mut parts = whole;
        parts[nth] = text;
        let source = source(parts[0], parts[1], parts[2]);
        git(source.path(), &["tag", "-a", "-m", "new", "v1.2.3"]);
        complaints(&source)
    };
    let cases = [
        (0, "", "names no repository"),
        (0, "git.example.org/pipemark", "isn't an https address"),
        (1, "The authors", "has no address"),
        (1, "The authors <them@example.com>", "is an example"),
        (2, "Unreleased", "begins with 'Unreleased'"),
        (2, "1.2.2 - 2026-11-25", "begins with '1.2.2"),
    ];
    for (nth, text, expected) in cases {
        let refused = refused_with(nth, text);
        assert!(refused.len() == 1 && refused[0].contains(expected), "{text}: {refused:?}");
    }
}

#[test]
fn a_release_needs_its_tag_and_a_clean_tree() {
    let source = source("https://git.example.org/pipemark", "Ann Other <ann@lab.example.org>", "1.2.3 - 2026-11-25");
    assert_eq!(complaints(&source), ["this commit has no tag v1.2.3; git tag -a v1.2.3"]);
    git(source.path(), &["tag", "-a", "-m", "new", "v1.2.3"]);
    assert_eq!(complaints(&source), [""; 0]);
    fs::write(
        source.path().join("crates/pipeio/Cargo.toml"),
        "pipeio-harness = { path = \"..\", version = \"1.2.0\" }\n",
    )
    .unwrap();
    let refused = complaints(&source);
    assert!(refused[0].contains("other versions than 1.2.3: pipeio-harness 1.2.0"), "{refused:?}");
    assert!(refused[1].contains("has changes"), "{refused:?}");
}

#[test]
fn crates_are_published_after_their_dependencies() {
    let output = run(&root(), "packaging/crates.py", &[]);
    assert!(output.status.success(), "{output:?}");
    let order: Vec<String> = String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    assert_eq!(order.len(), fs::read_dir(root().join("crates")).unwrap().count());
    for (nth, name) in order.iter().enumerate() {
        let manifest = fs::read_to_string(root().join("crates").join(name).join("Cargo.toml")).unwrap();
        for later in &order[nth..] {
            let needs = [".workspace", " ="].iter().any(|end| manifest.contains(&format!("\n{later}{end}")));
            assert!(!needs, "{name} is published before {later}, which it needs");
        }
    }
}

#[test]
fn an_image_is_the_same_bytes_whenever_it_is_made() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("program"), "not a program").unwrap();
    let made = |name: &str| {
        let program = ["amd64=program", "arm64=program"];
        let words = [&[name, "1.2.3", "MIT", ""][..], &program].concat();
        let output = run(directory.path(), root().join("packaging/oci.py"), &words);
        assert!(output.status.success(), "{output:?}");
        fs::read(directory.path().join(name)).unwrap()
    };
    assert!(made("one.tar") == made("two.tar"));
    let listed = run(directory.path(), "tar", &["-xOf", "one.tar", "index.json"]);
    let index: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    let architectures =
        index["manifests"].as_array().unwrap().iter().map(|one| one["platform"]["architecture"].as_str().unwrap());
    assert_eq!(architectures.collect::<Vec<_>>(), ["amd64", "arm64"]);
}

/// In a CI job the action writes a summary, one annotation and outputs, and its exit code fails the job.
#[test]
fn the_action_fails_a_job_whose_new_command_is_slower() {
    let directory = tempfile::tempdir().unwrap();
    let [summary, outputs] = ["summary", "outputs"].map(|name| directory.path().join(name));
    let compare = |a: &str, b: &str| {
        let mut command = Command::new(root().join("packaging/action/ab.sh"));
        command.env("PIPEMARK", PIPEMARK).env("A", a).env("B", b).env("FAIL_ON", "worse");
        command.env("SESSIONS", "5").env("RUNS", "2").env("THRESHOLD", "50%");
        command.env("GITHUB_STEP_SUMMARY", &summary).env("GITHUB_OUTPUT", &outputs).env("HOME", directory.path());
        command.env("GITHUB_ACTIONS", "true");
        let output = command.current_dir(directory.path()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, printed) = compare("sleep 0", "sleep 0.2");
    assert_eq!(code, Some(10), "{printed}");
    assert!(printed.starts_with("::error title=pipemark ab: worse::B takes "), "{printed}");
    let shown = fs::read_to_string(&summary).unwrap();
    assert!(shown.contains("sleep 0.2") && shown.matches("B is worse").count() == 1, "once: {shown}");
    let printed = fs::read_to_string(&outputs).unwrap();
    assert!(printed.starts_with("verdict=worse\nchange="), "{printed}");
    let catch = |b: &str| {
        let mut command = Command::new(root().join("packaging/action/ab.sh"));
        command.env("PIPEMARK", PIPEMARK).env("A", "sleep 0.02").env("B", b).env("CATCH", "50%").env("BUDGET", "20s");
        let output = command.env("HOME", directory.path()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, printed) = catch("sleep 0.2");
    assert_eq!(code, Some(10), "{printed}");
    assert!(printed.contains("::error title=pipemark ab: caught::Caught: B compared with A: time +"), "{printed}");
    let (code, printed) = compare("true", "echo other");
    assert_eq!(code, Some(3), "{printed}");
    assert!(printed.starts_with("::error title=pipemark ab::no comparison was made"), "{printed}");
}

/// The action runs a downloaded program only if its checksum is right.
#[test]
fn the_action_refuses_a_changed_program() {
    let directory = tempfile::tempdir().unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let release = directory.path().join(format!("releases/v{version}"));
    fs::create_dir_all(release.join("made/bin")).unwrap();
    fs::write(release.join("made/bin/pipemark"), "#!/bin/sh\necho pipemark of the release\n").unwrap();
    let pack = format!(
        "chmod +x made/bin/pipemark && tar -czf pipemark-{version}-$(uname -m)-linux.tar.gz made && sha256sum *.gz > SHA256SUMS"
    );
    assert!(run(&release, "sh", &["-c", &pack]).status.success());
    let fetch = || {
        let mut command = Command::new(root().join("packaging/action/fetch.sh"));
        command.env("RELEASES", format!("file://{}", directory.path().join("releases").display()));
        command.env("GITHUB_OUTPUT", directory.path().join("outputs")).env("TMPDIR", directory.path()).output().unwrap()
    };
    if Command::new("curl").arg("--version").output().is_err() {
        report_skip("fetching a release, as the action does", "it needs curl");
        return;
    }
    assert_eq!(String::from_utf8(fetch().stdout).unwrap(), "pipemark of the release\n");
    assert!(run(&release, "sh", &["-c", "for file in *.gz; do echo more >> $file; done"]).status.success());
    let output = fetch();
    assert!(!output.status.success(), "{output:?}");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("of the release"), "{output:?}");
}

/// YAML takes text before `: ` in a plain value for another key, and refuses the file.
#[test]
fn plain_values_of_workflows_and_of_the_action_contain_no_colon() {
    let workflows = fs::read_dir(root().join(".github/workflows")).unwrap().map(|entry| entry.unwrap().path());
    for path in workflows.chain([root().join("action.yml")]) {
        let text = fs::read_to_string(&path).unwrap();
        for line in text.lines() {
            let Some((_, value)) = line.split_once(": ") else { continue };
            let plain = !value.starts_with(['"', '\'', '|', '>', '{', '[', '#']);
            assert!(!plain || !value.contains(": "), "{}: {line}", path.display());
        }
    }
}
