//! Groups: ordered sets of ranks (MPI 5.0 §7.3).
//!
//! Invariants:
//! - no rank of the job is twice in a group;
//! - a group of the job's first ranks, in order, is stored as [`Members::All`], so that equal
//!   groups are equal values;
//! - no operation takes quadratic time on large groups;
//! - the group of an object has one handle, however often programs query it, and each result of a
//!   query is freed on its own: programs that never free it do not run out of handles.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::handle::{ObjectKind, Slab};
use crate::{Class, Error, PROC_NULL, Result, UNDEFINED};

/// `MPI_GROUP_NULL`, with the ABI's value.
pub const NULL: u32 = 0x108;
/// `MPI_GROUP_EMPTY`, with the ABI's value.
pub const EMPTY: u32 = 0x109;

/// The members of a communicator or group, by their world ranks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Members {
    /// The group consists of the first `n` ranks of the job, in order.
    All(usize),
    /// The group consists of these distinct ranks, in this order.
    Listed(Arc<[u32]>),
}

/// The result of a comparison of two groups or communicators, with the ABI's values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(i32)]
pub enum Comparison {
    /// `MPI_IDENT`: equal members in equal order, and for communicators one context.
    Ident = 201,
    /// `MPI_CONGRUENT`: the same group and another context. For communicators only.
    Congruent = 202,
    /// `MPI_SIMILAR`: the same members in another order.
    Similar = 203,
    /// `MPI_UNEQUAL`: other members.
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
    /// The number of members of the group.
    pub fn len(&self) -> usize {
        match self {
            Members::All(size) => *size,
            Members::Listed(ranks) => ranks.len(),
        }
    }

    /// True if the group has no members.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The world rank of member `rank`.
    #[inline(always)]
    pub fn world(&self, rank: usize) -> Option<usize> {
        match self {
            Members::All(size) => (rank < *size).then_some(rank),
            Members::Listed(ranks) => ranks.get(rank).map(|&rank| rank as usize),
        }
    }

    /// The number in this group of the member with world rank `world`. `None`: it is no member.
    pub fn rank_of(&self, world: usize) -> Option<usize> {
        match self {
            Members::All(size) => (world < *size).then_some(world),
            Members::Listed(ranks) => ranks.iter().position(|&rank| rank as usize == world),
        }
    }

    /// The members with these numbers, in this order. Numbers that no member has are left out.
    pub(crate) fn at(&self, ranks: impl IntoIterator<Item = usize>) -> Members {
        let worlds = ranks.into_iter().filter_map(|rank| self.world(rank));
        listed(worlds)
    }

    /// The world ranks of all members, in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + Clone + '_ {
        (0..self.len()).filter_map(|rank| self.world(rank))
    }

    /// `MPI_Group_compare`.
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

    /// `MPI_Group_translate_ranks`: the numbers in `to` of the members `ranks` of this group.
    pub fn translate(&self, ranks: &[i32], to: &Members) -> Result<Vec<i32>> {
        let places = RankLookup::of(to, ranks.len());
        let place = |&rank: &i32| match rank {
            PROC_NULL => Ok(PROC_NULL),
            _ => Ok(places
                .get(self.member(rank)?)
                .map_or(UNDEFINED, |place| place as i32)),
        };
        ranks.iter().map(place).collect()
    }

    /// `MPI_Group_union`: this group, then the members of `other` that are not in it.
    pub fn union(&self, other: &Members) -> Members {
        let ours = RankLookup::of(self, other.len());
        let added = other.iter().filter(|&world| ours.get(world).is_none());
        listed(self.iter().chain(added))
    }

    /// `MPI_Group_intersection`: the members of this group that are in `other`.
    pub fn intersection(&self, other: &Members) -> Members {
        let theirs = RankLookup::of(other, self.len());
        listed(self.iter().filter(|&world| theirs.get(world).is_some()))
    }

    /// `MPI_Group_difference`: the members of this group that are not in `other`.
    pub fn difference(&self, other: &Members) -> Members {
        let theirs = RankLookup::of(other, self.len());
        listed(self.iter().filter(|&world| theirs.get(world).is_none()))
    }

    /// `MPI_Group_incl`: the group of the members `ranks`, in that order.
    pub fn incl(&self, ranks: &[i32]) -> Result<Members> {
        self.marked(ranks)?;
        let worlds: Result<Vec<u32>> = ranks
            .iter()
            .map(|&rank| Ok(self.member(rank)? as u32))
            .collect();
        Ok(worlds?.into())
    }

    /// `MPI_Group_excl`: the group without the members `ranks`.
    pub fn excl(&self, ranks: &[i32]) -> Result<Members> {
        let marked = self.marked(ranks)?;
        Ok(listed(
            self.iter()
                .zip(marked)
                .filter(|(_, marked)| !marked)
                .map(|(world, _)| world),
        ))
    }

    /// `MPI_Group_range_incl`: the members that triplets (first, last, stride) name.
    pub fn range_incl(&self, ranges: &[[i32; 3]]) -> Result<Members> {
        self.incl(&self.expand(ranges)?)
    }

    /// `MPI_Group_range_excl`: all members but those that triplets (first, last, stride) name.
    pub fn range_excl(&self, ranges: &[[i32; 3]]) -> Result<Members> {
        self.excl(&self.expand(ranges)?)
    }

    /// The ranks that triplets (first, last, stride) name, in order.
    fn expand(&self, ranges: &[[i32; 3]]) -> Result<Vec<i32>> {
        let mut ranks = Vec::new();
        for &[first, last, stride] in ranges {
            if stride == 0 || (i64::from(last) - i64::from(first)) * i64::from(stride) < 0 {
                let detail = format!(
                    "the range ({first}, {last}, {stride}) has no ranks: the stride must lead from first to last"
                );
                return Err(Error::new(Class::ARG, detail));
            }
            // Checked before ranks are listed, so that a wrong range does not take unlimited
            // memory.
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

    /// For each member, whether `ranks` names it. An error if a rank does not exist or is named
    /// twice.
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

    /// The world rank of member `rank`; an error if there is no such member.
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

/// Finds the numbers of members in a group by their world ranks, many times.
enum RankLookup<'a> {
    Few(&'a Members),
    /// The number of each member, indexed by world rank.
    Table(Vec<Option<u32>>),
}

impl RankLookup<'_> {
    /// A lookup for `lookups` searches. A table is built only if these are enough to pay for it.
    fn of(members: &Members, lookups: usize) -> RankLookup<'_> {
        let Members::Listed(ranks) = members else {
            return RankLookup::Few(members);
        };
        if lookups * ranks.len() <= 1024 {
            return RankLookup::Few(members);
        }
        let highest = ranks.iter().max().map_or(0, |&rank| rank as usize);
        let mut table = vec![None; highest + 1];
        for (place, &rank) in (0..).zip(ranks.iter()) {
            table[rank as usize] = Some(place);
        }
        RankLookup::Table(table)
    }

    fn get(&self, world: usize) -> Option<usize> {
        match self {
            RankLookup::Few(members) => members.rank_of(world),
            RankLookup::Table(table) => table
                .get(world)
                .copied()
                .flatten()
                .map(|place| place as usize),
        }
    }
}

/// A group with a handle.
pub struct Group {
    /// The members of the group, by world rank.
    pub members: Members,
    /// This rank's number in the group, if it is a member.
    pub rank: Option<usize>,
    /// The number of times that the handle has been returned and not been freed.
    users: u64,
}

/// The groups of a rank, by handle. Each result of a constructor is a new handle, or [`EMPTY`] for
/// an empty group.
pub struct Groups {
    /// The world rank of this rank.
    me: usize,
    empty: Group,
    others: Slab<Group>,
    /// The handles of the groups of communicators, windows and files, by the identity of their
    /// lists of members, which the groups keep alive.
    of_objects: BTreeMap<Identity, u32>,
}

/// The identity of a list of members: the number of the job's first ranks, or the list's address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Identity {
    All(usize),
    Listed(usize),
}

impl From<&Members> for Identity {
    fn from(members: &Members) -> Identity {
        match members {
            Members::All(count) => Identity::All(*count),
            Members::Listed(ranks) => Identity::Listed(ranks.as_ptr() as usize),
        }
    }
}

impl Groups {
    /// A table without groups but the empty one, for the rank with this number in the job.
    pub fn new(me: usize) -> Groups {
        let empty = Group {
            members: Members::All(0),
            rank: None,
            users: 1,
        };
        Groups {
            me,
            empty,
            others: Slab::new(ObjectKind::Group),
            of_objects: BTreeMap::new(),
        }
    }

    /// The group with this handle.
    pub fn get(&self, handle: u32) -> Result<&Group> {
        match handle {
            EMPTY => Ok(&self.empty),
            _ => self.others.get(handle).ok_or_else(|| unknown(handle)),
        }
    }

    /// Adds a group, and returns its handle.
    pub fn add(&mut self, members: Members) -> Result<u32> {
        if members.is_empty() {
            return Ok(EMPTY);
        }
        let rank = members.rank_of(self.me);
        let group = Group {
            members,
            rank,
            users: 1,
        };
        self.others.insert(group).ok_or_else(|| {
            Error::new(
                Class::NO_MEM,
                "there are a million groups: free some of them first",
            )
        })
    }

    /// The handle of the group of a communicator, window or file. While an earlier handle for this
    /// list of members has not been freed as often as it was returned, the result is that handle.
    pub fn of_object(&mut self, members: &Members) -> Result<u32> {
        let identity = Identity::from(members);
        let earlier = self.of_objects.get(&identity);
        if let Some(&handle) = earlier
            && let Some(group) = self.others.get_mut(handle)
        {
            group.users += 1;
            return Ok(handle);
        }
        let handle = self.add(members.clone())?;
        if handle != EMPTY {
            self.of_objects.insert(identity, handle);
        }
        Ok(handle)
    }

    /// `MPI_Group_free`. [`EMPTY`] stays valid: it may be freed like any other result.
    pub fn free(&mut self, handle: u32) -> Result<()> {
        if handle == EMPTY {
            return Ok(());
        }
        let group = self.others.get_mut(handle).ok_or_else(|| unknown(handle))?;
        group.users -= 1;
        if group.users > 0 {
            return Ok(());
        }
        let identity = Identity::from(&group.members);
        if self.of_objects.get(&identity) == Some(&handle) {
            self.of_objects.remove(&identity);
        }
        self.others.discard(handle);
        Ok(())
    }

    /// `MPI_Group_compare`.
    pub fn compare(&self, first: u32, second: u32) -> Result<Comparison> {
        Ok(self.get(first)?.members.compare(&self.get(second)?.members))
    }

    /// `MPI_Group_translate_ranks`.
    pub fn translate(&self, from: u32, ranks: &[i32], to: u32) -> Result<Vec<i32>> {
        self.get(from)?
            .members
            .translate(ranks, &self.get(to)?.members)
    }

    /// `MPI_Group_union`.
    pub fn union(&mut self, first: u32, second: u32) -> Result<u32> {
        let members = self.get(first)?.members.union(&self.get(second)?.members);
        self.add(members)
    }

    /// `MPI_Group_intersection`.
    pub fn intersection(&mut self, first: u32, second: u32) -> Result<u32> {
        let members = self
            .get(first)?
            .members
            .intersection(&self.get(second)?.members);
        self.add(members)
    }

    /// `MPI_Group_difference`.
    pub fn difference(&mut self, first: u32, second: u32) -> Result<u32> {
        let members = self
            .get(first)?
            .members
            .difference(&self.get(second)?.members);
        self.add(members)
    }

    /// `MPI_Group_incl`.
    pub fn incl(&mut self, group: u32, ranks: &[i32]) -> Result<u32> {
        let members = self.get(group)?.members.incl(ranks)?;
        self.add(members)
    }

    /// `MPI_Group_excl`.
    pub fn excl(&mut self, group: u32, ranks: &[i32]) -> Result<u32> {
        let members = self.get(group)?.members.excl(ranks)?;
        self.add(members)
    }

    /// `MPI_Group_range_incl`.
    pub fn range_incl(&mut self, group: u32, ranges: &[[i32; 3]]) -> Result<u32> {
        let members = self.get(group)?.members.range_incl(ranges)?;
        self.add(members)
    }

    /// `MPI_Group_range_excl`.
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
