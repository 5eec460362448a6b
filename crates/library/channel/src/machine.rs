//! A rank's access to the machine on which it runs: its clock, the charging of processor work,
//! modelled storage. On a real host most of these calls do nothing.

use datatype::local_work::{Clock, Meter};
use device::{Abilities, Effort, Note, ProgramCall, VirtualTime};

use crate::rdma::Rdma;
use crate::{Result, Router};

/// The machine of a rank, accessed through the rank's node. `None`: the rank has no devices.
pub struct Machine<'a>(Option<&'a mut Rdma>);

impl Router {
    /// The machine on which this rank runs: real or modelled.
    #[inline(always)]
    pub fn machine(&mut self) -> Machine<'_> {
        Machine(self.transports.rdma.as_deref_mut())
    }
}

impl Machine<'_> {
    /// Begins a call of the program, so that the time since the last call counts as computing. Only
    /// virtual time needs this.
    pub fn enter(&mut self, call: ProgramCall) {
        if let Some(rdma) = &mut self.0 {
            rdma.node().enter(call);
        }
    }

    /// Records that a step of the program begins, in the replay of a trace; see
    /// [`Accounting::begin_step`](device::Accounting).
    pub fn begin_step(&mut self) {
        let accounting = self.0.as_mut().and_then(|rdma| rdma.node().accounting());
        if let Some(accounting) = accounting {
            accounting.begin_step();
        }
    }

    /// Announces that the program computes for `nanos` nanoseconds of virtual time before its next
    /// call.
    pub fn begin_computing(&mut self, nanos: u64) {
        let accounting = self.0.as_mut().and_then(|rdma| rdma.node().accounting());
        if let Some(accounting) = accounting {
            accounting.begin_computing(nanos);
        }
    }

    /// Lets the program compute until something arrives that a progress thread would handle. False:
    /// the program has computed to the end.
    ///
    /// # Errors
    /// The rank has left its machine, or a peer is lost.
    pub fn compute(&mut self) -> Result<bool> {
        self.0.as_mut().map_or(Ok(false), |rdma| rdma.compute())
    }

    /// Ends a call of the program.
    pub fn leave(&mut self) {
        if let Some(rdma) = &mut self.0 {
            rdma.node().leave();
        }
    }

    /// Begins the send of a message of this length. Only a modelled machine needs this whose
    /// library distinguishes blocking from nonblocking sends, or that has times by length.
    pub fn begin_send(&mut self, length: usize, is_blocking: bool) {
        if let Some(rdma) = &mut self.0 {
            rdma.node().charge(match is_blocking {
                true => Effort::BlockingMessage(length),
                false => Effort::Message(length),
            });
        }
    }

    /// Announces that an MPI library uses the machine. True: it must be informed of each message,
    /// by [`begin_send`](Self::begin_send).
    pub fn attach_library(&mut self) -> bool {
        let accounting = self.0.as_mut().and_then(|rdma| rdma.node().accounting());
        accounting.is_some_and(|accounting| accounting.attach_library())
    }

    /// Adds to the recording the rank's work on its own memory, as its meter has counted it.
    /// `clock` measures the times.
    pub fn keep_local_work(&mut self, meter: &Meter, clock: Clock) {
        let Some(accounting) = self.0.as_mut().and_then(|rdma| rdma.node().accounting()) else {
            return;
        };
        for row in meter.rows(clock, |kind, class| accounting.is_new_work(kind, class)) {
            accounting.keep_local_work(row);
        }
    }

    /// Submits requests to the machine's modelled storage, see
    /// [`Accounting::store`](device::Accounting). `None`: files take no virtual time.
    pub fn store(&mut self, requests: u64, bytes: u64) -> Option<u64> {
        self.0.as_mut()?.node().accounting()?.store(requests, bytes)
    }

    /// The rank's virtual time, if the machine is modelled. Reading it is not charged.
    pub fn virtual_time(&mut self) -> Option<VirtualTime> {
        let accounting = self.0.as_mut()?.node().accounting()?;
        Some(accounting.time())
    }

    /// True if the machine is modelled and records notes of its ranks, such as those about accesses
    /// to windows.
    pub fn keeps_notes(&mut self) -> bool {
        let accounting = self.0.as_mut().and_then(|rdma| rdma.node().accounting());
        accounting.is_some_and(|accounting| accounting.keeps_notes())
    }

    /// Records a note of this rank, in its present call: integers that the machine does not
    /// interpret.
    pub fn note(&mut self, note: Note) {
        let accounting = self.0.as_mut().and_then(|rdma| rdma.node().accounting());
        if let Some(accounting) = accounting {
            accounting.note(note);
        }
    }

    /// The abilities of the rank's machine, apart from messages.
    #[inline(always)]
    pub fn abilities(&mut self) -> Abilities {
        let rdma = self.0.as_mut();
        rdma.map_or(Abilities::REAL, |rdma| rdma.node().abilities())
    }

    /// True if time is virtual: the machine is modelled.
    #[inline(always)]
    pub(crate) fn is_virtual(&mut self) -> bool {
        let rdma = self.0.as_mut();
        rdma.is_some_and(|rdma| rdma.node().is_virtual())
    }

    /// The time of the devices' clock, in nanoseconds; 0 if the rank has no devices.
    pub fn now(&mut self) -> u64 {
        self.0.as_mut().map_or(0, |rdma| rdma.node().now())
    }
}
