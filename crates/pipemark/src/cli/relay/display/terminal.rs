//! The line of a relay on a terminal, among the lines of other relays.
//!
//! Relays that draw on one terminal at the same time share a block of lines at the cursor, in the order of their
//! processes, which is that of a pipeline. Each locks a byte of the terminal (its number is the process's), so the locks
//! show every relay which line is its own, and a killed relay leaves no lock behind. The first byte is locked while a
//! relay draws. Between drawings, the cursor is in the last line of the block.

use std::fs::{File, OpenOptions};
use std::io::{Write, stderr};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::process;
use std::thread;
use std::time::Duration;

use pipemark_console::progress::{can_redraw, fitting, in_background, terminal_size};
use pipemark_console::say;
use pipemark_sys::byte_locks::{locked_by_others, try_lock, unlock};
use rustix::fs::OFlags;

/// The byte that is locked while a relay draws.
const DRAWING: u64 = 0;

/// The bytes for relays. Processes in several process namespaces may have the same number: then a relay draws alone.
const RELAYS: std::ops::Range<u64> = 1..1 << 23;

/// The maximum number of lines of a block.
const MAX_LINES: usize = 100;

/// How often a relay tries to lock the first byte, and the time between.
const TRIES: u32 = 50;
const TRY_INTERVAL: Duration = Duration::from_millis(2);

/// The line of this relay.
pub struct TerminalLine {
    /// The terminal, if its bytes can be locked.
    terminal: Option<File>,
    /// Whether this relay has a line in the block.
    joined: bool,
}

/// Where this relay's line is, or belongs, in the block of all relays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BlockPlace {
    /// Lines of other relays above.
    above: usize,
    /// Lines of other relays below.
    below: usize,
}

impl TerminalLine {
    /// A line on standard error; `None` if that isn't a terminal that can redraw lines.
    pub fn new() -> Option<TerminalLine> {
        // Locks need a descriptor that can write, and that other processes don't have.
        let flags = (OFlags::NOCTTY | OFlags::NONBLOCK).bits().cast_signed();
        let open = || OpenOptions::new().write(true).custom_flags(flags).open("/proc/self/fd/2").ok();
        can_redraw().then(|| TerminalLine { terminal: open(), joined: false })
    }

    /// Replaces the text of the line. A background job shows nothing.
    pub fn show(&mut self, text: &str) {
        if in_background() {
            // The shell's prompt has replaced the lines.
            self.leave();
            return;
        }
        let (columns, rows) = terminal_size();
        let line = fitting(text, columns);
        self.draw(|place, joined| match joined {
            true => Some(redrawn(place, line)),
            false => (place.above + place.below + 1 < rows).then(|| inserted(place, line)),
        });
    }

    /// Removes the line from the block, and prints the text above the block.
    pub fn finish(&mut self, text: &str) {
        if in_background() {
            self.leave();
            return say(text);
        }
        let line = fitting(text, terminal_size().0);
        let is_drawn = self.draw(|place, joined| Some(moved_up(place, joined, line)));
        self.leave();
        if !is_drawn {
            say(text);
        }
    }

    /// Writes what `draw` makes of this relay's place, while no other relay draws. Returns whether it was written.
    fn draw(&mut self, draw: impl FnOnce(BlockPlace, bool) -> Option<String>) -> bool {
        let Some(terminal) = &self.terminal else {
            let text = draw(BlockPlace { above: 0, below: 0 }, self.joined);
            self.joined = true;
            return text.is_some_and(|text| stderr().write_all(text.as_bytes()).is_ok());
        };
        let is_locked = (0..TRIES).any(|_| {
            let is_locked = try_lock(terminal.as_fd(), DRAWING).unwrap_or(false);
            if !is_locked {
                // Not a lock that waits: the process that has it may have been stopped.
                thread::sleep(TRY_INTERVAL);
            }
            is_locked
        });
        if !is_locked {
            return false;
        }
        let own = u64::from(process::id()) % RELAYS.end;
        let others = locked_by_others(terminal.as_fd(), RELAYS, MAX_LINES).unwrap_or_default();
        let above = others.iter().filter(|&&other| other < own).count();
        let text = draw(BlockPlace { above, below: others.len() - above }, self.joined);
        let joins = !self.joined && text.is_some();
        let has_line = joins && try_lock(terminal.as_fd(), own).unwrap_or(false);
        // One write(2), so that the output of other processes doesn't split the line.
        let is_written = text.is_some_and(|text| stderr().write_all(text.as_bytes()).is_ok());
        let _ = unlock(terminal.as_fd(), DRAWING);
        if joins {
            self.joined = true;
            // Without a lock, the others don't know of this line, so from now on it is drawn where the cursor is.
            self.terminal = self.terminal.take().filter(|_| has_line);
        }
        is_written
    }

    fn leave(&mut self) {
        if let Some(terminal) = self.terminal.as_ref().filter(|_| self.joined) {
            let _ = unlock(terminal.as_fd(), u64::from(process::id()) % RELAYS.end);
        }
        self.joined = false;
    }
}

/// Moves the cursor up, to the first column.
fn up(lines: usize) -> String {
    if lines == 0 { "\r".to_owned() } else { format!("\r\x1b[{lines}A") }
}

/// Moves the cursor down, in its column.
fn down(lines: usize) -> String {
    if lines == 0 { String::new() } else { format!("\x1b[{lines}B") }
}

const CLEAR_LINE: &str = "\x1b[K";
const DELETE_LINE: &str = "\x1b[M";
const INSERT_LINE: &str = "\x1b[L";

/// Draws a line of the block anew.
fn redrawn(place: BlockPlace, line: &str) -> String {
    format!("{}{CLEAR_LINE}{line}{}", up(place.below), down(place.below))
}

/// Adds a line to the block.
fn inserted(place: BlockPlace, line: &str) -> String {
    match place {
        BlockPlace { above: 0, below: 0 } => redrawn(place, line),
        BlockPlace { below: 0, .. } => format!("\r\n{CLEAR_LINE}{line}"),
        // The new line at the end of the block makes room for the lines that move down.
        _ => format!("\r\n{}{INSERT_LINE}{line}{}", up(place.below), down(place.below)),
    }
}

/// Moves a line, if it is in the block, out of it to above it.
fn moved_up(place: BlockPlace, joined: bool, line: &str) -> String {
    let others = place.above + place.below;
    match (joined, others) {
        (_, 0) => format!("\r{CLEAR_LINE}{line}\r\n"),
        (true, _) if place.above == 0 => redrawn(place, line),
        (true, _) => {
            let delete = format!("{}{DELETE_LINE}", up(place.below));
            format!("{delete}{}{INSERT_LINE}{line}{}", up(place.above), down(others))
        }
        (false, _) => format!("\r\n{}{INSERT_LINE}{line}{}", up(others), down(others)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A terminal that understands what this module writes.
    struct FakeTerminal {
        lines: Vec<String>,
        row: usize,
        column: usize,
        height: usize,
    }

    impl FakeTerminal {
        fn new(height: usize) -> FakeTerminal {
            FakeTerminal { lines: vec![String::new(); height], row: 0, column: 0, height }
        }

        fn write(&mut self, text: &str) {
            let mut rest = text.chars();
            while let Some(c) = rest.next() {
                match c {
                    '\r' => self.column = 0,
                    '\n' if self.row + 1 == self.height => {
                        self.lines.remove(0);
                        self.lines.push(String::new());
                    }
                    '\n' => self.row += 1,
                    '\x1b' => {
                        assert_eq!(rest.next(), Some('['));
                        let mut number = 0;
                        let action = loop {
                            match rest.next().unwrap() {
                                digit @ '0'..='9' => number = number * 10 + digit as usize - '0' as usize,
                                action => break action,
                            }
                        };
                        self.act(action, number.max(1));
                    }
                    c => {
                        let line = &mut self.lines[self.row];
                        assert!(line.len() <= self.column, "{line:?} is overwritten in column {}", self.column);
                        line.push_str(&" ".repeat(self.column - line.len()));
                        line.push(c);
                        self.column += 1;
                    }
                }
            }
        }

        fn act(&mut self, action: char, number: usize) {
            match action {
                'A' => self.row = self.row.saturating_sub(number),
                'B' => self.row = (self.row + number).min(self.height - 1),
                'K' => self.lines[self.row].truncate(self.column),
                'L' => {
                    self.lines.insert(self.row, String::new());
                    self.lines.truncate(self.height);
                }
                'M' => {
                    self.lines.remove(self.row);
                    self.lines.push(String::new());
                }
                other => panic!("{other}"),
            }
        }

        fn text(&self) -> String {
            self.lines.join("\n").trim_end().to_owned()
        }
    }

    /// The relays of these numbers: draws, and ends with `!` before the number.
    fn after(height: usize, steps: &str) -> String {
        let mut screen = FakeTerminal::new(height);
        let mut relays: Vec<u32> = Vec::new();
        for (at, step) in steps.split(' ').enumerate() {
            let number: u32 = step.trim_start_matches('!').parse().unwrap();
            let (joined, others) = (relays.contains(&number), relays.iter().filter(|&&one| one != number));
            let above = others.clone().filter(|&&one| one < number).count();
            let place = BlockPlace { above, below: others.count() - above };
            let line = format!("{step} {at}");
            if step.starts_with('!') {
                relays.retain(|&one| one != number);
                screen.write(&moved_up(place, joined, &line));
            } else if joined {
                screen.write(&redrawn(place, &line));
            } else {
                relays.push(number);
                screen.write(&inserted(place, &line));
            }
        }
        screen.text()
    }

    #[test]
    fn each_relay_keeps_its_line() {
        assert_eq!(after(10, "1 1 !1"), "!1 2");
        assert_eq!(after(10, "1 2 3 1 2 3"), "1 3\n2 4\n3 5");
        // In the order of the processes, whichever draws first.
        assert_eq!(after(10, "3 1 2 3"), "1 1\n2 2\n3 3");
        // Relays that have ended are above, in the order of their ends.
        assert_eq!(after(10, "1 2 3 !2 1 3"), "!2 3\n1 4\n3 5");
        assert_eq!(after(10, "1 2 3 !3 !1 2 !2"), "!3 3\n!1 4\n!2 6");
        // One that has never drawn.
        assert_eq!(after(10, "1 3 !2 1 3"), "!2 2\n1 3\n3 4");
        assert_eq!(after(10, "!1 2 !2"), "!1 0\n!2 2");
    }

    #[test]
    fn the_block_scrolls_at_the_bottom_of_the_screen() {
        assert_eq!(after(3, "1 !1 2 !2 3 4 5 !4 3 5 !3 5"), "!4 7\n!3 10\n5 11");
        assert_eq!(after(4, "1 !1 2 !2 5 4 3 5"), "!2 3\n3 6\n4 5\n5 7");
    }
}
