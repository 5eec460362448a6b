//! The state of one strict device: its memory regions, queue pairs, completion queues and shared
//! receive queues.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::memory::{self, scatter};
use super::setup::RailSetup;
use device::check;
use device::{
    Access, Address, Completed, Completion, Cq, Error, Operation, Qp, QpWanted, ReceiveQueue,
    Region, Remote, Result, Slice, Srq, State, Status,
};

const MOST_COMPLETIONS: usize = 1 << 20;

/// The greatest number of regions that a protection domain registers in its lifetime.
const KEYS: u32 = 1 << 22;

/// A protection domain: its regions, by local key.
#[derive(Default)]
pub(super) struct Domain {
    regions: HashMap<u32, (Region, Access)>,
    /// The last key that was given out. No other domain has it.
    last: u32,
}

impl Domain {
    /// The protection domain with this number among those of the machine, which determines its
    /// keys.
    pub(super) fn new(number: usize) -> Arc<Mutex<Domain>> {
        Arc::new(Mutex::new(Domain {
            regions: HashMap::new(),
            last: number as u32 * KEYS,
        }))
    }
}

pub(super) struct DeviceState {
    pub setup: RailSetup,
    domain: Arc<Mutex<Domain>>,
    pub qps: HashMap<u32, QpState>,
    pub cqs: Vec<CqState>,
    pub srqs: Vec<(usize, VecDeque<Posted>)>,
    pub next: u32,
}

pub(super) struct QpState {
    pub state: State,
    pub wanted: QpWanted,
    pub peer: Option<Address>,
    pub work: VecDeque<Request>,
    /// The number of requests that occupy the send queue.
    pub held: usize,
    /// The number of these that are executed and unsignaled: the next completion frees their
    /// entries.
    pub silent: usize,
    pub receives: VecDeque<Posted>,
    pub drain: Drain,
}

/// The last uses of a shared receive queue by a failed queue pair.
#[derive(Default)]
pub(super) struct Drain {
    /// Receives that the queue pair has consumed and not completed.
    pub taken: Vec<Posted>,
    /// The time of the event Last WQE Reached, in nanoseconds since the machine was made.
    pub at: u64,
    /// True if the owner of the queue pair knows that it is drained.
    pub confirmed: bool,
}

pub(super) struct CqState {
    pub depth: usize,
    pub completions: VecDeque<(Completion, usize)>,
    /// The number of completions that the queue ever had.
    pub total: u64,
    pub overrun: bool,
}

pub(super) struct Posted {
    pub id: u64,
    pub into: Vec<Slice>,
}

pub(super) struct Request {
    pub id: u64,
    pub operation: Operation,
    pub local: Vec<Slice>,
    pub inline: Option<Vec<u8>>,
    pub signaled: bool,
    /// The destination of a datagram; `None` for other requests.
    pub to: Option<Address>,
    /// True if some of the bytes of the write are already visible.
    pub begun: bool,
    /// The number of bytes that the request has moved, if it has taken effect at the peer while its
    /// acknowledgement is in flight.
    pub arrived: Option<u32>,
    /// True if the answer to an atomic is kept back in `answer`, and is not written yet.
    pub withheld: bool,
    pub answer: Vec<u8>,
    /// The time at which the request fails without an acknowledgement, in nanoseconds. `None`: no
    /// acknowledgement has been lost.
    pub until: Option<u64>,
    /// The time at which a slow port executes the request, in nanoseconds. `None`: it has not been
    /// scheduled.
    pub due: Option<u64>,
}

pub(super) fn invalid(what: impl Into<String>) -> Error {
    Error::Invalid(what.into())
}

impl DeviceState {
    pub(super) fn new(setup: RailSetup, domain: Arc<Mutex<Domain>>) -> DeviceState {
        DeviceState {
            setup,
            domain,
            qps: HashMap::new(),
            cqs: Vec::new(),
            srqs: Vec::new(),
            next: 0,
        }
    }

    /// Removes all regions, queues and queue pairs of the device.
    pub(super) fn forget(&mut self) {
        self.domain().regions.clear();
        *self = DeviceState::new(self.setup.clone(), self.domain.clone());
    }

    fn domain(&self) -> MutexGuard<'_, Domain> {
        self.domain.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn number(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    pub(super) fn register(&mut self, address: u64, len: usize, access: Access) -> Result<Region> {
        check::register(address, len, access).map_err(Error::Invalid)?;
        let mut domain = self.domain();
        domain.last += 1;
        let key = domain.last;
        let region = Region {
            address,
            len: len as u64,
            lkey: key,
            rkey: key.wrapping_mul(0x0100_0193),
        };
        domain.regions.insert(region.lkey, (region, access));
        Ok(region)
    }

    pub(super) fn deregister(&mut self, region: Region) -> Result<()> {
        let gone = self.domain().regions.remove(&region.lkey);
        gone.map(|_| ())
            .ok_or_else(|| invalid("a region that is not registered"))
    }

    pub(super) fn create_cq(&mut self, depth: usize) -> Result<Cq> {
        if depth > MOST_COMPLETIONS {
            return Err(invalid(format!(
                "{depth} completions; a queue holds at most {MOST_COMPLETIONS}"
            )));
        }
        self.cqs.push(CqState {
            depth,
            completions: VecDeque::new(),
            total: 0,
            overrun: false,
        });
        Ok(Cq(self.cqs.len() as u32 - 1))
    }

    pub(super) fn create_srq(&mut self, depth: usize) -> Srq {
        self.srqs.push((depth, VecDeque::new()));
        Srq(self.srqs.len() as u32 - 1)
    }

    pub(super) fn create_qp(&mut self, wanted: &QpWanted) -> Result<Qp> {
        check::shares(wanted.transport, wanted.srq.is_some()).map_err(Error::Invalid)?;
        let number = self.number();
        self.qps.insert(
            number,
            QpState {
                state: State::Reset,
                wanted: wanted.clone(),
                peer: None,
                work: VecDeque::new(),
                held: 0,
                silent: 0,
                receives: VecDeque::new(),
                drain: Drain::default(),
            },
        );
        Ok(Qp(number))
    }

    pub(super) fn destroy_qp(&mut self, qp: Qp) -> Result<()> {
        let gone = self.qps.remove(&qp.0);
        gone.map(|_| ()).ok_or_else(|| unknown(qp))
    }

    pub(super) fn qp(&self, qp: Qp) -> Result<&QpState> {
        self.qps.get(&qp.0).ok_or_else(|| unknown(qp))
    }

    pub(super) fn qp_mut(&mut self, qp: Qp) -> Result<&mut QpState> {
        self.qps.get_mut(&qp.0).ok_or_else(|| unknown(qp))
    }

    pub(super) fn connect(&mut self, qp: Qp, peer: Option<Address>) -> Result<()> {
        let state = self.qp_mut(qp)?;
        check::connect(state.wanted.transport, state.state, peer).map_err(Error::Invalid)?;
        (state.state, state.peer) = (State::Rts, peer);
        Ok(())
    }

    pub(super) fn post_receive(
        &mut self,
        queue: ReceiveQueue,
        id: u64,
        into: &[Slice],
    ) -> Result<()> {
        let (depth, receives) = match queue {
            ReceiveQueue::Own(qp) => {
                let state = self.qp_mut(qp)?;
                (state.wanted.receives, &mut state.receives)
            }
            ReceiveQueue::Shared(srq) => {
                let (depth, receives) = &mut self.srqs[srq.0 as usize];
                (*depth, receives)
            }
        };
        if receives.len() == depth {
            return Err(Error::Full);
        }
        let into = into.to_vec();
        receives.push_back(Posted { id, into });
        if let ReceiveQueue::Own(qp) = queue
            && self.qp(qp)?.state == State::Error
        {
            self.flush_receives(qp);
        }
        Ok(())
    }

    pub(super) fn poll(&mut self, cq: Cq, into: &mut [Completion]) -> Result<usize> {
        let queue = self
            .cqs
            .get_mut(cq.0 as usize)
            .ok_or_else(|| invalid(format!("there is no completion queue {}", cq.0)))?;
        if queue.overrun {
            return Err(Error::System("the completion queue has overrun".into()));
        }
        let count = into.len().min(queue.completions.len());
        let taken: Vec<_> = queue.completions.drain(..count).collect();
        for (place, (completion, retires)) in into.iter_mut().zip(taken) {
            *place = completion;
            if let Ok(state) = self.qp_mut(completion.qp) {
                state.held = state.held.saturating_sub(retires);
            }
        }
        Ok(count)
    }

    fn receives(&mut self, qp: Qp) -> Option<&mut VecDeque<Posted>> {
        match self.qp(qp).ok()?.wanted.srq {
            Some(srq) => Some(&mut self.srqs[srq.0 as usize].1),
            None => Some(&mut self.qps.get_mut(&qp.0)?.receives),
        }
    }

    pub(super) fn has_receive(&mut self, qp: Qp) -> bool {
        self.receives(qp)
            .is_some_and(|receives| !receives.is_empty())
    }

    /// Consumes a receive for a message or a write with immediate. Returns false if it did not fit.
    pub(super) fn received(
        &mut self,
        qp: Qp,
        of: Completed,
        bytes: &[u8],
        immediate: Option<u32>,
    ) -> bool {
        let Some(posted) = self.receives(qp).and_then(|receives| receives.pop_front()) else {
            return false;
        };
        let fits = of == Completed::ReceiveWrite || scatter(&posted.into, bytes);
        let Ok(state) = self.qp(qp) else { return false };
        let cq = state.wanted.receive_cq;
        let status = if fits {
            Status::Success
        } else {
            Status::LocalLength
        };
        let completion = Completion {
            id: posted.id,
            qp,
            status,
            of,
            bytes: bytes.len() as u32,
            immediate,
        };
        self.cqs[cq.0 as usize].push(completion, 0);
        fits
    }

    /// Flushes the receives of a queue pair in state ERROR.
    pub(super) fn flush_receives(&mut self, qp: Qp) {
        let Ok(state) = self.qp_mut(qp) else { return };
        let receives = std::mem::take(&mut state.receives);
        self.flushed(qp, receives);
    }

    /// Begins the last uses of the shared receive queue by a failed queue pair. Last WQE Reached
    /// occurs at the time `at`; if `takes`, the queue pair consumes one more receive, which
    /// completes before.
    pub(super) fn begin_drain(&mut self, qp: Qp, at: u64, takes: bool) {
        let taken = match takes {
            true => self.receives(qp).and_then(VecDeque::pop_front),
            false => None,
        };
        if let Ok(state) = self.qp_mut(qp) {
            state.drain = Drain {
                taken: taken.into_iter().collect(),
                at,
                confirmed: false,
            };
        }
    }

    /// Flushes the receives that a failed queue pair has consumed.
    pub(super) fn end_drain(&mut self, qp: Qp) {
        let Ok(state) = self.qp_mut(qp) else { return };
        let taken = std::mem::take(&mut state.drain.taken);
        self.flushed(qp, taken);
    }

    /// Removes the completions of a queue pair that a reset discards.
    pub(super) fn forget_completions(&mut self, qp: Qp) {
        let shares = self.qp(qp).is_ok_and(|state| state.wanted.srq.is_some());
        let stays = |one: &Completion| {
            let receive = matches!(one.of, Completed::Receive | Completed::ReceiveWrite);
            one.qp != qp || shares && receive
        };
        for cq in &mut self.cqs {
            cq.completions.retain(|(one, _)| stays(one));
        }
    }

    fn flushed(&mut self, qp: Qp, receives: impl IntoIterator<Item = Posted>) {
        let Ok(state) = self.qp(qp) else { return };
        let cq = state.wanted.receive_cq;
        for posted in receives {
            let completion = Completion {
                id: posted.id,
                qp,
                status: Status::Flushed,
                of: Completed::Receive,
                bytes: 0,
                immediate: None,
            };
            self.cqs[cq.0 as usize].push(completion, 0);
        }
    }

    /// The payload of a request, after a check of its local keys.
    pub(super) fn payload(&self, request: &Request) -> std::result::Result<Vec<u8>, Status> {
        if let Some(bytes) = &request.inline {
            return Ok(bytes.clone());
        }
        let mut bytes = Vec::new();
        let domain = self.domain();
        for slice in &request.local {
            let (region, _) = domain
                .regions
                .get(&slice.lkey)
                .ok_or(Status::LocalProtection)?;
            if !within(region, slice.address, slice.len as usize) {
                return Err(Status::LocalProtection);
            }
            if !matches!(request.operation, Operation::Read { .. }) {
                // SAFETY: inside a registered region.
                bytes.extend(unsafe { memory::load(slice.address, slice.len as usize) });
            }
        }
        Ok(bytes)
    }

    pub(super) fn check(
        &self,
        at: Remote,
        len: usize,
        allowed: impl Fn(&Access) -> bool,
    ) -> std::result::Result<(), Status> {
        // IBA C9-88: the key of an empty access is not checked.
        if len == 0 {
            return Ok(());
        }
        let domain = self.domain();
        let mut regions = domain.regions.values();
        let found = regions.find(|(region, _)| region.rkey == at.rkey);
        match found {
            Some((region, access)) if within(region, at.address, len) && allowed(access) => Ok(()),
            _ => Err(Status::RemoteAccess),
        }
    }
}

fn within(region: &Region, address: u64, len: usize) -> bool {
    address >= region.address && address + len as u64 <= region.address + region.len
}

fn unknown(qp: Qp) -> Error {
    invalid(format!("there is no queue pair {}", qp.0))
}

impl CqState {
    pub(super) fn push(&mut self, completion: Completion, retires: usize) {
        self.overrun |= self.completions.len() == self.depth;
        self.completions.push_back((completion, retires));
        self.total += 1;
    }
}
