//! What a sample finds of one stage.

use pipemark_proc::process::PipeId;
use pipemark_proc::state::ThreadState;

/// The states of a stage at one moment.
#[derive(Debug, Clone, Default)]
pub struct Moment {
    pub state: Option<ThreadState>,
    pub ins: Vec<Option<PipeId>>,
    pub outs: Vec<Option<PipeId>>,
    pub unsure: Option<(bool, bool, ThreadState)>,
    /// Whether one of the stage's threads waits for input while another runs; `None` if that wasn't checked.
    pub hungry: Option<bool>,
    /// Whether at least two of the stage's processes wait for file locks, and more wait than run; `None` if that wasn't
    /// checked.
    pub queued: Option<bool>,
    /// Whether a thread waits for a descriptor that the last scan didn't find.
    pub strange: bool,
    /// Whether there are threads that the last scan didn't find. Their time isn't counted before the next one.
    pub has_new_threads: bool,
}

impl Moment {
    /// Adds a state of a thread, or a wait for which the stage's neighbours decide.
    pub fn add(&mut self, other: Moment) {
        let add = |state: ThreadState, known: Option<ThreadState>| known.map_or(state, |known| known.min(state));
        self.state = other.state.map(|state| add(state, self.state)).or(self.state);
        self.ins.extend(other.ins);
        self.outs.extend(other.outs);
        if let Some((ins, outs, otherwise)) = other.unsure {
            let (ins_before, outs_before, before) = self.unsure.unwrap_or((false, false, otherwise));
            self.unsure = Some((ins || ins_before, outs || outs_before, otherwise.min(before)));
        }
    }
}
