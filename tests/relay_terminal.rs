//! `pipemark relay --progress` on a terminal: each relay keeps a line of its own, as with pv -cN.

use std::fs;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::program::PIPEMARK;

/// What a terminal of 80 columns shows, from what was written to it.
struct Screen {
    lines: Vec<Vec<char>>,
    row: usize,
    column: usize,
}

impl Screen {
    const HEIGHT: usize = 12;

    fn of(text: &str) -> Screen {
        let mut screen = Screen { lines: vec![Vec::new(); Screen::HEIGHT], row: 0, column: 0 };
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            match c {
                '\r' => screen.column = 0,
                '\n' if screen.row + 1 == Screen::HEIGHT => {
                    screen.lines.remove(0);
                    screen.lines.push(Vec::new());
                }
                '\n' => screen.row += 1,
                '\x1b' => {
                    assert_eq!(rest.next(), Some('['));
                    let number: String = rest.clone().take_while(char::is_ascii_digit).collect();
                    let action = rest.nth(number.len()).unwrap();
                    screen.act(action, number.parse().unwrap_or(1));
                }
                c => {
                    let (line, column) = (&mut screen.lines[screen.row], screen.column);
                    line.resize(line.len().max(column + 1), ' ');
                    line[column] = c;
                    screen.column += 1;
                    assert!(screen.column < 80, "{line:?}");
                }
            }
        }
        screen
    }

    fn act(&mut self, action: char, number: usize) {
        match action {
            'A' => self.row = self.row.saturating_sub(number),
            'B' => self.row = (self.row + number).min(Screen::HEIGHT - 1),
            'K' => self.lines[self.row].truncate(self.column),
            'L' => {
                self.lines.insert(self.row, Vec::new());
                self.lines.truncate(Screen::HEIGHT);
            }
            'M' => {
                self.lines.remove(self.row);
                self.lines.push(Vec::new());
            }
            other => panic!("{other}"),
        }
    }

    fn lines(&self) -> Vec<String> {
        let lines = self.lines.iter().map(|line| line.iter().collect::<String>().trim_end().to_owned());
        lines.filter(|line| !line.is_empty()).collect()
    }
}

/// Runs a script of bash whose standard error is a terminal. Returns what was written to the terminal.
fn on_terminal(script: &str) -> String {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let size = Winsize { ws_row: Screen::HEIGHT as u16, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&master, size).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let terminal: OwnedFd =
        rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap();
    let mut command = Command::new("timeout");
    command.args(["60", "bash", "-c", script]).env("TERM", "xterm").env("PIPEMARK", PIPEMARK);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(terminal).spawn().unwrap();
    drop(command);
    // Ends with an error once no process has the terminal open.
    let mut text = Vec::new();
    let _ = fs::File::from(master).read_to_end(&mut text);
    assert!(child.wait().unwrap().success(), "{}", String::from_utf8_lossy(&text));
    String::from_utf8(text).unwrap()
}

#[test]
fn several_transfers_keep_their_lines() {
    // The first ends before the second, which has half as many bytes to pass on after it.
    let script = "relay() { \"$PIPEMARK\" relay --progress --interval 20ms \"$@\"; }
        { yes | head -c 2000000; sleep 0.2; yes | head -c 1000000; } | relay -N in -s 3000000 | cat |
            relay -N 'between, with a name' --lines | relay -N out --limit 8m -s 3000000 --capacity 64k";
    let text = on_terminal(script);
    // While all run, each has its line; at some moment all three were shown.
    let ends: Vec<usize> = text.match_indices("\x1b[K").map(|(at, _)| at).collect();
    let whole = ends.iter().map(|&end| Screen::of(&text[..end]).lines()).find(|lines| lines.len() == 3);
    let whole = whole.unwrap_or_else(|| panic!("never three lines: {text:?}"));
    // Each takes a line when it starts, in any order.
    for name in ["in: ", "between, with a name: ", "out: "] {
        assert!(whole.iter().any(|line| line.starts_with(name)), "{whole:#?}");
    }
    let last = Screen::of(&text).lines();
    assert_eq!(last.len(), 3, "{last:#?}");
    for (name, end) in [("in: ", "  100.0 %"), ("between", " lines/s"), ("out: ", "  100.0 %")] {
        assert!(last.iter().any(|line| line.starts_with(name) && line.ends_with(end)), "{name}: {last:#?}");
    }
    assert!(last.iter().any(|line| line.contains("  1500000 lines delivered  ")), "{last:#?}");
    assert!(text.contains('█'), "a bar is shown: {text:?}");
    assert!(text.ends_with("\r\n"));
}

#[test]
fn a_killed_relay_leaves_the_lines_of_others() {
    let script = "relay() { exec \"$PIPEMARK\" relay --progress --interval 20ms -N \"$@\"; }
        sleep 1 | relay one & sleep 0.7 | relay two & two=$!
        sleep 0.3; kill -KILL $two; wait; true";
    let last = Screen::of(&on_terminal(script)).lines();
    assert!(last.iter().any(|line| line.starts_with("one: ") && line.contains("  0 B written  ")), "{last:#?}");
}
