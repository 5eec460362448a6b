//! The simulated cables between strict devices, which tests cut, mend and slow down while ranks
//! run.

use std::sync::Arc;

use super::cable::{Cable, Cut};
use super::machine::StrictMachine;
use super::memory::scatter;
use super::queues::Request;
use super::world::{Outcome, World};
use device::{Address, Operation, PortChange, PortEvent, Qp, Status, Transport};

/// The cables of a machine, one at each port. Clones share the same cables, and any thread may use
/// a clone.
///
/// A reliable request over a cut cable fails with [`Status::RetryExceeded`] after
/// [`Setup::timeout_ns`](super::Setup), and the requests behind it are flushed. If the cable is
/// mended before, the request continues. A datagram is lost.
#[derive(Clone)]
pub struct Cables {
    pub(super) shared: Arc<StrictMachine>,
}

impl Cables {
    /// Cuts the cable at a rank's port.
    pub fn cut(&self, rank: usize, rail: usize, how: Cut) {
        self.change(rank, rail, |cable| cable.cut(how));
    }

    /// Cuts the cable at a rank's port after the port has executed `requests` more requests at
    /// peers.
    pub fn cut_after(&self, rank: usize, rail: usize, requests: u64, how: Cut) {
        self.change(rank, rail, |cable| {
            cable.later = Some((cable.requests + requests, how));
            None
        });
    }

    /// Mends the cable at a rank's port, and cancels a planned cut. A port that was down reports
    /// that it is up.
    pub fn mend(&self, rank: usize, rail: usize) {
        self.change(rank, rail, |cable| {
            cable.later = None;
            let was = cable.cut.take();
            (was == Some(Cut::Down)).then_some(PortChange::Up)
        });
    }

    /// Makes each later request of a rank's port take `request_ns` nanoseconds, one after another.
    /// Zero restores the full speed.
    pub fn slow(&self, rank: usize, rail: usize, request_ns: u64) {
        self.change(rank, rail, |cable| {
            cable.request_ns = request_ns;
            None
        });
    }

    /// Makes a rank's port report a change.
    pub fn report(&self, rank: usize, rail: usize, change: PortChange) {
        self.change(rank, rail, |_| Some(change));
    }

    /// The number of requests that a rank's port has executed at peers, and their payload in bytes.
    pub fn carried(&self, rank: usize, rail: usize) -> (u64, u64) {
        let at = self.shared.index(rank, rail);
        let world = self.shared.lock();
        (world.cables[at].requests, world.cables[at].bytes)
    }

    fn change(
        &self,
        rank: usize,
        rail: usize,
        change: impl FnOnce(&mut Cable) -> Option<PortChange>,
    ) {
        let at = self.shared.index(rank, rail);
        self.shared.with(|world| {
            if let Some(change) = change(&mut world.cables[at]) {
                world.port_events[rank].push(PortEvent { rail, change });
            }
            world.news();
        });
    }
}

impl World {
    /// Executes a request as far as the cables between the two ports allow.
    pub(super) fn attempt(
        &mut self,
        (device, qp): (usize, Qp),
        transport: Transport,
        peer: Option<Address>,
        request: &mut Request,
    ) -> Outcome {
        let Some(far) = peer.map(|peer| peer.port as usize) else {
            return self.carry_out(device, qp, peer, request);
        };
        if request.arrived.is_none() && !self.is_due(device, request) {
            return Outcome::NotYet;
        }
        let outcome = match (self.cut(device, far), request.arrived) {
            (None, Some(bytes)) => {
                scatter(&request.local, &request.answer);
                return Outcome::Done(bytes);
            }
            (None, None) => self.carry_out(device, qp, peer, request),
            (Some(_), _) if transport != Transport::Rc => Outcome::Lost(Status::RetryExceeded),
            (Some(Cut::Acknowledgements), None) if !is_read(request) => {
                request.withheld = true;
                match self.carry_out(device, qp, peer, request) {
                    Outcome::Done(bytes) => {
                        self.count(device, bytes);
                        request.arrived = Some(bytes);
                        self.not_acknowledged(request)
                    }
                    outcome => outcome,
                }
            }
            (Some(_), _) => self.not_acknowledged(request),
        };
        if let Outcome::Done(bytes) = outcome {
            self.count(device, bytes);
        }
        outcome
    }

    /// Executes the requests behind a request whose acknowledgement is lost: they are already in
    /// flight.
    pub(super) fn send_behind(&mut self, device: usize, qp: Qp, peer: Option<Address>) {
        let Some(far) = peer.map(|peer| peer.port as usize) else {
            return;
        };
        let Ok(state) = self.device(device).qp_mut(qp) else {
            return;
        };
        let transport = state.wanted.transport;
        let mut work = std::mem::take(&mut state.work);
        let waiting = work.iter_mut().filter(|request| request.arrived.is_none());
        for request in waiting {
            let loses = self.cut(device, far) == Some(Cut::Acknowledgements);
            if !loses || is_read(request) || self.is_delayed() {
                break;
            }
            self.attempt((device, qp), transport, peer, request);
            if request.arrived.is_none() {
                break;
            }
        }
        if let Ok(state) = self.device(device).qp_mut(qp) {
            state.work = work;
            if state.state == device::State::Error {
                self.flush(device, qp);
            }
        }
    }

    /// The cut of the cables between two ports, if there is one.
    pub(super) fn cut(&self, near: usize, far: usize) -> Option<Cut> {
        let cut = |at: usize| self.cables.get(at).and_then(|cable| cable.cut);
        match (cut(near), cut(far)) {
            (Some(Cut::Acknowledgements), far) => far.or(Some(Cut::Acknowledgements)),
            (near, far) => near.or(far),
        }
    }

    /// The outcome of a request that is not acknowledged: it fails after the time-out.
    fn not_acknowledged(&self, request: &mut Request) -> Outcome {
        let until = *request.until.get_or_insert(self.now + self.timeout_ns);
        match self.now < until {
            true => Outcome::NotYet,
            false => Outcome::Lost(Status::RetryExceeded),
        }
    }

    /// True if the port has had the time to execute all earlier requests and this one. A port at
    /// full speed needs none.
    fn is_due(&mut self, device: usize, request: &mut Request) -> bool {
        let cable = &mut self.cables[device];
        if cable.request_ns == 0 && request.due.is_none() {
            return true;
        }
        let due = *request.due.get_or_insert_with(|| {
            cable.free_at = cable.free_at.max(self.now) + cable.request_ns;
            cable.free_at
        });
        self.now >= due
    }

    fn count(&mut self, device: usize, bytes: u32) {
        let cable = &mut self.cables[device];
        cable.requests += 1;
        cable.bytes += u64::from(bytes);
        if let Some((requests, how)) = cable.later
            && cable.requests >= requests
            && let Some(change) = cable.cut(how)
        {
            let rails = self.cables.len() / self.port_events.len();
            let (rank, rail) = (device / rails, device % rails);
            self.port_events[rank].push(PortEvent { rail, change });
            self.news();
        }
    }
}

fn is_read(request: &Request) -> bool {
    matches!(request.operation, Operation::Read { .. })
}
