//! The facts of a call on which the choice of its algorithm depends.

use super::network::Network;
use crate::shape::Spread;

/// Vectors shorter than this, in bytes, are always published where members share memory.
pub(super) const ALWAYS_SHARED: usize = 8 << 10;

/// The facts of a call that decide on its algorithm.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Bytes: of the vector (bcast, reductions), of one rank's block (gather, scatter, alltoall),
    /// of all blocks together (allgather).
    pub bytes: usize,
    /// Members of the communicator.
    pub ranks: usize,
    /// The operation is commutative, or there is none.
    pub commutative: bool,
    /// Every member contributes and gets an equal number of bytes.
    pub even: bool,
    /// The members share memory and have a buffer for this call.
    pub shared: bool,
    /// The members can copy directly from and to each other's memory.
    pub direct: bool,
    /// Bytes of the longest vector that a member would publish in shared memory.
    pub published: usize,
    /// The members by host.
    pub spread: Spread,
    /// The network between them.
    pub network: Network,
    /// Branches of each rank in k-ary trees; `None`: by the network, the ranks and the size.
    pub arity: Option<usize>,
}

impl Case {
    /// Blocks of one size, and an operation that is commutative if there is one, on one host. The
    /// members do not share a collective buffer.
    pub fn usual(bytes: usize, ranks: usize) -> Case {
        Case {
            bytes,
            ranks,
            commutative: true,
            even: true,
            shared: false,
            direct: false,
            published: bytes,
            spread: Spread::one_host(ranks),
            network: Network::MEMORY,
            arity: None,
        }
    }

    /// The members share the memory of one host, so measured sizes decide.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.spread.hosts <= 1 && self.network.memory
    }

    pub(super) fn keeps_order(&self) -> bool {
        self.commutative || self.spread.contiguous
    }
}
