use std::time::Duration;

use pipemark_causes::{PipelineVerdict, StageRecord};
use pipemark_show::{Characters, Colour};

use super::*;
use crate::{ProcFile, SamplingOptions, Subject, Timeline, Watcher};

/// A report on one stage.
fn report() -> PipelineReport {
    let options = SamplingOptions {
        touch: false,
        access: ProcFile::Syscall,
        profile: false,
        keeps_stacks: false,
        period: Duration::from_millis(1),
    };
    let mut watcher = Watcher::new(Subject::Processes(vec![std::process::id()]), options);
    let mut timeline = Timeline::default();
    (0..30).for_each(|_| watcher.sample());
    timeline.add(watcher.close_interval());
    let mut report = PipelineReport::of(&watcher.evidence(timeline));
    report.pipeline = "a | b\u{1b}[31m".to_owned();
    report.verdict = PipelineVerdict::unknown("short", "Nothing can be told.");
    report.stages = vec![StageRecord { number: 1, name: "yes".to_owned(), ..StageRecord::default() }];
    report
}

fn drawn(options: ScreenOptions, width: usize, height: usize) -> Vec<String> {
    let terminal = Terminal { width, colour: Colour::Never, characters: Characters::Unicode };
    frame(&report(), &[vec![0.0, 0.5, 1.0]], options, terminal, height)
}

#[test]
fn the_screen_fits_any_terminal_and_its_last_line_lists_the_keys() {
    for (width, height) in [(80, 24), (40, 10), (200, 60), (10, 3), (1, 1)] {
        let lines = drawn(ScreenOptions::default(), width, height);
        assert_eq!(lines.len(), height);
        let about = lines[0].replace("\u{1b}[7m", "").replace("\u{1b}[0m", "");
        assert!(about.chars().count() <= width && lines[height - 1].chars().count() <= width, "{width}: {lines:?}");
    }
    let text = drawn(ScreenOptions { busiest_first: true, frozen: true }, 80, 24);
    assert!(text[0].contains("samples/s") && text[0].contains("a | b"), "{}", text[0]);
    let rest = text.concat().replacen("\u{1b}[7m", "", 1).replacen("\u{1b}[0m", "", 1);
    assert!(!rest.contains('\u{1b}'), "nothing from elsewhere that a terminal would act on");
    assert!(text.iter().any(|line| line.contains("Nothing can be told.")), "{text:?}");
    assert!(text.iter().any(|line| line.ends_with("▁▄█")), "how busy it was, the latest last: {text:?}");
    assert!(text[23].starts_with("frozen · q quit"), "{}", text[23]);
}

#[test]
fn a_narrow_screen_shows_what_stages_do_but_no_rates() {
    for (width, height) in [(40, 10), (60, 24)] {
        let lines = drawn(ScreenOptions::default(), width, height);
        assert!(lines[1].ends_with("busy  starved  blocked") && lines[2].starts_with("1 yes"), "{lines:?}");
    }
}

#[test]
fn keys_do_what_the_last_line_says() {
    let mut options = ScreenOptions::default();
    let pressed: [(&[u8], _); 6] = [
        (b"q", Some(KeyPress::Quit)),
        (b"\x1b", Some(KeyPress::Quit)),
        (b"\x1b[A", None),
        (b"n", Some(KeyPress::Next)),
        (b"\x03", Some(KeyPress::Interrupt)),
        (b"s ", None),
    ];
    for (bytes, key) in pressed {
        assert_eq!(options.take(bytes), key, "{bytes:?}");
    }
    assert!(options.busiest_first && options.frozen);
}

#[test]
fn a_terminal_without_a_size_gets_80_columns() {
    assert_eq!(known_size([0, 0]), [80, 24]);
    assert_eq!(known_size([200, 0]), [200, 24]);
    assert_eq!(known_size([1, 5]), [1, 5]);
}
