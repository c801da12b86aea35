//! Judges whether the other end of a socket that a stage waits for is the bottleneck. Pure: no clock and no I/O.

use crate::evidence::PeerFigures;
use crate::figures::PipelineFigures;
use crate::report::{PipelineVerdict, StageFigures, VerdictKind};
use crate::verdict::{name, percent};

/// The minimum share of time for which a stage waits for its socket. If it waits less, something else limits it.
const MIN_WAITS: f64 = 0.4;
/// The minimum share of time for which the writer of the stage's input waits.
const MIN_WRITER_WAITS: f64 = 0.4;
/// The minimum share of time for which TCP reports a window as the limit.
const MIN_LIMITED: f64 = 0.3;

pub fn describe_peer(peer: &PeerFigures) -> String {
    match peer.pid {
        Some(pid) => format!("{} (PID {pid})", peer.name),
        None => peer.name.clone(),
    }
}

/// The verdict on the other end of the socket that the busiest stage waits for; `None` if that end isn't the limit.
pub fn peer_verdict(figures: &PipelineFigures, busiest: &StageFigures) -> Option<PipelineVerdict> {
    let found = busiest.peer.as_ref().filter(|peer| !peer.pipe)?;
    let share = busiest.network + busiest.other;
    if share < MIN_WAITS || share < busiest.computing + busiest.waiting_for_cpu {
        return None;
    }
    let by = match (found.tcp, found.udp) {
        (true, _) => "TCP",
        (_, true) => "UDP",
        _ => "a Unix socket",
    };
    // If the stage has unread input, it waits either to send, or for an answer before it reads further input.
    let pressed = figures.pipes.iter().any(|pipe| pipe.to == busiest.number && pipe.writer_waits >= MIN_WRITER_WAITS);
    let sends = found.sends || pressed;
    let what = if sends { "accept its data" } else { "send data" };
    let mut text = format!(
        "{} waits {} of the time for {} to {what} over {by}.",
        name(figures, busiest.number),
        percent(share),
        describe_peer(found)
    );
    if found.udp && found.name.starts_with("name server") {
        let text = format!(
            "{} waits {} of the time for answers from {}.",
            name(figures, busiest.number),
            percent(share),
            describe_peer(found)
        );
        let verdict = PipelineVerdict::new(VerdictKind::Peer, "waiting for a name server", text);
        let cause = format!("peer: {}", found.name);
        return Some(PipelineVerdict { stage: Some(busiest.number), cause, ..verdict });
    }
    let limited = |share: Option<f64>| share.filter(|&share| share >= MIN_LIMITED);
    let cause = match (limited(found.window_limited), limited(found.buffer_limited)) {
        (Some(share), _) => {
            text.push_str(&format!(
                " For {} of that time, the receiver's window limited TCP: the receiver is slow.",
                percent(share)
            ));
            "peer: receiver window"
        }
        (None, Some(share)) => {
            text.push_str(&format!(" For {} of that time, the send buffer limited TCP.", percent(share)));
            "peer: send buffer"
        }
        (None, None) if sends && (found.tcp || found.udp) => "peer: network or receiver",
        (None, None) if sends => "peer: receiver",
        (None, None) if found.tcp || found.udp => "peer: network or sender",
        (None, None) => "peer: sender",
    };
    let verdict = PipelineVerdict::new(VerdictKind::Peer, "waiting for the other end of a socket", text);
    Some(PipelineVerdict { stage: Some(busiest.number), cause: format!("{cause} ({})", found.name), ..verdict })
}

#[cfg(test)]
mod tests {
    use super::*;
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
