//! The costs that the ranks of this host share, as the rest of a rank sees them.

use cost_cache::CostLines;

use super::Messages;
use super::host_costs::{Cost, KnownCost};
use crate::algorithms::contest::{KeptWays, Subject, WAYS};

impl Messages {
    /// Takes costs that earlier jobs of the user have measured on this host, for all its ranks.
    pub(crate) fn begin_with(&self, kept: &CostLines) {
        self.host_costs.begin_with(kept);
    }

    /// True if this rank knows all costs that earlier jobs have kept.
    pub(crate) fn knows_kept_costs(&self) -> bool {
        self.host_costs.is_complete()
    }

    /// The costs of collective calls of a pair of members (true), or of more, that earlier jobs
    /// have kept.
    pub(crate) fn kept_ways(&self, is_pair: bool) -> KeptWays {
        self.host_costs.kept_ways(is_pair)
    }

    /// Stores the costs of collective calls: the sums of the times that the members need, in
    /// nanoseconds; 0 for a variant of `Way` that was not measured.
    pub(crate) fn store_ways(&self, subject: Subject, members: usize, sums: [u64; WAYS]) {
        let bytes = (members.max(1) * subject.situation().1) as u64;
        for (way, sum) in sums.into_iter().enumerate().filter(|(_, sum)| *sum > 0) {
            let ps = u32::try_from(sum.saturating_mul(1000) / bytes).unwrap_or(u32::MAX);
            self.host_costs
                .store(Cost::Call(subject, members == 2, way), ps);
        }
    }

    /// The costs of this host to be kept for later jobs. `None`: its ranks have measured none.
    pub(crate) fn costs_to_keep(&self) -> Option<CostLines> {
        self.host_costs.to_keep()
    }

    /// The costs that the ranks of this host know.
    pub(crate) fn known_costs(&self) -> impl Iterator<Item = KnownCost> {
        self.host_costs.known()
    }

    /// The time that each member needs for a collective call in which it publishes `published`
    /// bytes, in nanoseconds, by each variant of `Way` whose cost the ranks of this host know.
    pub(crate) fn call_times(
        &self,
        subject: Subject,
        members: usize,
        published: usize,
    ) -> [Option<u64>; WAYS] {
        std::array::from_fn(|way| {
            let ps = self
                .host_costs
                .get(Cost::Call(subject, members == 2, way))?;
            Some(u64::from(ps).saturating_mul(published as u64) / 1000)
        })
    }
}
