//! Probes of the hosts of peers that no connection reaches.
//!
//! A host answers by itself, even while its process computes or is stopped: its kernel refuses a
//! TCP connection to a port at which nothing listens, which is a sign of the host; and it refuses a
//! datagram to a socket that no longer exists, which shows that the process has ended.
//!
//! Bounds: a probe waits for [`OPEN_NS`]; there is one for each route to a peer, and [`MOST`] in
//! all.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

/// The time from one probe of a peer to the next, and the longest wait for an answer, in
/// nanoseconds. After a second the kernel repeats a connection request.
const OPEN_NS: u64 = 1_000_000_000;
/// The greatest number of probes that wait for an answer.
const MOST: usize = 64;

/// The socket address of a peer for probes, as the kernels of both hosts know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kernel {
    /// The address from which probes leave. `None`: the kernel chooses.
    pub(crate) from: Option<SocketAddr>,
    pub(crate) to: SocketAddr,
    /// True if the host of the address is to be probed.
    pub(crate) is_host: bool,
    /// True if a socket of the peer's process has this port, which is then probed, too.
    pub(crate) is_socket: bool,
}

/// The probes of all peers, and the latest answers.
#[derive(Debug, Default)]
pub(crate) struct Probes {
    peers: BTreeMap<usize, Asked>,
    open: usize,
}

/// The probes of the hosts of one peer.
#[derive(Debug, Default)]
struct Asked {
    at: u64,
    open: Vec<Question>,
    answered: Option<u64>,
    refused: Option<u64>,
}

/// One probe over one route.
#[derive(Debug)]
struct Question {
    /// A connection to the host that is being made; `None`: it was answered or cannot be made.
    host: Option<OwnedFd>,
    /// A UDP socket that is connected to the socket of the process; `None`: it was refused.
    process: Option<UdpSocket>,
}

/// The answers that the host of a peer has given to probes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answers {
    /// The time of the host's last answer.
    pub(crate) answered: Option<u64>,
    /// The time since which the host has reported that the process has ended.
    pub(crate) refused: Option<u64>,
}

impl Probes {
    /// The answers that have been received about a peer. Starts new probes over the routes if they
    /// are due; probes of the process send the bytes of `datagram`, which the peer accepts as one
    /// of this rank's.
    pub(crate) fn ask(
        &mut self,
        peer: usize,
        routes: impl Iterator<Item = Kernel>,
        mut datagram: impl FnMut() -> Option<Vec<u8>>,
        now: u64,
    ) -> Answers {
        let asked = self.peers.entry(peer).or_default();
        self.open -= asked.open.len();
        asked.read_answers(now);
        if asked.at == 0 || now >= asked.at + OPEN_NS {
            asked.open.clear();
            asked.at = now.max(1);
            for route in routes {
                if self.open + asked.open.len() == MOST {
                    break;
                }
                let host = match call(&route) {
                    Called::Open(socket) => Some(socket),
                    Called::Answered => {
                        asked.answered = Some(now);
                        None
                    }
                    Called::Nobody => None,
                };
                let process = datagram().and_then(|bytes| send(&route, &bytes).ok());
                asked.open.push(Question { host, process });
            }
        }
        self.open += asked.open.len();
        Answers {
            answered: asked.answered,
            refused: asked.refused,
        }
    }

    /// Forgets the probes of a peer, which is reachable again or has been given up.
    pub(crate) fn forget(&mut self, peer: usize) {
        if let Some(asked) = self.peers.remove(&peer) {
            self.open -= asked.open.len();
        }
    }
}

impl Asked {
    fn read_answers(&mut self, now: u64) {
        for question in &mut self.open {
            match question.host.as_ref().map_or(Heard::Nothing, heard) {
                Heard::Nothing => {}
                Heard::Host => {
                    question.host = None;
                    self.answered = Some(now);
                }
                Heard::Network => question.host = None,
            }
            if let Some(socket) = &question.process
                && is_refused(socket)
            {
                question.process = None;
                self.answered = Some(now);
                self.refused = self.refused.or(Some(now));
            }
        }
        let waits = |one: &Question| one.host.is_some() || one.process.is_some();
        self.open.retain(waits);
    }
}

/// The outcome of a connection request to a host that is probed.
enum Heard {
    Nothing,
    /// The peer's host has accepted or refused the request, so the host is alive.
    Host,
    /// The request failed in the network: it reached no host.
    Network,
}

fn heard(socket: &OwnedFd) -> Heard {
    let mut one = [PollFd::new(socket, PollFlags::OUT)];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    if !matches!(rustix::event::poll(&mut one, Some(&at_once)), Ok(1)) {
        return Heard::Nothing;
    }
    match sockopt::socket_error(socket) {
        Ok(Ok(()) | Err(Errno::CONNREFUSED)) => Heard::Host,
        _ => Heard::Network,
    }
}

fn is_refused(socket: &UdpSocket) -> bool {
    let answer = socket.recv(&mut [0; 1]);
    answer.is_err_and(|why| why.kind() == ErrorKind::ConnectionRefused)
}

/// The result of the start of a connection request.
enum Called {
    Open(OwnedFd),
    /// The host has answered during the call, as this host does for itself.
    Answered,
    /// The request cannot leave, or the route is not to be probed.
    Nobody,
}

/// Starts a TCP connection to the address of the route.
fn call(route: &Kernel) -> Called {
    if !route.is_host {
        return Called::Nobody;
    }
    match begin(route) {
        Ok((socket, Ok(()) | Err(Errno::INPROGRESS))) => Called::Open(socket),
        Ok((_, Err(Errno::CONNREFUSED))) => Called::Answered,
        _ => Called::Nobody,
    }
}

/// A new socket, and the result of its connection request.
fn begin(route: &Kernel) -> io::Result<(OwnedFd, rustix::io::Result<()>)> {
    let family = match route.to {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    if let Some(from) = route.from {
        rustix::net::bind(&socket, &from)?;
    }
    let answer = rustix::net::connect(&socket, &route.to);
    Ok((socket, answer))
}

/// Sends a datagram to the socket of the peer's process, from a new socket.
fn send(route: &Kernel, datagram: &[u8]) -> io::Result<UdpSocket> {
    let any = || match route.to.ip() {
        IpAddr::V4(_) => SocketAddr::from(([0; 4], 0)),
        IpAddr::V6(_) => SocketAddr::from(([0u16; 8], 0)),
    };
    if !route.is_socket {
        return Err(ErrorKind::Unsupported.into());
    }
    let socket = UdpSocket::bind(route.from.unwrap_or_else(any))?;
    socket.set_nonblocking(true)?;
    socket.connect(route.to)?;
    socket.send(datagram)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn route(to: SocketAddr) -> Kernel {
        Kernel {
            from: Some((Ipv4Addr::LOCALHOST, 0).into()),
            to,
            is_host: true,
            is_socket: true,
        }
    }

    /// Probes until `is_known`. Each call is one probe later.
    fn ask(probes: &mut Probes, to: SocketAddr, is_known: fn(Answers) -> bool) -> Answers {
        let mut now = 0;
        loop {
            now += OPEN_NS;
            let datagram = || Some(b"sign".to_vec());
            let answers = probes.ask(3, std::iter::once(route(to)), datagram, now);
            if is_known(answers) {
                return answers;
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_host_answers_for_a_process_that_is_stopped_and_refuses_for_one_that_is_gone() {
        let process = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let to = process.local_addr().unwrap();
        let mut probes = Probes::default();
        // Nothing reads the socket, as if the process were stopped.
        let answers = ask(&mut probes, to, |known| known.answered.is_some());
        assert_eq!(answers.refused, None);
        drop(process);
        let answers = ask(&mut probes, to, |known| known.refused.is_some());
        assert!(answers.answered >= answers.refused);
        probes.forget(3);
        assert_eq!((probes.open, probes.peers.len()), (0, 0));
    }

    #[test]
    fn questions_are_few_and_go_out_seldom() {
        let process = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let to = process.local_addr().unwrap();
        let mut probes = Probes::default();
        let mut count = 0;
        let mut ask = |peer, routes: usize, now| {
            let datagram = || {
                count += 1;
                Some(Vec::new())
            };
            probes.ask(peer, (0..routes).map(|_| route(to)), datagram, now);
            count
        };
        assert_eq!(ask(1, 2, 5), 2);
        assert_eq!(ask(1, 2, 6), 2);
        assert_eq!(ask(1, 2, 5 + OPEN_NS), 4);
        assert_eq!(ask(2, 1000, 7), 4 + MOST - 2);
        assert!(probes.open <= MOST);
    }

    #[test]
    fn a_network_that_carries_nothing_gives_no_sign() {
        // 240.0.0.1 is reserved: no host has this address.
        let nowhere = SocketAddr::from(([240, 0, 0, 1], 9));
        let mut probes = Probes::default();
        for now in 1..5 {
            let answers = probes.ask(1, std::iter::once(route(nowhere)), || None, now * OPEN_NS);
            assert_eq!(answers, Answers::default());
        }
    }
}
