//! The state of a device over TCP, one network interface, and the end of its queue pairs.

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

/// The length of the memory for received bytes whose destination is not known yet, in bytes.
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
    /// The number of queue pairs whose peers may connect to this device.
    pub(super) awaited: usize,
    /// True if a peer can come, and the system did not let this device listen.
    pub(super) lacks_listener: bool,
    pub(super) poller: Poller,
    /// Memory for received bytes until their destination is known.
    pub(super) staging: Box<[u8]>,
    /// The queue pairs whose connections are read with every poll of the device.
    pub(super) hot: Vec<u32>,
    /// Queue pairs whose peers wait for acknowledgements.
    pub(super) owing: Vec<u32>,
    /// Queue pairs with frames that wait for receives.
    pub(super) stalled: Vec<u32>,
    /// True if all frames wait for those behind them: between `cork` and `uncork`.
    pub(super) corks: bool,
    /// The queue pairs with corked frames.
    pub(super) corked: Vec<u32>,
    /// The number of system calls by which frames were handed to the kernel.
    pub(super) departures: u64,
    /// Connections that this end has ended and the peer has not, with the times of their ends.
    pub(super) ending: VecDeque<(OwnedFd, u64)>,
    /// Calls that their queue pairs no longer need, and that continue only for the peers.
    pub(super) last_calls: Vec<LastCall>,
    pub(super) polls: u32,
    pub(super) looked_at: u64,
    /// True if a poll for the memory has just polled the connections, so that the next poll of a
    /// completion queue need not.
    pub(super) is_fresh: bool,
    /// True if a poll of a completion queue has just read from the connections, so that the next
    /// poll for the memory need not.
    pub(super) memory_is_fresh: bool,
    /// True if the owner sleeps after the next poll, if that finds nothing.
    pub(super) sleeps_soon: bool,
    /// True if the last poll of the connections has received something.
    pub(super) has_read: bool,
    pub(super) has_connected: bool,
    pub(super) notes: VecDeque<String>,
    /// Warnings about strangers, for the user.
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

    /// Keeps a warning for the user about the first stranger.
    pub(super) fn warn(&mut self, words: Option<String>) {
        let name = &self.attributes.name;
        self.warnings
            .extend(words.map(|words| format!("{name}: {words}")));
    }

    /// The number of connections that were dropped because they proved nothing.
    pub fn dropped_strangers(&self) -> u64 {
        self.calls.dropped()
    }

    /// The number of system calls by which this device has handed frames to the kernel.
    pub fn departures(&self) -> u64 {
        self.departures
    }

    /// Keeps a report until the owner of the device takes it.
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

    /// The parts of a queue pair, borrowed separately. `None`: the queue pair is gone.
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

    /// Ends a queue pair: everything posted completes, the first request with the status for `why`.
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

/// The parts of a queue pair, as separate mutable borrows.
pub(super) struct Split<'a> {
    pub machine: &'a mut super::frame::Machine,
    pub line: &'a mut Line,
    pub rest: &'a mut Vec<u8>,
    /// True if frames may leave: the connection is ready.
    pub is_ready: bool,
    pub staging: &'a mut [u8],
    pub start: Instant,
    pub place: Place<'a>,
}
