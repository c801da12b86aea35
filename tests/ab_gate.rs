//! `pipemark ab` as a gate: `--catch`, `--bisect`, `--thresholds`, and comparisons with saved sessions.

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
    assert_eq!(result["criterion"]["same_within"], 0.5);
    let (answer, _, result) = catch("90%", "2s", ["sleep 0.01", "sleep 0.01"]);
    assert_ne!(answer, "caught", "{}", result["catch"]);
    let (answer, said, _) = catch("1%", "1ms", ["sleep 0.01", "sleep 0.01"]);
    assert_eq!(answer, "undecided");
    assert!(said.contains("too few runs to decide about 1 %: 1 of each command fit in --budget 1ms"), "{said}");
    for words in [&["--catch", "5%", "--runs", "9"][..], &["--catch", "5%", "true"], &["--catch", "0%"]] {
        let ended = ab(&[words, &["--", "true"]].concat());
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
