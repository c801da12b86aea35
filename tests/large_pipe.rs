//! The suite large-pipe on the command line: every trial runs, grep's result is checked, experiments contain their
//! pairs of trials, and each claim of the document has an answer.

use crate::program::{number, pipemark, samples, trials};
use serde_json::Value;

#[test]
#[ignore = "long"]
fn long_the_whole_suite_runs_at_a_small_scale() {
    let document = pipemark(&["run", "large-pipe", "--scale", "0.002", "--runs", "1", "--json", "-"]).measured();
    let of = |experiment: &str| -> Vec<&Value> {
        let all = document["trials"].as_array().unwrap();
        all.iter().filter(|trial| trial["experiment"] == experiment && trial["status"] == "ok").collect()
    };
    // On a machine with one CPU, trials on two CPUs are skipped.
    for (experiment, least) in [("grep", 9), ("bw-pipe", 90), ("pipeflex", 80), ("pipeflex-nonblocking", 12)] {
        assert!(of(experiment).len() >= least, "{experiment}: {} trials", of(experiment).len());
    }
    for trial in of("grep") {
        let sample = &samples(trial)[0];
        assert_eq!(number(&sample["sinks"][0]["bytes"]), 0, "grep found something");
        assert_eq!(sample["bytes"], sample["sources"][0]["bytes"], "what grep took");
        assert_eq!(sample["stages"].as_array().unwrap().len(), 1);
    }
    for trial in of("pipeflex-nonblocking") {
        let sample = &samples(trial)[0];
        let ends = ["sources", "sinks"].map(|ends| sample[ends].as_array().unwrap().len());
        assert_eq!(ends, [2, 2], "two pairs, a pipe each");
        let bytes: u64 = sample["sinks"].as_array().unwrap().iter().map(|sink| number(&sink["bytes"])).sum();
        assert_eq!(number(&sample["bytes"]), bytes, "of all pairs together");
    }
    for trial in of("bw-pipe") {
        assert_eq!(trial["verified"], true, "{}", trial["id"]);
    }
    let claims = document["claims"].as_array().unwrap();
    assert_eq!(claims.len(), 24, "each conclusion, on two CPUs and on one");
    for claim in claims {
        let answer = &claim["answer"];
        assert_eq!(answer["verdict"], "not-measured", "runs of a millisecond answer nothing: {claim}");
        let is_open = claim["open"] == answer["here"];
        assert!(is_open || answer["here"].as_str().unwrap().contains("are too short"), "{claim}");
    }
}

#[test]
fn reads_of_pipeflex_take_what_is_there_and_writes_are_512_bytes() {
    let flags =
        "bw --runs 1 --place same --capacity 4k --block 512 --read-block 128k --read-delay 500us --time 40ms --json -";
    let document = pipemark(&flags.split_whitespace().collect::<Vec<_>>()).measured();
    let trial = trials(&document).into_iter().find(|trial| trial["params"]["link"] == "pipe").unwrap();
    let sample = &samples(trial)[0];
    let per_call = |ends: &str| sample[ends][0]["bytes_per_call"].as_f64().unwrap();
    assert!(per_call("sinks") <= 4096.0, "a pipe of a page holds no more: {}", per_call("sinks"));
    assert!(per_call("sources") <= 512.0, "{}", per_call("sources"));
}
