//! The other end of a socket that a stage waits for. Pure: no clock and no I/O.

use crate::cause::{Cause, PeerRole};
use crate::evidence::PeerFigures;
use crate::figures::PipelineFigures;
use crate::hypothesis::{Hypothesis, Scene};
use crate::report::Quality;
use crate::stage_figures::StageFigures;

/// The minimum share of time for which a stage waits for its socket. If it waits less, something else limits it.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
const MIN_WAITS: f64 = 0.4;
/// The minimum share of time for which the writer of the stage's input waits.
/// Multiplied by 0.5 to 2 it changes none of 118 recorded verdicts (bench/thresholds.py).
const MIN_WRITER_WAITS: f64 = 0.4;
/// The minimum share of time for which TCP reports a window as the limit.
/// No recorded verdict depends on it (bench/thresholds.py).
const MIN_LIMITED: f64 = 0.3;

/// Whether a stage waits to send: if it has unread input, it waits either to send, or for an answer before it reads on.
pub fn sends(figures: &PipelineFigures, stage: &StageFigures, peer: &PeerFigures) -> bool {
    let pressed =
        |number: usize| figures.pipes.iter().any(|pipe| pipe.to == number && pipe.writer_waits >= MIN_WRITER_WAITS);
    peer.sends || pressed(stage.number)
}

/// The share of time for which TCP reports a limit, if that matters.
pub fn limited(share: Option<f64>) -> Option<f64> {
    share.filter(|&share| share >= MIN_LIMITED)
}

/// The other ends of sockets that stages wait for.
pub fn assess(scene: &Scene) -> Vec<Hypothesis> {
    let of_stage = |stage: &&StageFigures| {
        let peer = stage.peer.as_ref().filter(|peer| !peer.pipe)?;
        let share = stage.network + stage.other;
        if share < MIN_WAITS || share < stage.computing + stage.waiting_for_cpu {
            return None;
        }
        let (sends, remote) = (sends(scene.figures, stage, peer), peer.tcp || peer.udp);
        let role = match (limited(peer.window_limited), limited(peer.buffer_limited)) {
            _ if peer.udp && peer.name.starts_with("name server") => PeerRole::NameServer,
            (Some(_), _) => PeerRole::ReceiverWindow,
            (None, Some(_)) => PeerRole::SendBuffer,
            (None, None) if sends && remote => PeerRole::NetworkOrReceiver,
            (None, None) if sends => PeerRole::Receiver,
            (None, None) if remote => PeerRole::NetworkOrSender,
            (None, None) => PeerRole::Sender,
        };
        let gain = Some(scene.model.without_share(stage, share));
        let explains = (share / stage.busy.max(0.01)).min(1.0);
        // The kernel names the other end of a connection. Which of its sockets a stage waits for is known only while it
        // waits in a call for the network; other waits may be for something else.
        let waits = if remote { stage.network } else { share };
        let is_named = remote || peer.pid.is_some();
        let quality = if is_named && waits >= MIN_WAITS { Quality::Proved } else { Quality::Inferred };
        Some(Hypothesis { explains, gain, ..Hypothesis::of_stage(Cause::Peer(role), stage.number, quality) })
    };
    scene.model.order.iter().filter_map(of_stage).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::VerdictKind;
    use crate::verdict::tests::{line, stage};
    use crate::verdict::verdict;

    #[test]
    fn the_process_beyond_a_socket_is_named() {
        let peer = PeerFigures { name: "python3".to_owned(), pid: Some(77), sends: true, ..PeerFigures::default() };
        let socat = StageFigures { peer: Some(peer), other: 0.95, computing: 0.03, ..stage(2, 98, 2, 0) };
        let found = verdict(&line(vec![stage(1, 3, 0, 97), socat.clone()]));
        assert_eq!((found.kind, found.stage), (VerdictKind::Peer, Some(2)));
        assert!(found.text.contains("for python3 (PID 77) to accept its data over a Unix socket"), "{}", found.text);
        let own = StageFigures { other: 0.1, computing: 0.88, ..socat };
        assert_eq!(verdict(&line(vec![stage(1, 3, 0, 97), own])).kind, VerdictKind::Stage);
    }

    #[test]
    fn a_name_server_is_named() {
        let peer =
            PeerFigures { name: "name server 192.0.2.53".to_owned(), udp: true, sends: true, ..PeerFigures::default() };
        let words = |text: &str| text.split(' ').map(str::to_owned).collect();
        let asks = |text: &str| {
            let peer = Some(peer.clone());
            let asks = StageFigures { peer, network: 0.99, computing: 0.0, words: words(text), ..stage(1, 100, 0, 0) };
            verdict(&line(vec![asks, stage(2, 0, 100, 0)]))
        };
        let found = asks("tcpdump -r day.pcap");
        assert_eq!((found.kind, found.cause.as_str()), (VerdictKind::Peer, "peer: name server 192.0.2.53"));
        assert!(
            found.text.contains("s1 waits 99 % of the time for answers from name server 192.0.2.53."),
            "{}",
            found.text
        );
        assert_eq!(found.remedies[0].id, "tcpdump-no-names");
        assert_eq!(asks("host 192.0.2.1").remedies[0].id, "names-fewer");
    }

    #[test]
    fn the_process_beyond_a_pipe_is_named() {
        let peer = PeerFigures { name: "perl".to_owned(), pid: Some(77), pipe: true, ..PeerFigures::default() };
        let cat = StageFigures { peer: Some(peer), ..stage(1, 2, 97, 1) };
        let found = verdict(&line(vec![cat.clone(), stage(2, 10, 90, 0)]));
        assert_eq!(
            (found.kind, found.stage, found.cause.as_str()),
            (VerdictKind::Peer, Some(1), "peer: sender (perl)")
        );
        assert!(found.text.contains("s1 waits 97 % of the time for data from perl (PID 77)"), "{}", found.text);
        let busy = StageFigures { busy: 0.9, computing: 0.9, starved: 0.1, ..cat };
        assert_eq!(verdict(&line(vec![busy, stage(2, 10, 90, 0)])).kind, VerdictKind::Stage);
    }

    #[test]
    fn the_limit_of_tcp_is_reported() {
        let peer = PeerFigures {
            name: "192.0.2.1:22".to_owned(),
            tcp: true,
            sends: true,
            window_limited: Some(0.8),
            ..PeerFigures::default()
        };
        let ssh = StageFigures { peer: Some(peer), network: 0.95, computing: 0.03, ..stage(2, 98, 2, 0) };
        let found = verdict(&line(vec![stage(1, 3, 0, 97), ssh]));
        assert_eq!(found.cause, "peer: receiver window (192.0.2.1:22)");
        assert!(found.text.contains("For 80 % of that time, the receiver's window limited TCP"), "{}", found.text);
    }
}
