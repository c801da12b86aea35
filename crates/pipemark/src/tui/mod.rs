//! The live screen of a pipeline, drawn on the terminal of standard error.

use std::io::{self, Stderr, stderr};
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Row, Table, Widget, Wrap};

use crate::model::{ByteSize, Nanos, Throughput, neutral};
use crate::watch::{Report, StageFigures, percent};

/// What the person asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// To leave.
    Quit,
    /// To leave, by Ctrl-C.
    Interrupt,
    /// To see another pipeline.
    Next,
}

/// The order of the stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Data,
    Busiest,
}

/// One picture: the figures, and how busy each stage was from moment to moment.
#[derive(Debug)]
struct Picture {
    report: Report,
    history: Vec<Vec<f64>>,
    order: Order,
    frozen: bool,
}

/// The screen. Dropped, it leaves the terminal as it was.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<Stderr>>,
    order: Order,
    frozen: bool,
    last: Option<Picture>,
}

impl Screen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// When there is none.
    pub fn open() -> io::Result<Screen> {
        enable_raw_mode()?;
        execute!(stderr(), EnterAlternateScreen)?;
        let terminal = Terminal::new(CrosstermBackend::new(stderr()))?;
        Ok(Screen { terminal, order: Order::Data, frozen: false, last: None })
    }

    /// Draws what was found out, or what was on the screen when it was frozen.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn draw(&mut self, report: &Report, history: Vec<Vec<f64>>) -> io::Result<()> {
        let (order, frozen) = (self.order, self.frozen);
        let picture = match self.last.take().filter(|_| frozen) {
            Some(last) => Picture { order, frozen, ..last },
            None => Picture { report: report.clone(), history, order, frozen },
        };
        self.terminal.draw(|frame| picture.render(frame.area(), frame.buffer_mut()))?;
        self.last = Some(picture);
        Ok(())
    }

    /// The keys that were pressed; what concerns only the screen is done.
    pub fn key(&mut self) -> Option<Key> {
        while event::poll(Duration::ZERO).ok()? {
            let Event::Key(key) = event::read().ok()? else { continue };
            if key.kind != KeyEventKind::Press {
                continue;
            }
            match key.code {
                KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Some(Key::Interrupt),
                _ if key.modifiers.contains(KeyModifiers::CONTROL) => {}
                KeyCode::Char('q') | KeyCode::Esc => return Some(Key::Quit),
                KeyCode::Char('n') => return Some(Key::Next),
                KeyCode::Char('s') => self.order = if self.order == Order::Data { Order::Busiest } else { Order::Data },
                KeyCode::Char(' ' | 'f') => self.frozen = !self.frozen,
                _ => {}
            }
        }
        None
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = execute!(stderr(), LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}

impl Picture {
    fn render(&self, area: Rect, buffer: &mut Buffer) {
        let Report { verdict, .. } = &self.report;
        let width = usize::from(area.width.max(20));
        let mut below = vec![Line::from(verdict.text.clone()).bold()];
        below.extend(verdict.advice.iter().map(|advice| Line::from(format!("→ {advice}"))));
        below.extend(self.report.notes.iter().map(|note| Line::from(note.clone()).dim()));
        let lines = |line: &Line<'_>| line.width().div_ceil(width).max(1);
        let height = u16::try_from(below.iter().map(lines).sum::<usize>()).unwrap_or(u16::MAX).min(area.height / 2);
        let parts = [Constraint::Length(1), Constraint::Min(3), Constraint::Length(height + 1), Constraint::Length(1)];
        let [head, middle, foot, keys] = Layout::vertical(parts).areas(area);
        let about = format!(
            "{:.0} samples/s · own CPU {:.1} % · {}",
            self.report.samples_per_second,
            self.report.own_cpu * 100.0,
            neutral(&self.report.pipeline)
        );
        Line::from(about).style(Style::new().add_modifier(Modifier::REVERSED)).render(head, buffer);
        self.table(middle, buffer);
        Paragraph::new(below).wrap(Wrap { trim: true }).render(foot, buffer);
        let frozen = if self.frozen { "frozen · " } else { "" };
        Line::from(format!("{frozen}q quit   space freeze   s sort   n next pipeline")).dim().render(keys, buffer);
    }

    fn table(&self, area: Rect, buffer: &mut Buffer) {
        let mut stages: Vec<&StageFigures> = self.report.stages.iter().collect();
        if self.order == Order::Busiest {
            stages.sort_by(|a, b| b.busy.total_cmp(&a.busy));
        }
        let mut rows = Vec::new();
        for stage in &stages {
            rows.push(self.stage(stage));
            if self.order == Order::Data {
                rows.extend(self.pipes(stage.number));
            }
        }
        let room = usize::from(area.height.saturating_sub(1));
        if rows.len() > room {
            let more = rows.len() - room.saturating_sub(1);
            rows.truncate(room.saturating_sub(1));
            rows.push(Row::new([format!("… {more} more lines")]).dim());
        }
        let columns = [18, 10, 10, 6, 7, 7, 6, 10].map(Constraint::Length);
        let heading = ["stage", "in", "out", "busy", "starved", "blocked", "CPU", "busy then"];
        Table::new(rows, columns).header(Row::new(heading).dim()).render(area, buffer);
    }

    fn stage(&self, stage: &StageFigures) -> Row<'static> {
        let rate = |rate: Option<f64>| rate.map_or_else(|| "–".to_owned(), |rate| Throughput(rate).to_string());
        let cause = self.report.verdict.stage == Some(stage.number);
        let left = match (stage.progress, stage.seconds_left) {
            (Some(done), Some(seconds)) => format!(" {} {}", percent(done), Nanos((seconds * 1e9) as u64)),
            _ => String::new(),
        };
        let cells = [
            format!("{} {}{}{left}", stage.number, stage.name, if cause { " ◀" } else { "" }),
            rate(stage.bytes_in_per_second),
            rate(stage.bytes_out_per_second),
            percent(stage.busy),
            percent(stage.starved),
            percent(stage.blocked),
            stage.cpu.map_or_else(|| "–".to_owned(), percent),
            self.history.get(stage.number - 1).map(|busy| sparkline(busy)).unwrap_or_default(),
        ];
        let row = Row::new(cells);
        if cause { row.style(Style::new().fg(Color::Yellow).bold()) } else { row }
    }

    fn pipes(&self, from: usize) -> impl Iterator<Item = Row<'static>> {
        self.report.pipes.iter().filter(move |pipe| pipe.from == from).map(move |pipe| {
            let capacity = pipe.capacity.map_or_else(String::new, |bytes| ByteSize(bytes).to_string());
            let to = if pipe.to == from + 1 { String::new() } else { format!("to {}", pipe.to) };
            let cells = [
                format!("  └ pipe {to}"),
                capacity,
                "writer".to_owned(),
                percent(pipe.writer_waits),
                "waits,".to_owned(),
                "reader".to_owned(),
                percent(pipe.reader_waits),
            ];
            Row::new(cells).dim()
        })
    }
}

/// Shares as bars of eight heights, the latest last.
fn sparkline(shares: &[f64]) -> String {
    const WIDTH: usize = 10;
    let bar = |share: &f64| ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'][((share * 7.99) as usize).min(7)];
    shares[shares.len().saturating_sub(WIDTH)..].iter().map(bar).collect()
}

#[cfg(test)]
mod tests;
