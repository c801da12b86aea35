//! Relays signals to a running pipeline that this program started: each signal reaches the pipeline exactly once. A
//! signal sent to the process group has reached the pipeline already; a signal sent to this process alone is passed on.
//! To distinguish the two cases, a witness reports which signals were sent to the group. The witness is another process
//! of the group, which does nothing else. When a signal comes, this process asks the witness a question. If the witness
//! answers without having reported the signal, the signal was sent to this process alone, however late the answer.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::ioctl_fionbio;
use rustix::process::{Pid, Signal, getpid, kill_process};

use pipemark_host::child::ourselves;
use pipemark_proc::process;
use pipemark_sys::signals::{self, SentSignal, SignalQueue};
use pipemark_sys::start::sigpipe_was_ignored;

/// The hidden verb that starts a witness.
pub const WITNESS_VERB: &str = "__witness";

/// The time in which kill(2) reaches all processes of a group.
const GRACE: Duration = Duration::from_millis(20);
/// The time that the witness has to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// What the witness writes when it is ready, and as its answer.
const ANSWER: u8 = 0;
/// The time after which a report that matches no signal is dropped.
const MAX_REPORT_AGE: Duration = Duration::from_secs(1);

/// Relays signals.
pub struct SignalRelay {
    queue: SignalQueue,
    witness: Option<Witness>,
    waiting: Vec<ReceivedSignal>,
    /// Signals reported by the witness, with the time of each.
    reported: Vec<(i32, Instant)>,
}

/// A signal received, which the witness may have to report.
struct ReceivedSignal {
    sent: SentSignal,
    since: Instant,
    /// The number of the question asked because of this signal; `None` until it is asked.
    question: Option<u64>,
}

struct Witness {
    child: std::process::Child,
    /// The witness's standard input, for questions. Closing it ends the witness.
    questions: ChildStdin,
    reports: ChildStdout,
    /// The number of questions so far.
    asked: u64,
    /// The number of answers so far.
    answered: u64,
}

/// Signals that are not intercepted: SIGCHLD, and the signals that stop a process in the terminal's background.
const NOT_INTERCEPTED: [i32; 3] = [libc::SIGCHLD, libc::SIGTTIN, libc::SIGTTOU];

/// Signals to leave alone: `NOT_INTERCEPTED`, and signals that were ignored when this program started, for example by
/// nohup. The pipeline ignores these too.
fn signals_left_alone() -> Vec<i32> {
    let was_ignored =
        |signal: &i32| signals::is_ignored(*signal) && (*signal != libc::SIGPIPE || sigpipe_was_ignored());
    (1..=64).filter(was_ignored).chain(NOT_INTERCEPTED).collect()
}

impl SignalRelay {
    /// Starts to intercept signals.
    ///
    /// # Errors
    /// When no descriptor is available.
    pub fn catch() -> io::Result<SignalRelay> {
        let queue = SignalQueue::block(&signals_left_alone())?;
        Ok(SignalRelay { queue, witness: Witness::start(), waiting: Vec::new(), reported: Vec::new() })
    }

    /// Makes a command start with the original signal mask.
    pub fn restore_in(&self, command: &mut Command) {
        self.queue.restore_in(command);
    }

    /// Passes signals that were sent to this process alone on to the process `to` and all of its descendants.
    pub fn pass_on(&mut self, to: Pid) {
        let now = Instant::now();
        // A SIGPIPE caused by this program's own writes concerns only this program.
        let come = self.queue.take().into_iter().filter(|sent| sent.number != libc::SIGPIPE || sent.by_process);
        self.waiting.extend(come.map(|sent| ReceivedSignal { sent, since: now, question: None }));
        if self.waiting.is_empty() && self.witness.is_some() && self.reported.is_empty() {
            return;
        }
        self.listen(now);
        for mut received in std::mem::take(&mut self.waiting) {
            let number = received.sent.number;
            let reported = self.reported.iter().position(|(reported, _)| *reported == number);
            if let Some(place) = reported {
                self.reported.remove(place);
            } else if self.witness.as_mut().is_some_and(|witness| witness.may_report(&mut received, now)) {
                self.waiting.push(received);
                continue;
            } else {
                send(to, number);
            }
            // When a job is stopped, all processes of the job are stopped.
            if number == libc::SIGTSTP {
                let _ = kill_process(getpid(), Signal::STOP);
            }
        }
    }

    fn listen(&mut self, now: Instant) {
        self.reported.retain(|(_, since)| now < *since + MAX_REPORT_AGE);
        let Some(witness) = &mut self.witness else { return };
        let mut numbers = [0; 64];
        match witness.reports.read(&mut numbers) {
            Ok(0) => self.witness = None,
            Ok(count) => {
                let (answers, reported): (Vec<u8>, Vec<u8>) =
                    numbers[..count].iter().partition(|number| **number == ANSWER);
                witness.answered += answers.len() as u64;
                self.reported.extend(reported.into_iter().map(|number| (number.into(), now)));
            }
            Err(_) => {}
        }
    }
}

/// Sends a signal once to a process and each of its descendants.
fn send(to: Pid, number: i32) {
    for pid in process::family(to.as_raw_nonzero().get().cast_unsigned()) {
        let _ = signals::send(pid, number);
    }
}

impl Witness {
    /// Starts a witness; `None` if no process is available.
    fn start() -> Option<Witness> {
        let mut command = ourselves(WITNESS_VERB);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
        let (questions, mut reports) = (child.stdin.take()?, child.stdout.take()?);
        let _ = reports.read_exact(&mut [ANSWER]);
        ioctl_fionbio(&reports, true).ok()?;
        Some(Witness { child, questions, reports, asked: 0, answered: 0 })
    }

    /// Whether the witness may still report a signal that this process received. Asks the witness once [`GRACE`] has
    /// passed since the signal came.
    fn may_report(&mut self, received: &mut ReceivedSignal, now: Instant) -> bool {
        match received.question {
            None if now >= received.since + GRACE => {
                self.asked += 1;
                received.question = Some(self.asked);
                self.questions.write_all(&[ANSWER]).is_ok()
            }
            None => true,
            Some(question) => self.answered < question && now < received.since + PATIENCE,
        }
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The main function of a witness. Writes the number of each signal that it receives to standard output, and `ANSWER`
/// after each byte that it reads, until its parent has exited.
pub fn witness() -> u8 {
    let Ok(queue) = SignalQueue::block(&[libc::SIGCHLD]) else { return 1 };
    let (stdin, mut stdout) = (io::stdin(), io::stdout());
    let mut tell = |numbers: &[u8]| stdout.write_all(numbers).and_then(|()| stdout.flush()).is_ok();
    let mut parent_reads = tell(&[ANSWER]);
    while parent_reads {
        let asked = {
            let (input, signals) = (stdin.as_fd(), queue.as_fd());
            let mut polled = [PollFd::new(&input, PollFlags::IN), PollFd::new(&signals, PollFlags::IN)];
            if poll(&mut polled, None).is_err() {
                break;
            }
            !polled[0].revents().is_empty()
        };
        let questions = if asked { rustix::io::read(&stdin, &mut [0; 64]).unwrap_or(0) } else { 0 };
        if asked && questions == 0 {
            break;
        }
        // Signals that came before a question are reported before its answer.
        let mut numbers: Vec<u8> = queue.take().iter().filter_map(|sent| u8::try_from(sent.number).ok()).collect();
        numbers.extend(vec![ANSWER; questions]);
        parent_reads = tell(&numbers);
    }
    0
}
