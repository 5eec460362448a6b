//! The state that all ranks of a fast replay share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use datatype::local_work::{LocalWork, Meter};
use mpi::algorithms::AlgorithmTable;
use mpi::shape::Shape;
use trace::Trace;

use crate::engine::Engine;
use crate::memory::Addresses;
use crate::player::lock;
use crate::program::Action;

/// The vote of a member for a new communicator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vote {
    /// The group; `None`: the member is in none.
    pub color: Option<i64>,
    /// The place in the group, beside the number in the parent.
    pub key: i64,
}

/// A communicator in the making: of one parent, the one with this number.
type Made = (u64, u64);

/// The votes for new communicators, and the groups once all members have voted.
#[derive(Default)]
struct Votes {
    votes: Vec<Option<Vote>>,
    /// The context and the members of each group.
    groups: HashMap<i64, (u64, Arc<[u32]>)>,
    taken: usize,
}

/// The state that all ranks share.
pub(crate) struct World {
    pub trace: Arc<Trace>,
    pub actions: Vec<Action>,
    pub algorithms: AlgorithmTable,
    pub shape: Arc<Shape>,
    pub size: usize,
    engine: Mutex<Engine>,
    addresses: Mutex<Addresses>,
    meter: Meter,
    owed: Arc<AtomicU64>,
    votes: Mutex<HashMap<Made, Votes>>,
    contexts: AtomicU64,
}

/// The parts of a world.
pub(crate) struct Parts {
    pub trace: Arc<Trace>,
    pub actions: Vec<Action>,
    pub algorithms: AlgorithmTable,
    pub shape: Arc<Shape>,
    pub engine: Engine,
    pub addresses: Addresses,
    pub meter: Meter,
    pub owed: Arc<AtomicU64>,
}

impl World {
    pub(crate) fn new(parts: Parts) -> World {
        let size = parts.trace.ranks.len();
        World {
            trace: parts.trace,
            actions: parts.actions,
            algorithms: parts.algorithms,
            shape: parts.shape,
            size,
            engine: Mutex::new(parts.engine),
            addresses: Mutex::new(parts.addresses),
            meter: parts.meter,
            owed: parts.owed,
            votes: Mutex::default(),
            contexts: AtomicU64::new(1),
        }
    }

    pub(crate) fn engine(&self) -> MutexGuard<'_, Engine> {
        lock(&self.engine)
    }

    pub(crate) fn addresses(&self) -> MutexGuard<'_, Addresses> {
        lock(&self.addresses)
    }

    /// The time of work on a rank's own memory.
    pub(crate) fn work(&self, work: LocalWork, amount: usize, of: usize) -> u64 {
        self.meter.add(work, amount, of);
        self.owed.swap(0, Ordering::Relaxed)
    }

    /// Takes the vote of member `me` of `size` members.
    pub(crate) fn votes(&self, of: Made, size: usize, me: usize, vote: Vote) {
        let mut all = lock(&self.votes);
        let own = all.entry(of).or_default();
        own.votes.resize(size, None);
        own.votes[me] = Some(vote);
    }

    /// The context and the members of the group of member `me`, by their numbers in the parent.
    /// `None`: it is in none, or not all have voted.
    pub(crate) fn made(&self, of: Made, me: usize) -> Option<(u64, Arc<[u32]>)> {
        let mut all = lock(&self.votes);
        let own = all.get_mut(&of)?;
        let color = own.votes.get(me).copied().flatten()?.color;
        own.taken += 1;
        let is_last = own.taken == own.votes.len();
        let group = color.map(|color| {
            if let Some(known) = own.groups.get(&color) {
                return known.clone();
            }
            let votes = own.votes.iter().enumerate();
            let mut members: Vec<(i64, u32)> = votes
                .filter_map(|(number, vote)| Some((number, (*vote)?)))
                .filter(|(_, vote)| vote.color == Some(color))
                .map(|(number, vote)| (vote.key, number as u32))
                .collect();
            members.sort_unstable();
            let members: Arc<[u32]> = members.into_iter().map(|(_, number)| number).collect();
            let context = self.contexts.fetch_add(1, Ordering::Relaxed);
            own.groups.insert(color, (context, members.clone()));
            (context, members)
        });
        if is_last {
            all.remove(&of);
        }
        group
    }
}
