//! The machine on which a rank lives, and its time: virtual on a modelled one.

use datatype::local_work::{Clock, Meter};
use device::{Abilities, Effort, Note, ProgramCall, VirtualTime};

use crate::rdma::Rdma;
use crate::{Result, Router};

/// The machine of a rank, as its node shows it. A rank without devices has none.
pub struct Machine<'a>(Option<&'a mut Rdma>);

impl Router {
    /// The machine of this rank.
    #[inline(always)]
    pub fn machine(&mut self) -> Machine<'_> {
        Machine(self.transports.rdma.as_deref_mut())
    }
}

impl Machine<'_> {
    /// The program enters a call of the library, after computing. Only virtual time needs this.
    pub fn enter(&mut self, call: ProgramCall) {
        if let Some(rdma) = &mut self.0 {
            rdma.node().enter(call);
        }
    }

    /// A step of the program begins now, see [`Accounting::begin_step`](device::Accounting).
    pub fn begin_step(&mut self) {
        let accounting = self.0.as_mut().and_then(|rdma| rdma.node().accounting());
        if let Some(accounting) = accounting {
            accounting.begin_step();
        }
    }

    /// The program computes for `nanos` nanoseconds of virtual time before its next call.
    pub fn begin_computing(&mut self, nanos: u64) {
        let accounting = self.0.as_mut().and_then(|rdma| rdma.node().accounting());
        if let Some(accounting) = accounting {
            accounting.begin_computing(nanos);
        }
    }

    /// Lets the program compute until something arrives for a thread beside it. False: it has
    /// computed all the time.
    ///
    /// # Errors
    /// The rank has left its machine, or a peer is lost.
    pub fn compute(&mut self) -> Result<bool> {
        self.0.as_mut().map_or(Ok(false), |rdma| rdma.compute())
    }

    /// The call returns to the program. `is_sure` is false for a poll and a reading of the clock.
    pub fn leave(&mut self, is_sure: bool) {
        if let Some(rdma) = &mut self.0 {
            rdma.node().leave(is_sure);
        }
    }

    /// The messages that follow are those of a blocking send, or not, for a modelled machine whose
    /// library tells the two apart.
    pub fn begin_send(&mut self, is_blocking: bool) {
        if let Some(rdma) = &mut self.0 {
            rdma.node().charge(Effort::Blocking(is_blocking));
        }
    }

    /// Keeps the work of the rank on its own memory, as its meter has it, for a recording. Times
    /// are measured by `clock`.
    pub fn keep_local_work(&mut self, meter: &Meter, clock: Clock) {
        let Some(accounting) = self.0.as_mut().and_then(|rdma| rdma.node().accounting()) else {
            return;
        };
        for row in meter.rows(clock, |kind, class| accounting.is_new_work(kind, class)) {
            accounting.keep_local_work(row);
        }
    }

    /// Hands requests to the machine's storage, see [`Accounting::store`](device::Accounting).
    /// `None`: files take no virtual time.
    pub fn store(&mut self, requests: u64, bytes: u64) -> Option<u64> {
        self.0.as_mut()?.node().accounting()?.store(requests, bytes)
    }

    /// The rank's virtual time, if the machine is modelled. Reading it is not charged.
    pub fn virtual_time(&mut self) -> Option<VirtualTime> {
        let accounting = self.0.as_mut()?.node().accounting()?;
        Some(accounting.time())
    }

    /// The machine is modelled and keeps notes of its ranks.
    pub fn keeps_notes(&mut self) -> bool {
        let accounting = self.0.as_mut().and_then(|rdma| rdma.node().accounting());
        accounting.is_some_and(|accounting| accounting.keeps_notes())
    }

    /// Keeps a note of this rank, in its present call.
    pub fn note(&mut self, note: Note) {
        let accounting = self.0.as_mut().and_then(|rdma| rdma.node().accounting());
        if let Some(accounting) = accounting {
            accounting.note(note);
        }
    }

    /// The abilities of the rank's surroundings, beside messages.
    #[inline(always)]
    pub fn abilities(&mut self) -> Abilities {
        let rdma = self.0.as_mut();
        rdma.map_or(Abilities::REAL, |rdma| rdma.node().abilities())
    }

    /// Time is virtual: the machine is modelled.
    #[inline(always)]
    pub(crate) fn is_virtual(&mut self) -> bool {
        let rdma = self.0.as_mut();
        rdma.is_some_and(|rdma| rdma.node().is_virtual())
    }

    /// The devices' clock, in nanoseconds, if the rank has devices.
    pub fn now(&mut self) -> u64 {
        self.0.as_mut().map_or(0, |rdma| rdma.node().now())
    }
}
