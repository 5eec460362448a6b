//! The levels of a communicator on several hosts: the ranks of each host, and one rank of each.
//!
//! An algorithm of two levels is composed of algorithms without levels: some steps take place
//! within each host, others among leaders. Each of its parts chooses its algorithm from the table,
//! by the costs of its own members.

use super::call::Call;
use crate::shape::{Shape, Spread};

/// The stage of steps within a host.
const INSIDE: u64 = 1;
/// The stage of steps among leaders.
const LEADERS: u64 = 2;

/// The levels of a call, with one leader for each host.
pub(super) struct Levels<'a> {
    pub(super) shape: &'a Shape,
    /// The leader of each host.
    leaders: Vec<u32>,
    /// The index of this rank's host.
    pub(super) host: usize,
}

impl<'a> Levels<'a> {
    /// With the first member of each host as its leader.
    pub(super) fn new(call: &Call<'a>) -> Levels<'a> {
        Levels::with(call, call.shape().at_place(0))
    }

    /// With the first member of each host as its leader, except that `root` leads its own.
    pub(super) fn rooted(call: &Call<'a>, root: usize) -> Levels<'a> {
        Levels::with(call, call.shape().leaders(root))
    }

    /// With the last member of each host as its leader.
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

    /// The part of the call among the leaders, if this rank is one.
    pub(super) fn across<'b>(&'b self, call: &Call<'a>) -> Option<Call<'b>>
    where
        'a: 'b,
    {
        let spread = Spread::leaders(self.leaders.len(), 1);
        call.among(&self.leaders, spread, LEADERS)
    }

    /// The place of this host's leader among its members.
    pub(super) fn leader(&self) -> usize {
        self.shape.place(self.leaders[self.host] as usize)
    }

    /// The members of each host.
    pub(super) fn hosts(&self) -> &'a [Vec<u32>] {
        self.shape.hosts()
    }

    /// The members of this rank's host.
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

/// The ranks at this rank's place of each host, which is one of the first `parts`.
pub(super) struct Column {
    members: Vec<u32>,
    parts: usize,
}

impl Column {
    /// `None`: this rank's place is not among the first `parts`.
    pub(super) fn of(call: &Call<'_>, parts: usize) -> Option<Column> {
        let shape = call.shape();
        let place = shape.place(call.me());
        (place < parts).then(|| Column {
            members: shape.at_place(place),
            parts,
        })
    }

    /// The part of the call among these ranks.
    pub(super) fn across<'b>(&'b self, call: &Call<'b>) -> Call<'b> {
        let spread = Spread::leaders(self.members.len(), self.parts);
        call.among(&self.members, spread, LEADERS)
            .expect("a rank is in its own column")
    }
}
