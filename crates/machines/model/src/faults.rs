//! The faults of a machine. They are drawn from the clock's random numbers, so that one seed always
//! gives the same faults.

use sim::{Random, Time};

use super::port_faults::{PortFaultKind, PortFaults};
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
    /// The greatest delay of a late packet, in picoseconds.
    pub latest: Time,
    /// If set, the bytes of a message become visible in pieces and in any order, within this time
    /// (in picoseconds) before its completion.
    pub scatter: Option<Time>,
    /// The probability that a message breaks its queue pair.
    pub breaks: u32,
    /// The real capacity of every completion queue, if smaller than the requested one.
    pub completions: u32,
    /// The faults of single ports.
    pub ports: PortFaults,
    /// The number of a slow host, and the time of its processors as a percentage of the others'.
    pub slow: Option<(u32, u32)>,
    /// The acknowledgement timeout of a requester, in picoseconds.
    pub timeout: Time,
    /// The number of retries after timeouts before a requester fails.
    pub retries: u32,
    /// The wait of a requester whose peer has no receive posted, in picoseconds.
    pub rnr_wait: Time,
    /// The number of waits for a peer without a posted receive, before a requester fails; 7 means
    /// no limit (IBA 9.7.5.2.8).
    pub rnr_retries: u32,
    /// True if the devices have no immediates, like those of iWARP.
    pub no_immediates: bool,
}

impl Default for Faults {
    /// No faults. The timers are those that MPI libraries set: 4.096 us x 2^14 for an
    /// acknowledgement, 7 retries, and 0.64 ms for a receiver that is not ready, without a limit.
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
    /// True if packets can be lost, so that acknowledgements matter even to unsignaled requests.
    pub(crate) fn lose_packets(&self) -> bool {
        let mut ports = self.ports.as_slice().iter();
        self.loss > 0 || ports.any(|fault| !matches!(fault.kind, PortFaultKind::Rate(_)))
    }

    pub(crate) fn slowness(&self, host: u32) -> u32 {
        match self.slow {
            Some((slow, percent)) if slow == host => percent,
            _ => 100,
        }
    }

    pub(crate) fn placement(&self) -> Placement {
        match self.scatter {
            Some(_) => Placement::Completion,
            None => Placement::Ordered,
        }
    }

    /// True if no packet is lost, late or slow.
    #[inline]
    pub(crate) fn are_calm(&self) -> bool {
        self.loss == 0 && self.late == 0 && self.ports.as_slice().is_empty()
    }

    /// Draws whether a message breaks its queue pair.
    #[inline]
    pub(crate) fn break_now(&self, random: &mut Random) -> bool {
        self.breaks > 0 && random.happens(self.breaks)
    }

    /// Draws the delay of a packet. `None`: the packet is lost.
    pub(crate) fn delay(&self, random: &mut Random) -> Option<Time> {
        if random.happens(self.loss) {
            return None;
        }
        Some(match random.happens(self.late) && self.latest > 0 {
            true => random.below(self.latest),
            false => 0,
        })
    }
}
