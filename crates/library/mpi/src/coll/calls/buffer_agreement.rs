//! The agreement of a communicator's members on collective buffers.

use channel::collective_buffer::{BufferOffer, CollectiveBuffer};
use channel::{MappedMemory, Transport};
use datatype::{Op, Predefined};

use super::call::Call;
use super::reduce::recursive_doubling;
use super::reduction::Reduction;
use crate::Result;
use crate::coll::collective_buffers::CommBuffer;
use crate::op::Operation;
use crate::rank::Rank;
use crate::request::Waiting;
use crate::state::{Engine, State};

/// The result of an agreement.
pub(super) struct Agreed {
    /// The buffers that are free for all members: at most as many as were wanted.
    pub(super) buffers: Vec<CollectiveBuffer>,
    /// Each member can read and write the memory of all.
    pub(super) direct: bool,
    /// All members learn from times.
    pub(super) learns: bool,
}

impl Rank {
    /// Makes the members agree on collective buffers, one for blocking calls and one for a lane, or
    /// find that they have none for now.
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
        let agreed = self.block_on(waiting, among, agree_on_buffers(call, 2))?;
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
            entry.contests = agreed.learns.then(|| inherited.unwrap_or_default());
        }
        Ok(())
    }
}

/// An offer of this rank's. It ends when it is dropped.
struct Offer<'a> {
    rank: &'a Rank,
    offer: BufferOffer,
}

impl Drop for Offer<'_> {
    fn drop(&mut self) {
        self.rank.lock().engine.router.end_offer(self.offer);
    }
}

/// Makes the members agree on at most `wanted` buffers.
pub(super) async fn agree_on_buffers(call: &Call<'_>, wanted: usize) -> Result<Agreed> {
    let members = call.worlds();
    let offer = {
        let Engine { router, lanes, .. } = &mut call.rank.lock().engine;
        lanes.sweep();
        router.offer_buffers(members.iter().copied())
    };
    let offer = Offer {
        rank: call.rank,
        offer,
    };
    let mut agreed = agree(call, offer.offer).await?;
    let (mut direct, mut learns) = (false, false);
    if agreed.free != 0 {
        // All members have joined the memory by now.
        let copies = copies_directly(call.rank, members.iter().copied());
        let own = u64::from(copies) | u64::from(call.rank.learns()) << 1;
        let [common] = combined(call, [own], Op::Band).await?;
        (direct, learns) = (common & 1 != 0, common & 2 != 0);
    }
    let mut buffers = Vec::new();
    while agreed.free != 0 && buffers.len() < wanted {
        let mut state = call.rank.lock();
        buffers.extend(
            state
                .engine
                .router
                .collective_buffer(agreed, members.iter().copied())?,
        );
        agreed.free &= agreed.free - 1;
    }
    Ok(Agreed {
        buffers,
        direct,
        learns,
    })
}

/// This rank can read and write the memory of each of these world ranks by itself.
fn copies_directly(rank: &Rank, mut members: impl Iterator<Item = usize>) -> bool {
    let mut state = rank.lock();
    members.all(|peer| {
        let zero_copy = state.engine.router.capabilities(peer).zero_copy;
        peer == rank.rank() || zero_copy.is_some_and(|zero_copy| zero_copy.synchronous)
    })
}

/// Numbers of all members, combined by an operation.
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

/// The combined offer of all members: the buffers that are free for all, from a round that is new
/// to all.
async fn agree(call: &Call<'_>, offer: BufferOffer) -> Result<BufferOffer> {
    let [free] = combined(call, [offer.free], Op::Band).await?;
    let [first_round] = combined(call, [offer.first_round], Op::Max).await?;
    Ok(BufferOffer { free, first_round })
}
