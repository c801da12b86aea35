//! Finds the other ends of sockets with sock_diag(7), which needs no privileges for sockets of the same user.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with};

use crate::process::{Direction, PipeEnd, PipeId, Process};

/// Constants of <linux/netlink.h>, <linux/sock_diag.h>, <linux/unix_diag.h> and <linux/inet_diag.h>.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const REQUEST_DUMP: u16 = 0x301;
const DONE: u16 = 3;
const ERROR: u16 = 2;
const SHOW_PEER: u32 = 0x04;
const SHOW_QUEUES: u32 = 0x10;
const ATTRIBUTE_PEER: u16 = 2;
const ATTRIBUTE_QUEUES: u16 = 4;
const ATTRIBUTE_TCP_INFO: u16 = 2;
const AF_UNIX: u8 = 1;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const TCP: u8 = 6;

/// A socket and its peer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SocketState {
    /// The inode of the other end; `None` if that end isn't on this machine.
    pub peer: Option<u64>,
    /// Bytes waiting to be read.
    pub receive_queue: u64,
    /// Bytes waiting to be sent, or to be read by the other end.
    pub send_queue: u64,
    pub tcp: Option<TcpState>,
    /// The other end of a UDP socket, if it has a fixed one.
    pub udp: Option<SocketAddr>,
}

/// Figures that only TCP has. Times count from the start of the connection.
#[derive(Debug, Clone, PartialEq)]
pub struct TcpState {
    pub local: SocketAddr,
    pub remote: SocketAddr,
    /// Microseconds with data to send.
    pub busy: u64,
    /// The part of `busy` in which the receiver's window limited sending.
    pub window_limited: u64,
    /// The part of `busy` in which the send buffer limited sending.
    pub buffer_limited: u64,
    /// Bytes received.
    pub received: u64,
}

/// All visible Unix sockets, by inode, and with `with_internet` those of TCP and the connected ones of UDP. Lacks Unix
/// and TCP sockets if the kernel doesn't support sock_diag.
pub fn all_sockets(with_internet: bool) -> BTreeMap<u64, SocketState> {
    let mut found = BTreeMap::new();
    for message in dump(&unix_request()) {
        found.extend(unix_socket(&message));
    }
    if with_internet {
        for family in [AF_INET, AF_INET6] {
            for message in dump(&tcp_request(family)) {
                found.extend(tcp_socket(&message));
            }
        }
        join_tcp(&mut found);
        // sock_diag needs a kernel module for UDP.
        for name in ["udp", "udp6"] {
            let text = std::fs::read_to_string(format!("/proc/self/net/{name}")).unwrap_or_default();
            found.extend(text.lines().filter_map(udp_socket));
        }
    }
    found
}

/// A connected socket in a line of /proc/net/udp or /proc/net/udp6.
fn udp_socket(line: &str) -> Option<(u64, SocketState)> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let (ip, port) = words.get(2)?.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok().filter(|&port| port != 0)?;
    // The address is printed as one or four numbers of 32 bits.
    let numbers: Option<Vec<[u8; 4]>> = (0..ip.len() / 8)
        .map(|nth| Some(u32::from_str_radix(ip.get(nth * 8..nth * 8 + 8)?, 16).ok()?.to_ne_bytes()))
        .collect();
    let bytes = numbers?.concat();
    let ip: IpAddr = match <[u8; 4]>::try_from(&bytes[..]) {
        Ok(four) => four.into(),
        Err(_) => <[u8; 16]>::try_from(&bytes[..]).ok()?.into(),
    };
    let inode = words.get(9)?.parse().ok()?;
    Some((inode, SocketState { udp: Some(SocketAddr::new(ip.to_canonical(), port)), ..SocketState::default() }))
}

/// Sets the peers of TCP connections that have both ends on this machine.
fn join_tcp(found: &mut BTreeMap<u64, SocketState>) {
    let by_ends = found.iter().filter_map(|(&inode, state)| {
        let tcp = state.tcp.as_ref()?;
        Some(((unmapped(tcp.local), unmapped(tcp.remote)), inode))
    });
    let by_ends: BTreeMap<(SocketAddr, SocketAddr), u64> = by_ends.collect();
    for state in found.values_mut() {
        if let Some(tcp) = &state.tcp {
            state.peer = by_ends.get(&(unmapped(tcp.remote), unmapped(tcp.local))).copied();
        }
    }
}

/// Unwraps an IPv4-mapped IPv6 address.
fn unmapped(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn header(length: usize) -> Vec<u8> {
    let total = u32::try_from(16 + length).unwrap_or(0);
    [&total.to_ne_bytes()[..], &SOCK_DIAG_BY_FAMILY.to_ne_bytes(), &REQUEST_DUMP.to_ne_bytes(), &[0; 8]].concat()
}

fn unix_request() -> Vec<u8> {
    let show = SHOW_PEER | SHOW_QUEUES;
    let body = [&[AF_UNIX, 0, 0, 0][..], &u32::MAX.to_ne_bytes(), &[0; 4], &show.to_ne_bytes(), &[0; 8]].concat();
    [header(body.len()), body].concat()
}

fn tcp_request(family: u8) -> Vec<u8> {
    let body = [&[family, TCP, 1 << (ATTRIBUTE_TCP_INFO - 1), 0][..], &u32::MAX.to_ne_bytes(), &[0; 48]].concat();
    [header(body.len()), body].concat()
}

/// Sends a request and returns the bodies of the replies.
fn dump(request: &[u8]) -> Vec<Vec<u8>> {
    let open = || {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, Some(netlink::SOCK_DIAG)).ok()?;
        send(&socket, request, SendFlags::empty()).ok()?;
        Some(socket)
    };
    let mut found = Vec::new();
    let Some(socket) = open() else { return found };
    let mut buffer = vec![0; 64 << 10];
    loop {
        // The kernel has completed each reply to a dump when the next one is requested, so this call doesn't wait.
        let Ok((length, _)) = recv(&socket, &mut buffer[..], RecvFlags::DONTWAIT) else { return found };
        if length == 0 {
            return found;
        }
        for (kind, body) in messages(&buffer[..length]) {
            match kind {
                DONE | ERROR => return found,
                _ => found.push(body.to_vec()),
            }
        }
    }
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    number(bytes, at).map(u16::from_ne_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    number(bytes, at).map(u32::from_ne_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    number(bytes, at).map(u64::from_ne_bytes)
}

/// Types and bodies of netlink messages.
fn messages(mut bytes: &[u8]) -> Vec<(u16, &[u8])> {
    let mut found = Vec::new();
    while let (Some(length), Some(kind)) = (u32_at(bytes, 0), u16_at(bytes, 4)) {
        let length = length as usize;
        let Some(body) = bytes.get(16..length) else { break };
        found.push((kind, body));
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    found
}

/// The attribute `wanted` of a message, which follows a fixed part of `fixed` bytes.
fn attribute(message: &[u8], fixed: usize, wanted: u16) -> Option<&[u8]> {
    let mut rest = message.get(fixed..)?;
    while let (Some(length), Some(kind)) = (u16_at(rest, 0), u16_at(rest, 2)) {
        let body = rest.get(4..usize::from(length))?;
        if kind == wanted {
            return Some(body);
        }
        rest = rest.get(usize::from(length).next_multiple_of(4)..)?;
    }
    None
}

fn unix_socket(message: &[u8]) -> Option<(u64, SocketState)> {
    const FIXED: usize = 16;
    let inode = u32_at(message, 4)?;
    let peer = attribute(message, FIXED, ATTRIBUTE_PEER).and_then(|body| u32_at(body, 0)).filter(|&peer| peer != 0);
    let queues = attribute(message, FIXED, ATTRIBUTE_QUEUES).unwrap_or_default();
    let queue = |at: usize| u32_at(queues, at).unwrap_or(0).into();
    let state = SocketState {
        peer: peer.map(u64::from),
        receive_queue: queue(0),
        send_queue: queue(4),
        ..SocketState::default()
    };
    Some((inode.into(), state))
}

fn tcp_socket(message: &[u8]) -> Option<(u64, SocketState)> {
    const FIXED: usize = 72;
    let family = *message.first()?;
    let address = |at: usize, port: usize| {
        let ip: IpAddr = if family == AF_INET {
            Ipv4Addr::from(number::<4>(message, at)?).into()
        } else {
            Ipv6Addr::from(number::<16>(message, at)?).into()
        };
        Some(SocketAddr::new(ip, u16::from_be_bytes(number(message, port)?)))
    };
    let (local, remote) = (address(8, 4)?, address(24, 6)?);
    let inode = u32_at(message, 68)?;
    let (receive_queue, send_queue) = (u32_at(message, 56)?.into(), u32_at(message, 60)?.into());
    // struct tcp_info of <linux/tcp.h>, which newer kernels only extend.
    let info = attribute(message, FIXED, ATTRIBUTE_TCP_INFO).unwrap_or_default();
    let count = |at: usize| u64_at(info, at).unwrap_or(0);
    let (busy, window_limited, buffer_limited, received) = (count(168), count(176), count(184), count(128));
    let tcp = TcpState { local, remote, busy, window_limited, buffer_limited, received };
    Some((inode.into(), SocketState { receive_queue, send_queue, tcp: Some(tcp), ..SocketState::default() }))
}

/// A process that was observed waiting in a read or write on a socket: its pid, the socket's inode, and the direction.
pub type SocketUse = (u32, u64, Direction);

/// Turns socket pairs into links like pipes. Three kinds of pairs qualify: pairs that join the standard output or error
/// of a process to the standard input of another, as ksh creates them; pairs between a process and the standard input,
/// output or error of its descendant, as Node creates them; and pairs between a process and its descendant on which one
/// was observed waiting for the other (`uses`), as with Python's `multiprocessing.Pipe`.
pub fn join_socket_pairs(processes: &mut [Process], uses: &BTreeSet<SocketUse>) {
    let standard = |process: &Process| process.others.sockets.iter().any(|(fd, _)| *fd < 3);
    if uses.is_empty() && !processes.iter().any(standard) {
        return;
    }
    let sockets = all_sockets(false);
    let parent_of: BTreeMap<u32, u32> = processes.iter().map(|process| (process.pid, process.parent)).collect();
    let ancestors = |pid: u32| {
        std::iter::successors(parent_of.get(&pid).copied(), |pid| parent_of.get(pid).copied())
            .take(65)
            .collect::<Vec<u32>>()
    };
    let place_of: HashMap<u32, usize> = processes.iter().enumerate().map(|(at, process)| (process.pid, at)).collect();
    // The places of the processes that hold each socket, with the descriptors.
    let mut holders: HashMap<u64, Vec<(usize, u32)>> = HashMap::new();
    for (at, process) in processes.iter().enumerate() {
        process.others.sockets.iter().for_each(|&(fd, inode)| holders.entry(inode).or_default().push((at, fd)));
    }
    let holders_of = |inode: u64| holders.get(&inode).map(Vec::as_slice).unwrap_or_default();
    let mut found: Vec<(usize, PipeEnd)> = Vec::new();
    let mut link = |from: (usize, u32), to: (usize, u32), received_at: u64| {
        let pipe = PipeId::of_socket(received_at);
        found.push((from.0, PipeEnd { fd: from.1, pipe, direction: Direction::Out }));
        found.push((to.0, PipeEnd { fd: to.1, pipe, direction: Direction::In }));
    };
    for (place, process) in processes.iter().enumerate() {
        let elders = ancestors(process.pid);
        for &(fd, inode) in process.others.sockets.iter().filter(|(fd, _)| *fd < 3) {
            let Some(peer) = sockets.get(&inode).and_then(|state| state.peer) else { continue };
            let holder = |suits: &dyn Fn(&Process, u32) -> bool| {
                let mut holders = holders_of(peer).iter().copied().filter(|&(at, _)| at != place);
                holders.find(|&(at, end)| suits(&processes[at], end))
            };
            let is_opposite = |_: &Process, end: u32| if fd == 0 { end == 1 || end == 2 } else { end == 0 };
            let is_elder = |other: &Process, _: u32| elders.contains(&other.pid);
            match holder(&is_opposite).or_else(|| holder(&is_elder)) {
                Some(other) if fd == 0 => link(other, (place, fd), inode),
                Some(other) => link((place, fd), other, peer),
                None => {}
            }
        }
    }
    // After a fork, both processes hold both ends. Only their waits show which process uses which end.
    let fd_of =
        |place: usize, inode: u64| holders_of(inode).iter().find(|(at, fd)| *at == place && *fd > 2).map(|(_, fd)| *fd);
    let used: HashSet<(u32, u64)> = uses.iter().map(|&(pid, inode, _)| (pid, inode)).collect();
    for &(pid, inode, direction) in uses {
        let Some(peer) = sockets.get(&inode).and_then(|state| state.peer) else { continue };
        let Some(&place) = place_of.get(&pid) else { continue };
        let Some(fd) = fd_of(place, inode) else { continue };
        let elders = ancestors(pid);
        let related = |other: &u32| elders.contains(other) || ancestors(*other).contains(&pid);
        let mut all: Vec<u32> = holders_of(peer).iter().map(|&(at, _)| processes[at].pid).collect();
        all.dedup();
        all.retain(|other| *other != pid && related(other));
        let other = match &all[..] {
            [only] => Some(*only),
            all => all.iter().copied().find(|&other| used.contains(&(other, peer))),
        };
        let other = other.map(|other| place_of[&other]).and_then(|other| Some((other, fd_of(other, peer)?)));
        match (other, direction) {
            (Some(other), Direction::In) => link(other, (place, fd), inode),
            (Some(other), _) => link((place, fd), other, peer),
            (None, _) => {}
        }
    }
    for (place, end) in found {
        let ends = processes[place].ends.get_or_insert_default();
        if !ends.contains(&end) {
            ends.insert(ends.partition_point(|known| known.fd <= end.fd), end);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn inode(socket: &impl AsRawFd) -> u64 {
        let link = std::fs::read_link(format!("/proc/self/fd/{}", socket.as_raw_fd())).unwrap();
        link.to_str().unwrap().trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap()
    }

    #[test]
    fn both_ends_of_a_pair_are_found_with_their_queues() {
        use std::io::Write;
        let (mut one, other) = UnixStream::pair().unwrap();
        one.write_all(&[1; 100]).unwrap();
        let found = all_sockets(false);
        assert_eq!(found[&inode(&one)].peer, Some(inode(&other)));
        assert_eq!(found[&inode(&other)].peer, Some(inode(&one)));
        assert_eq!(found[&inode(&other)].receive_queue, 100);
    }

    #[test]
    fn both_ends_of_a_local_connection_are_found() {
        use std::io::{Read, Write};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut one = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut other, _) = listener.accept().unwrap();
        other.write_all(&[1; 100]).unwrap();
        one.read_exact(&mut [0; 100]).unwrap();
        let found = all_sockets(true);
        let state = &found[&inode(&one)];
        assert_eq!(state.peer, Some(inode(&other)));
        let tcp = state.tcp.as_ref().unwrap();
        assert_eq!((tcp.remote, tcp.received), (listener.local_addr().unwrap(), 100));
    }

    #[test]
    fn the_other_end_of_a_connected_udp_socket_is_found() {
        for server in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(server) = std::net::UdpSocket::bind(server) else { continue };
            let address = server.local_addr().unwrap();
            let own = std::net::UdpSocket::bind((address.ip(), 0)).unwrap();
            assert_eq!(all_sockets(true).get(&inode(&own)), None);
            own.connect(address).unwrap();
            assert_eq!(all_sockets(true)[&inode(&own)].udp, Some(address));
        }
    }

    #[test]
    fn a_pair_between_an_output_and_an_input_joins_two_children() {
        let (one, other) = UnixStream::pair().unwrap();
        let process = |pid: u32, fd: u32, socket: &UnixStream| {
            let stat = format!("{pid} (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {pid} 0 0");
            let mut process = Process::parse(pid, &stat).unwrap();
            process.others.sockets = vec![(fd, inode(socket))];
            process
        };
        let mut all = [process(1_000_001, 1, &one), process(1_000_002, 0, &other), process(1_000_003, 3, &other)];
        join_socket_pairs(&mut all, &BTreeSet::new());
        let pipe = PipeId::of_socket(inode(&other));
        let end = |fd, direction| Some(vec![PipeEnd { fd, pipe, direction }]);
        assert_eq!((&all[0].ends, &all[1].ends), (&end(1, Direction::Out), &end(0, Direction::In)));
        assert_eq!(all[2].ends, None);
    }

    #[test]
    fn malformed_messages_are_ignored() {
        assert_eq!(messages(&[1, 2, 3]), []);
        assert_eq!(messages(&[255; 16]), []);
        assert_eq!(attribute(&[0, 0, 0, 0], 0, 2), None);
        assert_eq!(tcp_socket(&[2; 20]), None);
        assert_eq!(udp_socket("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt"), None);
        assert_eq!(udp_socket("1: 0100007F:0035 0100:0035 07 0:0 0:0 0 0 0 123"), None);
    }
}
