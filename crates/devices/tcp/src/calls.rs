//! Incoming connections until a queue pair takes them: strangers are dropped, and calls that come
//! early are parked.
//!
//! Bounds: [`MOST_UNPROVEN`] connections may be without a proof, each for [`PATIENCE_NS`]; with
//! more, the oldest is dropped. A peer that has proved its membership is parked once for each pair
//! of ends; a newer call replaces the older one.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};

use secret::Secret;
use secret::hello::{CALL, Listener, PROOF, Refused};

use super::pair::{HELLO, Introduction};
use super::wire;

/// The greatest number of incoming connections whose callers have not proved their knowledge of the
/// job's secret.
pub(crate) const MOST_UNPROVEN: usize = 64;
/// The longest time from the acceptance of a connection until its caller has proved its knowledge
/// of the job's secret, in nanoseconds.
const PATIENCE_NS: u64 = 2_000_000_000;
/// The most connections that are accepted before other work is done.
const AT_ONCE: usize = 16;
/// The greatest number of parked calls: connections of proven callers that no queue pair has taken.
const MOST_PARKED: usize = 1 << 16;

/// The listener of a device, and the calls that no queue pair has taken yet.
#[derive(Debug)]
pub(crate) struct Calls {
    pub port: u16,
    /// The socket that holds the device's port while there is no listener.
    held: OwnedFd,
    listener: Option<OwnedFd>,
    secret: Secret,
    unproven: VecDeque<Unproven>,
    next: u32,
    /// The parked calls, whose callers have proved themselves, each with the time of its arrival.
    parked: HashMap<Introduction, (OwnedFd, u64)>,
    /// The number of connections that were dropped because they proved nothing.
    strangers: u64,
}

#[derive(Debug)]
struct Unproven {
    number: u32,
    socket: OwnedFd,
    from: Option<SocketAddr>,
    since: u64,
    /// The state of the handshake once the call has been answered: the proof is expected. `None`:
    /// the call is expected.
    listener: Option<Listener>,
    bytes: [u8; HELLO],
    have: usize,
}

/// The state of the handshake of an incoming connection after its socket has been read again.
enum Progress {
    Waits,
    Proven([u8; 32]),
    Refused(String),
}

impl Calls {
    pub(crate) fn open(at: SocketAddr, secret: Secret) -> io::Result<Calls> {
        let held = wire::hold(at)?;
        Ok(Calls {
            port: wire::port_of(&held)?,
            held,
            listener: None,
            secret,
            unproven: VecDeque::new(),
            next: 0,
            parked: HashMap::new(),
            strangers: 0,
        })
    }

    pub(crate) fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Begins to listen, and returns the new socket. `None`: the device listens already.
    pub(crate) fn listen(&mut self) -> io::Result<Option<&OwnedFd>> {
        if self.listener.is_some() {
            return Ok(None);
        }
        let listener = wire::listen(&self.held)?;
        Ok(Some(self.listener.insert(listener)))
    }

    /// Stops listening for connections. The kernel refuses further callers.
    pub(crate) fn close(&mut self) {
        self.listener = None;
    }

    /// The number of connections that were dropped because they proved nothing.
    pub(crate) fn dropped(&self) -> u64 {
        self.strangers
    }

    /// The addresses of callers that have not yet proved their knowledge of the job's secret;
    /// `None` for an unknown one.
    pub(crate) fn unproven(&self) -> impl Iterator<Item = Option<SocketAddr>> {
        self.unproven.iter().map(|one| one.from)
    }

    /// Accepts connections. `watch` gets the number and the socket of each; false: the system
    /// cannot watch it. Returns the addresses of the callers, and a warning for the user if the
    /// first stranger was dropped.
    pub(crate) fn accept(
        &mut self,
        now: u64,
        mut watch: impl FnMut(u32, &OwnedFd) -> bool,
    ) -> (Vec<SocketAddr>, Option<String>) {
        let mut origins = Vec::new();
        let mut words = None;
        for _ in 0..AT_ONCE {
            // An error: a connection that has ended meanwhile, or a lack of descriptors. The next
            // connections are accepted later.
            let taken = self.listener.as_ref().map(wire::accept);
            let Some(Ok((socket, from))) = taken else {
                break;
            };
            let number = self.next;
            self.next = (self.next + 1) & (u32::MAX >> 4);
            if wire::prepare(&socket).is_err() || !watch(number, &socket) {
                let why = "the system watches no more sockets";
                words = self.drop_stranger(from, why).or(words);
                continue;
            }
            origins.extend(from);
            words = self.admit(number, socket, from, now).or(words);
        }
        (origins, words)
    }

    /// Keeps a new connection until its caller has proved its knowledge of the job's secret. If too
    /// many such connections wait, the oldest is closed. Returns a warning if that was the first
    /// stranger.
    pub(crate) fn admit(
        &mut self,
        number: u32,
        socket: OwnedFd,
        from: Option<SocketAddr>,
        now: u64,
    ) -> Option<String> {
        let mut words = None;
        if self.unproven.len() == MOST_UNPROVEN
            && let Some(oldest) = self.unproven.pop_front()
        {
            let why = "newer connections need its place";
            words = self.drop_stranger(oldest.from, why);
        }
        self.unproven.push_back(Unproven {
            number,
            socket,
            from,
            since: now,
            listener: None,
            bytes: [0; HELLO],
            have: 0,
        });
        words
    }

    /// Progresses the hello of a connection. Returns the introduction and the socket of a caller
    /// that has proved itself, and a warning if the first stranger was dropped.
    pub(crate) fn progress_hello(
        &mut self,
        number: u32,
    ) -> (Option<(Introduction, OwnedFd)>, Option<String>) {
        let Some(at) = self.unproven.iter().position(|one| one.number == number) else {
            return (None, None);
        };
        let progress = self.unproven[at].progress_hello(&self.secret);
        let one = match progress {
            Progress::Waits => return (None, None),
            Progress::Proven(_) | Progress::Refused(_) => self.unproven.remove(at),
        };
        match (progress, one) {
            (Progress::Proven(bytes), Some(one)) => {
                (Some((Introduction::decode(&bytes), one.socket)), None)
            }
            (Progress::Refused(why), Some(one)) => (None, self.drop_stranger(one.from, &why)),
            _ => (None, None),
        }
    }

    /// True if no connection waits for a proof, and no call is parked.
    pub(crate) fn all_settled(&self) -> bool {
        self.unproven.is_empty() && self.parked.is_empty()
    }

    /// Drops the connections that have taken too long. The device must have read the bytes of
    /// hellos that have arrived, because this rank may have computed meanwhile. `is_of_job`: a rank
    /// of the job has this address. On a busy machine such a rank may be silent for that time, and
    /// calls again.
    pub(crate) fn expire(
        &mut self,
        now: u64,
        is_of_job: impl Fn(IpAddr) -> bool,
    ) -> Option<String> {
        let mut words = None;
        while let Some(oldest) = self.unproven.front() {
            if now.saturating_sub(oldest.since) < PATIENCE_NS {
                break;
            }
            if let Some(oldest) = self.unproven.pop_front() {
                let is_known = oldest.from.is_some_and(|from| is_of_job(from.ip()));
                let why = match is_known {
                    true => {
                        "it was silent for 2 s; ranks of this job have that address too, and call again if they got no processor time"
                    }
                    false => "it was silent for 2 s",
                };
                words = self.drop_stranger(oldest.from, why).or(words);
            }
        }
        words
    }

    /// Counts a stranger. Returns a warning for the user if it is the first.
    fn drop_stranger(&mut self, from: Option<SocketAddr>, why: &str) -> Option<String> {
        self.strangers += 1;
        let from = from.map_or("an unknown address".into(), |from| from.to_string());
        (self.strangers == 1).then(|| {
            format!("a connection from {from} was dropped: {why}; later ones are only counted")
        })
    }

    /// Keeps a proven connection until its queue pair takes it.
    pub(crate) fn park(&mut self, call: Introduction, socket: OwnedFd, now: u64) {
        if self.parked.len() < MOST_PARKED || self.parked.contains_key(&call) {
            self.parked.insert(call, (socket, now));
        }
    }

    /// Takes the parked call with this introduction. `None`: there is none, or its connection has
    /// ended.
    pub(crate) fn unpark(&mut self, call: &Introduction) -> Option<OwnedFd> {
        let (socket, _) = self.parked.remove(call)?;
        (!wire::is_over(&socket)).then_some(socket)
    }

    /// Removes the calls that were parked before the time `before` and whose queue pairs have
    /// failed or are gone. Returns their sockets.
    pub(crate) fn unanswered(
        &mut self,
        before: u64,
        answers: impl Fn(u32) -> bool,
    ) -> Vec<OwnedFd> {
        let is_hopeless = |call: &Introduction, (_, since): &mut (OwnedFd, u64)| {
            *since < before && !answers(call.to)
        };
        let hopeless = self.parked.extract_if(is_hopeless);
        hopeless.map(|(_, (socket, _))| socket).collect()
    }

    /// Drops the accepted connections that wait for a queue pair which is gone.
    pub(crate) fn forget(&mut self, to: u32) {
        self.parked.retain(|call, _| call.to != to);
    }
}

impl Unproven {
    fn progress_hello(&mut self, secret: &Secret) -> Progress {
        loop {
            let len = match self.listener {
                None => CALL,
                Some(_) => PROOF,
            };
            let place = &mut self.bytes[self.have..len];
            match wire::receive_bytes(self.socket.as_fd(), place) {
                Ok(None) => return Progress::Waits,
                Ok(Some(0)) => return Progress::Refused("it ended the connection".into()),
                Ok(Some(count)) => self.have += count,
                Err(why) => return Progress::Refused(wire::words(&why)),
            }
            if self.have < len {
                continue;
            }
            self.have = 0;
            match self.go_on(secret) {
                Ok(None) => {}
                Ok(Some(introduction)) => return Progress::Proven(introduction),
                Err(why) => return Progress::Refused(why.to_string()),
            }
        }
    }

    /// Handles a complete message of the hello. Returns the introduction once the proof is
    /// accepted.
    fn go_on(&mut self, secret: &Secret) -> Result<Option<[u8; 32]>, Refused> {
        if let Some(listener) = self.listener.take() {
            let mut proof = [0; PROOF];
            proof.copy_from_slice(&self.bytes[..PROOF]);
            return listener.check_proof(&proof).map(Some);
        }
        let mut call = [0; CALL];
        call.copy_from_slice(&self.bytes[..CALL]);
        let (listener, answer) = Listener::answer(secret, &call)?;
        // A new connection has room for it.
        match wire::send_bytes(self.socket.as_fd(), &answer) {
            Ok(sent) if sent == answer.len() => {
                self.listener = Some(listener);
                Ok(None)
            }
            _ => Err(Refused::Stranger),
        }
    }
}
