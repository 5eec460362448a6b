//! The costs of a rank's paths over its rails in use, from which protocols and limits are computed.

use device::{Attributes, Node};

use super::rail_set::RailSet;
use crate::PathCosts;
use knobs::RdmaDesign;

/// The additional time of a read where a processor must be interrupted for the answer, or the peer
/// must poll, in nanoseconds.
const INTERRUPT_NS: u64 = 10_000;

/// The costs of this rank's paths. They are computed once, because a limit that follows from them
/// must not change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paths {
    /// The costs of the path to ranks that devices reach.
    across: PathCosts,
    /// The path to ranks of this host, where processors carry messages. `None`: devices reach all
    /// ranks.
    within: Option<PathCosts>,
}

impl Paths {
    /// The paths of `rank` over the rails `in_use`. Packets have bodies of at most `packet` bytes.
    pub(super) fn of(
        node: &mut dyn Node,
        (rank, in_use): (usize, RailSet),
        (design, packet): (RdmaDesign, usize),
    ) -> Paths {
        let rails: Vec<Attributes> = in_use
            .iter()
            .map(|rail| node.rail(rail).attributes().clone())
            .collect();
        let is_slow = rails.iter().any(|rail| rail.by_processor || rail.polled);
        let answer_ns = if is_slow { INTERRUPT_NS } else { 0 };
        let (host, can_read) = (node.host_costs(), design == RdmaDesign::ZeroCopy);
        let within = node.store_costs(rank);
        let within = within.map(|store| PathCosts::within(&host, &store));
        Paths {
            across: PathCosts::over(&rails, &host, answer_ns).with_limit(packet, can_read),
            within: within.map(|path| path.with_limit(packet, can_read)),
        }
    }

    /// True if processors of this host move the messages to `peer`.
    pub(super) fn is_within(&self, node: &mut dyn Node, peer: usize) -> bool {
        self.within.is_some() && node.store_costs(peer).is_some()
    }

    /// The costs of the path to another host, and of the path within this host.
    pub(super) fn both(&self) -> [PathCosts; 2] {
        [self.across, self.within.unwrap_or(self.across)]
    }
}
