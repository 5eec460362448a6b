//! A network interface as a device: its state, and the end of its queue pairs.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use device::{Address, Attributes, Error, InterfaceAddress, MOST_NOTES, Qp, Result, State};
use secret::Secret;

use super::calls::Calls;
use super::events::Poller;
use super::frame::Break;
use super::pair::{Introduction, LastCall, Line, Pair};
use super::port::Port;
use super::queues::{self, CompletionQueue, Place, Written};
use super::regions::Regions;
use super::wire;

/// The memory for bytes whose place is not known yet, in bytes.
pub(super) const STAGING: usize = 16 << 10;

/// A network interface of this host as a device. A request names at most 8 slices of memory, a
/// receive 3.
pub struct TcpDevice {
    pub(super) attributes: Attributes,
    pub(super) own: InterfaceAddress,
    pub(super) start: Instant,
    pub(super) regions: Regions,
    pub(super) cqs: Vec<CompletionQueue>,
    pub(super) srqs: Vec<queues::ReceiveQueue>,
    pub(super) pairs: Vec<Option<Box<Pair>>>,
    pub(super) written: Written,
    pub(super) calls: Calls,
    /// The queue pairs whose peers may call.
    pub(super) awaited: usize,
    /// A peer can come, and the system did not let this device listen.
    pub(super) lacks_listener: bool,
    pub(super) poller: Poller,
    /// The memory that bytes come to whose place is not known yet.
    pub(super) staging: Box<[u8]>,
    /// Connections that are read directly.
    pub(super) hot: Vec<u32>,
    /// Queue pairs whose peers wait for acknowledgements.
    pub(super) owing: Vec<u32>,
    /// Queue pairs with frames that wait for receives.
    pub(super) stalled: Vec<u32>,
    /// All frames are corked.
    pub(super) corks: bool,
    /// Queue pairs with corked frames.
    pub(super) corked: Vec<u32>,
    /// Calls by which frames were handed to the kernel.
    pub(super) departures: u64,
    /// Connections that have ended here and not yet at the peer, with the time of the end.
    pub(super) ending: VecDeque<(OwnedFd, u64)>,
    /// Calls that only tell the peers that their queue pairs have ended.
    pub(super) last_calls: Vec<LastCall>,
    pub(super) polls: u32,
    pub(super) looked_at: u64,
    /// The connections have just been polled for the memory, so that the next poll of a completion
    /// queue need not; and the other way round.
    pub(super) is_fresh: bool,
    pub(super) memory_is_fresh: bool,
    /// The owner sleeps after the next poll, if that finds nothing.
    pub(super) sleeps_soon: bool,
    /// The last poll of the connections has found something.
    pub(super) has_read: bool,
    pub(super) has_connected: bool,
    pub(super) notes: VecDeque<String>,
    /// Words about strangers for the user.
    pub(super) warnings: Vec<String>,
}

impl TcpDevice {
    /// Opens a port as a device. Peers must know the same secret.
    pub fn open(port: &Port, secret: &Secret) -> Result<TcpDevice> {
        let own = port.address;
        let at = own.at(0);
        let open = || -> io::Result<(Calls, Poller)> {
            let calls = Calls::open(at, secret.clone())?;
            Ok((calls, Poller::new()?))
        };
        let (calls, poller) = open().map_err(|why| {
            let (name, ip) = (&port.name, own.ip);
            Error::System(format!("{name}: a port at {ip}: {}", wire::words(&why)))
        })?;
        Ok(TcpDevice {
            attributes: port.attributes(),
            own,
            start: Instant::now(),
            regions: Regions::default(),
            cqs: Vec::new(),
            srqs: Vec::new(),
            pairs: Vec::new(),
            written: Written::default(),
            calls,
            awaited: 0,
            lacks_listener: false,
            poller,
            staging: vec![0; STAGING].into(),
            hot: Vec::new(),
            owing: Vec::new(),
            stalled: Vec::new(),
            corks: false,
            corked: Vec::new(),
            departures: 0,
            ending: VecDeque::new(),
            last_calls: Vec::new(),
            polls: 0,
            looked_at: 0,
            is_fresh: false,
            memory_is_fresh: false,
            sleeps_soon: false,
            has_read: false,
            has_connected: false,
            notes: VecDeque::new(),
            warnings: Vec::new(),
        })
    }

    pub(super) fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// Keeps words about the first stranger for the user.
    pub(super) fn warn(&mut self, words: Option<String>) {
        let name = &self.attributes.name;
        self.warnings
            .extend(words.map(|words| format!("{name}: {words}")));
    }

    /// The number of connections that were dropped because they proved nothing.
    pub fn dropped_strangers(&self) -> u64 {
        self.calls.dropped()
    }

    /// The number of calls so far by which this device handed frames to the kernel.
    pub fn departures(&self) -> u64 {
        self.departures
    }

    /// Keeps words for the owner.
    pub(super) fn note(&mut self, words: String) {
        if self.notes.len() == MOST_NOTES {
            self.notes.pop_front();
        }
        let name = &self.attributes.name;
        self.notes.push_back(format!("{name}: {words}"));
    }

    pub(super) fn invalid<T>(&self, what: String) -> Result<T> {
        let name = &self.attributes.name;
        Err(Error::Invalid(format!("{name}: {what}")))
    }

    pub(super) fn pair(&self, qp: Qp) -> Result<&Pair> {
        match self.pairs.get(qp.0 as usize) {
            Some(Some(pair)) => Ok(pair),
            _ => self.invalid(format!("queue pair {} is not of this device", qp.0)),
        }
    }

    pub(super) fn own_address(&self, qp: u32) -> Address {
        Address {
            port: self.own.bits(),
            qp: u32::from(self.calls.port) << 16 | qp,
        }
    }

    /// A queue pair in its parts.
    #[inline]
    pub(super) fn split(&mut self, at: u32) -> Option<Split<'_>> {
        let Pair {
            qp,
            wanted,
            machine,
            line,
            receives,
            rest,
            is_ready,
            ..
        } = &mut **self.pairs.get_mut(at as usize)?.as_mut()?;
        let receives = match wanted.srq {
            Some(srq) => &mut self.srqs[srq.0 as usize],
            None => receives,
        };
        Some(Split {
            machine,
            line,
            rest,
            is_ready: *is_ready,
            staging: &mut self.staging,
            start: self.start,
            place: Place {
                qp: *qp,
                regions: &self.regions,
                cqs: &mut self.cqs,
                send_cq: wanted.send_cq.0 as usize,
                receive_cq: wanted.receive_cq.0 as usize,
                receives,
                written: &mut self.written,
            },
        })
    }

    /// Ends the connection of a queue pair. Bytes that have left arrive all the same.
    pub(super) fn end_line(&mut self, at: u32) {
        let now = self.now();
        let Some(Some(pair)) = self.pairs.get_mut(at as usize) else {
            return;
        };
        pair.interest = Default::default();
        pair.cork.out();
        let line = std::mem::replace(&mut pair.line, Line::Idle);
        self.hot.retain(|hot| *hot != at);
        self.stalled.retain(|stalled| *stalled != at);
        self.corked.retain(|corked| *corked != at);
        let call = pair.peer.map(|from| Introduction { to: at, from });
        let is_caller = pair.is_caller;
        let was_ready = std::mem::take(&mut pair.is_ready);
        match (line, call) {
            (Line::Open(socket), Some(call)) if !was_ready && !is_caller => {
                // The caller may have reset its queue pair already, and this end is about to.
                self.poller.forget(&socket);
                self.calls.park(call, socket, now);
            }
            (Line::Open(socket), _) => {
                self.poller.forget(&socket);
                wire::end(&socket);
                self.ending.push_back((socket, now));
            }
            (Line::Calling(call), _) => self.call_in_vain(at, call),
            (Line::Idle | Line::Waiting { .. } | Line::Resting { .. } | Line::Gone, _) => {}
        }
    }

    /// Ends a queue pair: everything posted completes, the first request with the reason.
    #[cold]
    pub(super) fn fail(&mut self, at: u32, why: Break) {
        let Some(Split {
            machine,
            mut place,
            line,
            ..
        }) = self.split(at)
        else {
            return;
        };
        machine.fail(why, &mut place);
        if let (Line::Open(socket), Break::Refuse(_)) = (&*line, why) {
            let mut pieces = [super::frame::Piece::Bytes(&[]); 1];
            if let Ok(1) = machine.outgoing().gather(&place, &mut pieces) {
                // A peer that does not get it finds the connection ended.
                let _ = wire::send(socket.as_fd(), &pieces);
            }
        }
        if let Some(Some(pair)) = self.pairs.get_mut(at as usize) {
            pair.state = State::Error;
            let is_shared = pair.wanted.srq.is_some();
            if let Some(mut split) = self.split(at).filter(|_| !is_shared) {
                split.place.flush_receives();
            }
        }
        if let Break::Protocol(what) = why {
            let qp = at;
            self.note(format!(
                "queue pair {qp}: the peer broke the protocol: {what}"
            ));
        }
        self.end_line(at);
        self.update_listener(at);
        self.has_connected = true;
    }
}

/// A queue pair in its parts.
pub(super) struct Split<'a> {
    pub machine: &'a mut super::frame::Machine,
    pub line: &'a mut Line,
    pub rest: &'a mut Vec<u8>,
    /// Frames may leave.
    pub is_ready: bool,
    pub staging: &'a mut [u8],
    pub start: Instant,
    pub place: Place<'a>,
}
