//! The carriers of the messages of a collective operation: a rank of the job, or (feature
//! `carriers`) an engine that computes only when messages move (`carried`).

#[cfg(feature = "carriers")]
use datatype::local_work::LocalWork;
#[cfg(feature = "carriers")]
use datatype::{Elements, Type};

#[cfg(feature = "carriers")]
use crate::Result;
use crate::algorithms::{AlgorithmTable, Network};
#[cfg(feature = "carriers")]
pub use crate::matching::Key;
use crate::rank::Rank;

/// The means by which the messages of a call are carried: a rank or an engine.
#[derive(Clone, Copy)]
pub(super) enum By<'a> {
    /// A rank of the job, with its transports.
    Rank(&'a Rank),
    /// An engine in the place of a rank, which computes only when messages move.
    #[cfg(feature = "carriers")]
    Carrier(&'a dyn Carrier),
}

impl<'a> By<'a> {
    /// The number of the host on which a world rank runs.
    pub(super) fn host_of(self, world: usize) -> u32 {
        match self {
            By::Rank(rank) => rank.host_of(world),
            #[cfg(feature = "carriers")]
            By::Carrier(carrier) => carrier.host_of(world),
        }
    }

    /// The table that chooses algorithms.
    pub(super) fn algorithms(self) -> &'a AlgorithmTable {
        match self {
            By::Rank(rank) => &rank.algorithms,
            #[cfg(feature = "carriers")]
            By::Carrier(carrier) => carrier.algorithms(),
        }
    }

    /// The network between ranks, according to this rank's own devices.
    pub(super) fn own_network(self) -> Network {
        match self {
            By::Rank(rank) => rank.own_network(),
            #[cfg(feature = "carriers")]
            By::Carrier(carrier) => carrier.network(),
        }
    }

    /// The network on which the members have agreed. A carrier's messages have no contents, and all
    /// its ranks have one network.
    pub(super) fn agreed(self, agreed: Network) -> Network {
        match self {
            By::Rank(_) => agreed,
            #[cfg(feature = "carriers")]
            By::Carrier(carrier) => carrier.network(),
        }
    }

    /// Lets operations continue that wait for what this operation has found.
    pub(super) fn notify(self) {
        match self {
            // Operations that wait are polled when this count changes.
            By::Rank(rank) => rank.lock().engine.messages.requests.completions += 1,
            #[cfg(feature = "carriers")]
            By::Carrier(_) => (),
        }
    }
}

/// The messages of one rank, carried by another engine than the rank's own.
#[cfg(feature = "carriers")]
pub trait Carrier: Sync {
    /// Starts a send of `bytes` bytes to a world rank; returns the number of the message.
    fn send(&self, to: usize, key: Key, bytes: usize) -> u64;

    /// Starts a receive of `bytes` bytes; returns the number of the message.
    fn receive(&self, key: Key, bytes: usize) -> u64;

    /// True once a message is complete; its number is then free again.
    fn is_done(&self, message: u64) -> bool;

    /// Memory for `count` elements that is only named, and never read for its contents.
    ///
    /// # Errors
    /// There is no room for so many.
    fn elements(&self, count: usize, ty: &Type) -> Result<Elements>;

    /// Counts work on `amount` bytes of the rank's memory, a part of a vector of `of` bytes.
    fn worked(&self, work: LocalWork, amount: usize, of: usize);

    /// The network between the ranks whose messages are carried.
    fn network(&self) -> Network;

    /// The number of the host on which a world rank runs.
    fn host_of(&self, world: usize) -> u32;

    /// The table by which algorithms are chosen.
    fn algorithms(&self) -> &AlgorithmTable;
}
