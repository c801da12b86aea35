//! `pipemark ab` as a gate: `--catch`, `--bisect`, `--thresholds`, and comparisons with saved sessions.

use std::os::unix::fs::PermissionsExt;

use crate::program::{ProgramOutput, pipemark};

fn ab(words: &[&str]) -> ProgramOutput {
    pipemark(&[&["ab"], words].concat())
}

/// Equal commands are never caught. On a busy machine they may be undecided.
#[test]
fn a_limit_has_three_answers_each_with_its_code() {
    let catch = |limit: &str, budget: &str, [a, b]: [&str; 2]| {
        let ended = ab(&["--catch", limit, "--budget", budget, "--json", "-", "--", a, "--", b]);
        let result: serde_json::Value = serde_json::from_str(&ended.stdout).expect(&ended.stderr);
        let answer = &result["catch"]["answer"];
        let code = match answer.as_str().unwrap() {
            "caught" => 10,
            "passed" => 0,
            _ => 12,
        };
        assert_eq!(ended.code(), Some(code), "{answer}");
        (answer.as_str().unwrap().to_owned(), ended.stderr, result)
    };
    let (answer, _, result) = catch("50%", "20s", ["sleep 0.01", "sleep 0.1"]);
    assert_eq!((answer.as_str(), &result["catch"]["by"]), ("caught", &"time".into()));
    let within = result["criterion"]["same_within"].as_f64().unwrap();
    assert!((within - 0.5 * 5.0 / 6.0).abs() < 1e-9, "{within}");
    let (answer, _, result) = catch("90%", "2s", ["sleep 0.01", "sleep 0.01"]);
    assert_ne!(answer, "caught", "{}", result["catch"]);
    let (answer, said, _) = catch("1%", "1ms", ["sleep 0.01", "sleep 0.01"]);
    assert_eq!(answer, "undecided");
    assert!(said.contains("too few runs to decide about 1 %: 1 of each command fit in --budget 1ms"), "{said}");
    for words in [&["5%", "--runs", "9", "--", "true"][..], &["5%"], &["0%", "--", "true"]] {
        let ended = ab(&[&["--catch"], words, &["--", "true"]].concat());
        assert_eq!(ended.code(), Some(2), "{words:?}: {}", ended.stderr);
    }
}

/// The change is planted in the fourth of five commits. The long sleeps pass on a busy machine too.
#[test]
fn git_bisect_finds_the_commit_that_made_a_command_slower() {
    let directory = tempfile::tempdir().unwrap();
    let git = |words: &[&str]| {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"];
        let mut command = std::process::Command::new("git");
        command.current_dir(&directory).env("HOME", directory.path()).env("LC_ALL", "C");
        let ended = command.args(identity).args(words).output().unwrap();
        let text = [ended.stdout, ended.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        assert!(ended.status.success(), "git {words:?}: {text}");
        text
    };
    git(&["init", "-q"]);
    let mut commits = Vec::new();
    for (nth, seconds) in ["0.05", "0.05", "0.05", "0.4", "0.4"].into_iter().enumerate() {
        std::fs::write(directory.path().join("tool"), format!("sleep {seconds} # {nth}\n")).unwrap();
        git(&["add", "."]);
        git(&["commit", "-q", "-m", &format!("commit {nth}")]);
        commits.push(git(&["rev-parse", "HEAD"]).trim().to_owned());
    }
    git(&["bisect", "start", &commits[4], &commits[0]]);
    let compare = ["ab", "--bisect", "--catch", "90%", "--budget", "60s", "-q", "--", "sleep 0.05", "--", "sh ./tool"];
    let found = git(&[&["bisect", "run", crate::program::PIPEMARK], &compare[..]].concat());
    assert!(found.contains(&format!("{} is the first bad commit", commits[3])), "{found}");
    // A revision whose build fails is skipped, and a wrong option ends the search.
    let code =
        |words: &[&str]| ab(&[&["--bisect", "--catch", "90%"], words, &["--", "true", "--", "true"]].concat()).code();
    assert_eq!((code(&["--setup", "false"]), code(&["--by", "nothing"])), (Some(125), Some(128)));
}

#[test]
fn a_file_has_thresholds_of_commands_and_figures() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let compare = |text: &str| {
        std::fs::write(path, text).unwrap();
        let words = ["--runs", "8", "--thresholds", path, "--fail-on", "worse", "--json", "-", "--name", "short"];
        ab(&[&words[..], &["--name", "long", "--", "sleep 0.02", "--", "sleep 0.3"]].concat())
    };
    let ended = compare("time = \"90%\"\n");
    assert_eq!(ended.code(), Some(10), "{}", ended.stderr);
    let result: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let figures = &result["commands"][1]["figures"];
    assert_eq!(
        (&figures["time"]["threshold"], &figures["memory"]["threshold"]),
        (&0.9.into(), &serde_json::Value::Null)
    );
    // Figures of the table count in addition to the judged one: both commands write nothing.
    let ended = compare("[long]\nwritten = \"1%\"\n[short]\nfaults = \"1%\"\n");
    let result: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(result["commands"][1]["figures"]["written"]["verdict"], "same");
    let ended = compare("[long]\nmemry = \"1%\"\n");
    assert!(ended.code() == Some(2) && ended.stderr.contains("did you mean memory?"), "{}", ended.stderr);
}

/// A history in a directory of its own, and a script to measure.
struct SavedSessions(tempfile::TempDir);

impl SavedSessions {
    fn new() -> SavedSessions {
        SavedSessions(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn ab(&self, words: &[&str]) -> ProgramOutput {
        let common = ["--db", &self.path("h.db"), "--sessions", "3", "--runs", "2", "--shell", "none", "--json", "-"];
        ab(&[&common, words].concat())
    }
}

#[test]
fn a_command_is_compared_with_sessions_saved_earlier() {
    let saved = SavedSessions::new();
    let ended = saved.ab(&["--baseline", "main", "--", "true"]);
    assert!(ended.code() == Some(2) && ended.stderr.contains("there is no history"), "{}", ended.stderr);
    let measure = |words: &[&str]| saved.ab(&[words, &["--name", "tool", "--", "sleep 0.02"]].concat());
    let ended = measure(&["--save", "main"]);
    assert!(ended.code() == Some(0) && ended.stderr.contains("saved as run 1: main"), "{}", ended.stderr);
    let slower = ["--baseline", "main", "--fail-on", "worse", "--name", "tool", "--", "sleep 0.2"];
    let ended = saved.ab(&slower);
    assert_eq!(ended.code(), Some(10), "{}{}", ended.stdout, ended.stderr);
    let result: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let time = &result["commands"][0]["figures"]["time"];
    assert_eq!((&result["baseline"], &time["comparison"]["base_sessions"]), (&"main".into(), &3.into()));
    assert!(time["saved"]["median"].as_f64().unwrap() >= 20e6 && time["saved"]["runs"] == 6, "{time}");
    // A command that wasn't saved has no verdict.
    let ended = saved.ab(&["--baseline", "main", "--fail-on", "no-verdict", "--name", "other", "--", "true"]);
    assert!(
        ended.code() == Some(15) && ended.stdout.contains("this command was not saved as 'main'"),
        "{}",
        ended.stdout
    );
    // Too few sessions can never fail.
    let few = ["--baseline", "main", "--sessions", "2", "--fail-on", "worse", "--name", "tool", "--", "true"];
    let ended = ab(&[&["--db", &saved.path("h.db")], &few[..]].concat());
    assert!(ended.code() == Some(2) && ended.stderr.contains("too few for a verdict"), "{}", ended.stderr);
    let shown = pipemark(&["history", "show", "1", "--db", &saved.path("h.db")]);
    assert!(shown.code() == Some(0) && shown.stdout.contains("tool"), "{}{}", shown.stdout, shown.stderr);
}

#[test]
fn sessions_of_another_machine_or_version_are_named_and_not_compared() {
    let saved = SavedSessions::new();
    let script = saved.path("tool");
    let write = |text: &str| {
        std::fs::write(&script, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
    };
    write("sleep 0.02");
    assert_eq!(saved.ab(&["--save", "main", "--", &script]).code(), Some(0));
    let exported = pipemark(&["history", "export", "1", "--db", &saved.path("h.db")]).stdout;
    let mut document: serde_json::Value = serde_json::from_str(&exported).unwrap();
    assert_eq!(document["commands"][0]["sessions"].as_array().unwrap().len(), 3);
    document["host"]["name"] = "elsewhere".into();
    document["label"] = "other".into();
    document["started"] = "2026-01-01T00:00:00Z".into();
    std::fs::write(saved.path("other.json"), document.to_string()).unwrap();
    let imported = pipemark(&["history", "import", &saved.path("other.json"), "--db", &saved.path("h.db")]);
    assert_eq!(imported.code(), Some(0), "{}", imported.stderr);
    let ended = saved.ab(&["--baseline", "other", "--", &script]);
    assert_eq!(ended.code(), Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("was measured on another machine, elsewhere ("), "{}", ended.stderr);
    // The latest version is the one that counts.
    write("sleep 0.2");
    assert_eq!(saved.ab(&["--save", "main", "--", &script]).code(), Some(0));
    let ended = saved.ab(&["--baseline", "main", "--", &script]);
    let result: serde_json::Value = serde_json::from_str(&ended.stdout).expect(&ended.stderr);
    let saved_time = result["commands"][0]["figures"]["time"]["saved"]["median"].as_f64().unwrap();
    assert!(saved_time >= 200e6, "{saved_time}");
    let text = result["warnings"].to_string();
    assert!(text.contains("not with 3 sessions of others"), "{text}");
}
