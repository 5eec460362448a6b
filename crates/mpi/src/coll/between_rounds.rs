//! Blocking operations between two groups that share memory, by rounds of collective buffers.
//!
//! A broadcast takes rounds of a buffer of the root and the receivers alone, since the other ranks
//! of the root's group do not even know its length. An allreduce takes rounds of a buffer of all
//! members, of which each reads the vectors of the remote group.
//!
//! Invariant: all members of a buffer take the same rounds. The members of each buffer count their
//! calls alike, and agree on it in the operation after which it is due, under that operation's tag.

use std::ops::Range;

use channel::MappedMemory;
use channel::collective_buffer::MOST_BYTES;

use super::Work;
use super::between::{Begun, around};
use super::buffer_agreement::agree_on_buffers;
use super::buffer_round::NotedCall;
use super::call::Call;
use super::check::RootBetween;
use super::reduction::Reduction;
use super::rounds::{BlockingCall, BufferPlace};
use super::signature::{Part, SharedFacts, Signature};
use super::steps::CombineOf;
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
    /// The members, by their numbers in the joint group.
    members: Vec<u32>,
    /// The operation, by the members' numbers here.
    work: Work,
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
        let Some(it) = self.in_rounds(&begun.groups, work)? else {
            return Ok(false);
        };
        let is_due = {
            let mut state = self.lock();
            let buffer = state.comms.get_mut(comm)?.buffer_between(it.around);
            !buffer.is_ready() && buffer.is_due()
        };
        if is_due {
            self.agree_between(waiting, begun, &it, comm)?;
        }
        let mut state = self.lock();
        let buffer = state.comms.get_mut(comm)?.buffer_between(it.around);
        if !buffer.is_ready() {
            return Ok(false);
        }
        drop(state);
        let joint = begun.groups.joint().rank as u32;
        let me = it.members.iter().position(|&member| member == joint);
        let call = BlockingCall {
            buffer: OfSome(it.around),
            rank: self,
            waiting,
            comm,
            me: me.unwrap_or_default(),
            size: it.members.len(),
            noted: it.facts.noted(false),
        };
        match &it.work {
            Work::Allreduce(reduction) => call.combine_remote(reduction, begun.groups.theirs())?,
            work => call.run(work)?,
        }
        Ok(true)
    }

    /// The operation in rounds, if it has this form and the table takes it.
    fn in_rounds(&self, groups: &Core, work: &Work) -> Result<Option<InRounds>> {
        let (root, members, work) = match work {
            Work::Bcast { buffer, root } => {
                let root = RootBetween::of(groups, *root)?;
                let Some((members, number)) = around(groups, root) else {
                    return Ok(None);
                };
                let work = Work::Bcast {
                    buffer: buffer.clone(),
                    root: members.len() as i32 - 1,
                };
                (Some(number), members, work)
            }
            Work::Allreduce(_) if groups.ours().len().max(groups.theirs().len()) <= FEW => (
                None,
                (0..groups.joint().size() as u32).collect(),
                work.clone(),
            ),
            _ => return Ok(None),
        };
        let size = members.len();
        let me = groups.joint().rank as u32;
        let me = members.iter().position(|&member| member == me);
        let Some(facts) = work.shared(me.unwrap_or_default(), size) else {
            return Ok(None);
        };
        let algorithm = self
            .algorithms
            .algorithm(facts.collective, facts.case(size, false));
        let takes = algorithm == Algorithm::Shared && facts.published < usize::MAX;
        Ok(takes.then_some(InRounds {
            around: root,
            members,
            work,
            facts,
        }))
    }

    /// Makes the members of a buffer agree on it, or find that they have none for now.
    #[cold]
    fn agree_between(
        &self,
        waiting: &Waiting<'_>,
        begun: &Begun,
        it: &InRounds,
        comm: u32,
    ) -> Result<()> {
        let joint = Call::new(self, begun.groups.joint(), begun.tag);
        let spread = joint.shape().spread();
        let Some(call) = joint.among(&it.members, spread, AGREEMENT) else {
            return Ok(());
        };
        let mut state = self.lock();
        let shares_memory = state.router.shares_memory(call.worlds().into_iter());
        if !shares_memory {
            let entry = state.comms.get_mut(comm)?;
            entry.buffer_between(it.around).rule_out();
            return Ok(());
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
        Ok(())
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
}
