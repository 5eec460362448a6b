//! Blocking operations between two groups that share memory, by rounds of collective buffers.
//!
//! A broadcast uses a buffer of the root and the receivers alone, since the other ranks of the
//! root's group do not even know its length. Operations without a root use a buffer of all members;
//! each member reads what the remote group has published.

use std::ops::Range;

use channel::collective_buffer::MOST_BYTES;
use datatype::Buffer;

use super::Work;
use super::between_memory::{InMemory, parts};
use super::buffer_round::NotedCall;
use super::combining_steps::CombineOf;
use super::reduction::Reduction;
use super::rounds::{BlockingCall, BufferPlace};
use super::signature::{Part, Signature};
use super::steps::MoveOf;
use crate::Result;
use crate::algorithms::Collective;
use crate::coll::collective_buffers::CommBuffer;
use crate::comm::{Around, Comm, Core};
use crate::rank::Rank;
use crate::request::Waiting;

/// The collective buffer of some members of an intercommunicator.
#[derive(Clone, Copy)]
struct OfSome(Around);

impl BufferPlace for OfSome {
    fn of(self, comm: &mut Comm) -> &mut CommBuffer {
        &mut comm.shared_between(self.0).buffer
    }
}

impl Rank {
    /// Runs an operation by rounds of its members' buffer.
    pub(super) fn rounds_between(
        &self,
        waiting: &Waiting<'_>,
        groups: &Core,
        (work, it): (&Work, &InMemory),
        comm: u32,
    ) -> Result<()> {
        let call = BlockingCall {
            buffer: OfSome(it.around),
            rank: self,
            waiting,
            comm,
            me: it.me,
            size: it.size,
            noted: it.facts.noted(false),
        };
        let theirs = groups.theirs();
        match work {
            Work::Bcast { buffer, .. } => call.run(&Work::Bcast {
                buffer: buffer.clone(),
                root: it.size as i32 - 1,
            }),
            Work::Allreduce(reduction) => call.combine_remote(reduction, theirs),
            Work::Alltoall {
                send: Some(send),
                receive,
            } => {
                let (give, take) = (parts(send, theirs.len()), parts(receive, theirs.len()));
                let ours = groups.members.len();
                call.exchange_remote(theirs, (&give, &take), ours, groups.rank)
            }
            Work::Allgather {
                send: Some(send),
                receive,
            } => {
                let (give, take) = ([send.clone()], parts(receive, theirs.len()));
                call.exchange_remote(theirs, (&give, &take), 1, 0)
            }
            _ => call.run(work),
        }
    }
}

impl BlockingCall<'_, OfSome> {
    /// Combines the vectors of the remote group; `theirs` are its members' numbers.
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

    /// Moves buffers to and from each member of the remote group. In each direction all buffers
    /// have one size. `published` is the number of buffers that each remote member publishes;
    /// `place` is the index of this rank's buffer among them.
    fn exchange_remote(
        &self,
        theirs: Range<usize>,
        (give, take): (&[Buffer], &[Buffer]),
        published: usize,
        place: usize,
    ) -> Result<()> {
        let (given, taken) = (give[0].len(), take[0].len());
        let room = MOST_BYTES / published.max(give.len());
        // Pieces of whole cache lines.
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
