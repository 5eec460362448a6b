//! Blocking operations between two groups that share memory, by rounds of collective buffers.
//!
//! A broadcast takes rounds of a buffer of the root and the receivers alone, since the other ranks
//! of the root's group do not even know its length. Operations without a root take rounds of a
//! buffer of all members, of which each reads what the remote group has published.
//!
//! Invariant: all members of a buffer take the same rounds. The members of each buffer count their
//! calls alike, and agree on it in the operation after which it is due, under that operation's tag.

use std::ops::Range;

use channel::MappedMemory;
use channel::collective_buffer::MOST_BYTES;
use datatype::Buffer;

use super::Work;
use super::between::{Begun, around};
use super::blocks::Blocks;
use super::buffer_agreement::agree_on_buffers;
use super::buffer_round::{Kind, NotedCall};
use super::call::Call;
use super::check::RootBetween;
use super::reduction::Reduction;
use super::rounds::{BlockingCall, BufferPlace};
use super::signature::{Part, SharedFacts, Signature};
use super::steps::{CombineOf, MoveOf};
use crate::Result;
use crate::algorithms::between::FEW;
use crate::algorithms::{Algorithm, Collective};
use crate::collective_buffers::CommBuffer;
use crate::comm::{Around, Comm, Core};
use crate::rank::Rank;
use crate::request::Waiting;

/// The stage on which members agree on a buffer.
const AGREEMENT: u64 = 7;

/// The buffer of some members of an intercommunicator.
#[derive(Clone, Copy)]
struct OfSome(Around);

impl BufferPlace for OfSome {
    fn of(self, comm: &mut Comm) -> &mut CommBuffer {
        comm.buffer_between(self.0)
    }
}

/// An operation as the members of a buffer perform it.
struct InRounds {
    around: Around,
    /// This rank among the members of the buffer.
    me: usize,
    /// Their number.
    size: usize,
    facts: SharedFacts,
}

impl Rank {
    /// Runs an operation that has begun by rounds of a collective buffer. False: it goes by
    /// messages.
    pub(super) fn between_by_rounds(
        &self,
        waiting: &Waiting<'_>,
        begun: &Begun,
        work: &Work,
        comm: u32,
    ) -> Result<bool> {
        let groups = &*begun.groups;
        let Some(it) = self.in_rounds(groups, work)? else {
            return Ok(false);
        };
        let (mut is_ready, is_due) = {
            let mut state = self.lock();
            let buffer = state.comms.get_mut(comm)?.buffer_between(it.around);
            (buffer.is_ready(), buffer.is_due())
        };
        if is_due {
            is_ready = self.agree_between(waiting, begun, &it, comm)?;
        }
        if !is_ready {
            return Ok(false);
        }
        let call = BlockingCall {
            buffer: OfSome(it.around),
            rank: self,
            waiting,
            comm,
            me: it.me,
            size: it.size,
            noted: it.facts.noted(false),
        };
        match work {
            Work::Bcast { buffer, .. } => call.run(&Work::Bcast {
                buffer: buffer.clone(),
                root: it.size as i32 - 1,
            })?,
            Work::Allreduce(reduction) => call.combine_remote(reduction, groups.theirs())?,
            Work::Alltoall {
                send: Some(send),
                receive,
            } => {
                let theirs = groups.theirs();
                let (give, take) = (parts(send, theirs.len()), parts(receive, theirs.len()));
                let ours = groups.members.len();
                call.exchange_remote(theirs, (&give, &take), ours, groups.rank)?;
            }
            Work::Allgather {
                send: Some(send),
                receive,
            } => {
                let theirs = groups.theirs();
                let (give, take) = ([send.clone()], parts(receive, theirs.len()));
                call.exchange_remote(theirs, (&give, &take), 1, 0)?;
            }
            Work::Barrier => call.run(work)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The operation in rounds, if it has this form and the table takes it.
    fn in_rounds(&self, groups: &Core, work: &Work) -> Result<Option<InRounds>> {
        let (ours, theirs) = (groups.members.len(), groups.peers().len());
        let of_all = |facts: SharedFacts| InRounds {
            around: None,
            me: groups.joint().rank,
            size: ours + theirs,
            facts,
        };
        let few = ours.max(theirs) <= FEW;
        let it = match work {
            Work::Bcast { buffer, root } => match RootBetween::of(groups, *root)? {
                RootBetween::Nowhere => None,
                RootBetween::Here => Some(InRounds {
                    around: Some(groups.joint().rank),
                    me: theirs,
                    size: theirs + 1,
                    facts: facts(Collective::Bcast, buffer.len(), buffer.len()),
                }),
                RootBetween::There(root) => Some(InRounds {
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
        };
        Ok(it.filter(|it| self.takes_rounds(&it.facts, it.size)))
    }

    /// The table takes rounds for this call.
    fn takes_rounds(&self, facts: &SharedFacts, size: usize) -> bool {
        if self.algorithms.takes_buffer(facts.published, size) {
            return true;
        }
        let case = facts.case(size, false);
        let algorithm = self.algorithms.algorithm(facts.collective, case);
        algorithm == Algorithm::Shared && facts.published < usize::MAX
    }

    /// Makes the members of a buffer agree on it. False: they have none for now.
    #[cold]
    fn agree_between(
        &self,
        waiting: &Waiting<'_>,
        begun: &Begun,
        it: &InRounds,
        comm: u32,
    ) -> Result<bool> {
        let joint = Call::new(self, begun.groups.joint(), begun.tag);
        let spread = joint.shape().spread();
        let members = match it.around {
            None => (0..it.size as u32).collect(),
            Some(root) => around(&begun.groups, root),
        };
        let Some(call) = joint.among(&members, spread, AGREEMENT) else {
            return Ok(false);
        };
        let mut state = self.lock();
        let shares_memory = state.router.shares_memory(call.worlds().into_iter());
        if !shares_memory {
            let entry = state.comms.get_mut(comm)?;
            entry.buffer_between(it.around).rule_out();
            return Ok(false);
        }
        drop(state);
        let among = Some(begun.groups.context);
        let agreed = self.block_on(waiting, among, agree_on_buffers(&call, 1))?;
        let mut state = self.lock();
        let place = state.comms.get_mut(comm)?.buffer_between(it.around);
        match agreed.buffers.into_iter().next() {
            Some(buffer) => *place = CommBuffer::Ready(Box::new(buffer)),
            None => place.put_off(),
        }
        Ok(place.is_ready())
    }
}

impl BlockingCall<'_, OfSome> {
    /// Combines the vectors of the remote group, which has these members.
    fn combine_remote(&self, reduction: &Reduction, theirs: Range<usize>) -> Result<()> {
        let (Some(send), Some(receive)) = (&reduction.send, &reduction.receive) else {
            return Ok(());
        };
        let element = send.ty().size();
        let each = (MOST_BYTES / element.max(1)).max(1);
        for first in (0..send.count()).step_by(each) {
            let count = each.min(send.count() - first);
            let piece = Reduction {
                send: Some(send.part(first, count)),
                receive: Some(receive.part(first, count)),
                op: reduction.op.clone(),
            };
            let signature = Signature::combined(Collective::Allreduce, &piece, Part::Whole);
            let noted: NotedCall = self.noted.with_len(count * element);
            let call = BlockingCall { noted, ..*self };
            call.repeat(&mut CombineOf::new(signature, theirs.clone()))?;
        }
        Ok(())
    }

    /// Moves buffers from and to each member of the remote group, which are of one size in each
    /// direction. `published`: the buffers that this rank publishes, and that each remote member
    /// does; `place`: the number of that for this rank.
    fn exchange_remote(
        &self,
        theirs: Range<usize>,
        (give, take): (&[Buffer], &[Buffer]),
        published: usize,
        place: usize,
    ) -> Result<()> {
        let (given, taken) = (give[0].len(), take[0].len());
        let room = MOST_BYTES / published.max(give.len());
        // Whole cache lines.
        let each = (room - room % 64).max(1);
        for at in (0..given.max(taken)).step_by(each) {
            let cut = |all: &[Buffer]| -> Box<[Buffer]> {
                all.iter().map(|buffer| buffer.slice(at, each)).collect()
            };
            let (give, take) = (cut(give), cut(take));
            let longest = (give[0].len() * give.len()).max(take[0].len() * published);
            let noted: NotedCall = self.noted.with_len(longest);
            let call = BlockingCall { noted, ..*self };
            call.repeat(&mut MoveOf {
                give,
                left: take.len(),
                take,
                of: theirs.clone(),
                place,
            })?;
        }
        Ok(())
    }
}

fn parts(blocks: &Blocks, count: usize) -> Vec<Buffer> {
    (0..count).map(|member| blocks.part(member)).collect()
}

/// The facts of moved data, of which a member publishes at most `published` bytes.
fn facts(collective: Collective, bytes: usize, published: usize) -> SharedFacts {
    SharedFacts {
        collective,
        kind: Kind::of(collective),
        bytes,
        published,
    }
}
