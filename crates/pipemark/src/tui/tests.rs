use super::*;
use crate::watch::{self, Access, Manner, Subject, Timeline, Watcher};

/// A picture of this process, which is a stage alone.
fn picture(order: Order) -> Picture {
    let manner = Manner { touch: false, access: Access::Syscall, period: Duration::from_millis(1) };
    let mut watcher = Watcher::new(Subject::Processes(vec![std::process::id()]), manner);
    let mut timeline = Timeline::default();
    (0..30).for_each(|_| watcher.sample());
    timeline.add(watcher.close_interval());
    let mut report = Report::of(&watcher, &timeline, Some("a | b\u{1b}[31m"));
    report.verdict = watch::Verdict::unknown("short", "Nothing can be told.");
    Picture { history: vec![vec![0.0, 0.5, 1.0]], report, order, frozen: true }
}

fn drawn(picture: &Picture, width: u16, height: u16) -> Vec<String> {
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    picture.render(area, &mut buffer);
    let line = |y: u16| (0..width).map(|x| buffer[(x, y)].symbol().to_owned()).collect::<String>();
    (0..height).map(line).collect()
}

#[test]
fn the_screen_fits_any_terminal_and_ends_with_the_keys() {
    for (width, height) in [(80, 24), (40, 10), (200, 60), (10, 3), (1, 1)] {
        let lines = drawn(&picture(Order::Data), width, height);
        assert_eq!(lines.len(), usize::from(height));
    }
    let text = drawn(&picture(Order::Busiest), 80, 24);
    assert!(text[0].contains("samples/s") && text[0].contains("a | b"), "{}", text[0]);
    assert!(!text.concat().contains('\u{1b}'), "nothing that a terminal would act on");
    assert!(text.iter().any(|line| line.contains("Nothing can be told.")), "{text:?}");
    assert!(text[23].starts_with("frozen · q quit"), "{}", text[23]);
}

#[test]
fn a_history_is_drawn_with_its_latest_last() {
    assert_eq!(sparkline(&[0.0, 0.5, 1.0]), "▁▄█");
    assert_eq!(sparkline(&[1.0; 30]).chars().count(), 10);
    assert_eq!(sparkline(&[]), "");
}
