use super::*;
use crate::parameter::Key;

/// Parses a job from settings such as `recv=splice verify=full`.
fn job(words: &str) -> Result<Job, String> {
    let values = words.split_whitespace().map(|word| Value::parse_pair(word).unwrap());
    Job::try_from(Settings::of(values)).map_err(|error| error.to_string())
}

#[test]
fn contradictions_are_named() {
    for (words, sentence) in [
        ("recv=splice verify=full", "never reads the bytes"),
        ("send=tee verify=full", "over and over"),
        ("block=1m total=64k", "larger than the total"),
        ("total=1m time=1s", "not both"),
        ("send=in-place", "does not work with --link pipe; use write, vmsplice"),
        ("link=tcp capacity=1m", "is for pipes and rings"),
        ("link=pipe buffer=1m", "is for sockets"),
        ("link=null verify=full", "moves no bytes"),
        ("content=text verify=full", "not for text"),
        ("gap=1ms", "are for round trips"),
        ("mode=latency gap=1ms rate=5", "omit --gap"),
        ("mode=latency recv=splice", "must be read"),
        ("mode=latency verify=xor", "for streams"),
        ("mode=latency length=2", "has no round trips"),
        ("length=2 pairs=2", "--pairs 1"),
        ("writers=2 link=fifo", "--link pipe"),
        ("writers=2 verify=full", "--verify count"),
        ("writers=2 length=1", "writers"),
        ("readers=2", "needs a link by other programs"),
        ("readers=2 writers=2 link=zeromq", "one writer"),
        ("exit=1", "with --length"),
        ("source=yes total=1m send=splice", "in place of pipemark's source and sink"),
        ("source=yes total=1m verify=full", "in place of pipemark's source and sink"),
        ("source=yes", "use --total"),
        ("source=yes|cat total=1m", "one command"),
        ("mode=latency source=yes", "has no round trips"),
        ("feed=file", "needs a filter"),
        ("feed=file filter=sed place=free", "give a total"),
        ("feed=yes-long filter=sed total=1m place=free", "give a time"),
        ("feed=yes-long filter=sed", "use place free"),
        ("feed=yes-long filter=sed place=free block=1k", "the filter sed does not accept block 1 KiB"),
        ("feed=timed filter=sed place=free", "give a rate"),
        ("feed=yes-long filter=sed place=free rate=10", "use the feed \"timed\""),
    ] {
        let error = job(words).expect_err(words);
        assert!(error.contains(sentence), "{words}: {error}");
    }
    assert!(job("recv=splice verify=count").is_ok());
}

#[test]
fn an_entrant_accepts_the_parameters_of_its_contract() {
    let with = |words: &str| {
        let values = "total=1m language=c program=tuned place=free verify=full".split_whitespace();
        let values = values.chain(words.split_whitespace()).map(|word| Value::parse_pair(word).unwrap());
        Job::try_from(Settings::of(values)).map_err(|error| error.to_string())
    };
    assert_eq!(with("verify=xor place=same block=512").unwrap().kind(), JobKind::Entrant);
    for (words, sentence) in [
        ("verify=count", "checks everything or nothing"),
        ("place=cross", "free or same"),
        ("capacity=1m", "does not accept capacity 1 MiB"),
        ("read-block=1k", "does not accept read-block"),
        ("send=vmsplice", "does not accept send"),
    ] {
        let error = with(words).expect_err(words);
        assert!(error.contains(sentence), "{error}");
    }
    assert!(job("program=tuned").unwrap_err().contains("give a language"));
    assert!(job("language=c").unwrap_err().contains("idiomatic or tuned"));
    for text in ["", "C", "../c", "-c", "c c"] {
        assert!(Value::parse(Key::Language, text).is_err(), "{text}");
    }
}

#[test]
fn ids_distinguish_jobs() {
    let plain = job("").unwrap();
    assert_eq!(plain, Job::default());
    assert_eq!(plain.id(), job("read-block=64k").unwrap().id(), "a read block equal to the block is no difference");
    assert_eq!(job("read-block=64k capacity=1m").unwrap().id(), "pipe write-read 65536 cross count capacity=1MiB");
    assert_eq!(
        job("feed=yes-long filter=sed place=free time=1s").unwrap().id(),
        "pipe write-read 65536 free count time=1.00s feed=yes-long filter=sed"
    );
    assert_eq!(
        job("mode=latency gap=1ms block=8").unwrap().id(),
        "pipe write-read 8 cross count mode=latency gap=1.00ms"
    );
}

#[test]
fn every_kind_survives_json_and_settings() {
    for words in [
        "",
        "read-block=1k total=1m buffer=default",
        "link=tcp buffer=1m pairs=3",
        "mode=latency rate=100",
        "mode=latency gap=1ms",
        "stage=relay length=3 exit=1",
        "stage=relay length=0",
        "source=yes total=1m place=free",
        "source=yes total=1m length=2 capacity=1m",
        "total=1m language=c program=tuned place=free verify=full",
        "feed=yes-long filter=sed place=free",
        "feed=timed filter=sed place=free rate=10",
    ] {
        let job = job(words).unwrap_or_else(|error| panic!("{words}: {error}"));
        assert_eq!(Job::try_from(job.settings()).unwrap(), job, "{words}");
        let json = serde_json::to_string(&job).unwrap();
        assert_eq!(serde_json::from_str::<Job>(&json).unwrap(), job, "{json}");
    }
}

#[test]
fn json_is_plain_numbers_and_words() {
    let json = serde_json::to_value(Job::default()).unwrap();
    assert_eq!(json["block"], 65536);
    assert_eq!(json["capacity"], "default");
    assert_eq!(json["place"], "cross");
    assert_eq!(json["volume"]["time"], 250_000_000);
    assert_eq!(json["total"], serde_json::Value::Null);
}
