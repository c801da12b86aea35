//! Round trips: one block is sent and returned, repeatedly.

use crate::bad_value::{BadValue, refuse, refuse_if};
use crate::job::{Ends, Volume};
use crate::link::LinkKind;
use crate::methods::{SendMethod, Verify};
use crate::parameter::Settings;
use crate::units::Nanos;

/// When a round trip begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MessagePace {
    /// After this gap since the end of the last round trip; 0 means immediately.
    Gap(Nanos),
    /// At a fixed rate, this many times per second. Each round trip is timed from when it was due.
    Rate(u32),
}

/// Round trips between a source and a sink.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RoundTrip {
    /// The source, the sink and the link between them.
    pub ends: Ends,
    /// When a round trip begins.
    pub pace: MessagePace,
}

impl RoundTrip {
    pub(super) fn new(settings: &Settings, volume: Volume) -> Result<RoundTrip, BadValue> {
        let pace = match (settings.rate.unwrap_or_default().0, settings.gap.unwrap_or_default()) {
            (Some(rate), Nanos(0)) => MessagePace::Rate(rate),
            (None, gap) => MessagePace::Gap(gap),
            _ => return refuse("--rate already sets when the next message is due; omit --gap"),
        };
        let ends = Ends::new(settings, volume)?;
        let Ends { link, send, recv, verify, .. } = ends;
        refuse_if!(
            !recv.touches() || send == SendMethod::Tee,
            "a message must be read to be answered; use another --send or --recv for latency"
        );
        refuse_if!(
            link == LinkKind::MemoryCopy,
            "--link memory-copy has no round trips; measure its throughput ('pipemark bw')"
        );
        refuse_if!(verify == Verify::Xor, "--verify xor is for streams; use count or full for latency");
        Ok(RoundTrip { ends, pace })
    }
}
