//! The agreement of a communicator's members on the properties of their network.
//!
//! Devices of different hosts may report different numbers, but all members must choose the same
//! algorithm. So the members of a communicator on several hosts agree on the worst of their numbers
//! in their first collective operation; later operations wait for that. On one host all ranks have
//! the same devices, and nothing is exchanged.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use channel::PathCosts;
use datatype::{Op, Predefined};

use super::call::Call;
use super::reduce::recursive_doubling;
use super::reduction::Reduction;
use crate::Result;
use crate::algorithms::Network;
use crate::comm::{Core, STAGES};
use crate::op::Operation;
use crate::rank::Rank;

impl Rank {
    /// The properties of the network according to this rank's devices.
    pub fn own_network(&self) -> Network {
        let own = self.lock().engine.router.report().network();
        let Some(paths) = own.device else {
            return Network::MEMORY;
        };
        let [across, inside] = paths.map(|path| PathCosts {
            eager: match self.limits.eager {
                Some(limit) => path.longest.min(limit as u64),
                None => path.eager,
            },
            ..path
        });
        Network {
            across,
            inside: match own.shares_memory {
                true => PathCosts::MEMORY,
                false => inside,
            },
            memory: own.shares_memory,
        }
    }
}

/// Returns once the network between the members is known. `begins`: this operation is the one that
/// agrees.
#[inline]
pub(super) async fn settle(call: &Call<'_>, begins: bool) -> Result<()> {
    if call.core.network.agreed.get().is_some() {
        return Ok(());
    }
    find(call, begins).await
}

#[cold]
async fn find(call: &Call<'_>, begins: bool) -> Result<()> {
    let agreed = &call.core.network.agreed;
    if call.shape().spread().hosts <= 1 {
        agreed.get_or_init(|| call.by.own_network());
        return Ok(());
    }
    if !begins {
        poll_fn(|_| match agreed.get() {
            Some(_) => Poll::Ready(()),
            None => Poll::Pending,
        })
        .await;
        return Ok(());
    }
    let network = agree(&call.on_stage(STAGES - 1)).await?;
    agreed.get_or_init(|| call.by.agreed(network));
    call.by.notify();
    Ok(())
}

/// The number of values of a network on which the members agree.
const NUMBERS: usize = 2 * PathCosts::COUNT + 1;

/// The network with the worst values of all members.
async fn agree(call: &Call<'_>) -> Result<Network> {
    let own = call.by.own_network();
    let alone = call.shape().beside(call.core.rank).len() == 1;
    let paths = [own.across.words(), own.inside.words()];
    let mine = paths.into_iter().flatten();
    let mine = mine.chain([u64::from(!own.memory && !alone)]);
    let numbers = call.elements(NUMBERS, &Predefined::UINT64_T.into())?;
    let bytes: Vec<u8> = mine.flat_map(u64::to_ne_bytes).collect();
    numbers.buffer().unpack(0, &bytes);
    let work = Reduction {
        send: None,
        receive: Some(numbers.clone()),
        op: Operation::Predefined(Op::Max),
    };
    recursive_doubling(call, &work).await?;
    let mut bytes = [0; 8 * NUMBERS];
    numbers.buffer().pack(0, &mut bytes);
    let number = |at: usize| u64::from_ne_bytes(std::array::from_fn(|byte| bytes[at * 8 + byte]));
    let path = |from: usize| PathCosts::of_words(std::array::from_fn(|at| number(from + at)));
    Ok(Network {
        across: path(0),
        inside: path(PathCosts::COUNT),
        memory: number(NUMBERS - 1) == 0,
    })
}

impl Rank {
    /// Makes the members agree on their network by a detached request, in the initialization of the
    /// persistent operation with the tag `tag`.
    pub(super) fn agree_beside(self: &Arc<Rank>, core: &Arc<Core>, tag: i32) -> Result<()> {
        let (rank, of) = (self.clone(), core.clone());
        let request = self.spawn(Some(core.context), async move {
            settle(&Call::persistent(&rank, of.joint(), tag), true).await
        })?;
        self.lock().engine.messages.requests.detach(request)
    }
}
