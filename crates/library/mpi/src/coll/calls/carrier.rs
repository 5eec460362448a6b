//! What carries the messages of a collective operation: a rank of the job, or (feature `carriers`)
//! an engine that computes only when messages move.
//!
//! A carrier runs the algorithms of this crate for ranks that do not exist here: their messages
//! have a length and no contents, and their work on memory is counted and not done.

use crate::rank::Rank;

/// What carries the messages of a call.
#[derive(Clone, Copy)]
pub(super) enum By<'a> {
    /// A rank of the job.
    Rank(&'a Rank),
    /// A carrier.
    #[cfg(feature = "carriers")]
    Carrier(&'a dyn Carrier),
}

impl By<'_> {
    /// The number of the host of a world rank.
    pub(super) fn host_of(&self, world: usize) -> u32 {
        match self {
            By::Rank(rank) => rank.host_of(world),
            #[cfg(feature = "carriers")]
            By::Carrier(carrier) => carrier.host_of(world),
        }
    }
}

#[cfg(feature = "carriers")]
pub use crate::matching::Key;
#[cfg(feature = "carriers")]
pub use carriers::{Carrier, Member, Operation};

#[cfg(feature = "carriers")]
mod carriers {
    use std::sync::Arc;

    use datatype::local_work::LocalWork;
    use datatype::{Elements, Type};

    use super::super::call::Call;
    use super::super::{Work, network};
    use super::By;
    use crate::algorithms::{Algorithm, AlgorithmTable, Network};
    use crate::comm::Core;
    use crate::matching::Key;
    use crate::{Class, Error, Result};

    /// The messages of one rank, carried by another engine than the rank's own.
    pub trait Carrier: Sync {
        /// Starts a send of `bytes` bytes to a world rank; returns the number of the message.
        fn send(&self, to: usize, key: Key, bytes: usize) -> u64;

        /// Starts a receive of `bytes` bytes; returns the number of the message.
        fn receive(&self, key: Key, bytes: usize) -> u64;

        /// True once a message is complete; its number is then forgotten.
        fn is_done(&self, message: u64) -> bool;

        /// Memory for `count` elements that is only named, and never read for its contents.
        ///
        /// # Errors
        /// There is no room for so many.
        fn elements(&self, count: usize, ty: &Type) -> Result<Elements>;

        /// Counts work on `amount` bytes of the rank's memory, a part of a vector of `of` bytes.
        fn worked(&self, work: LocalWork, amount: usize, of: usize);

        /// The network between the ranks.
        fn network(&self) -> Network;

        /// The number of the host of a world rank.
        fn host_of(&self, world: usize) -> u32;

        /// The table that chooses algorithms.
        fn algorithms(&self) -> &AlgorithmTable;
    }

    /// A rank's part in a communicator whose messages a carrier carries.
    #[derive(Debug)]
    pub struct Member {
        core: Arc<Core>,
        /// The tag of the last operation.
        tag: i32,
    }

    impl Member {
        /// The part of the member that `core` describes.
        pub fn new(core: Core) -> Member {
            Member {
                core: Arc::new(core),
                tag: 0,
            }
        }

        /// The data of the communicator.
        pub fn core(&self) -> &Core {
            &self.core
        }

        /// The part in a communicator that the members of this one make together.
        pub fn making(&self, core: Core) -> Member {
            Member::new(core.made_from(&self.core))
        }

        /// The rank's part in the next collective operation.
        pub fn operation(&mut self) -> Operation {
            self.tag = self.tag.wrapping_add(1) & i32::MAX;
            Operation {
                core: self.core.clone(),
                tag: self.tag,
                begins: self.core.network.begin(),
            }
        }
    }

    /// A rank's part in a collective operation.
    pub struct Operation {
        core: Arc<Core>,
        tag: i32,
        /// True if the members agree on their network in this operation.
        begins: bool,
    }

    impl Operation {
        /// Runs the operation by messages.
        ///
        /// # Errors
        /// The arguments do not fit the communicator, or the algorithm needs the contents of
        /// messages.
        pub async fn run(self, carrier: &dyn Carrier, work: &Work) -> Result<()> {
            work.check(&self.core)?;
            let call = Call::carried(By::Carrier(carrier), &self.core, self.tag);
            network::settle(&call, self.begins).await?;
            let Some(algorithm) = work.algorithm(&call) else {
                return Ok(());
            };
            if algorithm == Algorithm::TwoLevel
                && matches!(work, Work::Gatherv { .. } | Work::Scatterv { .. })
            {
                let what = "blocks of private sizes travel in bundles, whose contents matter";
                return Err(Error::new(Class::UNSUPPORTED_OPERATION, what.to_string()));
            }
            work.run(&call, algorithm).await
        }
    }
}
