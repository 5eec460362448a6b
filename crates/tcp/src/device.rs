//! The verbs of a device over TCP.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use device::check;
use device::{
    Access, Address, Attributes, Completed, Completion, Cq, Device, Ending, Error,
    InterfaceAddress, MOST_NOTES, Operation, Qp, QpWanted, ReceiveQueue, Region, Result, Slice,
    Srq, State, Transport, Work,
};
use secret::Secret;

use super::calls::Calls;
use super::events::Poller;
use super::frame::{Break, Done, Host, MOST_REQUESTS, RECEIVE_SLICES, Receive, Right};
use super::pair::{Introduction, LastCall, Line, Pair};
use super::port::Port;
use super::queues::{self, CompletionQueue, Place, Written};
use super::regions::Regions;
use super::wire;

/// The most queue pairs of a device: their numbers have half of an address's 32 bits, the other
/// half is the port of the listener.
const PAIRS: usize = 1 << 16;
/// The most slices of a request.
const SEND_SLICES: usize = 8;
/// The deepest queue.
const DEEPEST: usize = 1 << 20;

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
    pub(super) poller: Poller,
    /// The memory that bytes come to whose place is not known yet.
    pub(super) staging: Box<[u8]>,
    /// Connections that are read directly.
    pub(super) hot: Vec<u32>,
    /// Queue pairs whose peers wait for acknowledgements.
    pub(super) owing: Vec<u32>,
    /// Queue pairs with frames that wait for receives.
    pub(super) stalled: Vec<u32>,
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
            let poller = Poller::new(&calls.listener)?;
            Ok((calls, poller))
        };
        let (calls, poller) = open().map_err(|why| {
            let (name, ip) = (&port.name, own.ip);
            Error::System(format!("{name}: listening at {ip}: {}", words(&why)))
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
            poller,
            staging: vec![0; super::progress::STAGING].into(),
            hot: Vec::new(),
            owing: Vec::new(),
            stalled: Vec::new(),
            ending: VecDeque::new(),
            last_calls: Vec::new(),
            polls: 0,
            looked_at: 0,
            is_fresh: false,
            memory_is_fresh: false,
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
    pub fn strangers(&self) -> u64 {
        self.calls.strangers()
    }

    /// Keeps words for the owner.
    pub(super) fn note(&mut self, words: String) {
        if self.notes.len() == MOST_NOTES {
            self.notes.pop_front();
        }
        let name = &self.attributes.name;
        self.notes.push_back(format!("{name}: {words}"));
    }

    fn invalid<T>(&self, what: String) -> Result<T> {
        let name = &self.attributes.name;
        Err(Error::Invalid(format!("{name}: {what}")))
    }

    fn pair(&self, qp: Qp) -> Result<&Pair> {
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

    /// Ends the life of a queue pair's connection. What has left arrives all the same.
    pub(super) fn end_line(&mut self, at: u32) {
        let now = self.now();
        let Some(Some(pair)) = self.pairs.get_mut(at as usize) else {
            return;
        };
        pair.interest = Default::default();
        let line = std::mem::replace(&mut pair.line, Line::Idle);
        self.hot.retain(|hot| *hot != at);
        self.stalled.retain(|stalled| *stalled != at);
        let call = pair.peer.map(|from| Introduction { to: at, from });
        let is_caller = pair.is_caller;
        let was_ready = std::mem::take(&mut pair.is_ready);
        match (line, call) {
            (Line::Open(socket), Some(call)) if !was_ready && !is_caller => {
                // The caller may be in its next life already, and this end soon.
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
        self.has_connected = true;
    }

    /// Checks the memory of a request.
    #[inline]
    fn check_memory(&self, work: &Work) -> bool {
        if work.inline {
            return true;
        }
        let right = match work.operation {
            Operation::Write { .. } | Operation::Send { .. } => Right::LocalRead,
            _ => Right::LocalWrite,
        };
        let mut slices = work.local.iter().filter(|slice| slice.len > 0);
        slices.all(|slice| {
            let Slice { address, len, lkey } = *slice;
            self.regions.allows(lkey, address, len.into(), right)
        })
    }

    /// Puts a request that will not be executed behind those before it.
    #[cold]
    fn post_in_vain(&mut self, at: u32, work: &Work, why: Vain) {
        let of = completed(&work.operation);
        let Some(Split {
            machine, mut place, ..
        }) = self.split(at)
        else {
            return;
        };
        let end = match why {
            Vain::Flushed => {
                let done = Done {
                    id: work.id,
                    of,
                    status: device::Status::Flushed,
                    bytes: 0,
                    immediate: None,
                    retires: 1,
                };
                place.complete(done, false);
                return;
            }
            Vain::BadMemory => {
                let status = device::Status::LocalProtection;
                machine.fail_locally(work, of, status, &mut place)
            }
            Vain::Gone => {
                machine.begin(work, 0);
                Err(Break::Lost)
            }
        };
        if let Err(why) = end {
            self.fail(at, why);
        }
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

/// The reason why a request is not executed.
enum Vain {
    /// The queue pair is in the state ERROR.
    Flushed,
    /// A local key does not allow the access.
    BadMemory,
    /// The connection has ended.
    Gone,
}

fn completed(operation: &Operation) -> Completed {
    match operation {
        Operation::Write { .. } => Completed::Write,
        Operation::Send { .. } => Completed::Send,
        Operation::Read { .. } => Completed::Read,
        Operation::CompareAndSwap { .. } | Operation::FetchAndAdd { .. } => Completed::Atomic,
    }
}

/// An error of the system in its words, without its number.
pub(super) fn words(why: &io::Error) -> String {
    let text = why.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_string(),
        None => text,
    }
}

impl Device for TcpDevice {
    fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    unsafe fn register(&mut self, address: *mut u8, len: usize, access: Access) -> Result<Region> {
        let address = address as u64;
        check::register(address, len, access).or_else(|why| self.invalid(why))?;
        match self.regions.add(address, len as u64, access) {
            Some(region) => Ok(region),
            None => self.invalid("it holds no more regions".into()),
        }
    }

    fn deregister(&mut self, region: Region) -> Result<()> {
        match self.regions.remove(region.lkey) {
            true => Ok(()),
            false => self.invalid(format!("key {:#x} is of no region of it", region.lkey)),
        }
    }

    fn create_cq(&mut self, depth: usize) -> Result<Cq> {
        if depth > DEEPEST {
            return self.invalid(format!("{depth} completions; it holds at most {DEEPEST}"));
        }
        self.cqs.push(CompletionQueue::default());
        Ok(Cq(self.cqs.len() as u32 - 1))
    }

    fn create_srq(&mut self, depth: usize) -> Result<Srq> {
        if depth > DEEPEST {
            return self.invalid(format!("{depth} receives; it holds at most {DEEPEST}"));
        }
        self.srqs.push(queues::ReceiveQueue::new(depth));
        Ok(Srq(self.srqs.len() as u32 - 1))
    }

    fn create_qp(&mut self, wanted: &QpWanted) -> Result<Qp> {
        check::shares(wanted.transport, wanted.srq.is_some()).or_else(|why| self.invalid(why))?;
        if wanted.transport != Transport::Rc {
            return self.invalid("it has reliable connections only".into());
        }
        let most = self.attributes.inline;
        if wanted.inline > most {
            let inline = wanted.inline;
            return self.invalid(format!("{inline} bytes inline; it takes at most {most}"));
        }
        if wanted.sends > MOST_REQUESTS || wanted.receives > DEEPEST {
            let (sends, receives) = (wanted.sends, wanted.receives);
            return self.invalid(format!(
                "{sends} sends and {receives} receives; it holds at most {MOST_REQUESTS} and {DEEPEST}"
            ));
        }
        let has = |number: Cq| (number.0 as usize) < self.cqs.len();
        if !has(wanted.send_cq) || !has(wanted.receive_cq) {
            return self.invalid("a completion queue that is not of this device".into());
        }
        if wanted
            .srq
            .is_some_and(|srq| srq.0 as usize >= self.srqs.len())
        {
            return self.invalid("a shared receive queue that is not of this device".into());
        }
        if self.pairs.len() == PAIRS {
            return self.invalid(format!("it has had {PAIRS} queue pairs"));
        }
        let qp = Qp(self.pairs.len() as u32);
        self.pairs.push(Some(Box::new(Pair::new(qp, wanted))));
        Ok(qp)
    }

    fn destroy_qp(&mut self, qp: Qp) -> Result<()> {
        self.pair(qp)?;
        self.end_line(qp.0);
        self.owing.retain(|owing| *owing != qp.0);
        self.calls.forget(qp.0);
        self.pairs[qp.0 as usize] = None;
        self.cqs.iter_mut().for_each(|cq| cq.forget(qp));
        Ok(())
    }

    fn address(&self, qp: Qp) -> Result<Address> {
        self.pair(qp)?;
        Ok(self.own_address(qp.0))
    }

    fn connect(&mut self, qp: Qp, peer: Option<Address>) -> Result<()> {
        let state = self.pair(qp)?.state;
        let own = self.own_address(qp.0);
        let number = qp.0;
        let connected = check::connect(Transport::Rc, state, peer);
        connected.or_else(|why| self.invalid(format!("queue pair {number}: {why}")))?;
        let Some(peer) = peer else { return Ok(()) };
        if peer == own {
            return self.invalid(format!("queue pair {number} cannot be connected to itself"));
        }
        let now = self.now();
        if let Some(Some(pair)) = self.pairs.get_mut(number as usize) {
            pair.peer = Some(peer);
            pair.state = State::Rts;
            pair.line = Line::Waiting {
                until: Some(now + super::progress::SILENCE_NS),
            };
            // The peer makes the same comparison.
            pair.is_caller = (own.port, own.qp) < (peer.port, peer.qp);
        }
        match (own.port, own.qp) < (peer.port, peer.qp) {
            true => self.call(number, 0),
            false => self.take_parked(number),
        }
        Ok(())
    }

    fn state(&self, qp: Qp) -> Result<State> {
        Ok(self.pair(qp)?.state)
    }

    fn modify(&mut self, qp: Qp, to: Ending) -> Result<()> {
        self.pair(qp)?;
        match to {
            Ending::Error => self.fail(qp.0, Break::Ended),
            Ending::Reset => {
                self.end_line(qp.0);
                self.cqs.iter_mut().for_each(|cq| cq.forget(qp));
                if let Some(Some(pair)) = self.pairs.get_mut(qp.0 as usize) {
                    pair.state = State::Reset;
                    pair.begin_anew();
                }
            }
        }
        Ok(())
    }

    unsafe fn post(&mut self, qp: Qp, work: &Work) -> Result<()> {
        let pair = self.pair(qp)?;
        let limits = check::Limits {
            transport: Transport::Rc,
            state: pair.state,
            inline: pair.wanted.inline as u64,
            mtu: 0,
            longest: self.attributes.longest,
            immediates: true,
        };
        let len = match check::work(work, &limits) {
            Ok(len) if work.local.len() <= SEND_SLICES => len,
            Ok(_) => {
                return self.invalid(format!("a request names at most {SEND_SLICES} slices"));
            }
            Err(why) => return self.invalid(format!("queue pair {}: {why}", qp.0)),
        };
        if pair.held >= pair.wanted.sends {
            return Err(Error::Full);
        }
        let vain = match (pair.state, &pair.line) {
            (State::Error, _) => Some(Vain::Flushed),
            _ if !self.check_memory(work) => Some(Vain::BadMemory),
            (_, Line::Gone) => Some(Vain::Gone),
            _ => None,
        };
        if let Some(Some(pair)) = self.pairs.get_mut(qp.0 as usize) {
            pair.held += 1;
        }
        match vain {
            None => self.execute(qp.0, work, len),
            Some(why) => self.post_in_vain(qp.0, work, why),
        }
        Ok(())
    }

    unsafe fn post_receive(&mut self, queue: ReceiveQueue, id: u64, into: &[Slice]) -> Result<()> {
        if into.len() > RECEIVE_SLICES {
            return self.invalid(format!("a receive names at most {RECEIVE_SLICES} slices"));
        }
        let none = Slice {
            address: 0,
            len: 0,
            lkey: 0,
        };
        let mut slices = [none; RECEIVE_SLICES];
        slices[..into.len()].copy_from_slice(into);
        let receive = Receive {
            id,
            into: slices,
            slices: into.len(),
            is_shared: matches!(queue, ReceiveQueue::Shared(_)),
        };
        let taken = match queue {
            ReceiveQueue::Shared(srq) => match self.srqs.get_mut(srq.0 as usize) {
                Some(own) => own.add(receive),
                None => {
                    return self
                        .invalid("a shared receive queue that is not of this device".into());
                }
            },
            ReceiveQueue::Own(qp) => {
                let (state, srq) = {
                    let pair = self.pair(qp)?;
                    (pair.state, pair.wanted.srq)
                };
                if srq.is_some() {
                    let number = qp.0;
                    return self.invalid(format!(
                        "queue pair {number}: it takes its receives from a shared queue"
                    ));
                }
                let Some(mut split) = self.split(qp.0) else {
                    return Ok(());
                };
                let taken = split.place.receives.add(receive);
                if state == State::Error {
                    split.place.flush_receives();
                }
                taken
            }
        };
        match taken {
            true => Ok(()),
            false => Err(Error::Full),
        }
    }

    #[inline]
    fn poll(&mut self, cq: Cq, into: &mut [Completion]) -> Result<usize> {
        if cq.0 as usize >= self.cqs.len() {
            return self.invalid(format!("completion queue {} is not of this device", cq.0));
        }
        if self.cqs[cq.0 as usize].is_empty() && !std::mem::take(&mut self.is_fresh) {
            self.progress();
            self.memory_is_fresh = self.has_read;
        }
        let mut count = 0;
        while count < into.len()
            && let Some((completion, retires)) = self.cqs[cq.0 as usize].take()
        {
            into[count] = completion;
            count += 1;
            if retires > 0
                && let Some(Some(pair)) = self.pairs.get_mut(completion.qp.0 as usize)
            {
                pair.held -= retires as usize;
            }
        }
        Ok(count)
    }

    #[inline]
    fn sync_memory(&mut self) {
        if !std::mem::take(&mut self.memory_is_fresh) {
            self.progress();
            self.is_fresh = true;
        }
    }
}

impl Drop for TcpDevice {
    fn drop(&mut self) {
        self.leave();
    }
}
