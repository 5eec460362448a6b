//! Blocking operations between two groups that share memory: by rounds of a collective buffer, by
//! direct copies, or by messages. The members measure which of the three moves long data fastest.
//!
//! Invariant: all members of a buffer use the same rounds. They count their calls alike, and agree
//! on the buffer in the operation after which it is due, by messages with that operation's tag. The
//! same holds when they compare times.

use channel::MappedMemory;
use datatype::{Buffer, Op};

use super::Work;
use super::between::{Begun, around, numbered};
use super::blocks::Blocks;
use super::buffer_agreement::{agree_on_buffers, combined};
use super::buffer_round::Kind;
use super::call::Call;
use super::check::RootBetween;
use super::direct::Direct;
use super::lane_turn::{LaneTurn, Ticket};
use super::signature::SharedFacts;
use crate::algorithms::between::FEW;
use crate::algorithms::contest::{Contests, Subject, Turn, WAYS, Way};
use crate::algorithms::{self, Collective};
use crate::coll::collective_buffers::CommBuffer;
use crate::comm::{Around, Core, SharedBetween};
use crate::rank::Rank;
use crate::request::Waiting;
use crate::state::State;
use crate::{Class, Error, Result};

/// The stage number of the messages in which members agree on buffers and compare their times.
const AGREEMENT: u64 = 7;

/// A collective operation in shared memory, from the view of the members of one buffer.
pub(super) struct InMemory {
    pub(super) around: Around,
    /// This rank's number among the members of the buffer.
    pub(super) me: usize,
    /// The number of members of the buffer.
    pub(super) size: usize,
    pub(super) facts: SharedFacts,
}

impl InMemory {
    /// The operation in shared memory; `None` if it can run only by messages.
    pub(super) fn of(work: &Work, groups: &Core) -> Result<Option<InMemory>> {
        let (ours, theirs) = (groups.members.len(), groups.peers().len());
        let of_all = |facts: SharedFacts| InMemory {
            around: None,
            me: groups.joint().rank,
            size: ours + theirs,
            facts,
        };
        let few = ours.max(theirs) <= FEW;
        Ok(match work {
            Work::Bcast { buffer, root } => match RootBetween::of(groups, *root)? {
                RootBetween::Nowhere => None,
                RootBetween::Here => Some(InMemory {
                    around: Some(groups.joint().rank),
                    me: theirs,
                    size: theirs + 1,
                    facts: facts(Collective::Bcast, buffer.len(), buffer.len()),
                }),
                RootBetween::There(root) => Some(InMemory {
                    around: Some(groups.theirs().start + root),
                    me: groups.rank,
                    size: ours + 1,
                    facts: facts(Collective::Bcast, buffer.len(), buffer.len()),
                }),
            },
            Work::Allreduce(_) if few => work.shared(groups.rank, ours).map(of_all),
            Work::Alltoall {
                send: Some(send),
                receive,
            } if few && send.is_even() && receive.is_even() => {
                let (given, taken) = (send.len(0), receive.len(0));
                let longest = (given * theirs).max(taken * ours);
                Some(of_all(facts(
                    Collective::Alltoall,
                    given.max(taken),
                    longest,
                )))
            }
            Work::Allgather {
                send: Some(send),
                receive,
            } if few && receive.is_even() => {
                let longest = send.len().max(receive.len(0));
                Some(of_all(facts(Collective::Allgather, longest, longest)))
            }
            Work::Barrier => Some(of_all(facts(Collective::Barrier, 0, 0))),
            _ => None,
        })
    }

    /// True if members can copy the data from each other's memory.
    fn can_be_direct(&self) -> bool {
        let of = self.facts.collective;
        matches!(of, Collective::Alltoall | Collective::Allgather)
    }

    /// The members of the buffer, by their numbers in the joint group.
    fn members(&self, groups: &Core) -> Vec<u32> {
        match self.around {
            None => (0..self.size as u32).collect(),
            Some(root) => around(groups, root),
        }
    }

    /// The part of the joint group's call in which the members of the buffer agree.
    fn among<'b>(&self, joint: &Call<'b>, members: &'b [u32]) -> Result<Call<'b>> {
        let call = joint.among(members, joint.shape().spread(), AGREEMENT);
        call.ok_or_else(|| Error::new(Class::INTERN, "an agreement of other ranks"))
    }

    /// The number of buffers that the members need: one for blocking calls, and, if all ranks are
    /// members, another as the lane of direct copies.
    fn buffers(&self) -> usize {
        match self.around {
            None => 2,
            Some(_) => 1,
        }
    }
}

/// The next action of the members of a buffer.
enum Next {
    /// The members agree on a collective buffer.
    Agree,
    /// The members compare their times of each data path.
    Compare(Subject, [u64; WAYS]),
    /// Perform the operation by this [`Way`], and record its time for this class of calls, if one
    /// is given.
    Go(Way, Option<Subject>),
}

impl Rank {
    /// Runs an operation that has begun, by the [`Way`] that the members choose; by messages if it
    /// has no form for shared memory.
    pub(super) fn run_in_memory(
        &self,
        waiting: &Waiting<'_>,
        begun: &Begun,
        work: &Work,
        comm: u32,
    ) -> Result<()> {
        let Some(it) = &InMemory::of(work, &begun.groups)? else {
            return self.run_between(waiting, begun, work);
        };
        let (way, subject) = loop {
            let next = {
                let mut state = self.lock();
                self.next_in_memory(
                    state.objects.comms.get_mut(comm)?.shared_between(it.around),
                    it,
                )
            };
            match next {
                Next::Go(way, subject) => break (way, subject),
                Next::Agree => self.agree_between(waiting, begun, it, comm)?,
                Next::Compare(subject, times) => {
                    self.compare_between(waiting, begun, it, comm, (subject, times))?;
                }
            }
        };
        let started = subject.map(|subject| (subject, channel::now()));
        let groups = &*begun.groups;
        let numbers = |error| numbered(error, groups);
        match way {
            Way::Messages => self.run_between(waiting, begun, work)?,
            Way::Direct => {
                let done = self.copy_between(waiting, begun, (work, it), comm);
                done.map_err(numbers)?;
            }
            Way::Buffer => {
                let done = self.rounds_between(waiting, groups, (work, it), comm);
                done.map_err(numbers)?;
            }
        }
        if let Some((subject, started)) = started {
            let time = channel::now().saturating_sub(started);
            self.with_contests(comm, it, |contests| contests.record(subject, way, time))?;
        }
        Ok(())
    }

    /// The next action of these members for an operation in shared memory.
    fn next_in_memory(&self, shared: &mut SharedBetween, it: &InMemory) -> Next {
        let facts = &it.facts;
        let (way, subject) = match self.algorithms.takes_buffer(facts.published, it.size) {
            true => (Way::Buffer, None),
            false => {
                // Before the members have agreed on buffers, they count the calls that could use
                // them.
                let lane = shared.lane.as_ref();
                let direct = lane.map_or(!shared.buffer.is_ready(), |lane| lane.is_direct);
                let case = facts.case(it.size, direct && it.can_be_direct());
                // The table's sizes for direct copies were measured within one group. Here only a
                // contest or the user selects direct copies.
                let of_table = match self.algorithms.is_free() {
                    true => facts.case(it.size, false),
                    false => case,
                };
                let first = Way::of(self.algorithms.algorithm(facts.collective, of_table));
                let possible = || algorithms::ways(facts.collective, &case);
                match (
                    &mut shared.contests,
                    Subject::of(facts.collective, facts.published),
                ) {
                    (Some(contests), Some(subject)) => {
                        match contests.next(subject, first, possible) {
                            Turn::Compare(times) => return Next::Compare(subject, times),
                            Turn::Take { way, timed } => (way, timed.then_some(subject)),
                        }
                    }
                    _ => (first, None),
                }
            }
        };
        let is_there = match way {
            Way::Messages => true,
            Way::Buffer => shared.buffer.is_ready(),
            Way::Direct => shared.lane.is_some(),
        };
        match is_there {
            true => Next::Go(way, subject),
            false if shared.buffer.is_due() => Next::Agree,
            false => Next::Go(Way::Messages, None),
        }
    }

    /// Makes the members try to agree on a buffer; there may be none that is free for all of them
    /// now.
    #[cold]
    fn agree_between(
        &self,
        waiting: &Waiting<'_>,
        begun: &Begun,
        it: &InMemory,
        comm: u32,
    ) -> Result<()> {
        let members = it.members(&begun.groups);
        let joint = Call::new(self, begun.groups.joint(), begun.tag);
        let call = it.among(&joint, &members)?;
        {
            let mut state = self.lock();
            if !state.engine.router.shares_memory(call.worlds().into_iter()) {
                let entry = state.objects.comms.get_mut(comm)?;
                entry.shared_between(it.around).buffer.rule_out();
                return Ok(());
            }
        }
        let among = Some(begun.groups.context);
        let agreed = self.block_on(waiting, among, agree_on_buffers(self, &call, it.buffers()))?;
        let State { engine, objects } = &mut *self.lock();
        let shared = objects.comms.get_mut(comm)?.shared_between(it.around);
        let mut buffers = agreed.buffers.into_iter();
        match buffers.next() {
            Some(buffer) => {
                shared.buffer = CommBuffer::Ready(Box::new(buffer));
                shared.contests = agreed.contests.map(Box::new);
            }
            None => shared.buffer.put_off(),
        }
        let lane = buffers.next();
        shared.lane = lane.map(|buffer| engine.lanes.add(buffer, agreed.direct));
        Ok(())
    }

    /// Adds up the members' times of each [`Way`] by messages, and ends the comparison.
    #[cold]
    fn compare_between(
        &self,
        waiting: &Waiting<'_>,
        begun: &Begun,
        it: &InMemory,
        comm: u32,
        (subject, times): (Subject, [u64; WAYS]),
    ) -> Result<()> {
        let members = it.members(&begun.groups);
        let joint = Call::new(self, begun.groups.joint(), begun.tag);
        let call = it.among(&joint, &members)?;
        let among = Some(begun.groups.context);
        let sums = self.block_on(waiting, among, combined(&call, times, Op::Sum))?;
        self.with_contests(comm, it, |contests| contests.compared(subject, sums))
    }

    /// Calls `then` with the contests of data paths that these members have, if they have any.
    fn with_contests(
        &self,
        comm: u32,
        it: &InMemory,
        then: impl FnOnce(&mut Contests),
    ) -> Result<()> {
        let mut state = self.lock();
        let shared = state.objects.comms.get_mut(comm)?.shared_between(it.around);
        if let Some(contests) = &mut shared.contests {
            then(contests);
        }
        Ok(())
    }

    /// Exchanges blocks with the members of the remote group by direct copies.
    fn copy_between(
        &self,
        waiting: &Waiting<'_>,
        begun: &Begun,
        (work, it): (&Work, &InMemory),
        comm: u32,
    ) -> Result<()> {
        let groups = &*begun.groups;
        let (source, receive, bytes, place) = match work {
            Work::Alltoall {
                send: Some(send),
                receive,
            } => (send.whole(), receive, send.len(0), groups.rank),
            Work::Allgather {
                send: Some(send),
                receive,
            } => (send.clone(), receive, send.len(), 0),
            _ => return Err(no_copy()),
        };
        let ticket = {
            let State { engine, objects } = &mut *self.lock();
            let lane = &objects.comms.get_mut(comm)?.shared_between(it.around).lane;
            Ticket::take(&mut engine.lanes, lane.as_ref().ok_or_else(no_copy)?)
        };
        let take = parts(receive, groups.peers().len());
        let call = Call::new(self, groups.joint(), begun.tag);
        let turn = LaneTurn::new(self, ticket, it.facts.noted(true));
        let direct = Direct::new(&call, turn, bytes);
        let copy = direct.exchange_remote(groups.theirs(), &source, &take, place);
        self.block_on(waiting, Some(groups.context), copy)
    }
}

pub(super) fn parts(blocks: &Blocks, count: usize) -> Vec<Buffer> {
    (0..count).map(|member| blocks.part(member)).collect()
}

/// The facts of an operation that only moves data, in which a member publishes at most `published`
/// bytes.
fn facts(collective: Collective, bytes: usize, published: usize) -> SharedFacts {
    SharedFacts {
        collective,
        kind: Kind::of(collective),
        bytes,
        published,
    }
}

#[cold]
fn no_copy() -> Error {
    let detail = "members copy directly without a lane, or in an operation that has no such form";
    Error::new(Class::INTERN, detail)
}
