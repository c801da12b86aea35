//! Detects output held in a stage's buffer: the stage reads, but nothing comes out. Pure: no clock and no I/O.

use pipemark_model::ByteSize;

use crate::cause::{Cause, HeldKind};
use crate::figures::PipelineFigures;
use crate::hypothesis::{Hypothesis, Scene};
use crate::pipe_figures::PipeFigures;
use crate::programs;
use crate::report::Quality;
use crate::stage_figures::StageFigures;

/// The minimum time without output, in seconds.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
const MIN_SILENCE: f64 = 1.0;
/// A stage that computes or uses the disk for more than this share of the time has work to do.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
const AT_WORK: f64 = 0.3;
/// If a stage holds its output back, its reader waits for at least this share of the time.
/// Multiplied by 1.25 it changes 12, by 2 it changes 15 of 118 recorded verdicts (bench/thresholds.py).
const MIN_READER_WAITS: f64 = 0.8;
/// The smallest common output buffer for a pipe, in the C library or a language runtime, in bytes. A buffered program
/// writes this much at once.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
const MIN_BUFFER: f64 = 4096.0;
/// The maximum number of bytes that such a buffer holds.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
const MAX_BUFFER: u64 = 256 << 10;
/// A source holds its output if its socket has brought more bytes at least this often since its last write. The greeting
/// of a connection arrives in fewer pieces.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
const MIN_ARRIVALS: u32 = 3;

/// Whether a stage writes only full buffers, judging by its earlier writes.
fn writes_full_buffers(stage: &StageFigures) -> bool {
    stage.wrote_before.is_none_or(|bytes| bytes >= MIN_BUFFER * 0.9)
}

/// Whether no reader of a stage reads anything. The stage's earlier writes were then messages on standard error.
fn nothing_arrived(figures: &PipelineFigures, stage: &StageFigures) -> bool {
    let mut readers = figures.pipes.iter().filter(|pipe| pipe.from == stage.number).map(|pipe| pipe.to);
    readers.all(|number| figures.stages[number - 1].bytes_in_per_second.is_none_or(|rate| rate == 0.0))
}

/// The bytes that a stage has read since it wrote. Its own count may include files, such as its libraries; the bytes
/// that its writers wrote don't.
pub fn held_bytes(figures: &PipelineFigures, stage: &StageFigures) -> ByteSize {
    let own = stage.held_bytes.unwrap_or(0);
    let rate = |pipe: &PipeFigures| {
        let writer = &figures.stages[pipe.from - 1];
        Some(writer.bytes_per_write? * writer.writes_per_second?)
    };
    let fed: Option<f64> = figures.pipes.iter().filter(|pipe| pipe.to == stage.number).map(rate).sum();
    let written = fed.map(|rate| (rate * stage.seconds_silent.unwrap_or(0.0)) as u64).filter(|&bytes| bytes > 0);
    ByteSize(written.filter(|&bytes| bytes < own / 2).unwrap_or(own))
}

/// The share of time in which a source waits for something outside the pipeline.
fn outside_waits(stage: &StageFigures) -> f64 {
    stage.sleep + stage.other + stage.network + stage.lock
}

/// Whether a stage has read something and written none of it.
pub fn holds(figures: &PipelineFigures, stage: &StageFigures) -> bool {
    let waits = |number: usize| figures.stages[number - 1].starved >= MIN_READER_WAITS;
    let mut readers = figures.pipes.iter().filter(|pipe| pipe.from == stage.number).peekable();
    // A filter at the end writes to a file or to a process outside the pipeline.
    let is_last = readers.peek().is_none() && stage.writes_others && programs::filters(&stage.words);
    let reader_waits = is_last || readers.any(|pipe| waits(pipe.to));
    let has_read = stage.held_bytes.is_some_and(|bytes| (1..=MAX_BUFFER).contains(&bytes));
    let silent = stage.seconds_silent.is_some_and(|seconds| seconds >= MIN_SILENCE);
    let fed = figures.pipes.iter().any(|pipe| pipe.to == stage.number);
    // For a source, waiting for its socket is no work.
    let works = if fed { stage.busy } else { stage.busy - outside_waits(stage) };
    (fed || stage.arrivals >= MIN_ARRIVALS)
        && reader_waits
        && has_read
        && silent
        && works < AT_WORK
        && (writes_full_buffers(stage) || !is_last && figures.from_start && nothing_arrived(figures, stage))
        && !programs::collects(&stage.words)
        && !programs::writes_at_once(&stage.words)
}

/// The upstream program whose output never ends, if this stage has read some of it and writes nothing before the end of
/// its input.
pub fn source_without_end<'f>(figures: &'f PipelineFigures, stage: &StageFigures) -> Option<&'f StageFigures> {
    let waits = programs::needs_end(&stage.words) || programs::compresses(&stage.words);
    if !(reads_silently(stage) && stage.busy < AT_WORK && waits) {
        return None;
    }
    upstream(figures, stage).find(|stage| programs::follows(&stage.words))
}

/// The stages before a stage, the nearest first.
fn upstream<'f>(figures: &'f PipelineFigures, stage: &StageFigures) -> impl Iterator<Item = &'f StageFigures> {
    let before = move |number: usize| figures.pipes.iter().find(|pipe| pipe.to == number).map(|pipe| pipe.from);
    let numbers = std::iter::successors(before(stage.number), move |&number| before(number));
    numbers.take(figures.stages.len()).map(|number| &figures.stages[number - 1])
}

/// Whether a stage's input never ends, as far as that is known. What a stage keeps of other input comes at the end, so
/// it doesn't make the pipeline slow.
fn has_endless_input(figures: &PipelineFigures, stage: &StageFigures) -> bool {
    let endless = |source: &StageFigures| {
        let fed = figures.pipes.iter().any(|pipe| pipe.to == source.number);
        // A connection may stay open, and a loop of the shell may have no end.
        let connected =
            !fed && source.peer.as_ref().is_some_and(|peer| !peer.pipe) && programs::program(&source.words) == "curl";
        let shell = ["sh", "bash", "dash", "zsh", "ksh", "sleep", "busybox"].contains(&source.name.as_str());
        let typed = String::from_utf8_lossy(figures.typed.as_deref().unwrap_or_default());
        let loops = ["while :", "while true", "until false", "for ((;;))"].iter().any(|words| typed.contains(words));
        programs::follows(&source.words) || connected || !fed && shell && loops
    };
    upstream(figures, stage).any(endless)
}

/// Whether a stage has read something and written nothing for a while.
fn reads_silently(stage: &StageFigures) -> bool {
    stage.held_bytes.is_some_and(|bytes| bytes > 0)
        && stage.seconds_silent.is_some_and(|seconds| seconds >= MIN_SILENCE)
}

/// Whether a stage that takes this stage's output waits for it nearly all the time.
fn reader_waits(figures: &PipelineFigures, stage: &StageFigures) -> bool {
    let waits = |pipe: &PipeFigures| figures.stages[pipe.to - 1].starved >= MIN_READER_WAITS;
    figures.pipes.iter().any(|pipe| pipe.from == stage.number && waits(pipe))
}

/// If a stage keeps a reader waiting because it fills its buffer before it writes, the option that makes it do so.
pub fn filling_option(figures: &PipelineFigures, stage: &StageFigures) -> Option<&'static str> {
    let option = programs::fills_first(&stage.words)?;
    let is_last = !figures.pipes.iter().any(|pipe| pipe.from == stage.number);
    (reads_silently(stage) && (is_last || reader_waits(figures, stage))).then_some(option)
}

/// Whether a source works at times but writes nothing, so that its output may be in its buffer. A source that waits for
/// the other end of a socket has nothing to write, unless it wakes up so often that a Unix socket must bring it data.
fn may_hold(figures: &PipelineFigures, stage: &StageFigures) -> bool {
    /// Programs that wait for a socket wake up once a second or less without data.
    /// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
    const WITH_DATA: f64 = 3.0;
    let first = !figures.pipes.iter().any(|pipe| pipe.to == stage.number);
    let wakes = |rate: f64| stage.switches_per_second.is_some_and(|switches| switches > rate);
    let local = stage.peer.as_ref().is_some_and(|peer| !(peer.pipe || peer.tcp || peer.udp));
    let waits_for_data = local && wakes(WITH_DATA) && programs::program(&stage.words) == "curl";
    let may_wait = stage.peer.as_ref().is_none_or(|peer| peer.pipe) && programs::buffers_output(&stage.words);
    first
        && reader_waits(figures, stage)
        && wakes(0.5)
        && (may_wait || waits_for_data)
        && stage.busy - outside_waits(stage) < AT_WORK
        && stage.seconds_silent.is_some_and(|seconds| seconds >= MIN_SILENCE)
        && (stage.wrote_before.is_some() && writes_full_buffers(stage) || nothing_arrived(figures, stage))
        && !programs::writes_at_once(&stage.words)
}

/// Stages that keep their output: one that stores all of its input, or, if no other stage works, one whose output is in
/// a buffer.
pub fn assess(scene: &Scene) -> Vec<Hypothesis> {
    let figures = scene.figures;
    let keeps_waiting = |stage: &StageFigures| reads_silently(stage) && reader_waits(figures, stage);
    let find = |kind: HeldKind, is: &dyn Fn(&StageFigures) -> bool| {
        let stage = figures.stages.iter().find(|stage| is(stage))?;
        Some(Hypothesis::of_stage(Cause::Held(kind), stage.number, Quality::Inferred))
    };
    let storing = find(HeldKind::Storing, &|stage| programs::stores_input(&stage.words) && keeps_waiting(stage));
    let mut found: Vec<Hypothesis> = storing.into_iter().collect();
    let is_at_work = |stage: &StageFigures| (stage.computing + stage.disk) * stage.present > AT_WORK;
    if figures.stages.iter().any(is_at_work) {
        return found;
    }
    let endless = |stage: &StageFigures| source_without_end(figures, stage).is_some();
    let compresses = |stage: &StageFigures| programs::compresses(&stage.words);
    let without_input = |stage: &StageFigures| !figures.pipes.iter().any(|pipe| pipe.to == stage.number);
    found.extend(find(HeldKind::Compressing, &|stage| endless(stage) && compresses(stage)));
    found.extend(find(HeldKind::WaitingForEnd, &|stage| endless(stage) && !compresses(stage)));
    found.extend(find(HeldKind::Probing, &|stage| programs::probes_input(&stage.words) && keeps_waiting(stage)));
    found.extend(find(HeldKind::Filling, &|stage| filling_option(figures, stage).is_some()));
    found.extend(find(HeldKind::Buffering, &|stage| {
        (holds(figures, stage) && (without_input(stage) || has_endless_input(figures, stage)))
            || may_hold(figures, stage)
    }));
    found
}

/// The stages that keep output of input that probably ends. They write it at the end, so the pipeline isn't slow because
/// of them.
pub fn stages_that_keep_output(figures: &PipelineFigures) -> impl Iterator<Item = &StageFigures> {
    figures.stages.iter().filter(|stage| holds(figures, stage) && !has_endless_input(figures, stage))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::PeerFigures;
    use crate::report::VerdictKind;
    use crate::verdict::tests::{line, stage};
    use crate::verdict::verdict;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    /// `tail -f | FILTER | awk`, where the filter has read something.
    fn follow(filter: &str, held: u64, silent: f64) -> PipelineFigures {
        let words_of_tail = words("tail -f log");
        let tail =
            StageFigures { words: words_of_tail, computing: 0.0, other: 1.0, cpu: Some(0.0), ..stage(1, 100, 0, 0) };
        let filter = StageFigures {
            words: words(filter),
            held_bytes: Some(held),
            seconds_silent: Some(silent),
            ..stage(2, 0, 100, 0)
        };
        line(vec![tail, filter, stage(3, 0, 100, 0)])
    }

    #[test]
    fn a_filter_that_reads_and_does_not_write_holds_its_output() {
        let found = verdict(&follow("grep hit", 900, 2.0));
        assert_eq!((found.kind, found.stage), (VerdictKind::Held, Some(2)), "{}", found.text);
        assert!(found.text.contains("has read 900 B and written nothing for 2.0 s"), "{}", found.text);
    }

    #[test]
    fn what_a_filter_keeps_of_input_that_ends_comes_at_the_end() {
        for source in ["make", "vmstat 1 7", "python3 client.py"] {
            let mut figures = follow("grep -v warning", 900, 2.0);
            figures.stages[0].words = words(source);
            let found = verdict(&figures);
            assert_eq!((found.kind, found.stage), (VerdictKind::Stage, Some(1)), "{}", found.text);
        }
    }

    #[test]
    fn a_source_that_receives_packets_and_writes_nothing_holds_its_output() {
        let source = |text: &str| StageFigures {
            computing: 0.0,
            network: 0.99,
            words: words(text),
            seconds_silent: Some(3.0),
            switches_per_second: Some(10.0),
            ..stage(1, 99, 0, 0)
        };
        let found = |text: &str| verdict(&line(vec![source(text), stage(2, 0, 100, 0)]));
        assert_eq!(found("tcpdump -n -i lo").kind, VerdictKind::Held);
        let banner = StageFigures { wrote_before: Some(73.0), ..source("tcpdump -n -i lo") };
        let mut figures = line(vec![banner, stage(2, 0, 100, 0)]);
        assert_eq!(verdict(&figures).kind, VerdictKind::Held, "only a message on standard error was written");
        figures.stages[1].bytes_in_per_second = Some(20.0);
        assert_eq!(verdict(&figures).kind, VerdictKind::Stage, "it writes small pieces");
        assert_eq!(found("tcpdump -n -i lo -l").kind, VerdictKind::Stage);
        let peer = PeerFigures { name: "192.0.2.1:80".to_owned(), tcp: true, ..PeerFigures::default() };
        let asks = StageFigures { peer: Some(peer), ..source("tcpdump -r day.pcap") };
        assert_eq!(verdict(&line(vec![asks, stage(2, 0, 100, 0)])).kind, VerdictKind::Peer);
        let mut figures = line(vec![source("parallel --delay 0.1 echo"), stage(2, 0, 100, 0)]);
        figures.stages[1].bytes_in_per_second = Some(20.0);
        assert_eq!(verdict(&figures).kind, VerdictKind::Stage, "its children write");
    }

    #[test]
    fn a_source_that_receives_a_stream_and_writes_nothing_holds_its_output() {
        let peer = PeerFigures { name: "192.0.2.1:80".to_owned(), tcp: true, ..PeerFigures::default() };
        let source = |text: &str, arrivals: u32| StageFigures {
            computing: 0.0,
            network: 0.99,
            words: words(text),
            held_bytes: Some(630),
            arrivals,
            seconds_silent: Some(3.0),
            peer: Some(peer.clone()),
            ..stage(1, 99, 0, 0)
        };
        let found = |source: StageFigures| verdict(&line(vec![source, stage(2, 0, 100, 0)]));
        let held = found(source("curl -s http://192.0.2.1/events", 5));
        assert_eq!((held.kind, held.stage), (VerdictKind::Held, Some(1)), "{}", held.text);
        assert!(held.text.contains("it has read 630 B and written nothing for 3.0 s"), "{}", held.text);
        assert_eq!(held.remedies[0].command, "curl -N -s http://192.0.2.1/events | s2");
        let of_docker = |switches: f64| StageFigures {
            peer: Some(PeerFigures { tcp: false, ..peer.clone() }),
            switches_per_second: Some(switches),
            ..source("curl -s --unix-socket docker.sock http://localhost/events", 0)
        };
        assert_eq!((found(of_docker(5.0)).kind, found(of_docker(1.0)).kind), (VerdictKind::Held, VerdictKind::Peer));
        for other in [
            source("curl -s http://192.0.2.1/events", 1),
            source("curl -sN http://192.0.2.1/events", 5),
            source("ssh 192.0.2.1 job", 5),
            StageFigures { seconds_silent: Some(0.3), ..source("curl -s http://192.0.2.1/events", 5) },
            StageFigures { held_bytes: Some(9 << 20), ..source("curl -s http://192.0.2.1/events", 5) },
        ] {
            assert_eq!(found(other.clone()).kind, VerdictKind::Peer, "{:?}", other.words);
        }
    }

    #[test]
    fn a_program_that_needs_the_end_of_its_input_never_gets_it_from_a_source_that_follows() {
        let mut figures = follow("sort -u", 900, 2.0);
        figures.stages[0].words.clear();
        assert_eq!(verdict(&figures).kind, VerdictKind::Stage, "the source may end");
        figures.stages[0].words = words("tail -f log");
        let found = verdict(&figures);
        assert_eq!((found.kind, found.stage), (VerdictKind::Held, Some(2)), "{}", found.text);
        assert!(
            found.text.contains("s1 never ends: s2 has read 900 B and written nothing for 2.0 s"),
            "{}",
            found.text
        );
        figures.stages[1].seconds_silent = Some(0.2);
        assert_eq!(verdict(&figures).kind, VerdictKind::Stage);
    }

    #[test]
    fn a_compressor_behind_a_source_that_follows_holds_its_output() {
        let mut figures = follow("xz -c", 900, 2.0);
        figures.stages[0].words.clear();
        assert_ne!(verdict(&figures).kind, VerdictKind::Held, "the source may end");
        figures.stages[0].words = words("tail -f log");
        let found = verdict(&figures);
        assert_eq!((found.kind, found.stage), (VerdictKind::Held, Some(2)), "{}", found.text);
        assert_eq!(found.remedies[0].id, "xz-flush-timeout");
        figures.stages[1].words = words("xz -dc");
        assert_ne!(verdict(&figures).kind, VerdictKind::Held);
    }

    #[test]
    fn a_program_that_fills_its_buffer_first_holds_its_output() {
        let found = verdict(&follow("mbuffer -q -m 16M -P 80", 900, 2.0));
        assert_eq!((found.kind, found.stage), (VerdictKind::Held, Some(2)), "{}", found.text);
        assert_eq!(found.remedies[0].id, "mbuffer-fill");
        assert!(found.text.contains("before it writes (-P): it has read 900 B"), "{}", found.text);
        for figures in [follow("mbuffer -q -m 16M", 900, 2.0), follow("mbuffer -m 16M -P 80", 900, 0.2)] {
            assert_ne!(verdict(&figures).kind, VerdictKind::Held);
        }
    }

    #[test]
    fn sponge_keeps_the_stages_after_it_waiting_even_if_those_before_it_work() {
        let mut figures = follow("sponge", 900, 2.0);
        figures.stages[0].computing = 0.95;
        figures.stages[0].busy = 0.95;
        let found = verdict(&figures);
        assert_eq!((found.kind, found.stage), (VerdictKind::Held, Some(2)), "{}", found.text);
        assert_eq!(found.remedies[0].id, "sponge-omit");
        let brief = StageFigures { seconds_silent: Some(0.2), ..figures.stages[1].clone() };
        let brief = PipelineFigures {
            stages: vec![figures.stages[0].clone(), brief, figures.stages[2].clone()],
            ..figures.clone()
        };
        assert_ne!(verdict(&brief).kind, VerdictKind::Held);
        figures.stages[1].words = words("sponge log");
        assert_ne!(verdict(&figures).kind, VerdictKind::Held, "it writes a file");
    }

    #[test]
    fn ffmpeg_holds_a_stream_until_it_knows_what_it_contains() {
        let found = verdict(&follow("ffmpeg -i - -c copy -f mpegts -", 296_000, 3.0));
        assert_eq!((found.kind, found.stage), (VerdictKind::Held, Some(2)), "{}", found.text);
        assert_eq!(found.remedies[0].id, "ffmpeg-probe");
        for command in [
            "ffmpeg -i in.ts -c copy -f mpegts -",
            "ffmpeg -probesize 32 -i - -c copy -f mpegts -",
            "ffmpeg -analyzeduration 0 -i - -c copy -f mpegts -",
        ] {
            assert_ne!(verdict(&follow(command, 296_000, 3.0)).kind, VerdictKind::Held);
        }
    }

    /// The stages, with a source of which isn't known that it never ends.
    fn without_end_known(mut stages: Vec<StageFigures>) -> Vec<StageFigures> {
        stages[0].words.clear();
        stages
    }

    #[test]
    fn a_filter_without_pending_output_holds_nothing() {
        for figures in [
            follow("grep hit", 0, 2.0),
            follow("grep hit", 900, 0.2),
            follow("grep --line-buffered hit", 900, 2.0),
            PipelineFigures { stages: without_end_known(follow("sort", 900, 2.0).stages), ..follow("sort", 900, 2.0) },
        ] {
            let found = verdict(&figures);
            assert_eq!((found.kind, found.stage), (VerdictKind::Stage, Some(1)), "{}", found.text);
        }
        // A filter at the end, whose output goes to a file.
        let mut last = follow("grep hit", 900, 2.0);
        last.stages.truncate(2);
        last.pipes.truncate(1);
        assert_eq!(verdict(&last).kind, VerdictKind::Stage);
        last.stages[1].writes_others = true;
        assert_eq!(verdict(&last).kind, VerdictKind::Held);
        // The stage wrote lines before, so it doesn't fill a buffer first.
        let mut lines = follow("grep hit", 900, 2.0);
        lines.stages[1].wrote_before = Some(40.0);
        assert_eq!(verdict(&lines).kind, VerdictKind::Stage);
    }

    #[test]
    fn what_a_stage_wrote_elsewhere_is_no_output() {
        // A Java program writes to other files while it starts.
        let mut java = follow("java Hits", 58_000, 2.0);
        java.stages[1].wrote_before = Some(40.0);
        java.stages[0].bytes_per_write = Some(14.0);
        java.stages[0].writes_per_second = Some(20.0);
        assert_eq!(verdict(&java).kind, VerdictKind::Stage, "it may have written before sampling began");
        java.from_start = true;
        let found = verdict(&java);
        assert_eq!((found.kind, found.stage), (VerdictKind::Held, Some(2)), "{}", found.text);
        assert!(found.text.contains("has read 560 B and written nothing for 2.0 s"), "{}", found.text);
        java.stages[2].bytes_in_per_second = Some(20.0);
        assert_eq!(verdict(&java).kind, VerdictKind::Stage, "its reader has read something");
    }
}
