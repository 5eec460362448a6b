//! Collective calls of each communicator, by their numbers on each member.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::Machine;
use crate::collective::{self, Called};
use crate::event::{Event, Origin};
use crate::finding::{Rule, Side};

/// A communicator, with the collective calls that not all members have made.
pub(super) struct Comm {
    /// The number of the communicator among those of the job.
    number: usize,
    made_by: Arc<str>,
    origin: Origin,
    is_inter: bool,
    size: usize,
    /// The members that have noted it, with their numbers in their group.
    members: BTreeMap<u32, u32>,
    /// The number of the next call of each member.
    next: HashMap<u32, u64>,
    rounds: BTreeMap<u64, Round>,
    /// True after calls that do not fit: later ones would be compared with the wrong ones.
    is_broken: bool,
}

/// The collective calls with one number.
#[derive(Default)]
struct Round {
    calls: Vec<Called>,
    /// The number of members that have gone on to their next call. Until then a call may fail, and
    /// is taken back.
    kept: usize,
}

impl Machine {
    pub(super) fn comm(&mut self, side: Side, event: Event) {
        let Event::Comm {
            comm,
            size,
            me,
            origin,
            is_inter,
        } = event
        else {
            return;
        };
        let number = self.comms.len();
        let known = self.comms.entry(comm).or_insert_with(|| Comm {
            number,
            made_by: side.call,
            origin,
            is_inter,
            size: size as usize,
            members: BTreeMap::new(),
            next: HashMap::new(),
            rounds: BTreeMap::new(),
            is_broken: false,
        });
        known.members.insert(side.rank, me);
    }

    pub(super) fn collective(&mut self, side: Side, event: Event) {
        let Event::Collective {
            comm,
            root,
            op,
            gives,
            gets,
            counts,
        } = event
        else {
            return;
        };
        let rank = side.rank;
        let [gives, gets] = [gives, gets].map(|data| data.map(|data| self.signature(rank, data)));
        let state = self.rank(rank);
        let blocks = std::mem::take(&mut state.blocks);
        state.in_call.clear();
        state.collective = None;
        let Some(known) = self.comms.get_mut(&comm).filter(|known| !known.is_broken) else {
            return;
        };
        let next = known.next.entry(rank).or_default();
        let number = *next;
        *next += 1;
        let called = Called {
            me: known.members.get(&rank).copied().unwrap_or(0),
            side,
            root,
            op,
            counts,
            gives,
            gets,
            blocks,
        };
        let round = known.rounds.entry(number).or_default();
        round.calls.push(called);
        let members = (round.calls.len() == known.size)
            .then(|| round.calls.iter().map(|call| call.side.rank).collect());
        let before = known.kept(number);
        self.rank(rank).collective = Some((comm, number));
        if let Some(members) = members {
            self.keep_order(members);
        }
        if let Some(calls) = before {
            self.compare(comm, number - 1, &calls);
        }
    }

    /// Keeps that a collective call orders what its members do before and after it.
    fn keep_order(&mut self, members: Vec<u32>) {
        if self.wanted.races {
            self.messages.together(members);
        }
    }

    /// Compares the calls with one number on a communicator.
    fn compare(&mut self, comm: u64, number: u64, calls: &[Called]) {
        let Some(known) = self.comms.get_mut(&comm) else {
            return;
        };
        if let Some(differing) = collective::difference(calls, known.is_inter) {
            if differing.rule == Rule::Calls {
                known.is_broken = true;
                known.rounds.clear();
            }
            let name = known.name();
            let what = differing.what;
            let what = format!("collective call {} of {name} {what}", number + 1);
            self.found.add(differing.rule, what, differing.sides);
        }
    }

    /// Compares the collective calls that not all members have made, and finds members that ended
    /// without one.
    pub(super) fn finish_collectives(&mut self) {
        let mut comms: Vec<u64> = self.comms.keys().copied().collect();
        comms.sort_by_key(|comm| self.comms[comm].number);
        for comm in comms {
            let rounds = self.comms.get_mut(&comm).map(|known| &mut known.rounds);
            for (number, Round { calls, .. }) in rounds.map(std::mem::take).unwrap_or_default() {
                if self.comms[&comm].is_broken || calls.is_empty() {
                    break;
                }
                self.compare(comm, number, &calls);
                if self.absent(comm, number, &calls) {
                    break;
                }
            }
        }
    }

    /// Finds a member that ended without a collective call. Returns true if there is one.
    fn absent(&mut self, comm: u64, number: u64, calls: &[Called]) -> bool {
        let known = &self.comms[&comm];
        let all: Vec<u32> = match known.origin {
            Origin::World => (0..known.size as u32).collect(),
            _ => known.members.keys().copied().collect(),
        };
        let mut ends = all.into_iter().filter_map(|rank| {
            let has_called = calls.iter().any(|call| call.side.rank == rank);
            let end = self.ranks.get(&rank)?.end.as_ref();
            end.filter(|_| !has_called && !known.is_broken).cloned()
        });
        let Some(mut end) = ends.next() else {
            return false;
        };
        end.detail = "without that call".into();
        let name = known.name();
        let what = format!(
            "collective call {} of {name} is not made by all",
            number + 1
        );
        let sides = vec![calls[0].side.clone(), end];
        self.found.add(Rule::Absent, what, sides);
        true
    }
}

impl Comm {
    /// Removes the call with this number that a rank has made, and which has failed.
    pub(super) fn take_back(&mut self, rank: u32, number: u64) {
        if let Some(round) = self.rounds.get_mut(&number) {
            round.calls.retain(|call| call.side.rank != rank);
            self.next.insert(rank, number);
        }
    }

    /// Keeps that a member has made the call with this number, so that the one before stays.
    /// Returns the calls with the number before once all members have gone on.
    fn kept(&mut self, number: u64) -> Option<Vec<Called>> {
        let before = number.checked_sub(1)?;
        let round = self.rounds.get_mut(&before)?;
        round.kept += 1;
        let is_over = round.kept == self.size;
        is_over.then(|| self.rounds.remove(&before).unwrap_or_default().calls)
    }

    pub(super) fn name(&self) -> String {
        match self.origin {
            Origin::World => "MPI_COMM_WORLD".into(),
            Origin::Alone => "MPI_COMM_SELF".into(),
            Origin::Made => format!("communicator {} ({})", self.number, self.made_by),
        }
    }
}
