//! The state that the strict devices of all ranks share, and the execution of their requests.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::cable::{Cable, Cut};
use super::memory::{self, scatter};
use super::queues::{DeviceState, Domain, QpState, Request, invalid};
use super::setup::{LONGEST, MTU, Setup};
use device::check;
use device::{
    Access, Address, Completed, Completion, Error, Operation, Placement, PortEvent, Qp, Remote,
    Result, State, Status, Transport, Work,
};

pub(super) struct World {
    pub devices: Vec<DeviceState>,
    /// The out-of-band messages for each rank.
    words: Vec<VecDeque<(usize, Vec<u8>)>>,
    /// Queue pairs with work, as (index of the device, queue pair).
    pub busy: VecDeque<(usize, Qp)>,
    /// Queue pairs whose connection is being made, as (index of the device, queue pair, time of its
    /// failure over a cut cable).
    pub tying: Vec<(usize, Qp, u64)>,
    /// Failed queue pairs that still use their shared receive queue, as (index of the device, queue
    /// pair).
    pub draining: Vec<(usize, Qp)>,
    /// The cable at each device's port.
    pub cables: Vec<Cable>,
    /// The port changes that each rank has not taken yet.
    pub port_events: Vec<Vec<PortEvent>>,
    /// The time in nanoseconds since the machine was made.
    pub now: u64,
    pub timeout_ns: u64,
    delays: bool,
    patient: bool,
    pub ties_both: bool,
    pub random: u64,
    signs: Arc<Signs>,
}

/// Counters and versions of the machine's state, which ranks read without its lock.
pub(super) struct Signs {
    /// The number of requests that wait for execution.
    pub due: AtomicUsize,
    /// The number of out-of-band messages for each rank.
    pub words: Vec<AtomicUsize>,
    /// The number of port changes for each rank.
    pub port_events: Vec<AtomicUsize>,
    /// The number of completions that each device holds.
    pub completions: Vec<AtomicUsize>,
    pub completed: Vec<AtomicU64>,
    /// The version of the machine's state, which grows with every change for which a rank could
    /// wait.
    pub version: AtomicU64,
}

impl Signs {
    pub(super) fn new(ranks: usize, devices: usize) -> Signs {
        let zeros = |count| (0..count).map(|_| AtomicUsize::new(0)).collect();
        Signs {
            due: AtomicUsize::new(0),
            words: zeros(ranks),
            port_events: zeros(ranks),
            completions: zeros(devices),
            completed: (0..devices).map(|_| AtomicU64::new(0)).collect(),
            version: AtomicU64::new(1),
        }
    }
}

/// The result of an attempt to execute a request.
pub(super) enum Outcome {
    NotYet,
    /// The request was executed, and moved this many bytes.
    Done(u32),
    Failed(Status),
    /// The request failed at the peer.
    Lost(Status),
    /// The peer has no receive for the message.
    NotReceived,
}

impl World {
    pub(super) fn new(ranks: usize, setup: &Setup, signs: Arc<Signs>) -> World {
        let mut devices = Vec::new();
        for rank in 0..ranks {
            let mut domains = BTreeMap::new();
            for rail in 0..setup.rails {
                let own = setup.of_rail(rail);
                let number = rank * setup.rails + rail;
                let domain = domains
                    .entry(own.domain)
                    .or_insert_with(|| Domain::new(number));
                devices.push(DeviceState::new(own, domain.clone()));
            }
        }
        World {
            tying: Vec::new(),
            draining: Vec::new(),
            cables: vec![Cable::default(); devices.len()],
            port_events: vec![Vec::new(); ranks],
            now: 0,
            timeout_ns: setup.timeout_ns,
            devices,
            words: (0..ranks).map(|_| VecDeque::new()).collect(),
            busy: VecDeque::new(),
            delays: setup.delays,
            patient: setup.patient,
            ties_both: setup.ties_both,
            random: setup.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            signs,
        }
    }

    pub(super) fn version(&self) -> u64 {
        self.signs.version.load(Ordering::Relaxed)
    }

    pub(super) fn news(&mut self) {
        self.signs.version.fetch_add(1, Ordering::Release);
    }

    pub(super) fn show_signs(&self) {
        let due = self.busy.len() + self.tying.len() + self.draining.len();
        self.signs.due.store(due, Ordering::Release);
        for (sign, events) in self.signs.port_events.iter().zip(&self.port_events) {
            sign.store(events.len(), Ordering::Release);
        }
        for (sign, words) in self.signs.words.iter().zip(&self.words) {
            sign.store(words.len(), Ordering::Release);
        }
        for (sign, device) in self.signs.completions.iter().zip(&self.devices) {
            let count = device.cqs.iter().map(|cq| cq.completions.len()).sum();
            sign.store(count, Ordering::Release);
        }
        for (sign, device) in self.signs.completed.iter().zip(&self.devices) {
            let total = device.cqs.iter().map(|cq| cq.total).sum();
            sign.store(total, Ordering::Release);
        }
    }

    pub(super) fn device(&mut self, index: usize) -> &mut DeviceState {
        &mut self.devices[index]
    }

    pub(super) fn oob_send(&mut self, from: usize, to: usize, words: &[u8]) -> Result<()> {
        let ranks = self.words.len();
        let queue = self
            .words
            .get_mut(to)
            .ok_or_else(|| invalid(format!("there is no rank {to} among {ranks}")))?;
        queue.push_back((from, words.to_vec()));
        self.news();
        Ok(())
    }

    pub(super) fn oob_recv(&mut self, rank: usize) -> Option<(usize, Vec<u8>)> {
        if self.delays && self.chance(2) {
            return None;
        }
        let (from, _) = self.words[rank].front()?;
        match self.has_path(*from, rank) {
            true => self.words[rank].pop_front(),
            // It is sent repeatedly until a cable is mended.
            false => None,
        }
    }

    /// True if datagrams can pass from one rank to another over some cable.
    fn has_path(&self, from: usize, to: usize) -> bool {
        let rails = self.cables.len() / self.port_events.len();
        let carries = |rail: usize| {
            let cut = self.cut(from * rails + rail, to * rails + rail);
            !matches!(cut, Some(Cut::Silent | Cut::Down))
        };
        from == to || (0..rails).any(carries)
    }

    /// Removes all state of a device.
    pub(super) fn forget(&mut self, index: usize) {
        self.devices[index].forget();
        self.busy.retain(|(device, _)| *device != index);
        self.tying.retain(|(device, _, _)| *device != index);
        self.draining.retain(|(device, _)| *device != index);
        self.news();
    }

    fn chance(&mut self, of: u64) -> bool {
        self.draw().is_multiple_of(of)
    }

    fn draw(&mut self) -> u64 {
        // Xorshift (Marsaglia 2003).
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    /// True if a delay is drawn.
    pub(super) fn is_delayed(&mut self) -> bool {
        self.delays && self.chance(2)
    }

    pub(super) fn post(&mut self, device: usize, qp: Qp, work: &Work) -> Result<()> {
        let immediates = self.devices[device].setup.immediates;
        let state = self.devices[device].qp_mut(qp)?;
        if state.held == state.wanted.sends && state.state != State::Reset {
            return Err(Error::Full);
        }
        let limits = check::Limits {
            transport: state.wanted.transport,
            state: state.state,
            inline: state.wanted.inline as u64,
            mtu: MTU as u64,
            longest: LONGEST,
            immediates,
        };
        check::work(work, &limits).map_err(Error::Invalid)?;
        let inline = if work.inline {
            // SAFETY: the promise of the caller of `post`.
            let bytes = work
                .local
                .iter()
                .flat_map(|slice| unsafe { memory::load(slice.address, slice.len as usize) });
            Some(bytes.collect())
        } else {
            None
        };
        state.held += 1;
        state.work.push_back(Request {
            id: work.id,
            operation: work.operation,
            local: work.local.to_vec(),
            inline,
            signaled: work.signaled,
            to: work.to,
            begun: false,
            arrived: None,
            withheld: false,
            answer: Vec::new(),
            until: None,
            due: None,
        });
        if state.state == State::Error {
            self.flush(device, qp);
        } else {
            self.busy.push_back((device, qp));
        }
        Ok(())
    }

    /// Executes the requests that are due.
    pub(super) fn pump(&mut self) {
        self.tie();
        self.drain();
        for _ in 0..self.busy.len() {
            let Some((device, qp)) = self.busy.pop_front() else {
                return;
            };
            if self.delays && self.chance(2) {
                // The queue pair moves behind the others; its own requests stay in order.
                self.busy.push_back((device, qp));
                continue;
            }
            if !self.step(device, qp) {
                self.busy.push_back((device, qp));
            }
        }
    }

    /// Executes the first request of a queue pair. Returns false if it cannot be executed yet.
    fn step(&mut self, device: usize, qp: Qp) -> bool {
        let Ok(state) = self.devices[device].qp_mut(qp) else {
            return true;
        };
        let (peer, Some(mut request)) = (state.peer, state.work.pop_front()) else {
            return true;
        };
        let transport = state.wanted.transport;
        let peer = match transport {
            Transport::Ud => request.to,
            _ => peer,
        };
        let outcome = match self.attempt((device, qp), transport, peer, &mut request) {
            // Without a reliable connection, a loss or refusal is not reported.
            Outcome::Lost(_) | Outcome::NotReceived if transport != Transport::Rc => {
                Outcome::Done(0)
            }
            Outcome::Lost(status) => Outcome::Failed(status),
            Outcome::NotReceived if self.patient => Outcome::NotYet,
            Outcome::NotReceived => Outcome::Failed(Status::RnrRetryExceeded),
            outcome => outcome,
        };
        match outcome {
            Outcome::NotYet => {
                let arrived = request.arrived.is_some();
                if let Ok(state) = self.devices[device].qp_mut(qp) {
                    state.work.push_front(request);
                }
                if arrived {
                    self.send_behind(device, qp, peer);
                }
                return false;
            }
            Outcome::Lost(_) | Outcome::NotReceived => unreachable!("handled above"),
            Outcome::Done(bytes) => self.complete(device, qp, &request, Status::Success, bytes),
            Outcome::Failed(status) => {
                self.complete(device, qp, &request, status, 0);
                self.break_qp(device, qp);
            }
        }
        self.news();
        true
    }

    /// Refuses a request at the peer. The peer's end of a reliable connection breaks.
    fn refused(&mut self, far: usize, far_qp: Qp, status: Status) -> Outcome {
        let reliable = |state: &QpState| state.wanted.transport == Transport::Rc;
        if self.devices[far].qp(far_qp).is_ok_and(reliable) {
            self.break_qp(far, far_qp);
        }
        Outcome::Lost(status)
    }

    pub(super) fn flush(&mut self, device: usize, qp: Qp) {
        while let Ok(state) = self.devices[device].qp_mut(qp)
            && let Some(request) = state.work.pop_front()
        {
            self.complete(device, qp, &request, Status::Flushed, 0);
        }
        self.busy.retain(|busy| *busy != (device, qp));
        self.devices[device].flush_receives(qp);
    }

    fn complete(&mut self, device: usize, qp: Qp, request: &Request, status: Status, bytes: u32) {
        let device = &mut self.devices[device];
        let Ok(state) = device.qp_mut(qp) else { return };
        state.silent += 1;
        if !request.signaled && status == Status::Success {
            return;
        }
        let retires = std::mem::take(&mut state.silent);
        let cq = state.wanted.send_cq;
        let of = match request.operation {
            Operation::Write { .. } => Completed::Write,
            Operation::Read { .. } => Completed::Read,
            Operation::Send { .. } => Completed::Send,
            _ => Completed::Atomic,
        };
        let completion = Completion {
            id: request.id,
            qp,
            status,
            of,
            bytes,
            immediate: None,
        };
        device.cqs[cq.0 as usize].push(completion, retires);
    }

    /// Executes a request at its peer, which the cables reach.
    pub(super) fn carry_out(
        &mut self,
        device: usize,
        qp: Qp,
        peer: Option<Address>,
        request: &mut Request,
    ) -> Outcome {
        let Some(peer) = peer else {
            return Outcome::Failed(Status::LocalQpOperation);
        };
        let (far, far_qp) = (peer.port as usize, Qp(peer.qp));
        let back = Address {
            port: device as u128,
            qp: qp.0,
        };
        let listens = |far: &QpState| match far.wanted.transport {
            Transport::Ud => request.to.is_some(),
            _ => far.peer == Some(back),
        };
        let far_state = self.devices.get(far).and_then(|far| far.qp(far_qp).ok());
        let network = |at: &DeviceState| (at.setup.link_layer, at.setup.subnet);
        let reaches = self.devices.get(far).map(network) == self.devices.get(device).map(network);
        if !reaches || !far_state.is_some_and(|far| far.state == State::Rts && listens(far)) {
            return Outcome::Lost(Status::RetryExceeded);
        }
        let payload = match self.devices[device].payload(request) {
            Ok(payload) => payload,
            Err(status) => return Outcome::Failed(status),
        };
        let len = request.local.iter().map(|slice| slice.len as usize).sum();
        match request.operation {
            Operation::Write { to, immediate } => {
                if immediate.is_some() && !self.devices[far].has_receive(far_qp) {
                    return Outcome::NotReceived;
                }
                let allowed = |access: &Access| access.remote_write;
                if let Err(status) = self.devices[far].check(to, payload.len(), allowed) {
                    return self.refused(far, far_qp, status);
                }
                if !self.place(far, to.address, &payload, &mut request.begun) {
                    return Outcome::NotYet;
                }
                if let Some(immediate) = immediate {
                    let far = &mut self.devices[far];
                    far.received(far_qp, Completed::ReceiveWrite, &payload, Some(immediate));
                }
                Outcome::Done(payload.len() as u32)
            }
            Operation::Read { from } => {
                let allowed = |access: &Access| access.remote_read;
                if let Err(status) = self.devices[far].check(from, len, allowed) {
                    return self.refused(far, far_qp, status);
                }
                // SAFETY: inside a registered region, checked above.
                let bytes = unsafe { memory::load(from.address, len) };
                scatter(&request.local, &bytes);
                Outcome::Done(len as u32)
            }
            Operation::Send { immediate } => {
                let there = &mut self.devices[far];
                if !there.has_receive(far_qp) {
                    return Outcome::NotReceived;
                }
                match there.received(far_qp, Completed::Receive, &payload, immediate) {
                    true => Outcome::Done(payload.len() as u32),
                    false => {
                        self.break_qp(far, far_qp);
                        Outcome::Lost(Status::RemoteInvalidRequest)
                    }
                }
            }
            Operation::CompareAndSwap { at, .. } | Operation::FetchAndAdd { at, .. } => {
                self.execute_atomic(far, far_qp, at, request)
            }
        }
    }

    /// Executes an atomic at the peer.
    fn execute_atomic(
        &mut self,
        far: usize,
        far_qp: Qp,
        at: Remote,
        request: &mut Request,
    ) -> Outcome {
        if !at.address.is_multiple_of(8) {
            return self.refused(far, far_qp, Status::RemoteInvalidRequest);
        }
        let allowed = |access: &Access| access.remote_atomic;
        if let Err(status) = self.devices[far].check(at, 8, allowed) {
            return self.refused(far, far_qp, status);
        }
        // SAFETY: inside a registered region, checked above.
        let old = unsafe { memory::load(at.address, 8) };
        let old_value = u64::from_ne_bytes(std::array::from_fn(|i| old[i]));
        let new = match request.operation {
            Operation::CompareAndSwap { compare, swap, .. } if compare == old_value => swap,
            Operation::FetchAndAdd { add, .. } => old_value.wrapping_add(add),
            _ => old_value,
        };
        // SAFETY: as above.
        unsafe { memory::store(at.address, &new.to_ne_bytes()) };
        match request.withheld {
            true => request.answer = old,
            false => _ = scatter(&request.local, &old),
        }
        Outcome::Done(8)
    }

    /// Makes the bytes of a write visible. Returns false if only some of them are visible yet.
    fn place(&mut self, far: usize, address: u64, bytes: &[u8], begun: &mut bool) -> bool {
        if self.devices[far].setup.placement == Placement::Completion && !*begun {
            *begun = true;
            let mut to = address;
            for some in bytes.chunks(64) {
                let mut chosen = self.draw();
                for byte in some {
                    if chosen & 1 == 1 {
                        // SAFETY: the caller has checked the region.
                        unsafe { memory::store_one(to, *byte) };
                    }
                    (to, chosen) = (to + 1, chosen >> 1);
                }
            }
            return false;
        }
        // SAFETY: as above.
        unsafe { memory::store(address, bytes) };
        true
    }
}
