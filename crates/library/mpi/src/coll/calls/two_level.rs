//! The two levels of a communicator on several hosts: the ranks within each host, and one rank of
//! each.
//!
//! An algorithm of two levels is composed of flat algorithms, which ignore hosts: some run within
//! each host, others among the leaders of hosts. Each chooses its own algorithm from the table, by
//! the costs for its members.

use super::call::Call;
use crate::shape::{Shape, Spread};

/// The stage number that separates messages within a host from others.
const INSIDE: u64 = 1;
/// The stage number that separates messages among leaders from others.
const LEADERS: u64 = 2;

/// The levels of a two-level operation: within hosts, and among their leaders.
pub(super) struct Levels<'a> {
    pub(super) shape: &'a Shape,
    /// The leaders of all hosts, in the order of hosts.
    leaders: Vec<u32>,
    /// The index of this rank's host.
    pub(super) host: usize,
}

impl<'a> Levels<'a> {
    /// The levels in which the first member of each host is its leader.
    pub(super) fn new(call: &Call<'a>) -> Levels<'a> {
        Levels::with(call, call.shape().at_place(0))
    }

    /// The levels with the first member of each host as its leader, except that `root` leads its
    /// host.
    pub(super) fn rooted(call: &Call<'a>, root: usize) -> Levels<'a> {
        Levels::with(call, call.shape().leaders(root))
    }

    /// The levels in which the last member of each host is its leader.
    pub(super) fn of_last(call: &Call<'a>) -> Levels<'a> {
        let last = |host: &Vec<u32>| host.last().copied();
        let leaders = call.shape().hosts().iter().filter_map(last);
        Levels::with(call, leaders.collect())
    }

    fn with(call: &Call<'a>, leaders: Vec<u32>) -> Levels<'a> {
        let shape = call.shape();
        Levels {
            shape,
            leaders,
            host: shape.host_of(call.me()),
        }
    }

    /// The part of the call within this rank's host.
    pub(super) fn inside(&self, call: &Call<'a>) -> Call<'a> {
        inside(call)
    }

    /// The part of the call among the leaders; `None` if this rank is not a leader.
    pub(super) fn across<'b>(&'b self, call: &Call<'a>) -> Option<Call<'b>>
    where
        'a: 'b,
    {
        let spread = Spread::leaders(self.leaders.len(), 1);
        call.among(&self.leaders, spread, LEADERS)
    }

    /// The index of this host's leader among the host's members.
    pub(super) fn leader(&self) -> usize {
        self.shape.place(self.leaders[self.host] as usize)
    }

    /// The members on each host.
    pub(super) fn hosts(&self) -> &'a [Vec<u32>] {
        self.shape.hosts()
    }

    /// The members on this rank's host.
    pub(super) fn members(&self) -> &'a [u32] {
        &self.shape.hosts()[self.host]
    }
}

/// The part of a call within this rank's host.
pub(super) fn inside<'a>(call: &Call<'a>) -> Call<'a> {
    let members = call.shape().beside(call.me());
    let spread = Spread::one_host(members.len());
    call.among(members, spread, INSIDE)
        .expect("a rank is on its own host")
}

/// A column: the ranks that have this rank's index within their hosts. There are `parts` columns.
pub(super) struct Column {
    members: Vec<u32>,
    parts: usize,
}

impl Column {
    /// The column of this rank; `None` if the rank's index within its host is not below `parts`.
    pub(super) fn of(call: &Call<'_>, parts: usize) -> Option<Column> {
        let shape = call.shape();
        let place = shape.place(call.me());
        (place < parts).then(|| Column {
            members: shape.at_place(place),
            parts,
        })
    }

    /// The part of the call among the ranks of the column.
    pub(super) fn across<'b>(&'b self, call: &Call<'b>) -> Call<'b> {
        let spread = Spread::leaders(self.members.len(), self.parts);
        call.among(&self.members, spread, LEADERS)
            .expect("a rank is in its own column")
    }
}
