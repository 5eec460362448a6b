//! The node of a rank in a modelled machine: it gives the rank its rails, charges its processor,
//! lets it wait in virtual time, and carries its out-of-band messages.

use std::rc::Rc;

use fabric::{Bytes, Nanos};
use sim::{Time, Turn};

use super::computing::Computing;
use super::device::ModelDevice;
use super::efforts::{CALL, OOB_LATENCY, effort};
use super::machine::MachineModel;
use super::paths::Paths;
use super::processor::{LocalSum, deadlock, keep_busy};
use super::queue_pairs::QueuePairs;
use super::span::Activity;
use device::{
    Accounting, Device, Effort, Error, HostCosts, Node, PortEvent, ProgramCall, Result, Signs,
    StoreCosts,
};

/// The time of one byte is computed from the time of this number of bytes.
pub(super) const MANY: u64 = 1 << 20;

/// The node of a rank in a modelled machine: its rails, its clock and its out-of-band messages.
pub struct ModelNode {
    pub(super) turn: Rc<Turn<MachineModel>>,
    rails: Vec<ModelDevice>,
    /// True if the last charge was for preparing a packet: the copy that follows is that of its
    /// body.
    pub(super) prepared: bool,
    /// True while messages belong to a blocking send.
    pub(super) is_blocking: bool,
    /// The MPI call that the program is in, if any.
    pub(super) call: Option<Current>,
    /// The time for which the rank has been idle, in picoseconds.
    pub(super) waited: Time,
    /// The work of the rank on its own memory, which is not charged yet.
    pub(super) local: Rc<LocalSum>,
    /// The computing before the next call. `None`: no computing was announced.
    pub(super) computing: Option<Computing>,
    /// The time by which the progress thread has delayed computing, in picoseconds.
    pub(super) delayed: Time,
}

/// The program's current MPI call, and the time at which it began.
pub(super) struct Current {
    pub call: ProgramCall,
    pub start: Time,
}

impl ModelNode {
    /// The node of the rank that has this turn.
    pub fn new(turn: Turn<MachineModel>) -> ModelNode {
        let turn = Rc::new(turn);
        let rails = turn.with(|net, clock| {
            let (ranks, run) = (&net.qps.ranks, &net.qps.run);
            ranks.watch_ports(run, turn.rank(), clock);
            run.system.rails_of(ranks[turn.rank()].host).len() as u32
        });
        let local = Rc::new(LocalSum::default());
        let rails = (0..rails)
            .map(|rail| ModelDevice::new(turn.clone(), local.clone(), rail))
            .collect();
        ModelNode {
            turn,
            rails,
            prepared: false,
            is_blocking: false,
            call: None,
            waited: 0,
            local,
            computing: None,
            delayed: 0,
        }
    }

    /// The rank's turn, by which it accesses the machine.
    pub fn turn(&self) -> &Turn<MachineModel> {
        &self.turn
    }

    /// The device of a rail of the rank's host. Panics if there is no such rail.
    pub fn modelled_rail(&mut self, rail: usize) -> &mut ModelDevice {
        &mut self.rails[rail]
    }

    /// Charges the rank's processor for work of its host's kernel.
    pub fn work(&mut self, time: Nanos) {
        let rank = self.turn.rank();
        let time = self
            .turn
            .with(|net, _| net.qps.ranks.cpu(rank, time.picos()));
        keep_busy(&self.turn, time, Activity::Control.alone(0));
    }

    /// True if the modelled library sends a message of this length from the program's memory, so
    /// that the copy into its packet, which this library makes, takes no time. A library that has a
    /// protocol of its own for blocking sends copies their messages, so that the call can return.
    pub(super) fn leaves_uncopied(&self, len: usize) -> bool {
        self.turn.with(|net, _| {
            let software = &net.qps.run.system.software;
            let uncopied = software
                .copied
                .is_some_and(|longest| len as u64 > longest.0);
            uncopied && !(self.is_blocking && software.blocking.is_some())
        })
    }

    /// Begins the send of a message by the rank's library, after the processor's work on the
    /// previous one.
    pub(super) fn begin_message(&mut self, length: u64) {
        self.local.charge(&self.turn);
        let (rank, is_blocking) = (self.turn.rank(), self.is_blocking);
        let rest = self.turn.with(|net, clock| {
            let software = &net.qps.run.system.software;
            let library = &mut net.qps.ranks[rank].library;
            library.begin(software, (length, is_blocking), clock.of(rank))
        });
        keep_busy(&self.turn, rest, Activity::Send.alone(0));
    }

    /// Ends the work of the rank's library on the messages of the present call.
    pub(super) fn end_message(&mut self) {
        let rank = self.turn.rank();
        let rest = self.turn.with(|net, clock| {
            let now = clock.of(rank);
            net.qps.ranks[rank].library.end_call(now)
        });
        if rest > 0 {
            keep_busy(&self.turn, rest, Activity::Send.alone(0));
        }
    }

    /// Waits until something has changed for this rank, but at most `nanos` nanoseconds.
    fn wait_for(&mut self, nanos: u64, idle: bool) -> Result<()> {
        self.local.charge(&self.turn);
        let turn = &self.turn;
        let until = nanos
            .checked_mul(1000)
            .and_then(|time| time.checked_add(turn.now()));
        // A later arrival wakes this rank, even if it is ahead of that time.
        turn.stay().map_err(deadlock)?;
        let rank = turn.rank();
        if turn.with(|net, _| net.qps.ranks[rank].fresh) {
            // The wait ends at once, with everything that is visible by now.
            turn.observe().map_err(deadlock)?;
        }
        let (fresh, next) = turn.with(|net, _| {
            let own = &mut net.qps.ranks[rank];
            (std::mem::take(&mut own.fresh), own.inbox.next_wake())
        });
        if fresh {
            return Ok(());
        }
        let since = turn.now();
        let answer = match (until, next) {
            (Some(until), None) if idle => turn.wait_idle(until),
            (Some(until), Some(next)) => turn.wait(Some(until.min(next))),
            (until, next) => turn.wait(until.or(next)),
        };
        let answer = answer.map_err(deadlock);
        let time = turn.with(|net, clock| {
            net.qps.ranks[rank].fresh = false;
            let time = clock.of(rank) - since;
            net.note(rank, since, time, Activity::Wait.alone(0));
            time
        });
        self.waited += time;
        if answer.is_err() {
            // The program will not return from the call in progress, so it ends here.
            self.leave();
        }
        answer
    }

    /// Computes until something has changed for this rank, but at most for `longest` picoseconds.
    /// False: the program has finished its computing.
    pub(super) fn compute_until_news(&mut self, longest: Time) -> Result<bool> {
        if longest == 0 {
            return Ok(false);
        }
        let turn = &self.turn;
        turn.stay().map_err(deadlock)?;
        let rank = turn.rank();
        if turn.with(|net, _| net.qps.ranks[rank].fresh) {
            turn.observe().map_err(deadlock)?;
        }
        let (fresh, next) = turn.with(|net, _| {
            let own = &mut net.qps.ranks[rank];
            (std::mem::take(&mut own.fresh), own.inbox.next_wake())
        });
        if fresh {
            return Ok(true);
        }
        let since = turn.now();
        let until = since.saturating_add(longest);
        turn.wait(Some(next.map_or(until, |next| until.min(next))))
            .map_err(deadlock)?;
        let time = turn.with(|net, clock| {
            net.qps.ranks[rank].fresh = false;
            let time = clock.of(rank) - since;
            net.note(rank, since, time, Activity::Compute.alone(0));
            time
        });
        let Some(computing) = &mut self.computing else {
            return Ok(false);
        };
        computing.passed(time);
        Ok(computing.left(self.turn.now()) > 0)
    }
}

// SAFETY: at most one thread at a time is inside a rank of a modelled machine (at most
// MPI_THREAD_SERIALIZED is granted there), so its node is never used by two threads, nor moved
// while it is in use; coroutines stay in the thread that runs them all.
unsafe impl Send for ModelNode {}

impl Node for ModelNode {
    fn is_virtual(&self) -> bool {
        true
    }

    fn rails(&self) -> usize {
        self.rails.len()
    }

    fn rail(&mut self, rail: usize) -> &mut dyn Device {
        &mut self.rails[rail]
    }

    fn now(&mut self) -> u64 {
        self.local.charge(&self.turn);
        let now = self.turn.now();
        let rank = self.turn.rank();
        let time = self.turn.with(|net, _| net.qps.ranks.cpu(rank, CALL));
        keep_busy(&self.turn, time, Activity::Clock.alone(0));
        now / 1000
    }

    fn host_costs(&mut self) -> HostCosts {
        self.turn.with(|net, _| {
            let costs = &net.qps.ports.first().costs;
            let nanos = |of| effort(costs, of).picos() / 1000;
            HostCosts {
                send_ns: nanos(Effort::Send),
                receive_ns: nanos(Effort::Receive),
                copy_ps: costs.copy(Bytes(MANY)).picos() / MANY,
                memory_ps: costs.memory_of_copy(Bytes(MANY)).picos() / MANY,
                // Memory is registered once, so its cost is no cost of a message.
                register_ns: 0,
            }
        })
    }

    fn store_costs(&mut self, peer: usize) -> Option<StoreCosts> {
        let rank = self.turn.rank();
        self.turn.with(|net, _| {
            let is_beside = net.qps.ranks[rank].host == net.qps.ranks.get(peer)?.host;
            let costs = &net.qps.ports.first().costs;
            is_beside.then(|| StoreCosts {
                post_ns: CALL / 1000,
                handover_ns: costs.handover().picos() / 1000,
                poll_ns: costs.poll().picos() / 1000,
            })
        })
    }

    fn sync_memory(&mut self) {
        self.local.charge(&self.turn);
        self.turn.observe().ok();
        let rank = self.turn.rank();
        let (time, activity) = self.turn.with(|net, _| {
            let seen = std::mem::take(&mut net.qps.ranks[rank].written);
            let (time, activity) = match seen {
                true => (net.qps.ports.first().poll, Activity::Notice),
                false => (CALL, Activity::Look),
            };
            (net.qps.ranks.cpu(rank, time), activity)
        });
        keep_busy(&self.turn, time, activity.alone(0));
    }

    fn written(&mut self, keys: &mut Vec<u32>) -> bool {
        let rank = self.turn.rank();
        self.turn
            .with(|net, _| net.qps.ranks[rank].written_regions.take(keys))
    }

    fn accounting(&mut self) -> Option<&mut dyn Accounting> {
        Some(self)
    }

    fn wait(&mut self, nanos: u64) -> Result<()> {
        self.wait_for(nanos, false)
    }

    fn wait_idle(&mut self, nanos: u64) -> Result<()> {
        self.wait_for(nanos, true)
    }

    fn port_events(&mut self) -> Vec<PortEvent> {
        // A host with one rail has no other rail to use instead.
        if self.rails.len() < 2 {
            return Vec::new();
        }
        let rank = self.turn.rank();
        self.turn
            .with(|net, _| net.qps.ranks.take_port_events(rank))
    }

    fn knows_cuts(&self) -> bool {
        self.turn
            .with(|net, _| Paths::of(&net.qps.run).knows_cuts())
    }

    fn signs(&mut self, peer: usize) -> Signs {
        let (rank, now) = (self.turn.rank(), self.turn.now());
        self.turn
            .with(|net, _| net.qps.ranks.signs(&net.qps.run, rank, peer, now))
    }

    fn add_ranks(&mut self, ranks: usize) -> Result<()> {
        let places = self.turn.with(|net, _| net.qps.ranks.len());
        match ranks <= places {
            true => Ok(()),
            false => Err(Error::Invalid(format!(
                "the modelled machine has places for {places} ranks, and there are to be {ranks}"
            ))),
        }
    }

    fn oob_send(&mut self, peer: usize, words: &[u8]) -> Result<()> {
        self.local.charge(&self.turn);
        self.turn.stay().map_err(deadlock)?;
        let from = self.turn.rank();
        self.turn.with(|net, clock| {
            let QueuePairs {
                run, ranks, ports, ..
            } = &mut net.qps;
            let latency = match ports.free_start.is_wanted {
                true => 0,
                false => OOB_LATENCY,
            };
            ranks.oob_send(run, (from, peer), words, latency, clock)
        })
    }

    fn oob_recv(&mut self) -> Result<Option<(usize, Vec<u8>)>> {
        self.local.charge(&self.turn);
        self.turn.observe().map_err(deadlock)?;
        let rank = self.turn.rank();
        let (word, time) = self.turn.with(|net, _| {
            let ranks = &mut net.qps.ranks;
            (ranks[rank].datagrams.take(), ranks.cpu(rank, CALL))
        });
        keep_busy(&self.turn, time, Activity::Listen.alone(0));
        Ok(word)
    }
}

impl Drop for ModelNode {
    fn drop(&mut self) {
        self.leave();
        self.turn.catch_up().ok();
        let rank = self.turn.rank();
        self.turn.with(|net, _| {
            net.leave(rank);
        });
    }
}
