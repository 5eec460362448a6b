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
            let State {
                comms,
                router,
                lanes,
                ..
            } = &mut *self.lock();
            lanes.sweep();
            router.offer_buffers(comms.get(comm)?.core.members.iter())
        };
        let agreed = self.block_on(waiting, agree(call, offer));
        let members = &call.core.members;
        // All members have joined the memory by now.
        let direct = self.lock().router.copies_directly(members.iter());
        let direct = match agreed {
            Ok(BufferOffer { free: 1.., .. }) => self.block_on(waiting, all_agree(call, direct)),
            _ => Ok(false),
        };
        let State {
            comms,
            router,
            lanes,
            ..
        } = &mut *self.lock();
        router.end_offer(offer);
        let (agreed, direct) = (agreed?, direct?);
        let entry = comms.get_mut(comm)?;
        match router.collective_buffer(agreed, members.iter())? {
            Some(buffer) => entry.buffer = CommBuffer::Ready(Box::new(buffer)),
            None => entry.buffer.put_off(),
        }
        // The second buffer that is free for all is the lane's.
        let rest = BufferOffer {
            free: agreed.free & agreed.free.wrapping_sub(1),
            ..agreed
        };
        if let Some(buffer) = router.collective_buffer(rest, members.iter())? {
            entry.lane = Some(lanes.add(buffer, direct));
        }
        Ok(())
    }
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
