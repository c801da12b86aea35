//! A process that is read repeatedly.

use std::collections::BTreeMap;

use crate::process::{IoCounts, ProcReader, Process};
use crate::state::WaitTarget;
use crate::thread::{Thread, targets};

/// A watched process, with its threads and its files in /proc.
#[derive(Debug)]
pub struct WatchedProcess {
    pub process: Process,
    /// The kinds of the pipe ends that the process holds, by descriptor.
    pub ends: BTreeMap<u32, WaitTarget>,
    pub threads: Vec<Thread>,
    stat: ProcReader,
    io: ProcReader,
    children: ProcReader,
    /// The process's children at the last check for changes.
    listed: String,
    /// The process's ticks when its threads' times were last read; `None` before that.
    pub ticks_at_reading: Option<u64>,
}

impl WatchedProcess {
    /// With `keep`, the process's files stay open.
    pub fn new(process: Process, keep: bool) -> WatchedProcess {
        let pid = process.pid;
        let file = |name: &str| ProcReader::new(format!("/proc/{pid}/{name}"), keep);
        let io = ProcReader::new(format!("/proc/{}/io", process.files_of), keep);
        let (stat, children) = (file("stat"), file(&format!("task/{pid}/children")));
        WatchedProcess {
            process,
            ends: BTreeMap::new(),
            threads: Vec::new(),
            stat,
            io,
            children,
            listed: String::new(),
            ticks_at_reading: None,
        }
    }

    /// A process that isn't part of the pipeline. It is read only once, so its files don't stay open.
    pub fn of(process: Process) -> WatchedProcess {
        WatchedProcess::new(process, false)
    }

    /// Reads which children the process has, so that the next check for changes finds those that start from now on.
    pub fn list_children(&mut self) {
        if let Ok(children) = self.children.read(&mut [0; 4096]) {
            children.clone_into(&mut self.listed);
        }
    }

    /// Replaces the process with a later reading of it.
    pub fn update(&mut self, process: Process) {
        self.ends = targets(process.ends.as_deref().unwrap_or_default());
        self.process = process;
    }

    /// The process now, without its descriptors; `None` if it has exited.
    pub fn read_stat(&mut self) -> Option<Process> {
        Some(Process::parse(self.process.pid, self.stat.read(&mut [0; 1024]).ok()?)?.at_live_thread())
    }

    /// Bytes and calls of the process and its reaped children, as far as the kernel counts them.
    pub fn read_io(&mut self) -> Option<IoCounts> {
        IoCounts::parse(self.io.read(&mut [0; 1024]).ok()?)
    }

    /// Whether the process has exited, executed another program, or has other threads or children than before.
    pub fn has_changed(&mut self) -> bool {
        let Some(now) = self.read_stat() else { return true };
        let about =
            |process: &Process| (process.start, process.state == 'Z', process.threads, process.parent, process.group);
        let other = about(&now) != about(&self.process) || now.comm != self.process.comm;
        let (ends, others) = (self.process.ends.take(), std::mem::take(&mut self.process.others));
        self.process = Process { ends, others, ..now };
        let mut buffer = [0; 4096];
        // If the kernel doesn't list children, the process may have changed.
        let Ok(children) = self.children.read(&mut buffer) else { return true };
        if children != self.listed {
            self.listed = children.to_owned();
            return true;
        }
        other
    }
}
