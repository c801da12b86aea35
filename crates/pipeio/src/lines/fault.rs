//! Fault injection: tests make the engine's system calls and allocations fail. Outside tests this module does nothing.

#[cfg(not(test))]
#[inline(always)]
pub(super) fn point() -> rustix::io::Result<()> {
    Ok(())
}

#[cfg(test)]
pub(super) use tests::point;

#[cfg(test)]
mod tests {
    //! Makes a call or allocation fail, a different one in each test run. Either only that call fails, or all later
    //! calls fail too.

    use std::alloc::{GlobalAlloc, Layout, System};
    use std::fs::File;
    use std::io::{Read, Seek, SeekFrom, Write, pipe};
    use std::num::NonZeroUsize;
    use std::os::fd::OwnedFd;
    use std::process::Command;
    use std::ptr;
    use std::sync::atomic::AtomicI64;
    use std::sync::atomic::Ordering::Relaxed;

    use rustix::fs::MemfdFlags;
    use rustix::io::Errno;
    use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType};

    use crate::lines::transforms::{Length, Number, Spaces, Upper};
    use crate::lines::{Engine, Error, Fate, LinesReport, OutputMethod, Transform, per_line};

    /// The number of calls before the first failure. While no test injects faults, it is too large to be reached.
    static BEFORE: AtomicI64 = AtomicI64::new(i64::MAX / 2);
    /// The number of failures.
    static FAILURES: AtomicI64 = AtomicI64::new(0);

    fn fails() -> bool {
        BEFORE.fetch_sub(1, Relaxed) <= 0 && FAILURES.fetch_sub(1, Relaxed) > 0
    }

    pub(in crate::lines) fn point() -> Result<(), Errno> {
        if fails() { Err(Errno::NOMEM) } else { Ok(()) }
    }

    struct Allocator;

    #[global_allocator]
    static ALLOCATOR: Allocator = Allocator;

    // SAFETY: every call goes to the system's allocator, except that `alloc` may return null, which an allocator may do
    // at any time.
    unsafe impl GlobalAlloc for Allocator {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            if fails() {
                return ptr::null_mut();
            }
            // SAFETY: the caller guarantees what the system's allocator requires.
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
            // SAFETY: the caller guarantees that the memory came from `alloc`, and so from the system's allocator.
            unsafe { System.dealloc(start, layout) }
        }
    }

    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Input {
        File,
        Pipe,
        Messages,
    }

    fn open(kind: Input, bytes: &[u8]) -> OwnedFd {
        match kind {
            Input::File => {
                let mut file = memory_file();
                file.write_all(bytes).unwrap();
                file.rewind().unwrap();
                file.into()
            }
            Input::Pipe => {
                let (reader, mut writer) = pipe().unwrap();
                rustix::pipe::fcntl_setpipe_size(&writer, 1 << 20).unwrap();
                writer.write_all(bytes).unwrap();
                reader.into()
            }
            Input::Messages => {
                let (near, far) =
                    rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                        .unwrap();
                for message in bytes.chunks(40_000) {
                    assert_eq!(rustix::net::send(&near, message, SendFlags::empty()).unwrap(), message.len());
                }
                far
            }
        }
    }

    fn memory_file() -> File {
        rustix::fs::memfd_create("t", MemfdFlags::CLOEXEC).unwrap().into()
    }

    /// Transforms `input`; after the first `before` calls, up to `failures` calls fail. Returns the output, the result,
    /// and whether the run made at least `before` calls.
    fn run<T: Transform + Clone + Send>(
        engine: &Engine,
        input: &OwnedFd,
        transform: &T,
        threads: usize,
        (before, failures): (i64, i64),
    ) -> (Vec<u8>, Result<LinesReport, Error>, bool) {
        let mut output = memory_file();
        FAILURES.store(failures, Relaxed);
        BEFORE.store(before, Relaxed);
        let result = engine.run_parallel(input, &output, transform.clone(), NonZeroUsize::new(threads).unwrap());
        let reached = BEFORE.swap(i64::MAX / 2, Relaxed) <= 0;
        let mut bytes = Vec::new();
        output.seek(SeekFrom::Start(0)).unwrap();
        output.read_to_end(&mut bytes).unwrap();
        (bytes, result, reached)
    }

    fn try_all<T: Transform + Clone + Send>(transform: &T) {
        let mut text = Vec::new();
        for number in 0..4000 {
            writeln!(text, "{}line number {number}", " x".repeat(number % 17)).unwrap();
        }
        // Long enough to be lent, and to make the buffers grow.
        text.extend([b'y'; 50_000]);
        text.extend(b"\nand the last");
        for (kind, threads) in
            [(Input::File, 1), (Input::File, 3), (Input::Pipe, 1), (Input::Pipe, 3), (Input::Messages, 2)]
        {
            let engine = Engine::new().batch(NonZeroUsize::new(9000).unwrap()).send(OutputMethod::GiveAway);
            let whole = run(&engine, &open(kind, &text), transform, threads, (i64::MAX / 2, 0)).0;
            for failures in [1, i64::MAX] {
                for before in 0.. {
                    let input = open(kind, &text);
                    let (bytes, result, reached) = run(&engine, &input, transform, threads, (before, failures));
                    let case =
                        format!("{kind:?}, {threads} threads, {before} calls before {failures} fail: {result:?}");
                    match result {
                        // The run can succeed without the failed call if the call started a thread, or was a read
                        // that doesn't wait.
                        Ok(_) => assert!(bytes == whole, "{case}"),
                        Err(Error::Memory(_) | Error::Read(_) | Error::Write(_)) => {
                            assert!(whole.starts_with(&bytes), "{case}");
                        }
                        Err(_) => panic!("{case}"),
                    }
                    if !reached {
                        break;
                    }
                }
            }
        }
    }

    /// Runs in a separate process, because otherwise other tests' allocations would fail too. The parent process can
    /// report an abort or a hang.
    #[test]
    fn any_failed_call_ends_the_run_with_an_error() {
        const CHILD: &str = "PIPEIO_FAULTS";
        if std::env::var_os(CHILD).is_none() {
            let name = format!("{}::any_failed_call_ends_the_run_with_an_error", &module_path!()["pipeio::".len()..]);
            let output = Command::new("timeout")
                .arg("120")
                .arg(std::env::current_exe().unwrap())
                .args(["--exact", &name, "--test-threads=1", "--nocapture"])
                .env(CHILD, "1")
                .output()
                .unwrap();
            let stdout = String::from_utf8_lossy(&output.stdout);
            assert!(
                stdout.contains("1 passed"),
                "{}\n{stdout}\n{}",
                output.status,
                String::from_utf8_lossy(&output.stderr)
            );
            return;
        }
        try_all(&Spaces::new());
        try_all(&Upper);
        try_all(&Length);
        try_all(&Number::default());
        try_all(&per_line(|line, output| {
            output.lend(line);
            output.extend(b"!");
            Ok(Fate::Keep)
        }));
    }
}
