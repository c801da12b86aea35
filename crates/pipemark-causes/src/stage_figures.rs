//! The figures of a stage, one row for each: its type, the column of the table of stages that shows it, and how it is
//! computed from what was seen. JSON has the rows under `in JSON`, under the same names. A row whose count is missing is one
//! more row, of [`crate::interval::StageCounts`], whose type says how it adds up.

use pipemark_proc::state::ThreadState::{
    Blocked, Children, Disk, Lock, Network, Other, Running, Sleep, Starved, Stopped, Terminal, Unknown,
};
use pipemark_profile::Profile;
use serde::{Deserialize, Serialize};

use crate::evidence::PeerFigures;
use crate::exact_text::ExactText;
use crate::recorded::{as_they_are, recorded};
use crate::seen_stage::SeenStage;

/// A column of the table of stages that shows a figure. The order is that of the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TableColumn {
    In,
    Out,
    Busy,
    Waits,
    Starved,
    Blocked,
    Cpu,
    BytesPerRead,
    BytesPerWrite,
    Calls,
    Switches,
    Progress,
    TimeLeft,
}

/// A figure that a column shows.
pub struct ShownFigure {
    pub column: TableColumn,
    /// `None` if it is unknown.
    pub of: fn(&StageRecord) -> Option<f64>,
}

/// A stage's shares at one moment, or their means around it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StageMoment {
    /// Seconds since the beginning.
    pub seconds: f64,
    pub busy: f64,
    pub starved: f64,
    pub blocked: f64,
}

as_they_are! { StageMoment, }

/// A stage can't be judged if its state is unknown for more than this share of the time.
const UNKNOWN: f64 = 0.5;

macro_rules! shown {
    (-, $of:expr) => {
        &[]
    };
    ($column:ident, $of:expr) => {
        &[ShownFigure { column: TableColumn::$column, of: $of }]
    };
}

macro_rules! stage_figures {
    (
        in JSON {
            $($(#[doc = $doc:literal])* $(#[serde($($json:tt)*)])*
            $field:ident: $kind:ty, column $column:tt, $of:expr;)*
        }
        not in JSON { $($(#[doc = $own_doc:literal])* $own:ident: $own_kind:ty, $own_of:expr;)* }
        derived { $($(#[doc = $sum_doc:literal])* $sum:ident: $sum_kind:ty, column $sum_column:tt, $sum_of:expr;)* }
    ) => {
        recorded! {
            /// Figures of a stage. Shares are of the time in which the stage existed, from 0 to 1.
            #[derive(Debug, Clone, Default, PartialEq)]
            pub struct StageFigures
            #[derive(Debug, Clone, Default, PartialEq)]
            #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "StageFigures"))]
            in JSON StageRecord { $($(#[doc = $doc])* $(#[serde($($json)*)])* pub $field: $kind,)* }
            not in JSON { $($(#[doc = $own_doc])* pub $own: $own_kind,)* }
        }

        impl StageFigures {
            /// The figures of a stage that was seen.
            pub fn of(seen: &SeenStage<'_>) -> StageFigures {
                StageFigures {
                    $($field: compute::<$kind>(seen, $of),)*
                    $($own: compute::<$own_kind>(seen, $own_of),)*
                }
            }

            $($(#[doc = $sum_doc])*
            pub fn $sum(&self) -> $sum_kind {
                let of: fn(&StageFigures) -> $sum_kind = $sum_of;
                of(self)
            })*
        }

        impl StageRecord {
            $($(#[doc = $sum_doc])*
            pub fn $sum(&self) -> $sum_kind {
                let of: fn(&StageRecord) -> $sum_kind = $sum_of;
                of(self)
            })*
        }

        /// The figures that the table of stages shows.
        pub static SHOWN: &[&[ShownFigure]] = &[
            $(shown!($column, |stage| stage.$field.into()),)*
            $(shown!($sum_column, |stage| stage.$sum().into()),)*
        ];
    };
}

fn compute<T>(seen: &SeenStage<'_>, of: fn(&SeenStage<'_>) -> T) -> T {
    of(seen)
}

stage_figures! {
    in JSON {
        /// The stage's number, from 1 at the source.
        number: usize, column -, |seen| seen.number;
        name: String, column -, |seen| seen.stage.name.clone();
        command: String, column -, |seen| seen.stage.command.clone();
        /// The process id of the stage's first process, which may have exited.
        pid: u32, column -, |seen| seen.stage.pids.first().copied().unwrap_or(0);
        processes: usize, column -, |seen| seen.stage.processes;
        threads: usize, column -, |seen| seen.stage.threads;
        /// The share of the whole time in which the stage existed.
        present: f64, column -, |seen| seen.present();
        /// The share of time in which the stage was neither starved nor blocked nor unknown.
        busy: f64, column -, |seen| 1.0 - seen.share(Starved) - seen.share(Blocked) - seen.share(Unknown);
        starved: f64, column Starved, |seen| seen.share(Starved);
        blocked: f64, column Blocked, |seen| seen.share(Blocked);
        computing: f64, column -, |seen| seen.share(Running) - seen.waiting_for_cpu();
        waiting_for_cpu: f64, column -, |seen| seen.waiting_for_cpu();
        disk: f64, column -, |seen| seen.share(Disk);
        network: f64, column -, |seen| seen.share(Network);
        terminal: f64, column -, |seen| seen.share(Terminal);
        sleep: f64, column -, |seen| seen.share(Sleep);
        children: f64, column -, |seen| seen.share(Children);
        lock: f64, column -, |seen| seen.share(Lock);
        stopped: f64, column -, |seen| seen.share(Stopped);
        other: f64, column -, |seen| seen.share(Other);
        unknown: f64, column -, |seen| seen.share(Unknown);
        /// Whether the stage's descriptors are unreadable. The stage's position is then inferred from other stages.
        hidden: bool, column -, |seen| seen.stage.hidden;
        /// The mean number of CPUs that the stage used.
        cpu: Option<f64>, column Cpu, |seen| seen.cpus(seen.counts.cpu);
        /// The mean number of CPUs that the stage waited for.
        cpu_wait: Option<f64>, column -, |seen| seen.per_second(seen.counts.cpu_wait).map(|time| time / 1e9);
        bytes_in_per_second: Option<f64>, column In, |seen| seen.bytes_per_second(seen.counts.read);
        bytes_out_per_second: Option<f64>, column Out, |seen| seen.bytes_per_second(seen.counts.wrote);
        /// Calls such as read and write on any file, and the mean bytes per call.
        #[serde(default)]
        reads_per_second: Option<f64>, column -, |seen| seen.calls_per_second(seen.counts.reads);
        #[serde(default)]
        writes_per_second: Option<f64>, column -, |seen| seen.calls_per_second(seen.counts.writes);
        #[serde(default)]
        bytes_per_read: Option<f64>, column BytesPerRead, |seen| seen.per_call(seen.counts.read, seen.counts.reads);
        #[serde(default)]
        bytes_per_write: Option<f64>, column BytesPerWrite,
            |seen| seen.per_call(seen.counts.wrote, seen.counts.writes);
        /// The part of `cpu` that the stage used in the kernel, measured in steps of 10 ms.
        #[serde(default)]
        kernel: Option<f64>, column -, |seen| seen.cpus(seen.counts.kernel);
        /// Processes that the stage started, estimated from the machine's count of new processes and from the processes
        /// that the stage reaped.
        #[serde(default)]
        starts_per_second: Option<f64>, column -,
            |seen| seen.per_second(Some(seen.counts.starts).filter(|&starts| starts > 0));
        /// The mean number of CPUs used by processes that the stage started and reaped.
        #[serde(default)]
        cpu_of_children: Option<f64>, column -, |seen| seen.cpus(seen.counts.children);
        /// Bytes that the stage has read since its last write, including those of the TCP socket that it waits for.
        #[serde(default)]
        held_bytes: Option<u64>, column -,
            |seen| seen.stage.held_bytes.map(|bytes| bytes.max(seen.stage.arrived.bytes));
        /// Seconds since the stage's last write.
        #[serde(default)]
        seconds_silent: Option<f64>, column -, |seen| seen.stage.silent;
        /// The other end of a socket or pipe that the stage waits for.
        #[serde(default)]
        peer: Option<PeerFigures>, column -, |seen| seen.stage.peer.clone();
        switches_per_second: Option<f64>, column Switches, |seen| seen.per_second(seen.counts.switches);
        throttled: Option<f64>, column -,
            |seen| seen.per_second(seen.counts.throttled).map(|time| (time / 1e9).min(1.0));
        /// The position in the file that the stage reads, from 0 to 1.
        progress: Option<f64>, column Progress, |seen| seen.progress();
        /// Seconds until the end of that file, at the current rate.
        seconds_left: Option<f64>, column TimeLeft, |seen| seen.seconds_left();
        /// The difference between the stage's running share in samples and in the kernel's counters. The shares above
        /// are corrected by this difference. Null if the counters are missing.
        #[serde(default)]
        sampling_error: Option<f64>, column -, |seen| seen.sampling_error();
        /// The program that traces the stage, such as strace; null if no tracer was found to stop the stage.
        #[serde(default)]
        tracer: Option<String>, column -, |seen| seen.stage.tracer.clone();
        /// Whether the stage's control group is frozen.
        #[serde(default)]
        frozen: bool, column -, |seen| seen.stage.frozen;
        /// The functions that the stage executed, and the kinds of work; only for the busiest stages, and where
        /// permitted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        profile: Option<Profile>, column -, |seen| seen.stage.profile.clone();
        /// The stage's activity over time; only with `--record`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        moments: Vec<StageMoment>, column -, |_| Vec::new();
    }
    not in JSON {
        /// The CPU time in user mode and in the kernel, in CPUs, of the thread that spent the most time in the kernel,
        /// while the stage wrote; `None` if no process of the stage has several threads.
        caller: Option<[f64; 2]>, |seen| seen.caller();
        /// How often more bytes were found to have come from that socket since the stage's last write.
        arrivals: u32, |seen| seen.stage.arrived.increases;
        /// The share of the whole time in which this stage alone was busy; `None` if not counted.
        alone: Option<f64>, |seen| seen.counts.alone.map(|alone| f64::from(alone) / f64::from(seen.alive.max(1)));
        /// The stage's name, with its number if other stages of the whole pipeline have the same name; empty if not
        /// set.
        label: String, |_| String::new();
        /// The number of stages of the whole pipeline with the same name before this one.
        same_before: usize, |_| 0;
        /// The CPUs that the stage may use.
        cpus: Vec<usize>, |seen| seen.stage.cpus.clone();
        /// The stage's processes at the end.
        pids: Vec<u32>, |seen| seen.stage.pids.clone();
        /// What the stage waits for in the time of `other`; `None` if unknown.
        waits_for: Option<String>, |seen| seen.stage.waits_for.clone();
        /// The share of time in which one of the stage's threads waits for input while others run.
        hungry: f64, |seen| seen.hungry();
        /// Whether the stage reads in a loop and mostly gets no data, instead of waiting for input. That time counts as
        /// `starved`.
        polls: bool, |_| false;
        /// The share of time in which at least two of the stage's processes wait for file locks, and more wait than
        /// run.
        queued: f64, |seen| seen.queued();
        /// How often samples found the stage newly stopped by a signal.
        stops: u32, |seen| seen.counts.stops;
        stops_per_second: f64, |seen| f64::from(seen.counts.stops) / seen.seconds.max(1e-9);
        /// Page faults of processes that the stage started and reaped.
        faults_per_second: f64, |seen| seen.per_second(Some(seen.counts.faults)).unwrap_or(0.0);
        /// Mean bytes that each process started by the stage has read and written, including what it reads while
        /// starting.
        bytes_per_start: Option<f64>, |seen| seen.per_start(seen.counts.reaped_bytes);
        /// The stage's command line, as text.
        words: Vec<String>, |seen| seen.stage.words.clone();
        /// Its arguments byte for byte; `None` if they are `words`.
        arguments: Option<Vec<ExactText>>, |seen| seen.stage.arguments.clone();
        /// Whether the stage may read files or sockets besides its pipes.
        reads_others: bool, |seen| seen.stage.reads_others;
        /// Whether the stage may write files or sockets besides its pipes.
        writes_others: bool, |seen| seen.stage.writes_others;
        /// Whether the stage compares text by locale rules.
        collates: bool, |seen| seen.stage.collates;
        /// The variables of its environment that change how its program works, each as `NAME=value`.
        variables: Vec<String>, |seen| seen.stage.variables.clone();
        /// The language in which the stage's program is written; `None` if unknown, or if the stage makes no small
        /// writes.
        language: Option<String>, |seen| seen.stage.language.clone();
        /// The low priority at which the stage runs, such as `nice 19`; `None` if it runs at the default priority or
        /// above.
        low_priority: Option<String>, |seen| seen.stage.low_priority.clone();
        /// Another program that holds a lock on a file which the stage has open, while the stage waits: the file's
        /// path, and the pid and name of that program.
        locked_by: Option<(String, u32, String)>, |seen| seen.stage.locked_by.clone();
        /// Mean bytes per write before the stage stopped writing.
        wrote_before: Option<f64>, |seen| seen.stage.wrote_before;
    }
    derived {
        /// The share of time in which the stage's activity is unknown. For a hidden stage, this includes `other`: waits that
        /// its neighbours' states don't explain.
        unknown_share: f64, column -, |stage| stage.unknown + if stage.hidden { stage.other } else { 0.0 };
        /// Whether the stage can't be sampled. Such a stage has no shares, so it can't be shown to be the bottleneck.
        is_unsampled: bool, column -, |stage| stage.unknown_share() > UNKNOWN;
        /// The share of `busy` in which the stage waits for something else than its pipes or a CPU: a disk, the
        /// network, the terminal, a timer, a child, a lock, or what isn't known.
        waits: f64, column Waits, |stage| {
            let waits = [
                stage.disk, stage.network, stage.terminal, stage.sleep, stage.children, stage.lock, stage.stopped,
                stage.other,
            ];
            waits.iter().sum::<f64>().min(stage.busy)
        };
        /// The share of `busy` in which the stage computes or waits for a CPU.
        works: f64, column Busy, |stage| (stage.busy - stage.waits()).max(0.0);
        /// Calls of read, write and the like per second; `None` if they aren't counted.
        calls_per_second: Option<f64>, column Calls, |stage| {
            let (reads, writes) = (stage.reads_per_second, stage.writes_per_second);
            reads.or(writes).map(|_| reads.unwrap_or(0.0) + writes.unwrap_or(0.0))
        };
    }
}
