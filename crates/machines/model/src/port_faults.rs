//! Faults of ports: the effect on one port of a host, and the time of it.

use fabric::System;
use sim::Time;

/// The greatest number of faults of ports in a plan.
pub const MOST_PORT_FAULTS: usize = 16;

/// A fault of one port for a span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortFault {
    /// The number of the port's host.
    pub host: u32,
    /// The rail of the port, by the numbers of its host.
    pub rail: u32,
    /// The time at which the fault starts.
    pub from: Time,
    /// The end of the fault; `Time::MAX`: it never ends.
    pub until: Time,
    /// The kind of the fault.
    pub kind: PortFaultKind,
}

/// The kind of fault that a port has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PortFaultKind {
    /// The link is down: every packet from and to the port is lost, and the host's ranks get port
    /// events when the fault begins and ends.
    #[default]
    Down,
    /// Every packet from and to the port is lost without a port event, as with a fault beyond the
    /// port's own link.
    Silent,
    /// The link is down for the first half of each period of this length, and up for the second
    /// half.
    Flapping(Time),
    /// Messages arrive, but acknowledgements and responses that the port sends are lost.
    LostAcknowledgements,
    /// The link has this share of its bandwidth in both directions, in thousandths.
    Rate(u32),
}

impl PortFault {
    fn is_on(&self, at: Time) -> bool {
        (self.from..self.until).contains(&at)
    }

    /// True if the fault keeps the link down at the time `at`.
    pub(crate) fn is_down(&self, at: Time) -> bool {
        match self.kind {
            PortFaultKind::Down => self.is_on(at),
            PortFaultKind::Flapping(period) => {
                self.is_on(at) && (at - self.from) % period < period.div_ceil(2)
            }
            _ => false,
        }
    }

    /// True if a packet at the port is lost at the time `at`. `answer`: the packet is an
    /// acknowledgement or a response that the port sends.
    pub(crate) fn loses(&self, at: Time, answer: bool) -> bool {
        match self.kind {
            PortFaultKind::Silent => self.is_on(at),
            PortFaultKind::LostAcknowledgements => answer && self.is_on(at),
            PortFaultKind::Rate(_) => false,
            PortFaultKind::Down | PortFaultKind::Flapping(_) => self.is_down(at),
        }
    }

    /// The first time after `after` at which the fault may take the link down or bring it up.
    pub(crate) fn next_change(&self, after: Time) -> Option<Time> {
        let next = match self.kind {
            _ if after < self.from => Some(self.from),
            PortFaultKind::Flapping(period) => {
                let passed = (after - self.from) % period;
                let half = period.div_ceil(2);
                let next = if passed < half { half } else { period };
                Some((after - passed).saturating_add(next).min(self.until))
            }
            _ => Some(self.until),
        };
        next.filter(|&next| after < next && next < Time::MAX)
    }

    /// True if the fault causes port events.
    pub(crate) fn takes_down(&self) -> bool {
        matches!(self.kind, PortFaultKind::Down | PortFaultKind::Flapping(_))
    }

    /// The span of time around `at` during which no packet passes the port, from its beginning to
    /// its end. `None`: packets pass at `at`.
    pub(crate) fn dark(&self, at: Time) -> Option<(Time, Time)> {
        if !(self.from..self.until).contains(&at) {
            return None;
        }
        match self.kind {
            PortFaultKind::Down | PortFaultKind::Silent => Some((self.from, self.until)),
            PortFaultKind::Flapping(period) => {
                let passed = (at - self.from) % period;
                let half = period.div_ceil(2);
                let begin = at - passed;
                (passed < half).then(|| (begin, (begin + half).min(self.until)))
            }
            PortFaultKind::LostAcknowledgements | PortFaultKind::Rate(_) => None,
        }
    }

    /// True if the fault may end all paths to a host for long.
    pub(crate) fn cuts(&self) -> bool {
        matches!(self.kind, PortFaultKind::Down | PortFaultKind::Silent)
    }
}

/// The faults of the ports of a machine: at most [`MOST_PORT_FAULTS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortFaults {
    len: usize,
    faults: [PortFault; MOST_PORT_FAULTS],
}

impl PortFaults {
    /// The plan with these faults. An error about the first one that is not valid.
    pub fn of(faults: &[PortFault]) -> Result<PortFaults, String> {
        let mut all = PortFaults::default();
        for fault in faults {
            all.push(*fault)?;
        }
        Ok(all)
    }

    /// Adds a fault. An error states why it is not valid.
    pub fn push(&mut self, fault: PortFault) -> Result<(), String> {
        if fault.from >= fault.until {
            return Err("the fault ends before it begins".into());
        }
        match fault.kind {
            PortFaultKind::Flapping(0..1000) => {
                return Err("a period is shorter than 1 ns".into());
            }
            PortFaultKind::Rate(0) => {
                return Err("a rate of 0 carries nothing: use a link that is down".into());
            }
            PortFaultKind::Rate(1001..) => {
                return Err("a rate is a share of the link's own, at most 1".into());
            }
            _ => {}
        }
        let place = self.faults.get_mut(self.len);
        *place.ok_or_else(|| format!("more than {MOST_PORT_FAULTS} faults of ports"))? = fault;
        self.len += 1;
        Ok(())
    }

    /// The faults, in the order in which they were added.
    pub fn as_slice(&self) -> &[PortFault] {
        &self.faults[..self.len]
    }

    /// Checks that the system has the ports of all faults.
    pub fn check(&self, system: &System) -> Result<(), String> {
        for fault in self.as_slice() {
            let (host, rail) = (fault.host, fault.rail);
            if host >= system.nodes {
                return Err(format!(
                    "there is no host {host}: the system has {} hosts, counted from 0",
                    system.nodes
                ));
            }
            let rails = system.rails_of(host).len();
            if rail as usize >= rails {
                let plural = if rails == 1 { "" } else { "s" };
                return Err(format!(
                    "host {host} has no rail {rail}: it has {rails} rail{plural}, counted from 0"
                ));
            }
        }
        Ok(())
    }

    pub(crate) fn of_port(&self, host: u32, rail: u32) -> impl Iterator<Item = &PortFault> + Clone {
        let of = move |fault: &&PortFault| (fault.host, fault.rail) == (host, rail);
        self.as_slice().iter().filter(of)
    }

    /// The time on the link of a port for a packet that takes `time` at the link's own rate.
    #[cold]
    pub(crate) fn slowed(&self, (host, rail): (u32, u32), at: Time, time: Time) -> Time {
        let shares = self
            .of_port(host, rail)
            .filter_map(|fault| match fault.kind {
                PortFaultKind::Rate(share) if fault.is_on(at) => Some(share),
                _ => None,
            });
        // Of several faults, the slowest rate counts.
        let share = shares.min().unwrap_or(1000);
        time * 1000 / u64::from(share)
    }

    /// True if a fault makes a link slow at some time.
    pub(crate) fn has_slow(&self) -> bool {
        let mut all = self.as_slice().iter();
        all.any(|fault| matches!(fault.kind, PortFaultKind::Rate(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flapping_port_changes_at_each_half_period() {
        let fault = PortFault {
            from: 5_000,
            until: 12_000,
            kind: PortFaultKind::Flapping(2_000),
            ..PortFault::default()
        };
        let mut at = 0;
        let mut changes = Vec::new();
        while let Some(next) = fault.next_change(at) {
            at = next;
            changes.push((at, fault.is_down(at)));
        }
        let times = [5_000, 6_000, 7_000, 8_000, 9_000, 10_000, 11_000, 12_000];
        assert_eq!(
            changes,
            times.map(|time| (time, time % 2_000 == 1_000 && time < 12_000))
        );
        assert!(!fault.is_down(4_999) && !fault.is_down(6_999) && fault.is_down(11_999));
        let ever = PortFault {
            until: Time::MAX,
            kind: PortFaultKind::Down,
            ..fault
        };
        assert_eq!(ever.next_change(0), Some(5_000));
        assert_eq!(ever.next_change(5_000), None);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let fault = |from, until, kind| PortFault {
            from,
            until,
            kind,
            ..PortFault::default()
        };
        let why = |fault| PortFaults::of(&[fault]).unwrap_err();
        assert!(why(fault(5, 5, PortFaultKind::Down)).contains("ends before it begins"));
        assert!(why(fault(0, 5, PortFaultKind::Rate(0))).contains("carries nothing"));
        assert!(why(fault(0, 5, PortFaultKind::Rate(1001))).contains("at most 1"));
        assert!(why(fault(0, 5, PortFaultKind::Flapping(9))).contains("shorter than 1 ns"));
        let many = [fault(0, 5, PortFaultKind::Down); MOST_PORT_FAULTS + 1];
        assert!(PortFaults::of(&many).unwrap_err().contains("more than 16"));
        let good = PortFaults::of(&many[1..]).unwrap();
        assert_eq!(good.as_slice(), &many[1..]);
    }
}
