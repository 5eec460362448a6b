//! The machine that finds accesses that conflict, from the events of all ranks in order of time.
//!
//! Invariants:
//! - an access is in the set of its target while another may conflict with it: until it ends and,
//!   in a fence or exposure epoch, until that epoch ends;
//! - the machine trusts no event: whatever the events are, it neither panics nor hangs.

use std::collections::{BTreeMap, BTreeSet};

use datatype::Op;

use crate::event::{Access, Epoch, Event, Kind, Runs};
use crate::intervals::{Intervals, Key};

/// The most conflicts that are kept. Those that differ only in their bytes and times count as one.
const MOST: usize = 1000;

/// Two accesses that conflict (MPI 5.0 §12.7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The number of the window among those of the job, from 0.
    pub window: usize,
    /// The procedure that made the window.
    pub made_by: String,
    /// The world rank of the process whose memory is accessed.
    pub target: u32,
    /// The first range that both access: offsets in the target's part; addresses in a dynamic
    /// window.
    pub bytes: (u64, u64),
    /// Both accesses, the earlier one first.
    pub sides: [Side; 2],
    /// The number of later pairs that differ from this pair only in their bytes and times.
    pub repeated: u64,
}

/// One of two accesses that conflict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    /// World rank of the process that made the access.
    pub rank: u32,
    /// The procedure that made the access.
    pub call: String,
    /// Virtual time of the access, in picoseconds.
    pub time: u64,
    /// The access of this side to the bytes.
    pub action: Action,
    /// The epoch of the access. `None`: it is outside of any epoch.
    pub epoch: Option<Epoch>,
}

/// The action of one side of a conflict on the common bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// An operation on the window by its origin: put, get or accumulate.
    Remote(Kind),
    /// A call of the target reads its own memory.
    Read,
    /// A call of the target writes its own memory.
    Write,
}

/// An access that may still conflict with a later one, in the set of its target.
#[derive(Clone)]
struct Active {
    side: Side,
    /// The number of the window. Memory that its owner uses may belong to further windows.
    window: u64,
    bond: Bond,
    /// True if the access has ended: it conflicts only within its epoch.
    has_ended: bool,
}

/// The synchronisation to which an access belongs, by which it is ordered with others or conflicts
/// with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bond {
    Fence(u64),
    /// The exposure epoch with this number.
    Exposure(u64),
    Shared,
    Exclusive,
    Free,
}

/// The state of a window whose accesses are compared.
#[derive(Default)]
struct Window {
    number: usize,
    made_by: String,
    /// By the owner's world rank, the parts of the window: start address, and length in bytes.
    parts: BTreeMap<u32, Vec<(u64, u64)>>,
    /// Number of fences from which each rank has returned, by world rank.
    fences: BTreeMap<u32, u64>,
    /// The greatest number of fences from which a rank has returned.
    fence: u64,
    /// Number of exposure epochs of each rank; it is odd while one is open.
    exposures: BTreeMap<u32, u64>,
    /// Locks of ranks on their own parts of the window. True: exclusive.
    own_locks: BTreeMap<u32, bool>,
    /// The keys of the accesses in the sets of `memory`, by target and origin.
    open: BTreeMap<(u32, u32), Vec<Key>>,
}

/// The machine that finds conflicts among the events of a job.
#[derive(Default)]
pub struct Machine {
    windows: BTreeMap<u64, Window>,
    made: usize,
    /// The accesses to the memory of each rank, by address.
    memory: BTreeMap<u32, Intervals<Active>>,
    /// For each rank, the keys of its present call's accesses to its own memory.
    used: BTreeMap<u32, Vec<Key>>,
    found: Vec<Conflict>,
}

impl Machine {
    /// Processes an event that a rank noted in procedure `call` at `time`, in picoseconds. The
    /// order of calls is that of the times.
    pub fn take(&mut self, time: u64, rank: u32, call: &str, event: Event) {
        match event {
            Event::Made { window, base, len } => self.made(rank, call, (window, base, len)),
            Event::Freed { window } => self.freed(window),
            Event::Fenced { window } => self.fenced(rank, window),
            Event::Posted { window } => {
                if let Some(window) = self.windows.get_mut(&window) {
                    *window.exposures.entry(rank).or_default() |= 1;
                }
            }
            Event::Waited { window } => self.waited(rank, window),
            Event::Locked {
                window,
                is_exclusive,
            } => {
                if let Some(window) = self.windows.get_mut(&window) {
                    window.own_locks.insert(rank, is_exclusive);
                }
            }
            Event::Ended {
                window,
                target,
                is_local,
                unlocks,
            } => self.ended(rank, (window, target), is_local, unlocks),
            Event::Accessed(access) => self.accessed(time, rank, call, access),
            Event::Used { runs, is_written } => self.used(time, rank, call, (runs, is_written)),
            Event::Returned => self.returned(rank),
        }
    }

    /// All conflicts that were found, in the order of their times.
    pub fn conflicts(&self) -> &[Conflict] {
        &self.found
    }

    fn made(&mut self, rank: u32, call: &str, (window, base, len): (u64, u64, u64)) {
        let known = self.windows.entry(window).or_insert_with(|| {
            self.made += 1;
            Window {
                number: self.made - 1,
                made_by: call.to_string(),
                ..Window::default()
            }
        });
        known.parts.entry(rank).or_default().push((base, len));
    }

    fn freed(&mut self, window: u64) {
        let Some(known) = self.windows.remove(&window) else {
            return;
        };
        for ((target, _), keys) in known.open {
            let set = self.memory.entry(target).or_default();
            keys.into_iter().for_each(|key| drop(set.remove(key)));
        }
    }

    /// The first return from a fence shows that all ranks have entered it.
    fn fenced(&mut self, rank: u32, window: u64) {
        let Some(known) = self.windows.get_mut(&window) else {
            return;
        };
        let count = known.fences.entry(rank).or_default();
        *count += 1;
        if *count > known.fence {
            known.fence = *count;
            let fence = *count;
            self.drop_bound(
                window,
                None,
                |bond| matches!(bond, Bond::Fence(number) if number < fence),
            );
        }
    }

    fn waited(&mut self, rank: u32, window: u64) {
        let Some(known) = self.windows.get_mut(&window) else {
            return;
        };
        let number = known.exposures.entry(rank).or_default();
        let ended = *number | 1;
        *number = ended + 1;
        self.drop_bound(window, Some(rank), |bond| bond == Bond::Exposure(ended));
    }

    /// Drops the accesses to a target, or to all targets, whose synchronisation (bond) has ended.
    fn drop_bound(&mut self, window: u64, target: Option<u32>, is_over: impl Fn(Bond) -> bool) {
        let Some(known) = self.windows.get_mut(&window) else {
            return;
        };
        for ((owner, _), keys) in &mut known.open {
            if target.is_some_and(|target| target != *owner) {
                continue;
            }
            let set = self.memory.entry(*owner).or_default();
            keys.retain(|key| match set.get_mut(*key) {
                Some(active) if is_over(active.bond) => {
                    set.remove(*key);
                    false
                }
                kept => kept.is_some(),
            });
        }
        known.open.retain(|_, keys| !keys.is_empty());
    }

    fn ended(
        &mut self,
        rank: u32,
        (window, target): (u64, Option<u32>),
        is_local: bool,
        unlocks: bool,
    ) {
        let Some(known) = self.windows.get_mut(&window) else {
            return;
        };
        if unlocks && target.is_none_or(|target| target == rank) {
            known.own_locks.remove(&rank);
        }
        for ((owner, origin), keys) in &mut known.open {
            if *origin != rank || target.is_some_and(|target| target != *owner) {
                continue;
            }
            let set = self.memory.entry(*owner).or_default();
            keys.retain(|key| match set.get_mut(*key) {
                // Fence and exposure epochs end for all accesses together.
                Some(active) if active.bond.is_lock() && (!is_local || active.fetches()) => {
                    set.remove(*key);
                    false
                }
                kept => kept.is_some(),
            });
        }
        known.open.retain(|_, keys| !keys.is_empty());
    }

    fn accessed(&mut self, time: u64, rank: u32, call: &str, access: Access) {
        let Some(known) = self.windows.get(&access.window) else {
            return;
        };
        // In a dynamic window the runs are addresses, and the base is 0.
        let parts = known.parts.get(&access.target);
        let base = parts
            .and_then(|parts| parts.first())
            .map_or(0, |part| part.0);
        let bond = match access.epoch {
            Epoch::Fence => Bond::Fence(known.fences.get(&rank).copied().unwrap_or(0)),
            Epoch::Start => {
                let number = known.exposures.get(&access.target);
                Bond::Exposure(number.copied().unwrap_or(0) | 1)
            }
            Epoch::Shared => Bond::Shared,
            Epoch::Exclusive => Bond::Exclusive,
        };
        let active = Active {
            side: Side {
                rank,
                call: call.to_string(),
                time,
                action: Action::Remote(access.kind),
                epoch: Some(access.epoch),
            },
            window: access.window,
            bond,
            has_ended: false,
        };
        let runs = access.runs.moved(base);
        self.compare(access.target, runs, &active);
        // No event shows when a fetch with a request ends.
        if access.has_request && active.fetches() {
            return;
        }
        self.add(access.target, runs, active);
    }

    fn add(&mut self, target: u32, runs: Runs, active: Active) -> Key {
        let (window, origin) = (active.window, active.side.rank);
        let key = self.memory.entry(target).or_default().insert(runs, active);
        if let Some(known) = self.windows.get_mut(&window) {
            known.open.entry((target, origin)).or_default().push(key);
        }
        key
    }

    fn used(&mut self, time: u64, rank: u32, call: &str, (runs, is_written): (Runs, bool)) {
        let holds = |known: &&Window| {
            let parts = known.parts.get(&rank).into_iter().flatten();
            parts
                .copied()
                .any(|(base, len)| runs.common(&Runs::one(base, len)).is_some())
        };
        let Some((&window, known)) = self.windows.iter().find(|(_, known)| holds(known)) else {
            return;
        };
        let exposure = known.exposures.get(&rank).copied().unwrap_or(0);
        let bond = match (known.own_locks.get(&rank), known.fences.get(&rank)) {
            _ if exposure % 2 == 1 => Bond::Exposure(exposure),
            (Some(true), _) => Bond::Exclusive,
            (Some(false), _) => Bond::Shared,
            (None, Some(fences)) => Bond::Fence(*fences),
            (None, None) => Bond::Free,
        };
        let active = Active {
            side: Side {
                rank,
                call: call.to_string(),
                time,
                action: match is_written {
                    true => Action::Write,
                    false => Action::Read,
                },
                epoch: bond.epoch(),
            },
            window,
            bond,
            has_ended: false,
        };
        self.compare(rank, runs, &active);
        let set = self.memory.entry(rank).or_default();
        let is_known = set.meeting(runs).any(|(other, _, known)| {
            let same = known.side.action == active.side.action && known.bond == bond;
            other == runs && same && known.side.rank == rank && known.window == window
        });
        if !is_known {
            let key = self.add(rank, runs, active);
            self.used.entry(rank).or_default().push(key);
        }
    }

    fn returned(&mut self, rank: u32) {
        let set = self.memory.entry(rank).or_default();
        for key in self.used.remove(&rank).unwrap_or_default() {
            match set.get_mut(key) {
                Some(active) if active.bond.binds() => active.has_ended = true,
                _ => drop(set.remove(key)),
            }
        }
    }

    /// Reports all accesses in progress with which a new one conflicts.
    fn compare(&mut self, target: u32, runs: Runs, new: &Active) {
        let Some(set) = self.memory.get(&target) else {
            return;
        };
        let mut found = Vec::new();
        for (other, common, old) in set.meeting(runs) {
            if old.meets(new) && conflict(old, other, new, runs) {
                found.push((common, old.side.clone(), old.window));
            }
        }
        for (common, old, of) in found {
            self.report(target, common, [old, new.side.clone()], [of, new.window]);
        }
    }

    fn report(&mut self, target: u32, bytes: (u64, u64), sides: [Side; 2], windows: [u64; 2]) {
        // A one-sided operation names its window. That of a use of memory may be another one.
        let remote = sides
            .iter()
            .position(|side| matches!(side.action, Action::Remote(_)));
        let Some(known) = self.windows.get(&windows[remote.unwrap_or(0)]) else {
            return;
        };
        let parts = known.parts.get(&target);
        let base = parts
            .and_then(|parts| parts.first())
            .map_or(0, |part| part.0);
        let alike = |found: &&mut Conflict| {
            let side = |at: usize| {
                let (one, other) = (&found.sides[at], &sides[at]);
                (one.rank, &one.call, one.action, one.epoch)
                    == (other.rank, &other.call, other.action, other.epoch)
            };
            found.window == known.number && found.target == target && side(0) && side(1)
        };
        if let Some(found) = self.found.iter_mut().find(alike) {
            found.repeated += 1;
        } else if self.found.len() < MOST {
            self.found.push(Conflict {
                window: known.number,
                made_by: known.made_by.clone(),
                target,
                bytes: (bytes.0.wrapping_sub(base), bytes.1.wrapping_sub(base)),
                sides,
                repeated: 0,
            });
        }
    }

    /// The world ranks that take part in at least one conflict.
    pub fn ranks(&self) -> BTreeSet<u32> {
        let sides = self.found.iter().flat_map(|found| &found.sides);
        sides.map(|side| side.rank).collect()
    }
}

impl Bond {
    fn is_lock(self) -> bool {
        matches!(self, Bond::Shared | Bond::Exclusive)
    }

    /// True if an access may conflict with others of its epoch even after it has ended.
    fn binds(self) -> bool {
        matches!(self, Bond::Fence(_) | Bond::Exposure(_))
    }

    fn epoch(self) -> Option<Epoch> {
        match self {
            Bond::Fence(_) => Some(Epoch::Fence),
            Bond::Exposure(_) => Some(Epoch::Start),
            Bond::Shared => Some(Epoch::Shared),
            Bond::Exclusive => Some(Epoch::Exclusive),
            Bond::Free => None,
        }
    }
}

impl Active {
    /// True if the access returns data, which show its end.
    fn fetches(&self) -> bool {
        match self.side.action {
            Action::Remote(Kind::Get) => true,
            Action::Remote(Kind::Accumulate { fetches, .. }) => fetches,
            _ => false,
        }
    }

    /// True if nothing orders this access before the later one.
    fn meets(&self, later: &Active) -> bool {
        let same_window = self.window == later.window;
        if self.has_ended {
            return same_window && self.bond.binds() && self.bond == later.bond;
        }
        let is_exclusive = self.bond == Bond::Exclusive || later.bond == Bond::Exclusive;
        let are_locked = self.bond.is_lock() && later.bond.is_lock();
        let excludes =
            same_window && are_locked && is_exclusive && self.side.rank != later.side.rank;
        !excludes
    }
}

/// True if two accesses, at these runs of bytes, must not be in progress at once.
fn conflict(old: &Active, at: Runs, new: &Active, to: Runs) -> bool {
    let same_rank = old.side.rank == new.side.rank;
    match (old.side.action, new.side.action) {
        (Action::Remote(one), Action::Remote(other)) => match (one, other) {
            (
                Kind::Accumulate { op, ty, .. },
                Kind::Accumulate {
                    op: other_op,
                    ty: other_ty,
                    ..
                },
            ) => {
                if op == Op::NoOp && other_op == Op::NoOp {
                    return false;
                }
                let size = ty.size().unwrap_or(1) as u64;
                let distance = at.start.abs_diff(to.start);
                if ty != other_ty || !distance.is_multiple_of(size) {
                    return true;
                }
                // Accumulates of one origin to one element are ordered.
                !same_rank && op != other_op && op != Op::NoOp && other_op != Op::NoOp
            }
            (one, other) => one.changes() || other.changes(),
        },
        (Action::Remote(kind), own) | (own, Action::Remote(kind)) => {
            kind.changes() || own == Action::Write
        }
        // Calls of one rank are in the program's order.
        _ => false,
    }
}

impl Kind {
    /// True if the access changes bytes in the target's memory.
    fn changes(self) -> bool {
        !matches!(self, Kind::Get | Kind::Accumulate { op: Op::NoOp, .. })
    }
}
