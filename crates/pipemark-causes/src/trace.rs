//! PipelineEvidence in a file: JSON, compressed with gzip. A file that is damaged, too large or made up is refused with a
//! sentence. A field that an older trace lacks is unknown, never 0: a field added later is an `Option`.

use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};

use pipemark_model::neutral;
use pipemark_profile::Profile;

use crate::evidence::{PeerFigures, PipelineEvidence, PipelineTrace, StageEvidence};
use crate::interval::{AddUp, Interval, MAX_COUNT, MAX_SAMPLES};
use crate::recorded::Recorded;
use crate::timeline::MAX_INTERVALS;

pub use crate::redact::redact;

/// The form of the file. It changes when a field changes its meaning.
const SCHEMA: &str = "pipemark-trace/1";

/// The largest file, as JSON, in bytes. An hour of 400 stages takes 30 MiB.
const MAX_BYTES: u64 = 64 << 20;
/// More stages than an observer distinguishes, and pipes between them.
const MAX_STAGES: usize = 400;
const MAX_PIPES: usize = 2000;
/// More kinds of work, and more functions, than a profile has.
const MAX_KINDS: usize = 64;
/// The limit of times, in seconds.
const MAX_SECONDS: f64 = 1e10;

#[derive(Serialize)]
struct WrittenTrace {
    schema: &'static str,
    version: &'static str,
    evidence: PipelineTrace,
}

#[derive(Deserialize)]
struct TraceHeader {
    schema: String,
}

#[derive(Deserialize)]
struct TraceDocument {
    evidence: PipelineTrace,
}

/// Writes evidence as a trace.
///
/// # Errors
/// When a figure isn't a number.
pub fn write(evidence: &PipelineEvidence) -> io::Result<Vec<u8>> {
    let document = WrittenTrace { schema: SCHEMA, version: env!("CARGO_PKG_VERSION"), evidence: evidence.to_form() };
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&serde_json::to_vec(&document)?)?;
    encoder.finish()
}

const NO_TRACE: &str = "the file isn't a trace, or is damaged";

/// Reads a trace.
///
/// # Errors
/// A sentence that says what is wrong with the file.
pub fn read(file: &mut dyn Read) -> Result<PipelineEvidence, String> {
    let mut text = Vec::new();
    let read = GzDecoder::new(file).take(MAX_BYTES + 1).read_to_end(&mut text);
    read.map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => "the file is cut off".to_owned(),
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => NO_TRACE.to_owned(),
        _ => error.to_string(),
    })?;
    if text.len() as u64 > MAX_BYTES {
        return Err(format!("the file has more than {} MiB when unpacked", MAX_BYTES >> 20));
    }
    // As text, because the program reads all other JSON as text: code for each type is there only once.
    let text = String::from_utf8(text).map_err(|_| NO_TRACE.to_owned())?;
    let TraceHeader { schema } = serde_json::from_str(&text).map_err(|_| NO_TRACE.to_owned())?;
    if schema != SCHEMA {
        return Err(format!("the trace has the form '{}', but this version reads '{SCHEMA}'", neutral(&schema)));
    }
    let document: TraceDocument = serde_json::from_str(&text)
        .map_err(|error| format!("the trace is damaged: {}", neutral(&error.to_string())))?;
    let mut evidence = PipelineEvidence::of_form(document.evidence);
    check(&evidence).map_err(|what| format!("the trace is damaged: {what}"))?;
    make_printable(&mut evidence);
    Ok(evidence)
}

/// Checks that no index and no number leads a reader astray.
fn check(evidence: &PipelineEvidence) -> Result<(), &'static str> {
    let holds = |fits: bool, what: &'static str| if fits { Ok(()) } else { Err(what) };
    let PipelineEvidence { stages, pipes, timeline, limits, .. } = evidence;
    let time = |seconds: f64| (0.0..=MAX_SECONDS).contains(&seconds);
    holds(stages.len() <= MAX_STAGES && pipes.len() <= MAX_PIPES, "too many stages or pipes")?;
    holds(timeline.intervals.len() <= MAX_INTERVALS + 1, "too many intervals")?;
    holds(
        pipes.iter().all(|pipe| pipe.from.max(pipe.to) < stages.len() && pipe.from != pipe.to),
        "a pipe without ends",
    )?;
    holds(stages.iter().all(is_sound), "an impossible stage")?;
    let times = [evidence.elapsed, evidence.own_seconds, evidence.first_scan];
    holds(times.into_iter().all(time), "an impossible time")?;
    holds(limits.page > 0 && limits.page <= 1 << 30 && limits.largest_pipe <= MAX_COUNT, "impossible limits")?;
    let sound = |interval: &Interval| {
        time(interval.begin)
            && time(interval.seconds)
            && interval.samples <= MAX_SAMPLES
            && interval.alive <= interval.samples
            && interval.stages.len() <= stages.len()
            && interval.pipes.len() <= pipes.len()
            && interval.stages.iter().all(AddUp::is_within_limits)
            && interval.pipes.iter().all(AddUp::is_within_limits)
    };
    holds(timeline.intervals.iter().all(sound), "an impossible count")
}

fn is_sound(stage: &StageEvidence) -> bool {
    let count = |count: usize| count <= 1 << 24;
    stage.progress.is_none_or(|(position, size)| position <= size)
        && count(stage.processes)
        && count(stage.threads)
        && stage.held_bytes.is_none_or(|bytes| bytes <= MAX_COUNT)
        && stage.arrived.bytes.max(stage.arrived_ever.bytes) <= MAX_COUNT
        && stage.profile.as_ref().is_none_or(is_sound_profile)
        && stage.silent.is_none_or(|seconds| (0.0..=MAX_SECONDS).contains(&seconds))
}

fn is_sound_profile(profile: &Profile) -> bool {
    let shares = profile.kinds.iter().map(|kind| kind.share);
    let mut shares = shares.chain(profile.functions.iter().map(|function| function.share));
    profile.kinds.len() <= MAX_KINDS
        && profile.functions.len() <= MAX_KINDS
        && shares.all(|share| (0.0..=1.0).contains(&share))
}

/// Makes all text harmless that is shown on a terminal, except the pipeline, which each sheet does. Observers do the same; a trace may be made by anyone.
fn make_printable(evidence: &mut PipelineEvidence) {
    let clean = |text: &mut String| *text = neutral(text);
    for stage in &mut evidence.stages {
        clean(&mut stage.name);
        clean(&mut stage.command);
        [&mut stage.tracer, &mut stage.language, &mut stage.low_priority, &mut stage.waits_for]
            .into_iter()
            .flatten()
            .for_each(clean);
        if let Some((path, _, holder)) = &mut stage.locked_by {
            clean(path);
            clean(holder);
        }
        if let Some(profile) = &mut stage.profile {
            profile.kinds.iter_mut().flat_map(|kind| &mut kind.function).for_each(clean);
            for function in &mut profile.functions {
                clean(&mut function.name);
                clean(&mut function.image);
            }
        }
        if let Some(PeerFigures { name, .. }) = &mut stage.peer {
            clean(name);
        }
    }
    for step in evidence.cycle.iter_mut().flat_map(|cycle| &mut cycle.steps) {
        clean(&mut step.name);
        clean(&mut step.holder_name);
        step.opens.iter_mut().for_each(|(path, _)| clean(path));
        step.lock.iter_mut().for_each(|lock| clean(&mut lock.path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::PipeEvidence;
    use crate::interval::{PipeCounts, StageCounts};
    use crate::report::{PipelineReport, PipelineVerdict};
    use crate::timeline::Timeline;

    fn evidence() -> PipelineEvidence {
        let stage = |name: &str| StageEvidence {
            name: name.to_owned(),
            words: vec![name.to_owned()],
            ..StageEvidence::default()
        };
        let counts = |states: [u32; 12]| StageCounts { states, alone: Some(3), cpu: Some(7), ..StageCounts::default() };
        let mut timeline = Timeline::default();
        for half in 0..10 {
            timeline.add(Interval {
                begin: f64::from(half) / 2.0,
                seconds: 0.5,
                samples: 50,
                alive: 50,
                stages: vec![
                    counts([40, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
                    counts([5, 0, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0]),
                ],
                pipes: vec![PipeCounts { samples: 50, ..PipeCounts::default() }],
            });
        }
        PipelineEvidence {
            pipeline: Some("gzip | cat".into()),
            stages: vec![stage("gzip"), stage("cat")],
            pipes: vec![PipeEvidence { from: 0, to: 1, ..PipeEvidence::default() }],
            timeline,
            elapsed: 5.0,
            ..PipelineEvidence::default()
        }
    }

    fn pack(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    fn unpack(bytes: &[u8]) -> String {
        let mut text = String::new();
        GzDecoder::new(bytes).read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_trace_gives_the_same_report() {
        let evidence = evidence();
        let bytes = write(&evidence).unwrap();
        let replayed = read(&mut &bytes[..]).unwrap();
        assert_eq!(replayed, evidence);
        assert_eq!(PipelineReport::of(&replayed), PipelineReport::of(&evidence));
    }

    #[test]
    fn what_a_trace_lacks_is_unknown() {
        let text = unpack(&write(&evidence()).unwrap());
        assert!(text.contains(",\"alone\":3"));
        let older = read(&mut &pack(&text.replace(",\"alone\":3", ""))[..]).unwrap();
        assert_eq!(older.timeline.intervals[0].stages[0].alone, None);
        // A count that every trace has isn't 0 if it is missing.
        let error = read(&mut &pack(&text.replace("\"samples\":50,", ""))[..]).unwrap_err();
        assert!(error.contains("missing field"), "{error}");
    }

    #[test]
    fn a_damaged_or_hostile_trace_is_refused_with_a_sentence() {
        let whole = write(&evidence()).unwrap();
        let text = unpack(&whole);
        let error = |bytes: &[u8]| read(&mut &bytes[..]).unwrap_err();
        assert!(error(&whole[..whole.len() / 2]).contains("cut off"), "{}", error(&whole[..whole.len() / 2]));
        for bytes in [&b""[..], b"no gzip", &pack("{}"), &pack("[1,2"), &pack(&"[".repeat(100_000))] {
            assert!(!error(bytes).is_empty());
        }
        assert!(error(&pack(&text.replace("trace/1", "trace/9\\u001b[31m"))).contains("this version reads"));
        let hostile = [
            ("\"from\":0,\"to\":1", "\"from\":0,\"to\":7"),
            ("\"states\":[40,", "\"states\":[4000000000,"),
            ("\"alive\":50", "\"alive\":60"),
            ("\"seconds\":0.5", "\"seconds\":-1.0"),
            ("\"seconds\":0.5", "\"seconds\":1e999"),
            ("\"progress\":null", "\"progress\":[9,3]"),
            ("\"cpu\":7", "\"cpu\":18446744073709551615"),
            ("\"page\":4096", "\"page\":0"),
        ];
        for (from, to) in hostile {
            assert!(text.contains(from), "{from}");
            assert!(error(&pack(&text.replacen(from, to, 1))).contains("damaged"), "{to}");
        }
        let much = pack(&format!("{{\"schema\":\"{SCHEMA}\",\"evidence\":\"{}\"}}", "x".repeat(MAX_BYTES as usize)));
        assert!(much.len() < 1 << 20 && error(&much).contains("more than 64 MiB"));
        // Each change of a byte is refused or read, and never ends in a panic.
        for at in (0..text.len()).step_by(7) {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = b'9';
            if let Ok(evidence) = read(&mut &pack(&String::from_utf8_lossy(&bytes))[..]) {
                PipelineReport::of(&evidence);
            }
        }
    }

    #[test]
    fn redacted_recordings_give_the_same_verdicts() {
        let directory = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/real/traces")).unwrap();
        let paths = directory.map(|entry| entry.unwrap().path());
        let traces: Vec<_> = paths.filter(|path| path.extension().is_some_and(|end| end == "trace")).collect();
        assert!(traces.len() > 50, "{}", traces.len());
        let judged = |evidence: &PipelineEvidence| {
            let PipelineVerdict { kind, stage, pipe, reason, gain, .. } = PipelineReport::of(evidence).verdict;
            (kind, stage, pipe, reason, gain)
        };
        let mut differ = Vec::new();
        for path in traces {
            let evidence = read(&mut std::fs::File::open(&path).unwrap()).unwrap();
            let (before, after) = (judged(&evidence), judged(&redact(&evidence)));
            if before != after {
                differ.push(format!("{}: {before:?} and {after:?}", path.display()));
            }
        }
        assert!(differ.is_empty(), "{differ:#?}");
    }

    #[test]
    fn text_of_a_trace_is_harmless_on_a_terminal() {
        let text = unpack(&write(&evidence()).unwrap()).replace("\"name\":\"gzip\"", "\"name\":\"gz\\u001b[31mip\"");
        let found = read(&mut &pack(&text)[..]).unwrap();
        assert!(!found.stages[0].name.contains('\u{1b}'), "{:?}", found.stages[0].name);
    }
}
