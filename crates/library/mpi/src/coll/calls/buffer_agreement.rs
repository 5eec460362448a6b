//! The agreement of a communicator's members on collective buffers.

use channel::collective_buffer::{BufferOffer, CollectiveBuffer};
use channel::{MappedMemory, Transport};
use datatype::{Op, Predefined};

use super::call::Call;
use super::reduce::recursive_doubling;
use super::reduction::Reduction;
use crate::Result;
use crate::algorithms::contest::Contests;
use crate::coll::collective_buffers::CommBuffer;
use crate::op::Operation;
use crate::rank::Rank;
use crate::request::Waiting;
use crate::state::{Engine, State};

/// The result of an agreement on collective buffers.
pub(super) struct Agreed {
    /// The buffers that are free for all members: at most the requested number.
    pub(super) buffers: Vec<CollectiveBuffer>,
    /// True if each member can read and write the memory of all members.
    pub(super) direct: bool,
    /// The contests of the members, if all of them choose algorithms by measured times.
    pub(super) contests: Option<Contests>,
}

impl Rank {
    /// Makes the members agree on collective buffers, one for blocking calls and one for a lane.
    /// Both may be unavailable now.
    #[cold]
    pub(super) fn agree_on_buffer(
        &self,
        waiting: &Waiting,
        call: &Call<'_>,
        comm: u32,
    ) -> Result<()> {
        {
            let State { engine, objects } = &mut *self.lock();
            if !engine.router.shares_memory(call.core.members.iter()) {
                objects.comms.get_mut(comm)?.buffer.rule_out();
                return Ok(());
            }
        }
        let among = Some(call.core.context);
        let agreed = self.block_on(waiting, among, agree_on_buffers(self, call, 2))?;
        let State { engine, objects } = &mut *self.lock();
        let entry = objects.comms.get_mut(comm)?;
        let mut buffers = agreed.buffers.into_iter();
        match buffers.next() {
            Some(buffer) => entry.buffer = CommBuffer::Ready(Box::new(buffer)),
            None => entry.buffer.put_off(),
        }
        if let Some(buffer) = buffers.next() {
            entry.lane = Some(engine.lanes.add(buffer, agreed.direct));
            let inherited = entry.contests.take();
            entry.contests = agreed
                .contests
                .map(|new| inherited.unwrap_or(Box::new(new)));
        }
        Ok(())
    }
}

/// This rank's offer of free collective buffers to the other members. Dropping it withdraws the
/// offer.
struct Offer<'a> {
    rank: &'a Rank,
    offer: BufferOffer,
}

impl Drop for Offer<'_> {
    fn drop(&mut self) {
        self.rank.lock().engine.router.end_offer(self.offer);
    }
}

/// Makes the members agree on at most `wanted` buffers, and returns those.
pub(super) async fn agree_on_buffers(
    rank: &Rank,
    call: &Call<'_>,
    wanted: usize,
) -> Result<Agreed> {
    let members = call.worlds();
    let offer = {
        let Engine { router, lanes, .. } = &mut rank.lock().engine;
        lanes.sweep();
        router.offer_buffers(members.iter().copied())
    };
    let offer = Offer { rank, offer };
    let mut agreed = agree(call, offer.offer).await?;
    let (mut direct, mut core_each, mut contests) = (false, false, None);
    if agreed.free != 0 {
        // All members have joined the memory by now.
        let copies = copies_directly(rank, members.iter().copied());
        let knows = rank.lock().engine.messages.knows_kept_costs();
        let has_core = !rank.waiter.is_crowded();
        let own = [copies, rank.learns(), knows, has_core];
        let own = own
            .iter()
            .rev()
            .fold(0, |all, one| all << 1 | u64::from(*one));
        let [common] = combined(call, [own], Op::Band).await?;
        let [copy, learn, know, cores] = [1, 2, 4, 8].map(|bit| common & bit != 0);
        (direct, core_each) = (copy, cores);
        contests = learn.then(Contests::default);
        if let (true, Some(contests)) = (know, &mut contests) {
            let messages = &rank.lock().engine.messages;
            contests.begin_with(messages.kept_ways(members.len() == 2));
        }
    }
    let mut buffers = Vec::new();
    while agreed.free != 0 && buffers.len() < wanted {
        let router = &mut rank.lock().engine.router;
        let mut buffer = router.collective_buffer(agreed, members.iter().copied())?;
        if let Some(buffer) = &mut buffer {
            buffer.core_each = core_each;
        }
        buffers.extend(buffer);
        agreed.free &= agreed.free - 1;
    }
    Ok(Agreed {
        buffers,
        direct,
        contests,
    })
}

/// True if this rank can by itself read and write the memory of each of these world ranks.
fn copies_directly(rank: &Rank, mut members: impl Iterator<Item = usize>) -> bool {
    let mut state = rank.lock();
    members.all(|peer| {
        let zero_copy = state.engine.router.capabilities(peer).zero_copy;
        peer == rank.rank() || zero_copy.is_some_and(|zero_copy| zero_copy.synchronous)
    })
}

/// The numbers `own` of all members, each combined over the members by `op`.
pub(super) async fn combined<const N: usize>(
    call: &Call<'_>,
    own: [u64; N],
    op: Op,
) -> Result<[u64; N]> {
    let numbers = call.elements(N, &Predefined::UINT64_T.into())?;
    for (at, number) in own.iter().enumerate() {
        numbers.buffer().unpack(at * 8, &number.to_ne_bytes());
    }
    let work = Reduction {
        send: None,
        receive: Some(numbers.clone()),
        op: Operation::Predefined(op),
    };
    recursive_doubling(call, &work).await?;
    Ok(std::array::from_fn(|at| {
        let mut bytes = [0; 8];
        numbers.buffer().pack(at * 8, &mut bytes);
        u64::from_ne_bytes(bytes)
    }))
}

/// Combines the offers of all members: the buffers that are free for all, and the first round
/// number that no member has used.
async fn agree(call: &Call<'_>, offer: BufferOffer) -> Result<BufferOffer> {
    let [free] = combined(call, [offer.free], Op::Band).await?;
    let [first_round] = combined(call, [offer.first_round], Op::Max).await?;
    Ok(BufferOffer { free, first_round })
}
