//! The sockets of one agent in the tree: listeners and callers, the call of the parent, and the
//! links to children and parent.
//!
//! Invariants: a listener is closed as soon as all children have come; no frame of a peer is read
//! before it has proved that it knows the job's secret; after a failure nothing is open, and the
//! launcher hears the reason once.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};
use secret::Secret;
use secret::admission::{Admitted, Call, Callers, INTRODUCTION};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{TreeOrder, TreeReport};
use crate::agent::frame::{FromAgent, LONGEST, ToAgent};
use crate::agent::link::FrameLink;
use crate::agent::liveness::Liveness;
use crate::error::why_text;
use crate::exchange::{Down, Up};

/// The beginning of an agent's introduction. The number of its host follows.
const INTRODUCED: [u8; INTRODUCTION - 8] = *b"fishplate tree of agents";

/// The bytes on their way to a child from which on it has failed.
const BACKLOG: usize = 64 << 20;

/// The place of an agent in the tree, and its secret.
pub(crate) struct TreePlace {
    /// The number of this agent's host.
    pub host: usize,
    /// The hosts of its children.
    pub children: Range<usize>,
    pub secret: Secret,
    /// The longest silence of a peer. Zero: for ever.
    pub patience: Duration,
}

/// The connections of one agent.
pub(crate) struct TreeLinks {
    place: TreePlace,
    listeners: Vec<(TcpListener, Callers)>,
    call: Option<ParentCall>,
    parent: Option<Peer>,
    children: Vec<Option<Peer>>,
    is_used: bool,
    has_failed: bool,
    reports: Vec<TreeReport>,
}

/// The call of the parent, until it has proved itself.
struct ParentCall {
    stream: TcpStream,
    at: SocketAddr,
    /// None until the connection is made.
    hello: Option<Call>,
}

/// A connection to another agent.
struct Peer {
    link: FrameLink,
    liveness: Liveness,
}

/// A message that has arrived.
pub(crate) enum TreeMessage {
    /// From the child at this place among the children.
    FromChild(usize, Up),
    FromParent(Down),
}

impl TreeLinks {
    pub(crate) fn new(place: TreePlace) -> Self {
        TreeLinks {
            children: place.children.clone().map(|_| None).collect(),
            place,
            listeners: Vec::new(),
            call: None,
            parent: None,
            is_used: false,
            has_failed: false,
            reports: Vec::new(),
        }
    }

    /// Whether messages for the launcher go to another agent.
    pub(crate) fn has_parent(&self) -> bool {
        self.is_used && self.parent.is_some()
    }

    /// Whether the launcher has ordered to use the tree.
    pub(crate) fn is_used(&self) -> bool {
        self.is_used
    }

    /// Follows an order of the launcher.
    pub(crate) fn follow(&mut self, order: TreeOrder) {
        match order {
            TreeOrder::Listen(addresses) => match listen(&addresses) {
                Ok((listeners, at)) => {
                    let callers = listeners.into_iter();
                    self.listeners = callers.map(|one| (one, Callers::default())).collect();
                    self.reports.push(TreeReport::Listening(at));
                }
                Err(why) => self.fail(format!("cannot listen for agents: {}", why_text(&why))),
            },
            TreeOrder::Join(at) => match begin_connect(at) {
                Ok(stream) => {
                    self.call = Some(ParentCall {
                        stream,
                        at,
                        hello: None,
                    });
                }
                Err(why) => self.fail(format!("cannot reach {at}: {}", why_text(&why))),
            },
            TreeOrder::Use => self.is_used = !self.has_failed,
            TreeOrder::Leave => self.leave(),
        }
    }

    /// Closes all connections.
    pub(crate) fn leave(&mut self) {
        self.listeners.clear();
        self.call = None;
        self.parent = None;
        self.children.fill_with(|| None);
        self.is_used = false;
        self.has_failed = true;
    }

    /// Closes all connections because a peer breaks the rules.
    pub(crate) fn break_off(&mut self, why: String) {
        self.fail(format!("an agent breaks the rules of the tree: {why}"));
    }

    fn fail(&mut self, why: String) {
        if !self.has_failed {
            self.leave();
            self.reports.push(TreeReport::Failed(why));
        }
    }

    /// Takes the reports for the launcher.
    pub(crate) fn take_reports(&mut self) -> Vec<TreeReport> {
        std::mem::take(&mut self.reports)
    }

    /// The descriptors to poll. Children are heard while `may_hear`.
    pub(crate) fn wanted(&self, may_hear: bool) -> Vec<PollFd<'_>> {
        let mut wanted = Vec::new();
        for (listener, callers) in &self.listeners {
            wanted.push(PollFd::new(listener, PollFlags::IN));
            wanted.extend(callers.waiting().map(|one| PollFd::new(one, PollFlags::IN)));
        }
        wanted.extend(self.call.iter().map(|call| match call.hello {
            None => PollFd::new(&call.stream, PollFlags::OUT),
            Some(_) => PollFd::new(&call.stream, PollFlags::IN),
        }));
        let children = self.children.iter().flatten();
        let children = children.map(|peer| (peer, may_hear));
        let parent = self.parent.iter().map(|peer| (peer, true));
        for (peer, is_heard) in children.chain(parent) {
            let link = peer.link.wanted();
            let link = link.filter(|(_, flags)| is_heard || *flags == PollFlags::OUT);
            wanted.extend(link.map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)));
        }
        wanted
    }

    /// The time of the next look.
    pub(crate) fn next(&self) -> Option<Instant> {
        let callers = self.listeners.iter().filter_map(|(_, one)| one.next());
        let peers = self.children.iter().flatten().chain(&self.parent);
        callers
            .chain(peers.filter_map(|peer| peer.liveness.next()))
            .min()
    }

    /// The bytes that wait for the parent.
    pub(crate) fn backlog(&self) -> usize {
        self.parent.as_ref().map_or(0, |peer| peer.link.backlog())
    }

    /// Takes new connections, and reads the messages that have arrived. Children are heard while
    /// `may_hear`.
    pub(crate) fn step(&mut self, may_hear: bool, now: Instant) -> Vec<TreeMessage> {
        self.hear_callers(now);
        self.step_call(now);
        let mut messages = Vec::new();
        let mut failed = None;
        for (place, peer) in self.children.iter_mut().enumerate() {
            let Some(peer) = peer.as_mut() else { continue };
            let heard = peer.step(may_hear, now, &ToAgent::Beat, |frame| {
                match frame {
                    FromAgent::Up(up) => messages.push(TreeMessage::FromChild(place, up)),
                    FromAgent::Beat => {}
                    _ => return Err("it has sent a frame that is for the launcher".into()),
                }
                Ok(())
            });
            if let Err(why) = heard {
                let host = self.place.children.start + place;
                failed = Some(format!(
                    "the connection of agents {} and {host}: {why}",
                    self.place.host
                ));
            }
        }
        if let Some(peer) = &mut self.parent {
            let heard = peer.step(true, now, &FromAgent::Beat, |frame| {
                match frame {
                    ToAgent::Down(down) => messages.push(TreeMessage::FromParent(down)),
                    ToAgent::Beat => {}
                    _ => return Err("it has sent a frame that only the launcher sends".into()),
                }
                Ok(())
            });
            if let Err(why) = heard {
                failed = Some(format!(
                    "the connection of agent {} to its parent: {why}",
                    self.place.host
                ));
            }
        }
        if let Some(why) = failed {
            self.fail(why);
        }
        messages
    }

    /// Sends a message to the parent.
    pub(crate) fn send_up(&mut self, up: Up) {
        if let Some(peer) = &mut self.parent {
            for up in up.frames() {
                peer.link.post(&FromAgent::Up(up));
            }
        }
    }

    /// Sends a message to the child at this place.
    pub(crate) fn send_down(&mut self, place: usize, down: Down) {
        let Some(peer) = &mut self.children[place] else {
            return;
        };
        for down in down.frames() {
            peer.link.post(&ToAgent::Down(down));
        }
        if peer.link.backlog() > BACKLOG {
            self.fail("an agent does not read".into());
        }
    }

    fn hear_callers(&mut self, now: Instant) {
        let mut listeners = std::mem::take(&mut self.listeners);
        for (listener, callers) in &mut listeners {
            loop {
                match callers.hear(listener, &self.place.secret, now) {
                    Ok(Some(admitted)) => self.admit(admitted, now),
                    Ok(None) => break,
                    Err(why) => {
                        return self.fail(format!("cannot listen for agents: {}", why_text(&why)));
                    }
                }
            }
        }
        let is_complete = self.children.iter().all(Option::is_some);
        match is_complete && !listeners.is_empty() {
            true => self.reports.push(TreeReport::Complete),
            false => self.listeners = listeners,
        }
    }

    /// Takes a child. A process of the job that is none, or has come before, is sent away.
    fn admit(&mut self, admitted: Admitted, now: Instant) {
        let host = (self.place.children.clone())
            .position(|host| introduction(host) == admitted.introduction);
        let Some(place) = host.filter(|&place| self.children[place].is_none()) else {
            return;
        };
        self.children[place] = Peer::new(admitted.stream, self.place.patience, now).ok();
    }

    fn step_call(&mut self, now: Instant) {
        let Some(mut call) = self.call.take() else {
            return;
        };
        match call.step(&self.place) {
            Ok(false) => self.call = Some(call),
            Ok(true) => match Peer::new(call.stream, self.place.patience, now) {
                Ok(peer) => self.parent = Some(peer),
                Err(why) => self.fail(format!("the connection to {}: {}", call.at, why_text(&why))),
            },
            Err(why) => self.fail(format!("cannot reach {}: {}", call.at, why_text(&why))),
        }
    }
}

impl ParentCall {
    /// Goes on as far as possible. True: the parent has proved itself.
    fn step(&mut self, place: &TreePlace) -> io::Result<bool> {
        if self.hello.is_none() {
            let mut wanted = [PollFd::new(&self.stream, PollFlags::OUT)];
            if poll(&mut wanted, Some(&Timespec::default())) == Ok(0) {
                return Ok(false);
            }
            sockopt::socket_error(&self.stream)??;
            let introduction = introduction(place.host);
            self.hello = Some(Call::begin(&mut self.stream, &place.secret, introduction)?);
        }
        match &mut self.hello {
            Some(hello) => hello.step(&mut self.stream),
            None => Ok(false),
        }
    }
}

impl Peer {
    fn new(stream: TcpStream, patience: Duration, now: Instant) -> io::Result<Peer> {
        stream.set_nodelay(true)?;
        let writer = OwnedFd::from(stream.try_clone()?);
        Ok(Peer {
            link: FrameLink::new(stream.into(), writer, LONGEST)?,
            liveness: Liveness::new(patience, now),
        })
    }

    /// Reads and writes what can be, and sends signs of life. The error is the reason why the
    /// connection is lost.
    fn step<T: DeserializeOwned>(
        &mut self,
        may_hear: bool,
        now: Instant,
        beat: &impl Serialize,
        mut take: impl FnMut(T) -> Result<(), String>,
    ) -> Result<(), String> {
        self.link.flush();
        if may_hear && self.link.pull() {
            self.liveness.heard(now);
        }
        while let Some(frame) = self.link.next()? {
            take(frame)?;
        }
        if self.link.is_at_end() {
            return Err("it is closed".into());
        }
        // A peer whose words wait here is not silent.
        if !may_hear {
            self.liveness.heard(now);
        }
        let outlook = self.liveness.look(now);
        if outlook.beat {
            self.link.post(beat);
        }
        match outlook.is_dead {
            true => Err(format!(
                "silent for {} s",
                self.liveness.patience().as_secs_f64()
            )),
            false => Ok(()),
        }
    }
}

fn introduction(host: usize) -> [u8; INTRODUCTION] {
    let mut introduction = [0; INTRODUCTION];
    introduction[..INTRODUCED.len()].copy_from_slice(&INTRODUCED);
    introduction[INTRODUCED.len()..].copy_from_slice(&(host as u64).to_le_bytes());
    introduction
}

fn listen(addresses: &[IpAddr]) -> io::Result<(Vec<TcpListener>, Vec<SocketAddr>)> {
    let mut listeners = Vec::new();
    let mut at = Vec::new();
    for &address in addresses {
        let listener = TcpListener::bind((address, 0))?;
        listener.set_nonblocking(true)?;
        at.push(listener.local_addr()?);
        listeners.push(listener);
    }
    Ok((listeners, at))
}

/// Begins a connection, without waiting for it.
fn begin_connect(at: SocketAddr) -> io::Result<TcpStream> {
    let family = match at {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    match connect(socket.as_fd(), &at) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(socket.into()),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
#[path = "links_tests.rs"]
mod tests;
