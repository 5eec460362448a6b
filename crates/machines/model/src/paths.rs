//! Paths between hosts under the planned faults. Out-of-band messages need a path that carries
//! packets, and ranks must learn when there is none.
//!
//! The plan is fixed before a run, so all functions here are pure functions of time.

use fabric::System;
use sim::Time;

use super::port_faults::{PortFault, PortFaults};
use super::run::Run;
use device::Signs;

/// The time since which these faults have let no packet pass, without a gap, until `at`. `None`:
/// packets pass at `at`.
fn dark_since<'a>(faults: impl Iterator<Item = &'a PortFault> + Clone, at: Time) -> Option<Time> {
    let begins = |at: Time| {
        let dark = faults.clone().filter_map(|fault| fault.dark(at));
        dark.map(|(begin, _)| begin).min()
    };
    let mut since = begins(at)?;
    // Another fault may have begun earlier, and have ended after this one had begun.
    while since > 0
        && let Some(earlier) = begins(since - 1)
    {
        since = earlier;
    }
    Some(since)
}

/// The first time from `at` on at which packets pass. `Time::MAX`: never.
fn bright_from<'a>(faults: impl Iterator<Item = &'a PortFault> + Clone, at: Time) -> Time {
    let mut at = at;
    while at < Time::MAX {
        let dark = faults.clone().filter_map(|fault| fault.dark(at));
        match dark.map(|(_, end)| end).max() {
            Some(end) => at = end,
            None => break,
        }
    }
    at
}

/// The hosts of a system, and the planned faults of their ports.
#[derive(Clone, Copy)]
pub(crate) struct Paths<'a> {
    pub system: &'a System,
    pub faults: &'a PortFaults,
}

impl Paths<'_> {
    /// The paths between the hosts of the machine.
    pub(crate) fn of(run: &Run) -> Paths<'_> {
        Paths {
            system: &run.system,
            faults: &run.faults.ports,
        }
    }

    /// True if the plan has faults that can end all paths to a host.
    pub(crate) fn knows_cuts(&self) -> bool {
        let mut faults = self.faults.as_slice().iter();
        faults.any(PortFault::cuts)
    }

    /// The result of `of` for each path between two hosts, with the faults of the ports at both
    /// ends. A path joins ports of one network.
    fn of_paths(
        &self,
        (from, to): (u32, u32),
        of: impl Fn(std::vec::Vec<&PortFault>) -> Option<Time>,
    ) -> std::vec::Vec<Option<Time>> {
        let (near, far) = (self.system.rails_of(from), self.system.rails_of(to));
        let mut results = std::vec::Vec::new();
        for (ours, network) in (0..).zip(near.iter()) {
            for (theirs, other) in (0..).zip(far.iter()) {
                if network == other {
                    let ours = self.faults.of_port(from, ours);
                    let theirs = self.faults.of_port(to, theirs);
                    results.push(of(ours.chain(theirs).collect()));
                }
            }
        }
        results
    }

    /// The time since which no path between two hosts carries packets. `None`: a path does.
    fn cut_since(&self, from: u32, to: u32, at: Time) -> Option<Time> {
        if from == to {
            return None;
        }
        let since = self.of_paths((from, to), |faults| dark_since(faults.into_iter(), at));
        let since: Option<std::vec::Vec<Time>> = since.into_iter().collect();
        since?.into_iter().max()
    }

    /// The first time from `at` on at which some path between two hosts carries packets.
    pub(crate) fn path_opens(&self, from: u32, to: u32, at: Time) -> Time {
        if from == to || !self.knows_cuts() {
            return at;
        }
        let opens = |faults: std::vec::Vec<&PortFault>| Some(bright_from(faults.into_iter(), at));
        let opens = self.of_paths((from, to), opens);
        opens.into_iter().flatten().min().unwrap_or(at)
    }

    /// The signs that a rank on host `to` is alive, for a rank on host `from` at the time `at`. A
    /// living peer always gives signs if a path exists.
    pub(crate) fn signs(&self, from: u32, to: u32, is_alive: bool, at: Time) -> Signs {
        let cut = self.cut_since(from, to, at);
        let is_heard = cut.is_none() && is_alive;
        Signs {
            last: is_heard.then_some(at / 1000),
            tell: true,
            refused: None,
            cut: cut.map(|since| since / 1000),
        }
    }

    /// True if a fault causes port events on a host. A host with one rail has no use for them.
    pub(crate) fn causes_events(&self, host: u32, fault: &PortFault) -> bool {
        let rails = self.system.rails_of(host).len();
        rails >= 2 && fault.takes_down() && self.takes_port(host, fault)
    }

    /// True if a fault is on a port of this host. Two hosts back to back share the link.
    fn takes_port(&self, host: u32, fault: &PortFault) -> bool {
        let numbers = self.system.rails_of(fault.host);
        let number = numbers.get(fault.rail as usize);
        let direct = number.is_some_and(|&number| self.system.rail(number).switch.ports == 0);
        let rails = self.system.rails_of(host).len() as u32;
        fault.host == host || direct && fault.rail < rails
    }

    /// True if some fault keeps the port of a host's rail down at the time `at`.
    pub(crate) fn is_down(&self, host: u32, rail: u32, at: Time) -> bool {
        let mut faults = self.faults.as_slice().iter();
        faults.any(|other| other.rail == rail && self.takes_port(host, other) && other.is_down(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port_faults::PortFaultKind;

    fn fault(from: Time, until: Time, kind: PortFaultKind) -> PortFault {
        PortFault {
            from,
            until,
            kind,
            ..PortFault::default()
        }
    }

    #[test]
    fn faults_that_follow_each_other_are_one_time_in_the_dark() {
        let faults = [
            fault(100, 200, PortFaultKind::Down),
            fault(150, 300, PortFaultKind::Silent),
            fault(300, 400, PortFaultKind::Down),
            fault(0, 1000, PortFaultKind::LostAcknowledgements),
            fault(500, Time::MAX, PortFaultKind::Silent),
        ];
        let since = |at| dark_since(faults.iter(), at);
        assert_eq!(
            (since(99), since(100), since(399)),
            (None, Some(100), Some(100))
        );
        assert_eq!((since(400), since(501)), (None, Some(500)));
        let from = |at| bright_from(faults.iter(), at);
        assert_eq!(
            (from(99), from(100), from(250), from(400)),
            (99, 400, 400, 400)
        );
        assert_eq!(from(500), Time::MAX);
    }

    #[test]
    fn a_flapping_port_is_dark_for_the_first_half_of_each_period() {
        let faults = [fault(1000, 9000, PortFaultKind::Flapping(2000))];
        let since = |at| dark_since(faults.iter(), at);
        assert_eq!(
            (since(1999), since(2000), since(3500)),
            (Some(1000), None, Some(3000))
        );
        assert_eq!(bright_from(faults.iter(), 3500), 4000);
        assert_eq!(bright_from(faults.iter(), 4100), 4100);
    }
}
