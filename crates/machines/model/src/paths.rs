//! Paths between hosts, as the plan of faults leaves them: for out-of-band messages, which need one
//! path that carries something, and for ranks, which are to know when none does.
//!
//! The plan is fixed before a run, so everything here is a pure function of time.

use sim::Time;

use super::MachineModel;
use super::port_faults::{PortFault, PortFaultKind};
use device::Signs;

impl PortFault {
    /// The time, from the beginning to the end, in which nothing passes the port, if it includes
    /// `at`.
    fn dark(&self, at: Time) -> Option<(Time, Time)> {
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

    /// The fault may end all paths to a host for long.
    pub(super) fn cuts(&self) -> bool {
        matches!(self.kind, PortFaultKind::Down | PortFaultKind::Silent)
    }
}

/// The time from which on one of these faults has let nothing pass until `at`. None: something
/// passes at `at`.
fn dark_since<'a>(faults: impl Iterator<Item = &'a PortFault> + Clone, at: Time) -> Option<Time> {
    let begins = |at: Time| {
        let dark = faults.clone().filter_map(|fault| fault.dark(at));
        dark.map(|(begin, _)| begin).min()
    };
    let mut since = begins(at)?;
    // Another fault may have begun earlier, and have ended when this one had begun.
    while since > 0
        && let Some(earlier) = begins(since - 1)
    {
        since = earlier;
    }
    Some(since)
}

/// The first time from `at` on at which something passes. `Time::MAX`: none.
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

impl MachineModel {
    /// The plan has faults that end all paths to a host.
    pub(super) fn knows_cuts(&self) -> bool {
        let mut faults = self.faults.ports.as_slice().iter();
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
                    let ports = &self.faults.ports;
                    let (ours, theirs) = (ports.of_port(from, ours), ports.of_port(to, theirs));
                    results.push(of(ours.chain(theirs).collect()));
                }
            }
        }
        results
    }

    /// The time since which no path between two hosts carries anything. None: one does.
    fn cut_since(&self, from: u32, to: u32, at: Time) -> Option<Time> {
        if from == to {
            return None;
        }
        let since = self.of_paths((from, to), |faults| dark_since(faults.into_iter(), at));
        let since: Option<std::vec::Vec<Time>> = since.into_iter().collect();
        since?.into_iter().max()
    }

    /// The first time from `at` on at which some path between two hosts carries something.
    pub(super) fn path_opens(&self, from: u32, to: u32, at: Time) -> Time {
        if from == to || !self.knows_cuts() {
            return at;
        }
        let opens = |faults: std::vec::Vec<&PortFault>| Some(bright_from(faults.into_iter(), at));
        let opens = self.of_paths((from, to), opens);
        opens.into_iter().flatten().min().unwrap_or(at)
    }

    /// The signs of life of a peer for a rank at time `at`. A living peer is always heard, as far
    /// as a path exists.
    pub(super) fn signs(&self, rank: u32, peer: usize, at: Time) -> Signs {
        let (own, Some(theirs)) = (&self.ranks[rank as usize], self.ranks.get(peer)) else {
            return Signs::default();
        };
        let cut = self.cut_since(own.host, theirs.host, at);
        let is_heard = cut.is_none() && !theirs.gone;
        Signs {
            last: is_heard.then_some(at / 1000),
            tell: true,
            refused: None,
            cut: cut.map(|since| since / 1000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
