//! Faults: drawn from the clock's random numbers, so that the same seed fails in the same way.

use sim::Time;

use super::port_faults::{PortFaultKind, PortFaults};
use super::rank::Arrival;
use super::{Clocked, MachineModel, NONE};
use device::Placement;

const MICRO: Time = 1_000_000;

/// The faults of a machine, and the timers of its queue pairs. Probabilities are in parts per
/// million.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Faults {
    /// The probability that a packet is lost.
    pub loss: u32,
    /// The probability that a packet is late. Packets of one queue pair do not overtake each other.
    pub late: u32,
    /// The largest delay of a late packet.
    pub latest: Time,
    /// If set, the bytes of a message become visible in pieces and in any order, within this time
    /// before its completion.
    pub scatter: Option<Time>,
    /// The probability that a message breaks its queue pair.
    pub breaks: u32,
    /// The real capacity of every completion queue.
    pub completions: u32,
    /// The faults of ports.
    pub ports: PortFaults,
    /// A slow host: its number, and the time that its processor takes, in percent of the others'.
    pub slow: Option<(u32, u32)>,
    /// The acknowledgement timeout of a requester.
    pub timeout: Time,
    /// The number of retries before a requester fails.
    pub retries: u32,
    /// The wait of a requester when the peer has no receive posted.
    pub rnr_wait: Time,
    /// The number of such waits; 7 means without limit (IBA 9.7.5.2.8).
    pub rnr_retries: u32,
    /// The devices have no immediates, like those of iWARP.
    pub no_immediates: bool,
}

impl Default for Faults {
    /// No faults. Timers are those that MPI libraries set: 4.096 us x 2^14 for an acknowledgement,
    /// 7 retries, 0.64 ms for a receiver that is not ready, without limit.
    fn default() -> Faults {
        Faults {
            loss: 0,
            late: 0,
            latest: 0,
            scatter: None,
            breaks: 0,
            completions: u32::MAX,
            ports: PortFaults::default(),
            slow: None,
            timeout: (4_096 * MICRO / 1000) << 14,
            retries: 7,
            rnr_wait: 640 * MICRO,
            rnr_retries: 7,
            no_immediates: false,
        }
    }
}

impl Faults {
    /// True if packets can be lost, so that acknowledgements matter beyond completions.
    pub(super) fn lose_packets(&self) -> bool {
        let mut ports = self.ports.as_slice().iter();
        self.loss > 0 || ports.any(|fault| !matches!(fault.kind, PortFaultKind::Rate(_)))
    }

    pub(super) fn slowness(&self, host: u32) -> u32 {
        match self.slow {
            Some((slow, percent)) if slow == host => percent,
            _ => 100,
        }
    }

    pub(super) fn placement(&self) -> Placement {
        match self.scatter {
            Some(_) => Placement::Completion,
            None => Placement::Ordered,
        }
    }
}

impl MachineModel {
    /// The arrival of a packet that would arrive at `there`. None: it is lost. An `answer` is an
    /// acknowledgement or a response.
    #[inline]
    pub(super) fn fate(
        &mut self,
        from: u32,
        to: u32,
        there: Time,
        answer: bool,
        clock: &mut Clocked,
    ) -> Option<Time> {
        if to == NONE {
            return None;
        }
        if self.is_within(from) {
            return Some(there);
        }
        let calm = self.faults.loss == 0 && self.faults.late == 0;
        if calm && self.faults.ports.as_slice().is_empty() {
            return Some(there);
        }
        self.rough_fate((from, to), there, answer, clock)
    }

    #[cold]
    fn rough_fate(
        &mut self,
        (from, to): (u32, u32),
        there: Time,
        answer: bool,
        clock: &mut Clocked,
    ) -> Option<Time> {
        let Faults {
            loss, late, latest, ..
        } = self.faults;
        let loses = |q: u32, at: Time, out: bool| {
            let adapter = &self.adapters[self.qps[q as usize].adapter as usize];
            let mut faults = self.faults.ports.of_port(adapter.host, adapter.rail);
            faults.any(|fault| fault.loses(at, out && answer))
        };
        let lost = loses(from, clock.now(), true) || loses(to, there, false);
        if lost || clock.random.happens(loss) {
            return None;
        }
        let delay = match clock.random.happens(late) && latest > 0 {
            true => clock.random.below(latest),
            false => 0,
        };
        let qp = &mut self.qps[from as usize];
        qp.arrival = qp.arrival.max(there + delay);
        Some(qp.arrival)
    }

    /// Draws whether a message breaks its queue pair.
    #[inline]
    pub(super) fn breaks(&mut self, clock: &mut Clocked) -> bool {
        self.faults.breaks > 0 && clock.random.happens(self.faults.breaks)
    }

    /// Announces when bytes become visible: together, or scattered.
    #[inline]
    pub(super) fn announce_bytes(
        &mut self,
        rank: u32,
        at: Time,
        what: Arrival,
        wakes: bool,
        clock: &mut Clocked,
    ) {
        match self.faults.scatter {
            None => self.announce(rank, at, what, wakes, clock),
            Some(over) => self.scatter(rank, at, what, wakes, over, clock),
        }
    }

    /// Announces bytes in pieces, each at some time before `at`: the completion comes later than
    /// any.
    #[cold]
    fn scatter(
        &mut self,
        rank: u32,
        at: Time,
        what: Arrival,
        wakes: bool,
        over: Time,
        clock: &mut Clocked,
    ) {
        let Arrival::Bytes {
            message,
            from,
            len,
            key,
            to,
        } = what
        else {
            return;
        };
        let earliest = clock.now().max(at.saturating_sub(over));
        let mut done = 0;
        while done < len {
            let left = u64::from(len - done);
            let size = (1 + clock.random.below(left.min(64))) as u32;
            let what = Arrival::Bytes {
                message,
                from: from + done,
                len: size,
                key,
                to: to + u64::from(done),
            };
            let when = at - clock.random.below(at - earliest + 1);
            self.announce(rank, when, what, wakes, clock);
            done += size;
        }
    }
}
