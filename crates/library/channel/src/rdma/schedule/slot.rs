//! The slot of a card: the card's connection to the host, whose bandwidth several links share.

use super::assignment::{HORIZON, SHORTEST_PIECE};
use super::estimate::{Estimate, capacity, duration};
use super::link_state::{LinkState, LinkTraits, Run};
use crate::rdma::rail_set::{MAX_RAILS, RailSet};

/// The slot of a card, shared by at least two links.
#[derive(Clone)]
pub(super) struct Slot {
    links: RailSet,
    /// The total bandwidth of the links. It starts from that of the fastest link, because the slot
    /// carries at least that much, and is learned while several are busy.
    pub estimate: Estimate,
    run: Run,
}

impl Slot {
    /// The slots of the cards with several links. Records in each of these links its slot.
    pub(super) fn of_cards(traits: &[LinkTraits], all: &mut [LinkState]) -> Vec<Slot> {
        let mut slots = Vec::new();
        for (position, first) in traits.iter().enumerate() {
            let of_card = |link: &usize| traits[*link].card == first.card;
            let links = (0..traits.len()).filter(of_card);
            let links = links.fold(RailSet::default(), RailSet::with);
            if links.iter().next() != Some(position) || links.iter().count() < 2 {
                continue;
            }
            let fastest = links.iter().map(|link| all[link].estimate.bandwidth());
            let estimate = Estimate::new(fastest.max().unwrap_or(0));
            for link in links.iter() {
                all[link].slot = Some(slots.len());
            }
            let run = Run::default();
            slots.push(Slot {
                links,
                estimate,
                run,
            });
        }
        slots
    }

    /// The number of links with bulk work, `link` among them.
    pub(super) fn sharers(&self, all: &[LinkState], link: usize) -> u64 {
        let busy = |other: &usize| *other == link || all[*other].outstanding() > 0;
        self.links.iter().filter(busy).count() as u64
    }

    /// Records a completion of a link while `sharers` links of the slot had work. Returns the
    /// bandwidth of each of them: an equal part of the slot's. `None`: the link had the slot for
    /// itself.
    pub(super) fn completed(
        &mut self,
        sharers: u64,
        bytes: u64,
        now: u64,
        late: Option<u64>,
    ) -> Option<u64> {
        match late.filter(|_| sharers >= 2) {
            None => self.run.restart(None),
            Some(late) => {
                if let Some(sample) = self.run.add(bytes, now, late) {
                    self.estimate.sample(sample);
                }
            }
        }
        (sharers >= 2).then(|| self.estimate.bandwidth() / sharers)
    }

    /// The links that run through the slot of the card.
    pub(super) fn links(&self) -> RailSet {
        self.links
    }

    /// The most bulk bytes that may be posted on the links of the slot and not complete.
    pub(super) fn horizon(&self, all: &[LinkState]) -> u64 {
        let times = self.links.iter().map(|link| all[link].horizon_time());
        let time = times.max().unwrap_or(HORIZON);
        capacity(self.estimate.bandwidth(), time).max(SHORTEST_PIECE)
    }

    /// The number of bulk bytes that the links of the slot may be given now.
    pub(super) fn room(&self, all: &[LinkState]) -> u64 {
        self.horizon(all).saturating_sub(self.outstanding(all))
    }

    /// True if no link of the slot has bulk work.
    pub(super) fn is_idle(&self, all: &[LinkState]) -> bool {
        self.links.iter().all(|link| all[link].outstanding() == 0)
    }

    fn outstanding(&self, all: &[LinkState]) -> u64 {
        let outstanding = self.links.iter().map(|link| all[link].outstanding());
        outstanding.fold(0, u64::saturating_add)
    }

    /// The time at which the bulk work of all links of the slot will have left.
    pub(super) fn ready(&self, all: &[LinkState], now: u64) -> u64 {
        now.saturating_add(duration(self.outstanding(all), self.estimate.bandwidth()))
    }

    /// Scales the bandwidths of the slot's links down so that their sum is the slot's.
    pub(super) fn limit(&self, bandwidths: &mut [f64; MAX_RAILS]) {
        let sum: f64 = self.links.iter().map(|link| bandwidths[link]).sum();
        let total = self.estimate.bandwidth() as f64;
        if sum > total {
            for link in self.links.iter() {
                bandwidths[link] *= total / sum;
            }
        }
    }
}
