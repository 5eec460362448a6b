//! The agreement of a communicator's members on collective buffers.

use channel::collective_buffer::{BufferOffer, CollectiveBuffer};
use channel::{MappedMemory, Transport};
use datatype::{Op, Predefined};

use super::call::Call;
use super::reduce::recursive_doubling;
use super::reduction::Reduction;
use crate::Result;
use crate::collective_buffers::CommBuffer;
use crate::op::Operation;
use crate::rank::{Rank, State};
use crate::request::Waiting;

/// The result of an agreement.
pub(super) struct Agreed {
    /// The buffers that are free for all members: at most as many as were wanted.
    pub(super) buffers: Vec<CollectiveBuffer>,
    /// Each member can read and write the memory of all.
    pub(super) direct: bool,
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
            let State { comms, router, .. } = &mut *self.lock();
            if !router.shares_memory(call.core.members.iter()) {
                comms.get_mut(comm)?.buffer.rule_out();
                return Ok(());
            }
        }
        let among = Some(call.core.context);
        let agreed = self.block_on(waiting, among, agree_on_buffers(call, 2))?;
        let State { comms, lanes, .. } = &mut *self.lock();
        let entry = comms.get_mut(comm)?;
        let mut buffers = agreed.buffers.into_iter();
        match buffers.next() {
            Some(buffer) => entry.buffer = CommBuffer::Ready(Box::new(buffer)),
            None => entry.buffer.put_off(),
        }
        if let Some(buffer) = buffers.next() {
            entry.lane = Some(lanes.add(buffer, agreed.direct));
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
        self.rank.lock().router.end_offer(self.offer);
    }
}

/// Makes the members agree on at most `wanted` buffers.
pub(super) async fn agree_on_buffers(call: &Call<'_>, wanted: usize) -> Result<Agreed> {
    let members = &call.core.members;
    let offer = {
        let State { router, lanes, .. } = &mut *call.rank.lock();
        lanes.sweep();
        router.offer_buffers(members.iter())
    };
    let offer = Offer {
        rank: call.rank,
        offer,
    };
    let mut agreed = agree(call, offer.offer).await?;
    let mut direct = false;
    if agreed.free != 0 {
        // All members have joined the memory by now.
        let copies = copies_directly(call.rank, members.iter());
        direct = all_agree(call, copies).await?;
    }
    let mut buffers = Vec::new();
    while agreed.free != 0 && buffers.len() < wanted {
        let mut state = call.rank.lock();
        buffers.extend(state.router.collective_buffer(agreed, members.iter())?);
        agreed.free &= agreed.free - 1;
    }
    Ok(Agreed { buffers, direct })
}

/// This rank can read and write the memory of each of these world ranks by itself.
fn copies_directly(rank: &Rank, mut members: impl Iterator<Item = usize>) -> bool {
    let mut state = rank.lock();
    members.all(|peer| {
        let zero_copy = state.router.capabilities(peer).zero_copy;
        peer == rank.rank() || zero_copy.is_some_and(|zero_copy| zero_copy.synchronous)
    })
}

/// All members say yes.
async fn all_agree(call: &Call<'_>, yes: bool) -> Result<bool> {
    let number = call.elements(1, &Predefined::UINT64_T.into())?;
    number.buffer().unpack(0, &u64::from(yes).to_ne_bytes());
    let work = Reduction {
        send: None,
        receive: Some(number.clone()),
        op: Operation::Predefined(Op::Band),
    };
    recursive_doubling(call, &work).await?;
    let mut bytes = [0; 8];
    number.buffer().pack(0, &mut bytes);
    Ok(u64::from_ne_bytes(bytes) == 1)
}

/// The combined offer of all members: the buffers that are free for all, from a round that is new
/// to all.
async fn agree(call: &Call<'_>, offer: BufferOffer) -> Result<BufferOffer> {
    let numbers = call.elements(2, &Predefined::UINT64_T.into())?;
    let [buffers, rounds] = [0, 1].map(|at| numbers.part(at, 1));
    for (elements, number, op) in [
        (&buffers, offer.free, Op::Band),
        (&rounds, offer.first_round, Op::Max),
    ] {
        elements.buffer().unpack(0, &number.to_ne_bytes());
        let work = Reduction {
            send: None,
            receive: Some(elements.clone()),
            op: Operation::Predefined(op),
        };
        recursive_doubling(call, &work).await?;
    }
    let mut bytes = [0; 16];
    numbers.buffer().pack(0, &mut bytes);
    let number = |at: usize| u64::from_ne_bytes(std::array::from_fn(|byte| bytes[at * 8 + byte]));
    Ok(BufferOffer {
        free: number(0),
        first_round: number(1),
    })
}
