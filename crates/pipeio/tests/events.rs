//! Inputs that have no file type and never end: eventfd, timerfd, inotify and signalfd. If they are non-blocking and have
//! no bytes yet, cat fails with EAGAIN. The relay and the line engine wait.

use std::io::{PipeWriter, Read, pipe};
use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use std::{env, fs, process, ptr, thread};

use pipeio::relay::Relay;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::inotify;
use rustix::process::{Signal, getpid, kill_process};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

/// An input without bytes, an action that makes it readable, and the first bytes that a read then returns.
struct EventInput {
    input: OwnedFd,
    make_readable: Box<dyn FnOnce()>,
    bytes: Vec<u8>,
}

fn counter(flags: EventfdFlags) -> EventInput {
    let input = eventfd(0, flags).unwrap();
    let (other, bytes) = (input.try_clone().unwrap(), 5u64.to_ne_bytes());
    let make_readable = Box::new(move || assert_eq!(rustix::io::write(other, &bytes), Ok(8)));
    EventInput { input, make_readable, bytes: bytes.to_vec() }
}

fn timer() -> EventInput {
    let input = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK).unwrap();
    let other = input.try_clone().unwrap();
    let once =
        Itimerspec { it_interval: Timespec::default(), it_value: Timespec { tv_nsec: 1, ..Timespec::default() } };
    let make_readable = Box::new(move || {
        timerfd_settime(other, TimerfdTimerFlags::empty(), &once).unwrap();
    });
    EventInput { input, make_readable, bytes: 1u64.to_ne_bytes().to_vec() }
}

/// The input reports that a file was deleted, and then that it isn't watched any more.
fn watched_file() -> EventInput {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let path = env::temp_dir().join(format!("pipeio-watched-{}-{}", process::id(), COUNT.fetch_add(1, Relaxed)));
    fs::write(&path, "").unwrap();
    let input = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
    let watch = inotify::add_watch(&input, &path, inotify::WatchFlags::DELETE_SELF).unwrap();
    let event = |what: inotify::ReadFlags| [watch.cast_unsigned(), what.bits(), 0, 0];
    let events = [inotify::ReadFlags::DELETE_SELF, inotify::ReadFlags::IGNORED].map(event);
    let bytes = events.as_flattened().iter().flat_map(|word| word.to_ne_bytes()).collect();
    EventInput { input, make_readable: Box::new(move || fs::remove_file(path).unwrap()), bytes }
}

/// Blocks SIGUSR2 in this thread. The input reports that this process got SIGUSR2.
fn signal() -> EventInput {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset(3) initialises the set.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: the set is initialised.
    unsafe { libc::sigaddset(set.as_mut_ptr(), libc::SIGUSR2) };
    // SAFETY: the set is initialised, and the pointer for the previous one may be null.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), ptr::null_mut()) };
    // SAFETY: the set is initialised.
    let fd = unsafe { libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    assert!(fd >= 0);
    // SAFETY: the descriptor was just opened, and no other code owns it.
    let input = unsafe { OwnedFd::from_raw_fd(fd) };
    let make_readable = Box::new(|| kill_process(getpid(), Signal::USR2).unwrap());
    EventInput { input, make_readable, bytes: libc::SIGUSR2.to_ne_bytes().to_vec() }
}

/// Passes an input to a pipe.
type Pass = fn(OwnedFd, PipeWriter);

const PASSES: &[Pass] = &[
    relay,
    #[cfg(feature = "lines")]
    lines::<1>,
    #[cfg(feature = "lines")]
    lines::<3>,
];

fn relay(input: OwnedFd, output: PipeWriter) {
    Relay::new().run(input, output).unwrap();
}

/// Lines end with a 0, because the bytes of each of these inputs do.
#[cfg(feature = "lines")]
fn lines<const THREADS: usize>(input: OwnedFd, output: PipeWriter) {
    let engine = pipeio::lines::Engine::new().terminator(0);
    engine.run_parallel(input, output, pipeio::lines::transforms::Identity, THREADS.try_into().unwrap()).unwrap();
}

/// Checks the first bytes that `pass` writes. The input doesn't end, so `pass` continues until the tests are over.
fn check(pass: Pass, EventInput { input, make_readable, bytes }: EventInput) {
    let (mut from_pass, output) = pipe().unwrap();
    thread::spawn(move || pass(input, output));
    // After this time `pass` usually waits for the input.
    thread::sleep(Duration::from_millis(10));
    make_readable();
    let mut passed = vec![0; bytes.len()];
    from_pass.read_exact(&mut passed).unwrap();
    assert_eq!(passed, bytes);
}

#[test]
fn events_are_waited_for() {
    for &pass in PASSES {
        check(pass, counter(EventfdFlags::empty()));
        check(pass, counter(EventfdFlags::NONBLOCK));
        check(pass, timer());
        check(pass, watched_file());
    }
}

/// If another thread doesn't block the signal, that thread gets it. So each case runs in a process of its own, all of
/// whose threads inherit the blocked signal.
#[test]
fn signals_are_waited_for() {
    const CASE: &str = "PIPEIO_TEST_SIGNALS";
    let signal = signal();
    if let Ok(case) = env::var(CASE) {
        return check(PASSES[case.parse::<usize>().unwrap()], signal);
    }
    for case in 0..PASSES.len() {
        let mut test = Command::new(env::current_exe().unwrap());
        test.args(["--exact", "events::signals_are_waited_for"]).env(CASE, case.to_string());
        let printed = String::from_utf8(test.output().unwrap().stdout).unwrap();
        assert!(printed.contains("1 passed"), "{case}: {printed}");
    }
}
