//! The policy that assigns rails to endpoints.
//!
//! The policy in use gives every endpoint one link, on the first rail. Both ends of an endpoint
//! must come to the same rails, so a policy depends only on what both know.

use super::rail_set::RailSet;

/// A rule for the rails of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RailAssignment {
    /// Every endpoint uses the first rail.
    First,
    /// Endpoints are spread over all rails by the ranks of their two ends.
    #[cfg(test)]
    Spread,
}

impl RailAssignment {
    /// The rail of the endpoint between `rank` and `peer`, of `rails` rails.
    pub(super) fn rail_for(self, rank: usize, peer: usize, rails: usize) -> usize {
        let rail = match self {
            RailAssignment::First => 0,
            #[cfg(test)]
            RailAssignment::Spread => (rank + peer) % rails,
        };
        debug_assert!(rail < rails, "rail {rail} between {rank} and {peer}");
        rail
    }

    /// The rails, of `rails`, that any endpoint of a rank may use.
    pub(super) fn in_use(self, rails: usize) -> RailSet {
        debug_assert!(rails > 0);
        match self {
            RailAssignment::First => RailSet::only(0),
            #[cfg(test)]
            RailAssignment::Spread => RailSet::below(rails),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_choose_the_same_rail_and_one_that_is_in_use() {
        for policy in [RailAssignment::First, RailAssignment::Spread] {
            for rails in 1..=4 {
                for (one, other) in [(0, 1), (3, 1), (7, 2)] {
                    let rail = policy.rail_for(one, other, rails);
                    assert_eq!(rail, policy.rail_for(other, one, rails));
                    assert!(policy.in_use(rails).contains(rail));
                }
            }
        }
    }
}
