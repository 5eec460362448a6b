//! The facts of a call on which the choice of its algorithm depends.

use super::network::Network;
use crate::shape::Spread;

/// Published vectors shorter than this, in bytes, always use a collective buffer if members have
/// one. (With contests from 1 KiB on, blocks of 1 to 4 KiB took two near ranks 1.2 to 1.4 times as
/// long in bcast and alltoall on an AMD EPYC, and a gather of four ranks on two cores chose
/// messages that took up to ten times as long: senders that run ahead seem fast.)
pub(super) const ALWAYS_SHARED: usize = 8 << 10;

/// The facts of a call that decide on its algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Case {
    /// The number of bytes: of the vector (bcast, reductions), of one rank's block (gather,
    /// scatter, alltoall), of all blocks together (allgather).
    pub bytes: usize,
    /// The number of members of the communicator.
    pub ranks: usize,
    /// True if the operation is commutative, or nothing is combined.
    pub commutative: bool,
    /// True if every member contributes and gets an equal number of bytes.
    pub even: bool,
    /// True if the members share memory and have a collective buffer for this call.
    pub shared: bool,
    /// True if the members can copy directly from and to each other's memory.
    pub direct: bool,
    /// Bytes of the longest vector that a member would publish in shared memory.
    pub published: usize,
    /// The distribution of the communicator's members over hosts.
    pub spread: Spread,
    /// The network between the communicator's members.
    pub network: Network,
    /// The number of branches of each rank in k-ary trees; `None`: chosen by network, ranks and
    /// size.
    pub arity: Option<usize>,
}

impl Case {
    /// The usual case on one host: blocks of one size, a commutative operation if there is one, and
    /// no collective buffer.
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

    /// True if the members share the memory of one host, so that measured limits of size choose the
    /// algorithm, not costs.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.spread.hosts <= 1 && self.network.memory
    }

    pub(super) fn keeps_order(&self) -> bool {
        self.commutative || self.spread.contiguous
    }
}
