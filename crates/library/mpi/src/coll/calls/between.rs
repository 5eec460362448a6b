//! Collective operations between the two groups of an intercommunicator (MPI 5.0 §6.2.3), by
//! messages.
//!
//! The members of both groups form one *joint* group. An operation between two groups is composed
//! of flat (not two-level) operations among some of its members: those around a root, those of one
//! group, or all. Each part chooses its algorithm from the table.
//!
//! Invariants:
//! - all members choose the same algorithm, because a choice depends on facts that both groups
//!   know;
//! - a rank that names `MPI_PROC_NULL` as the root does not take part;
//! - operands are combined in the order of the giving group's ranks.

mod reduction;

use std::iter;
use std::ops::Range;
use std::sync::Arc;

use channel::lock::Guard;
use datatype::Buffer;

use super::blocks::Blocks;
use super::both::both;
use super::call::Call;
use super::check::{RootBetween, one_group};
use super::{Work, alltoall, bcast, gather, network};
use crate::algorithms::between::Between as Choice;
use crate::algorithms::{Algorithm, Case, Collective};
use crate::comm::{Comms, Core};
use crate::rank::Rank;
use crate::request::{RequestId, Waiting};
use crate::shape::{Shape, Spread};
use crate::state::State;
use crate::{Class, Error, Result};

/// The stage number of an operation with a root. Messages of different stages do not match.
const ROOTED: u64 = 1;
/// The stage number that separates messages within each group from others.
const INSIDE: u64 = 2;
/// The stage numbers of operations that bring the data of a group to the first member of the other:
/// first for the data of the first group, then for those of the second.
const TO_FIRST_MEMBER: [u64; 2] = [3, 4];
/// The stage number of messages between the first members of the groups.
const FIRST_MEMBERS: u64 = 5;
/// The stage number of messages from each member to each member of the remote group.
const TO_ALL: u64 = 6;

impl Rank {
    /// Runs a blocking collective operation on an intercommunicator.
    #[cold]
    #[inline(never)]
    pub(super) fn collective_between(
        &self,
        mut state: Guard<'_, State>,
        waiting: &Waiting<'_>,
        work: &Work,
        comm: u32,
    ) -> Result<()> {
        let begun = Begun::new(&mut state.objects.comms, work, comm)?;
        drop(state);
        self.run_in_memory(waiting, &begun, work, comm)
    }

    /// Runs by messages an operation that has begun on an intercommunicator.
    pub(super) fn run_between(
        &self,
        waiting: &Waiting<'_>,
        begun: &Begun,
        work: &Work,
    ) -> Result<()> {
        let among = Some(begun.groups.context);
        self.block_on(waiting, among, begun.run(self, work))
    }

    /// Starts a nonblocking collective operation on an intercommunicator.
    #[cold]
    #[inline(never)]
    pub(super) fn start_collective_between(
        self: &Arc<Rank>,
        work: Work,
        comm: u32,
    ) -> Result<RequestId> {
        let begun = Begun::new(&mut self.lock().objects.comms, &work, comm)?;
        let rank = self.clone();
        self.spawn(Some(begun.groups.context), async move {
            begun.run(&rank, &work).await
        })
    }
}

/// A collective operation on an intercommunicator, with checked arguments and its tag.
pub(super) struct Begun {
    pub(super) groups: Arc<Core>,
    pub(super) tag: i32,
    /// True if this operation is the one in which the members agree on their network.
    begins: bool,
}

impl Begun {
    fn new(comms: &mut Comms, work: &Work, comm: u32) -> Result<Begun> {
        let entry = comms.get_mut(comm)?;
        work.check_between(&entry.core)?;
        Ok(Begun {
            groups: entry.core.clone(),
            tag: entry.collective_tag(),
            begins: entry.core.joint().network.begin(),
        })
    }

    async fn run(&self, rank: &Rank, work: &Work) -> Result<()> {
        let call = Call::new(rank, self.groups.joint(), self.tag);
        network::settle(&call, self.begins).await?;
        work.between(&call, &self.groups).await
    }
}

impl Work {
    /// Checks the arguments against each other and against the intercommunicator; each alone has
    /// been checked before.
    pub(super) fn check_between(&self, core: &Core) -> Result<()> {
        match self.signature() {
            Some(signature) => signature.check_between(core),
            None => Err(one_group("operations among neighbours need")),
        }
    }

    /// Runs the operation between two groups by messages; `call` is the call of their joint group.
    pub(super) async fn between(&self, call: &Call<'_>, groups: &Core) -> Result<()> {
        let done = self.compose(&Between { call, groups }).await;
        done.map_err(|error| numbered(error, groups))
    }

    async fn compose(&self, between: &Between<'_>) -> Result<()> {
        match self {
            Work::Barrier => self.by_messages(between.call).await,
            Work::Bcast { root, .. }
            | Work::Gather { root, .. }
            | Work::Gatherv { root, .. }
            | Work::Scatter { root, .. }
            | Work::Scatterv { root, .. } => Box::pin(between.around(self, *root)).await,
            Work::Allgather { send, receive } => match send {
                Some(send) => Box::pin(between.allgather(send, receive)).await,
                None => Ok(()),
            },
            Work::Alltoall { send, receive } => match send {
                Some(send) => between.alltoall(send, receive).await,
                None => Ok(()),
            },
            Work::Reduce { reduction, root } => Box::pin(between.reduce(reduction, *root)).await,
            Work::Allreduce(reduction) => Box::pin(between.allreduce(reduction)).await,
            Work::ReduceScatter { reduction, counts } => {
                Box::pin(between.reduce_scatter(reduction, counts)).await
            }
            Work::Scan { .. }
            | Work::NeighbourAllgather { .. }
            | Work::NeighbourAlltoall { .. } => {
                Err(Error::new(Class::INTERN, "an operation of one group"))
            }
        }
    }
}

/// Adds to an error of an operation of the joint group how that group numbers the ranks.
#[cold]
pub(super) fn numbered(error: Error, groups: &Core) -> Error {
    if error.class != Class::TRUNCATE || error.is_loss() {
        return error;
    }
    let (ours, theirs) = (groups.ours(), groups.theirs());
    let detail = format!(
        "{} (numbers of both groups together: {} to {} are the ranks of this group, {} to {} those of the remote one)",
        error.detail,
        ours.start,
        ours.end - 1,
        theirs.start,
        theirs.end - 1,
    );
    Error::new(error.class, detail)
}

/// A collective operation on an intercommunicator that is in progress.
struct Between<'a> {
    /// The operation as a call among the members of the joint group.
    call: &'a Call<'a>,
    groups: &'a Core,
}

impl Between<'_> {
    /// Runs an operation that has a root and only moves data.
    async fn around(&self, work: &Work, root: i32) -> Result<()> {
        let root = RootBetween::of(self.groups, root)?;
        let root = match root {
            RootBetween::Nowhere => return Ok(()),
            RootBetween::Here => self.call.me(),
            RootBetween::There(root) => self.groups.theirs().start + root,
        };
        let members = around(self.groups, root);
        let Some(call) = self.among(&members, ROOTED) else {
            return Ok(());
        };
        let (call, root) = (&call.unremembered(), members.len() - 1);
        match work {
            Work::Bcast { buffer, .. } => bcast::flat(call, buffer, root).await,
            Work::Gather { send, receive, .. } => {
                gather::flat(call, own(send, root, call), receive.as_ref(), root).await
            }
            Work::Gatherv { send, receive, .. } => {
                gather::gather_linear(call, own(send, root, call), receive.as_ref(), root).await
            }
            Work::Scatter { send, receive, .. } => {
                gather::scatter_flat(call, send.as_ref(), own(receive, root, call), root).await
            }
            Work::Scatterv { send, receive, .. } => {
                gather::scatter_linear(call, send.as_ref(), own(receive, root, call), root).await
            }
            _ => Ok(()),
        }
    }

    /// Exchanges blocks with each member of the remote group.
    async fn alltoall(&self, send: &Blocks, receive: &Blocks) -> Result<()> {
        let bytes = match (send.is_even(), receive.is_even()) {
            (true, true) => send.len(0).max(receive.len(0)),
            _ => 0,
        };
        let (give, take) = (|to| send.part(to), |from| receive.part(from));
        self.exchange(bytes, give, take).await
    }

    /// Exchanges buffers with each member of the remote group. `bytes` is the length of the longest
    /// buffer, or 0 if not all members know it.
    async fn exchange(
        &self,
        bytes: usize,
        give: impl Fn(usize) -> Buffer,
        take: impl Fn(usize) -> Buffer,
    ) -> Result<()> {
        let call = self.call.on_stage(TO_ALL);
        let groups = (self.groups.ours(), self.groups.theirs());
        alltoall::between(&call, groups, bytes, give, take).await
    }

    async fn allgather(&self, send: &Buffer, receive: &Blocks) -> Result<()> {
        let block = match receive.is_even() {
            true => send.len().max(receive.len(0)),
            // The choice must not depend on sizes that others do not know.
            false => 0,
        };
        let case = self.call.case(block);
        match self.choose(Collective::Allgather, case, |of| of.allgather(block)) {
            Algorithm::Linear => {
                self.exchange(block, |_| send.clone(), |member| receive.part(member))
                    .await
            }
            _ => self.allgather_by_firsts(send, receive).await,
        }
    }

    /// The first member of each group gathers the blocks of the other group, and broadcasts them in
    /// its own.
    async fn allgather_by_firsts(&self, send: &Buffer, receive: &Blocks) -> Result<()> {
        let (ours, theirs) = (self.groups.ours(), self.groups.theirs());
        let stages = match self.groups.is_first() {
            true => TO_FIRST_MEMBER,
            false => [TO_FIRST_MEMBER[1], TO_FIRST_MEMBER[0]],
        };
        let even = receive.is_even();
        let give = async {
            let members = numbers(ours.clone().chain(iter::once(theirs.start)));
            let root = members.len() - 1;
            match self.among(&members, stages[0]) {
                Some(call) if even => {
                    gather::flat(&call.unremembered(), Some(send), None, root).await
                }
                Some(call) => gather::gather_linear(&call, Some(send), None, root).await,
                None => Ok(()),
            }
        };
        let take = async {
            if self.groups.rank > 0 {
                return Ok(());
            }
            let members = numbers(theirs.clone().chain(iter::once(ours.start)));
            let root = members.len() - 1;
            match self.among(&members, stages[1]) {
                Some(call) if even => {
                    gather::flat(&call.unremembered(), None, Some(receive), root).await
                }
                Some(call) => gather::gather_linear(&call, None, Some(receive), root).await,
                None => Ok(()),
            }
        };
        both(give, take).await?;
        self.distribute(receive, theirs.len()).await
    }

    /// Distributes `count` blocks that the first member of this group has to the others of this
    /// group.
    async fn distribute(&self, blocks: &Blocks, count: usize) -> Result<()> {
        let members = numbers(self.groups.ours());
        let Some(call) = self.among(&members, INSIDE) else {
            return Ok(());
        };
        if let Some(whole) = blocks.range(0, count) {
            return bcast::flat(&call, &whole, 0).await;
        }
        if call.size() == 1 {
            return Ok(());
        }
        let room = call.bytes(blocks.total())?;
        let mut places = Vec::with_capacity(count);
        let mut at = 0;
        for member in 0..count {
            places.push((room.slice(at, blocks.len(member)), blocks.part(member)));
            at += blocks.len(member);
        }
        if call.me() == 0 {
            for (place, block) in &places {
                call.copy(block, place);
            }
        }
        bcast::flat(&call, &room, 0).await?;
        if call.me() > 0 {
            for (place, block) in &places {
                call.copy(place, block);
            }
        }
        Ok(())
    }

    /// The part of the call on stage `stage` among these members of the joint group; `None` if this
    /// rank is not one of them.
    fn among<'b>(&self, members: &'b [u32], stage: u64) -> Option<Call<'b>>
    where
        Self: 'b,
    {
        self.call.among(members, self.spread(members), stage)
    }

    /// The distribution over hosts of these members of the joint group.
    fn spread(&self, members: &[u32]) -> Spread {
        let shape = self.call.shape();
        if shape.spread().hosts <= 1 {
            return Spread::one_host(members.len());
        }
        let hosts = members.iter();
        Shape::of(hosts.map(|&member| shape.host_of(member as usize) as u32)).spread()
    }

    /// Chooses the algorithm of an operation. `joint`: the facts for all members together. `choose`
    /// gets these, and the facts of each group.
    fn choose(
        &self,
        collective: Collective,
        joint: Case,
        choose: impl FnOnce(Choice) -> Algorithm,
    ) -> Algorithm {
        let group = |members: Range<usize>| Case {
            spread: self.spread(&numbers(members.clone())),
            ranks: members.len(),
            ..joint
        };
        let choose = || {
            let groups = [group(self.groups.ours()), group(self.groups.theirs())];
            let [ours, theirs] = groups;
            let groups = match self.groups.is_first() {
                true => [ours, theirs],
                false => [theirs, ours],
            };
            choose(Choice { joint, groups })
        };
        self.call.choose_between(collective, &joint, choose)
    }
}

/// The members of an operation with a root, by their numbers in the joint group: the ranks of the
/// group opposite to the root, then the root. So the others keep their numbers as indices of
/// blocks.
pub(super) fn around(groups: &Core, root: usize) -> Vec<u32> {
    let (ours, theirs) = (groups.ours(), groups.theirs());
    let others = match theirs.contains(&root) {
        true => ours,
        false => theirs,
    };
    numbers(others.chain(iter::once(root)))
}

/// The block of this rank; `None` at the root, which has none.
fn own<'b>(block: &'b Option<Buffer>, root: usize, call: &Call<'_>) -> Option<&'b Buffer> {
    block.as_ref().filter(|_| call.me() != root)
}

fn numbers(members: impl Iterator<Item = usize>) -> Vec<u32> {
    members.map(|member| member as u32).collect()
}
