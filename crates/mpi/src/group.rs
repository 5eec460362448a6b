//! Groups: ordered sets of ranks (MPI 5.0 §7.3).
//!
//! What must always hold: no rank of the job stands twice in a group, and a group that lists the job's first ranks in
//! order is held as [`Members::All`], so that equal groups are equal values. Nothing here is quadratic in large groups.

use std::sync::Arc;

use crate::handle::{Kind, Slab};
use crate::{Class, Error, PROC_NULL, Result, UNDEFINED};

/// The ABI's values.
pub const NULL: u32 = 0x108;
pub const EMPTY: u32 = 0x109;

/// The members of a communicator or group, by their rank in the job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Members {
    /// The first `n` ranks of the job, in order.
    All(usize),
    Listed(Arc<[u32]>),
}

/// How two groups or communicators compare, by the ABI's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum Comparison {
    Ident = 201,
    /// Communicators only: the same group, another context.
    Congruent = 202,
    /// The same members in another order.
    Similar = 203,
    Unequal = 204,
}

impl From<Vec<u32>> for Members {
    fn from(ranks: Vec<u32>) -> Members {
        if (0..)
            .zip(&ranks)
            .all(|(place, &rank): (u32, _)| place == rank)
        {
            Members::All(ranks.len())
        } else {
            Members::Listed(ranks.into())
        }
    }
}

impl Members {
    pub fn len(&self) -> usize {
        match self {
            Members::All(size) => *size,
            Members::Listed(ranks) => ranks.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The job's rank of member `rank`.
    #[inline(always)]
    pub fn world(&self, rank: usize) -> Option<usize> {
        match self {
            Members::All(size) => (rank < *size).then_some(rank),
            Members::Listed(ranks) => ranks.get(rank).map(|&rank| rank as usize),
        }
    }

    /// Which member is the job's rank `world`?
    pub fn rank_of(&self, world: usize) -> Option<usize> {
        match self {
            Members::All(size) => (world < *size).then_some(world),
            Members::Listed(ranks) => ranks.iter().position(|&rank| rank as usize == world),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.len()).filter_map(|rank| self.world(rank))
    }

    pub fn compare(&self, other: &Members) -> Comparison {
        if self == other {
            return Comparison::Ident;
        }
        let sorted = |members: &Members| {
            let mut ranks: Vec<usize> = members.iter().collect();
            ranks.sort_unstable();
            ranks
        };
        if self.len() == other.len() && sorted(self) == sorted(other) {
            Comparison::Similar
        } else {
            Comparison::Unequal
        }
    }

    /// Which members of `to` the members `ranks` of this group are.
    pub fn translate(&self, ranks: &[i32], to: &Members) -> Result<Vec<i32>> {
        let places = LocalRanks::of(to, ranks.len());
        let place = |&rank: &i32| match rank {
            PROC_NULL => Ok(PROC_NULL),
            _ => Ok(places
                .get(self.member(rank)?)
                .map_or(UNDEFINED, |place| place as i32)),
        };
        ranks.iter().map(place).collect()
    }

    /// This group, then those of `other` that are not in it.
    pub fn union(&self, other: &Members) -> Members {
        let ours = LocalRanks::of(self, other.len());
        let added = other.iter().filter(|&world| ours.get(world).is_none());
        listed(self.iter().chain(added))
    }

    /// Those of this group that are in `other`.
    pub fn intersection(&self, other: &Members) -> Members {
        let theirs = LocalRanks::of(other, self.len());
        listed(self.iter().filter(|&world| theirs.get(world).is_some()))
    }

    /// Those of this group that are not in `other`.
    pub fn difference(&self, other: &Members) -> Members {
        let theirs = LocalRanks::of(other, self.len());
        listed(self.iter().filter(|&world| theirs.get(world).is_none()))
    }

    /// The members `ranks`, in that order.
    pub fn incl(&self, ranks: &[i32]) -> Result<Members> {
        self.marked(ranks)?;
        let worlds: Result<Vec<u32>> = ranks
            .iter()
            .map(|&rank| Ok(self.member(rank)? as u32))
            .collect();
        Ok(worlds?.into())
    }

    /// All members but `ranks`, in their order.
    pub fn excl(&self, ranks: &[i32]) -> Result<Members> {
        let marked = self.marked(ranks)?;
        Ok(listed(
            self.iter()
                .zip(marked)
                .filter(|(_, marked)| !marked)
                .map(|(world, _)| world),
        ))
    }

    pub fn range_incl(&self, ranges: &[[i32; 3]]) -> Result<Members> {
        self.incl(&self.expand(ranges)?)
    }

    pub fn range_excl(&self, ranges: &[[i32; 3]]) -> Result<Members> {
        self.excl(&self.expand(ranges)?)
    }

    /// The ranks that triplets (first, last, stride) stand for.
    fn expand(&self, ranges: &[[i32; 3]]) -> Result<Vec<i32>> {
        let mut ranks = Vec::new();
        for &[first, last, stride] in ranges {
            if stride == 0 || (i64::from(last) - i64::from(first)) * i64::from(stride) < 0 {
                let detail = format!(
                    "the range ({first}, {last}, {stride}) has no ranks: the stride must lead from first to last"
                );
                return Err(Error::new(Class::ARG, detail));
            }
            // Checked first, so that a wild range ends here and not in a wild amount of memory.
            self.member(first)?;
            let count = (i64::from(last) - i64::from(first)) / i64::from(stride);
            self.member((i64::from(first) + count * i64::from(stride)) as i32)?;
            ranks.extend(
                (0..=count).map(|step| (i64::from(first) + step * i64::from(stride)) as i32),
            );
            if ranks.len() > self.len() {
                return Err(twice("the ranges name some rank twice".into()));
            }
        }
        Ok(ranks)
    }

    /// Which members `ranks` names; an error if one does not exist or is named twice.
    fn marked(&self, ranks: &[i32]) -> Result<Vec<bool>> {
        let mut marked = vec![false; self.len()];
        for &rank in ranks {
            self.member(rank)?;
            if std::mem::replace(&mut marked[rank as usize], true) {
                return Err(twice(format!("rank {rank} is named twice")));
            }
        }
        Ok(marked)
    }

    /// The job's rank of a member that the user named.
    fn member(&self, rank: i32) -> Result<usize> {
        usize::try_from(rank)
            .ok()
            .and_then(|rank| self.world(rank))
            .ok_or_else(|| {
                Error::new(
                    Class::RANK,
                    format!(
                        "rank {rank} does not exist: the group has {} members",
                        self.len()
                    ),
                )
            })
    }
}

fn listed(worlds: impl Iterator<Item = usize>) -> Members {
    worlds.map(|world| world as u32).collect::<Vec<_>>().into()
}

#[cold]
fn twice(detail: String) -> Error {
    Error::new(
        Class::RANK,
        format!("{detail}; the members of a group are distinct"),
    )
}

/// Answers "which member is this rank of the job?" many times over.
enum LocalRanks<'a> {
    Few(&'a Members),
    /// By the job's rank.
    Table(Vec<Option<u32>>),
}

impl LocalRanks<'_> {
    /// A table pays only for many questions.
    fn of(members: &Members, questions: usize) -> LocalRanks<'_> {
        let Members::Listed(ranks) = members else {
            return LocalRanks::Few(members);
        };
        if questions * ranks.len() <= 1024 {
            return LocalRanks::Few(members);
        }
        let highest = ranks.iter().max().map_or(0, |&rank| rank as usize);
        let mut table = vec![None; highest + 1];
        for (place, &rank) in (0..).zip(ranks.iter()) {
            table[rank as usize] = Some(place);
        }
        LocalRanks::Table(table)
    }

    fn get(&self, world: usize) -> Option<usize> {
        match self {
            LocalRanks::Few(members) => members.rank_of(world),
            LocalRanks::Table(table) => table
                .get(world)
                .copied()
                .flatten()
                .map(|place| place as usize),
        }
    }
}

/// What the handle of a group names.
pub struct Group {
    pub members: Members,
    /// This rank's place in it.
    pub rank: Option<usize>,
}

/// All groups that a rank has handles of. Results are new handles; an empty one is `MPI_GROUP_EMPTY`.
pub struct Groups {
    /// The job's rank that asks.
    me: usize,
    empty: Group,
    others: Slab<Group>,
}

impl Groups {
    pub fn new(me: usize) -> Groups {
        let empty = Group {
            members: Members::All(0),
            rank: None,
        };
        Groups {
            me,
            empty,
            others: Slab::new(Kind::Group),
        }
    }

    pub fn get(&self, handle: u32) -> Result<&Group> {
        match handle {
            EMPTY => Ok(&self.empty),
            _ => self.others.get(handle).ok_or_else(|| unknown(handle)),
        }
    }

    pub fn add(&mut self, members: Members) -> Result<u32> {
        if members.is_empty() {
            return Ok(EMPTY);
        }
        let rank = members.rank_of(self.me);
        self.others.insert(Group { members, rank }).ok_or_else(|| {
            Error::new(
                Class::NO_MEM,
                "there are a million groups: free some of them first",
            )
        })
    }

    /// `MPI_GROUP_EMPTY` may be freed like any other result, and stays.
    pub fn free(&mut self, handle: u32) -> Result<()> {
        match handle {
            EMPTY => Ok(()),
            _ => self
                .others
                .remove(handle)
                .map(|_| ())
                .ok_or_else(|| unknown(handle)),
        }
    }

    pub fn compare(&self, first: u32, second: u32) -> Result<Comparison> {
        Ok(self.get(first)?.members.compare(&self.get(second)?.members))
    }

    pub fn translate(&self, from: u32, ranks: &[i32], to: u32) -> Result<Vec<i32>> {
        self.get(from)?
            .members
            .translate(ranks, &self.get(to)?.members)
    }

    pub fn union(&mut self, first: u32, second: u32) -> Result<u32> {
        let members = self.get(first)?.members.union(&self.get(second)?.members);
        self.add(members)
    }

    pub fn intersection(&mut self, first: u32, second: u32) -> Result<u32> {
        let members = self
            .get(first)?
            .members
            .intersection(&self.get(second)?.members);
        self.add(members)
    }

    pub fn difference(&mut self, first: u32, second: u32) -> Result<u32> {
        let members = self
            .get(first)?
            .members
            .difference(&self.get(second)?.members);
        self.add(members)
    }

    pub fn incl(&mut self, group: u32, ranks: &[i32]) -> Result<u32> {
        let members = self.get(group)?.members.incl(ranks)?;
        self.add(members)
    }

    pub fn excl(&mut self, group: u32, ranks: &[i32]) -> Result<u32> {
        let members = self.get(group)?.members.excl(ranks)?;
        self.add(members)
    }

    pub fn range_incl(&mut self, group: u32, ranges: &[[i32; 3]]) -> Result<u32> {
        let members = self.get(group)?.members.range_incl(ranges)?;
        self.add(members)
    }

    pub fn range_excl(&mut self, group: u32, ranges: &[[i32; 3]]) -> Result<u32> {
        let members = self.get(group)?.members.range_excl(ranges)?;
        self.add(members)
    }
}

#[cold]
fn unknown(handle: u32) -> Error {
    let detail = match handle {
        NULL => "MPI_GROUP_NULL is not a group that can be used".to_string(),
        _ => format!("{handle:#x} is not a group: it was never one, or it has been freed"),
    };
    Error::new(Class::GROUP, detail)
}
