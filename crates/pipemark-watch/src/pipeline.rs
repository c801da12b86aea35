//! A watched pipeline as last found: its processes, stages and pipes. Scans update it; other observers read it, and keep what they see
//! themselves.

pub mod moment;
pub mod pipe;
pub mod stage;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use pipemark_host::ControlGroups;
use pipemark_proc::connections::SocketUse;
use pipemark_proc::process::Process;
use pipemark_proc::watched::WatchedProcess;

use crate::subject::{SamplingOptions, Subject};
use crate::typed::{self, TypedText};

/// A watched pipeline.
pub struct WatchedPipeline {
    pub subject: Subject,
    pub options: SamplingOptions,
    /// The pipeline as typed; `None` if no shell runs it.
    pub typed: Option<TypedText>,
    /// When watching began.
    pub begin: Instant,
    pub known: BTreeMap<u32, WatchedProcess>,
    pub stages: Vec<stage::WatchedStage>,
    pub pipes: Vec<pipe::WatchedPipe>,
    /// The control groups of the stages, by their names in /proc.
    pub groups: Vec<(String, ControlGroups)>,
    /// Orphans: processes of the command, such as background processes, whose parents had ended before the orphans were
    /// found. Maps their pids to their start times.
    pub orphans: BTreeMap<u32, u64>,
    /// Sockets that processes were observed waiting for.
    pub socket_uses: BTreeSet<SocketUse>,
}

impl WatchedPipeline {
    /// A pipeline of which nothing has been found yet.
    pub fn new(subject: Subject, options: SamplingOptions, begin: Instant) -> WatchedPipeline {
        let typed = typed::typed_text(&subject);
        WatchedPipeline {
            subject,
            options,
            typed,
            begin,
            known: BTreeMap::new(),
            stages: Vec::new(),
            pipes: Vec::new(),
            groups: Vec::new(),
            orphans: BTreeMap::new(),
            socket_uses: BTreeSet::new(),
        }
    }

    /// Whether any of the pipeline's processes existed at the last scan.
    pub fn is_alive(&self) -> bool {
        self.stages.iter().any(|stage| stage.alive)
    }

    /// Whether any process of a living stage exists now.
    pub fn has_process(&self) -> bool {
        let pids = self.stages.iter().filter(|stage| stage.alive).flat_map(|stage| &stage.pids);
        let exists = |pid: &u32| {
            let now = Process::read_stat(*pid).filter(|process| process.state != 'Z');
            let start = self.known.get(pid).map(|known| known.process.start);
            now.is_some_and(|now| start.is_none_or(|start| now.start == start))
        };
        pids.into_iter().any(exists)
    }

    /// The pipeline as typed; `None` if no shell runs it.
    pub fn typed_text(&self) -> Option<&[u8]> {
        self.typed.as_ref().map(|typed| &typed.text[..])
    }

    /// Whether this program started the pipeline.
    pub fn is_child(&self) -> bool {
        matches!(self.subject, Subject::Child(_))
    }
}
