//! What the observers saw of a pipeline, as plain data: its stages and pipes, what was counted in each interval, and the
//! machine. It has no conclusions and no words of its own.

use pipemark_proc::process::{Direction, PipeEnd};
use pipemark_proc::thread::ProcFile;
use pipemark_profile::Profile;

use crate::exact_text::ExactText;
use crate::recorded::recorded;
use crate::timeline::Timeline;

recorded! {
    /// What was seen of a pipeline. Stages and pipes are in the order in which they were found.
    #[derive(Debug, Clone, PartialEq)]
    pub struct PipelineEvidence
    in JSON PipelineTrace {
        /// The pipeline as given to the verb; `None` if it was already running.
        pub pipeline: Option<ExactText>,
        /// The pipeline as typed, if a shell runs it.
        pub typed: Option<ExactText>,
        /// Whether that text is from a process which pipemark didn't start. Its user could be anybody.
        #[serde(default)]
        pub typed_elsewhere: bool,
        /// The shell that runs the pipeline or, if pipemark didn't start it, the user's shell; empty if unknown.
        #[serde(default)]
        pub shell: String,
        /// The stages whose names are those of functions in the environment, which a shell runs instead of the programs, or of a
        /// program of many names, such as busybox.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub functions: Vec<String>,
        /// Whether pipemark started the pipeline, so that nothing happened before sampling began.
        pub started: bool,
        /// Whether any of the pipeline's processes still existed at the end.
        pub alive: bool,
        /// The exit code of the pipeline, if it had ended with one.
        pub exit_code: Option<i32>,
        /// Seconds since sampling began.
        pub elapsed: f64,
        /// Seconds of CPU time that pipemark itself used after the first scan, extrapolated to the whole time.
        pub own_seconds: f64,
        /// Seconds of CPU time of the first scan, including that of starting pipemark.
        #[serde(default)]
        pub first_scan: f64,
        /// The largest share of one CPU that pipemark uses itself, if it took fewer samples because of it.
        #[serde(default)]
        pub sampled_less: Option<f64>,
        /// The same if it read counters less often because of it.
        #[serde(default)]
        pub counted_less: Option<f64>,
        /// The least detailed file of /proc that a thread had to be read from.
        pub access: ProcFile,
        /// Whether /proc is mounted.
        pub has_proc: bool,
        pub limits: MachineLimits,
        pub stages: Vec<StageEvidence>,
        pub pipes: Vec<PipeEvidence>,
        /// Processes that had waited for each other for a second at the end; `None` if there are none.
        pub cycle: Option<WaitCycle>,
        /// Why no functions were sampled; `None` if some were, or if that wasn't asked for.
        #[serde(default)]
        pub unprofiled: Option<String>,
        /// What was counted, by interval.
        pub timeline: Timeline,
    }
}

recorded! {
    /// Limits of the machine for pipelines.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct MachineLimits
    in JSON LimitsTrace {
        /// Bytes of the largest pipe that this user may create.
        pub largest_pipe: u64,
        /// Whether this user's pipes have reached pipe-user-pages-soft. New pipes then get two pages, and no pipe can be
        /// enlarged.
        pub pipes_exhausted: bool,
        /// Bytes of a page of memory.
        pub page: u64,
        /// The CPUs that pipemark could use; 0 if unknown.
        pub cpus: usize,
        /// Idle CPUs of this machine, on average; `None` if not measured.
        pub idle_cpus: Option<f64>,
        /// Whether a control group limits the memory.
        #[serde(default)]
        pub memory_limited: bool,
    }
}

impl Default for MachineLimits {
    fn default() -> MachineLimits {
        MachineLimits {
            largest_pipe: 1 << 20,
            pipes_exhausted: false,
            page: 4096,
            cpus: 0,
            idle_cpus: None,
            memory_limited: false,
        }
    }
}

recorded! {
    /// What was seen of a stage, apart from what was counted. Fields that change have their last value.
    #[derive(Debug, Clone, Default, PartialEq)]
    pub struct StageEvidence
    in JSON StageTrace {
        pub name: String,
        /// The command, shortened for display.
        pub command: String,
        /// The words of the command line, as text and up to a length. They may be those of a longer or another line.
        pub words: Vec<String>,
        /// The arguments byte for byte, the program's name first; empty if they are unknown, `None` if they are `words`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub arguments: Option<Vec<ExactText>>,
        pub pids: Vec<u32>,
        /// The maximum number of processes that the stage had at once.
        pub processes: usize,
        /// The maximum number of threads that the stage had at once.
        pub threads: usize,
        /// Whether the stage reads a pipe of the pipeline, and whether it writes one.
        pub reads_pipe: bool,
        pub writes_pipe: bool,
        /// Whether the stage was observed in calls that no byte counter counts.
        pub uncounted: bool,
        /// Whether the files of the stage's processes are unreadable.
        pub hidden: bool,
        /// A description of what the stage waits for; `None` if a state covers it.
        pub waits_for: Option<String>,
        /// The CPUs that the stage may use.
        pub cpus: Vec<usize>,
        /// The position in the file that the stage reads, and the file's size, in bytes; `None` if it reads no file.
        pub progress: Option<(u64, u64)>,
        /// The name of the program that traces the stage.
        pub tracer: Option<String>,
        /// Whether the stage's control group was frozen.
        pub frozen: bool,
        /// Whether the stage compares text by locale rules.
        pub collates: bool,
        /// The variables of its environment that change how its program works, each as `NAME=value`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub variables: Vec<String>,
        /// The language in which the stage's program is written; `None` if unknown.
        pub language: Option<String>,
        /// The low priority at which the stage runs; `None` if it runs at the default priority or above.
        pub low_priority: Option<String>,
        /// Another program that holds a lock on a file which the stage has open: the file's path, and the pid and name of
        /// that program.
        pub locked_by: Option<(String, u32, String)>,
        /// Whether the stage has files or sockets besides its pipes open for reading.
        pub reads_others: bool,
        /// Whether the stage has files or sockets besides its pipes open for writing.
        pub writes_others: bool,
        /// Seconds from the stage's last write to the last reading of the counters; `None` if unknown.
        pub silent: Option<f64>,
        /// Bytes read since the stage's last write; `None` if unknown.
        pub held_bytes: Option<u64>,
        /// The mean size of earlier writes, in bytes; `None` if unknown.
        pub wrote_before: Option<f64>,
        /// What the socket that the stage waits for has received since the stage's last write, and since it was first seen.
        pub arrived: Arrivals,
        pub arrived_ever: Arrivals,
        /// The other end of a socket or pipe that the stage waits for; `None` if it waits for none.
        pub peer: Option<PeerFigures>,
        /// What the stage's threads executed; `None` if that wasn't sampled.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub profile: Option<Profile>,
    }
}

recorded! {
    /// What a socket has received.
    #[derive(Debug, Clone, Copy, Default, PartialEq)]
    pub struct Arrivals
    in JSON ArrivalsTrace {
        pub bytes: u64,
        /// How often more bytes were found than the time before.
        pub increases: u32,
    }
}

recorded! {
    /// What was seen of a pipe from one stage to another, apart from what was counted.
    #[derive(Debug, Clone, Default, PartialEq)]
    pub struct PipeEvidence
    in JSON PipeTrace {
        /// The index of the stage that writes the pipe, and of the one that reads it.
        pub from: usize,
        pub to: usize,
        /// Device and inode. Two pipes of this list with the same id are one pipe with several writers or readers.
        pub id: (u64, u64),
        pub is_socket: bool,
        pub capacity: Option<u64>,
    }
}

recorded! {
    /// The other end of a socket or pipe that a stage waits for.
    #[derive(Debug, Clone, Default, PartialEq)]
    pub struct PeerFigures
    #[derive(Debug, Clone, Default, PartialEq)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "PeerFigures"))]
    in JSON PeerRecord {
        /// The name of a process on this machine, or an address.
        pub name: String,
        pub pid: Option<u32>,
        /// Whether the connection is TCP.
        pub tcp: bool,
        /// Whether the connection is UDP. If it is neither, it is a Unix socket or a pipe.
        #[serde(default)]
        pub udp: bool,
        /// Whether the connection is a pipe or FIFO to a process outside the pipeline.
        #[serde(default)]
        pub pipe: bool,
        /// Whether the stage waits to send, rather than to receive.
        pub sends: bool,
        /// Bytes in the socket that wait to be read.
        pub receive_queue: u64,
        /// Bytes in the socket that wait to be sent.
        pub send_queue: u64,
        /// The share of the time with data to send in which the receiver's window limited TCP.
        pub window_limited: Option<f64>,
        /// The share of the time with data to send in which TCP's send buffer limited it.
        pub buffer_limited: Option<f64>,
    }
}

recorded! {
    /// A file that another process has locked.
    #[derive(Debug, Clone, PartialEq)]
    pub struct FileLock
    in JSON LockTrace {
        pub path: String,
        /// Several processes hold a lock if they have inherited its descriptor.
        pub holders: Vec<u32>,
    }
}

recorded! {
    /// One step of a cycle: a process, the end that it waits for, and the holder of the other end with its descriptor.
    #[derive(Debug, Clone, PartialEq)]
    pub struct WaitStep
    in JSON StepTrace {
        pub pid: u32,
        pub name: String,
        /// The end of a pipe that the process waits for; `None` if it waits for a child to exit, for a FIFO to be opened,
        /// or for a lock.
        pub on: Option<PipeEnd>,
        pub opens: Option<(String, Direction)>,
        pub lock: Option<FileLock>,
        pub holder: u32,
        pub holder_name: String,
        pub holder_fd: u32,
    }
}

recorded! {
    /// A cycle of waits, starting at the oldest process.
    #[derive(Debug, Clone, PartialEq)]
    pub struct WaitCycle
    in JSON CycleTrace {
        pub steps: Vec<WaitStep>,
        /// Whether an alarm(2) may end a wait: the kernel doesn't show whose alarms are set.
        #[serde(default)]
        pub may_have_alarm: bool,
    }
}

impl Default for PipelineEvidence {
    fn default() -> PipelineEvidence {
        PipelineEvidence {
            pipeline: None,
            typed: None,
            typed_elsewhere: false,
            shell: String::new(),
            functions: Vec::new(),
            started: false,
            alive: true,
            exit_code: None,
            elapsed: 0.0,
            own_seconds: 0.0,
            first_scan: 0.0,
            sampled_less: None,
            counted_less: None,
            access: ProcFile::Syscall,
            has_proc: true,
            limits: MachineLimits::default(),
            stages: Vec::new(),
            pipes: Vec::new(),
            cycle: None,
            unprofiled: None,
            timeline: Timeline::default(),
        }
    }
}
