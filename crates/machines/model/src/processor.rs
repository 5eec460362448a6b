//! The work of a rank's processor, charged to the rank whose turn it is: its clock advances by the
//! time of the work.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use device::Error;
use fabric::Bytes;
use sim::{Deadlock, Time, Turn};

use super::efforts::{SHARE, SHORT};
use super::machine::MachineModel;
use super::span::{Activity, Doing};

/// The work of a rank on its own memory. The rank adds it up, and the machine charges it before
/// anything else that the rank does.
#[derive(Default)]
pub(crate) struct LocalSum {
    /// The time that has not been charged, on a normal processor, in picoseconds.
    pub owed: Arc<AtomicU64>,
    /// The time that has been charged, on the rank's processor, in picoseconds.
    pub charged: Cell<Time>,
}

impl LocalSum {
    /// Charges the processor for the work that has not been charged.
    #[inline]
    pub(crate) fn charge(&self, turn: &Turn<MachineModel>) {
        if self.owed.load(Ordering::Relaxed) > 0 {
            self.charge_some(turn);
        }
    }

    #[cold]
    fn charge_some(&self, turn: &Turn<MachineModel>) {
        let owed = self.owed.swap(0, Ordering::Relaxed);
        let time = turn.with(|net, _| net.qps.ranks.cpu(turn.rank(), owed));
        self.charged.set(self.charged.get() + time);
        keep_busy(turn, time, Activity::Local.alone(0));
    }
}

/// Charges a rank for a copy of `len` bytes, at the rate of the processor, or slower if other
/// transfers use the host's memory.
pub(crate) fn copy(turn: &Turn<MachineModel>, len: usize) {
    let mut left = len;
    while left > 0 {
        let part = left.min(SHARE);
        left -= part;
        let rank = turn.rank();
        if part > SHORT {
            turn.catch_up().ok();
        }
        let (before, time) = turn.with(|net, _| {
            let (ranks, ports) = (&net.qps.ranks, &mut net.qps.ports);
            let bytes = Bytes(part as u64);
            let costs = &ports.first().costs;
            let (own, traffic) = (costs.copy(bytes), costs.memory_of_copy(bytes));
            let place = &ranks[rank];
            let host = &mut ports.hosts[place.host as usize];
            let before = host.moved;
            host.moved += match place.is_free {
                true => 0,
                false => traffic.picos(),
            };
            (before, ranks.cpu(rank, own.picos()))
        });
        keep_busy(turn, time, Activity::Copy.alone(part));
        if part <= SHORT {
            continue;
        }
        turn.settle().ok();
        // All concurrent transfers of a host share its memory.
        let busy = turn.with(|net, _| {
            let host = net.qps.ranks[rank].host as usize;
            net.qps.ports.hosts[host].moved - before
        });
        keep_busy(turn, busy.saturating_sub(time), Activity::Memory.alone(0));
    }
}

/// Occupies the processor of a rank for `time`.
pub(crate) fn keep_busy(turn: &Turn<MachineModel>, time: Time, doing: Doing) {
    turn.with(|net, clock| net.note(turn.rank(), clock.of(turn.rank()), time, doing));
    turn.spend(time);
}

pub(crate) fn deadlock(_: Deadlock) -> Error {
    Error::Deadlock
}
