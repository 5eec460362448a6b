//! The links of an endpoint as a schedule sees them: which are live, which is the home link, and
//! what each can carry now.

use std::array::from_fn;

use super::assignment::SHORTEST_PIECE;
use super::link_state::{LinkState, LinkTraits, Sample};
use super::slot::Slot;
use crate::rdma::rail_set::{MAX_RAILS, RailSet};

/// The links of an endpoint, with the state by which a policy chooses among them.
#[derive(Clone)]
pub(super) struct Links {
    pub all: Vec<LinkState>,
    /// The slots of the cards with two links or more: a slot connects a card to the host.
    pub slots: Vec<Slot>,
    pub alive: RailSet,
    home: usize,
    /// True if the home link is the one with the earliest arrival of a short packet, and not the
    /// first one.
    by_arrival: bool,
}

impl Links {
    pub(super) fn new(traits: &[LinkTraits]) -> Links {
        assert!(
            (1..=MAX_RAILS).contains(&traits.len()),
            "an endpoint has 1 to {MAX_RAILS} links"
        );
        let usual = usual_bandwidth(traits);
        let bandwidth = |link: &LinkTraits| match link.bandwidth {
            0 => usual,
            stated => stated,
        };
        let mut all: Vec<LinkState> = (traits.iter())
            .map(|link| LinkState::new(link, bandwidth(link)))
            .collect();
        let slots = Slot::of_cards(traits, &mut all);
        let alive = (0..all.len()).fold(RailSet::default(), RailSet::with);
        let home = 0;
        Links {
            all,
            slots,
            alive,
            home,
            by_arrival: false,
        }
    }

    /// Makes the link with the earliest arrival of a short packet the home link from now on. The
    /// attributes of the devices decide, so that both ends of an endpoint choose the same one.
    pub(super) fn home_by_arrival(&mut self) {
        self.by_arrival = true;
        self.choose_home();
    }

    fn choose_home(&mut self) {
        let arrival = |link: &usize| match self.by_arrival {
            true => self.all[*link].short_arrival,
            false => 0,
        };
        self.home = self.alive.iter().min_by_key(arrival).unwrap_or(0);
    }

    #[inline]
    pub(super) fn home(&self) -> usize {
        self.home
    }

    /// A copy of the links with all their work done.
    pub(super) fn idle(&self) -> Links {
        let mut links = self.clone();
        links.all.iter_mut().for_each(LinkState::forget);
        links
    }

    /// The number of links that are live.
    pub(super) fn live(&self) -> usize {
        self.alive.mask().count_ones() as usize
    }

    pub(super) fn set_alive(&mut self, link: usize, alive: bool) {
        let only = RailSet::only(link).mask();
        self.alive = match alive {
            true => self.alive.with(link),
            false => RailSet::of_mask(self.alive.mask() & !only),
        };
        self.all[link].forget();
        self.choose_home();
    }

    /// Records a completion on `link`, and learns from it the bandwidths of the link and of its
    /// card's slot.
    pub(super) fn completed(&mut self, link: usize, bytes: u64, now: u64, late: Option<u64>) {
        let state = &mut self.all[link];
        let sample = state.completed(bytes, now, late);
        let slot = state.slot;
        let fair = slot.and_then(|slot| {
            let sharers = self.slots[slot].sharers(&self.all, link);
            self.slots[slot].completed(sharers, bytes, now, late)
        });
        let estimate = &mut self.all[link].estimate;
        match (sample, fair) {
            (None, _) => {}
            // The slot limits the link.
            (Some(Sample::Exactly(sample)), Some(fair)) if sample > fair / 2 => {
                estimate.at_least(sample);
            }
            (Some(Sample::Exactly(sample)), _) => estimate.sample(sample),
            (Some(Sample::AtLeast(sample)), _) => estimate.at_least(sample),
        }
    }

    /// Moves the estimates of all links towards the measured bandwidths.
    pub(super) fn learn(&mut self) {
        for link in &mut self.all {
            link.estimate.follow();
        }
        for slot in &mut self.slots {
            slot.estimate.follow();
        }
    }

    /// True if neither `link` nor another link of its card's slot has bulk work.
    pub(super) fn is_idle(&self, link: usize) -> bool {
        match self.all[link].slot {
            Some(slot) => self.slots[slot].is_idle(&self.all),
            None => self.all[link].outstanding() == 0,
        }
    }

    /// The number of bulk bytes that `link` may be given now.
    pub(super) fn room(&self, link: usize) -> u64 {
        let room = self.all[link].room();
        match self.all[link].slot {
            Some(slot) => room.min(self.slots[slot].room(&self.all)),
            None => room,
        }
    }

    /// The longest piece that an idle card may be given on `link`, in bytes: what the horizon of
    /// its slot holds, and at least the shortest piece.
    pub(super) fn longest_piece(&self, link: usize) -> u64 {
        let slot = self.all[link].slot;
        let horizon = slot.map_or(u64::MAX, |slot| self.slots[slot].horizon(&self.all));
        horizon / SHORTEST_PIECE * SHORTEST_PIECE
    }

    /// The time at which everything posted on `link`, and on its card's slot, will have left.
    pub(super) fn ready(&self, link: usize, now: u64) -> u64 {
        let ready = self.all[link].ready(now);
        match self.all[link].slot {
            Some(slot) => ready.max(self.slots[slot].ready(&self.all, now)),
            None => ready,
        }
    }

    /// The bandwidth of each link of `used` while all of them carry data, and 0 for others.
    pub(super) fn bandwidths(&self, used: RailSet) -> [f64; MAX_RAILS] {
        let mut bandwidths = from_fn(|link| match used.contains(link) {
            true => self.all[link].estimate.bandwidth() as f64,
            false => 0.0,
        });
        for slot in &self.slots {
            slot.limit(&mut bandwidths);
        }
        bandwidths
    }
}

/// The bandwidth of links whose devices state none: the mean of the others.
fn usual_bandwidth(traits: &[LinkTraits]) -> u64 {
    let known = || traits.iter().filter(|link| link.bandwidth > 0);
    let sum: u128 = known().map(|link| u128::from(link.bandwidth)).sum();
    match known().count() {
        0 => 1_000_000_000,
        count => (sum / count as u128) as u64,
    }
}
