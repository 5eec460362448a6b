//! The agreement of a communicator's members on a collective buffer.

use channel::collective_buffer::BufferOffer;
use datatype::{Op, Predefined};

use super::call::Call;
use super::reduce::{Reduction, recursive_doubling};
use crate::Result;
use crate::collective_buffers::CommBuffer;
use crate::op::Operation;
use crate::rank::{Rank, State};
use crate::request::Waiting;

impl Rank {
    /// Makes the members agree on a collective buffer, or find that they have none for now.
    #[cold]
    pub(super) fn agree_on_buffer(
        &self,
        waiting: &Waiting,
        call: &Call<'_>,
        comm: u32,
    ) -> Result<()> {
        let offer = {
            let State { comms, router, .. } = &mut *self.lock();
            router.offer_buffers(comms.get(comm)?.core.members.iter())
        };
        let agreed = self.block_on(waiting, agree(call, offer));
        let State { comms, router, .. } = &mut *self.lock();
        router.end_offer(offer);
        let agreed = agreed?;
        let entry = comms.get_mut(comm)?;
        match router.collective_buffer(agreed, entry.core.members.iter())? {
            Some(buffer) => entry.buffer = CommBuffer::Ready(Box::new(buffer)),
            None => entry.buffer.put_off(),
        }
        Ok(())
    }
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
