//! The agreement of a communicator's members on a collective buffer.

use std::sync::Arc;

use channel::Router;
use channel::shm::Shm;
use datatype::{Op, Predefined};

use super::call::Call;
use super::reduce::{Reduction, recursive_doubling};
use crate::Result;
use crate::collective_buffers::{CommBuffer, MappedBuffer, ReadyBuffer};
use crate::comm::Members;
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
        let (free, round) = {
            let state = &mut *self.lock();
            let members = &state.comms.get(comm)?.core.members;
            match places(&state.router, members) {
                Some(_) => state.collective_buffers.offer(),
                None => (0, 0),
            }
        };
        let agreed = self.block_on(waiting, agree(call, free, round));
        let State {
            comms,
            collective_buffers,
            router,
            ..
        } = &mut *self.lock();
        collective_buffers.end_offer(free);
        let (free, round) = agreed?;
        let entry = comms.get_mut(comm)?;
        let Some((shm, places)) = places(router, &entry.core.members).filter(|_| free != 0) else {
            entry.buffer.put_off();
            return Ok(());
        };
        let index = free.trailing_zeros() as usize;
        let mapped = Arc::new(MappedBuffer {
            memory: shm.lane(index)?,
            places,
            me: shm.place(),
        });
        collective_buffers.keep(index, mapped.clone());
        entry.buffer = CommBuffer::Ready(Box::new(ReadyBuffer::new(mapped, round)));
        Ok(())
    }
}

/// The memory that the members share and their places in it; `None` if they do not all share one.
fn places<'a>(router: &'a Router, members: &Members) -> Option<(&'a Shm, Members)> {
    let shm = router.shared_memory()?;
    let place = |member| Some(shm.local().of(member)? as u32);
    let places: Option<Vec<u32>> = members.iter().map(place).collect();
    Some((shm, places?.into()))
}

/// The buffers that are free at all members, as bits, and the first round that is new to all.
async fn agree(call: &Call<'_>, free: u64, round: u64) -> Result<(u64, u64)> {
    let numbers = call.elements(2, &Predefined::UINT64_T.into())?;
    let [buffers, rounds] = [0, 1].map(|at| numbers.part(at, 1));
    for (elements, number, op) in [(&buffers, free, Op::Band), (&rounds, round, Op::Max)] {
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
    Ok((number(0), number(1)))
}
