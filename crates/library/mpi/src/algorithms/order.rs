//! The order in which a reduction combines the operands of the ranks. Algorithms of one order give
//! the same bits, also with operations that are not associative, such as sums of floating-point
//! numbers.
//!
//! Invariant: what only one host knows, such as measured costs or a permission of its kernel,
//! decides between algorithms of one order only.

use super::names::{Algorithm, Collective};

/// The order in which a reduction combines the operands `a0`, `a1`… of the ranks, where a user of
/// the result could see it. Operands of a commutative operation are not always combined in the
/// order of ranks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Order {
    /// The operands are combined from the last rank down: `a0 + (a1 + (a2 + a3))`.
    Descending,
    /// The operands are combined from the first rank up: `((a0 + a1) + a2) + a3`.
    Ascending,
    /// Neighbours, then pairs of neighbours, and so on: `(a0 + a1) + (a2 + a3)`. If the number of
    /// ranks is no power of two, neighbours among the first ranks count as one rank.
    Neighbours,
    /// Ranks at half the distance, then at a quarter, and so on: `(a0 + a2) + (a1 + a3)`, with
    /// neighbours as one rank as in [`Neighbours`](Order::Neighbours).
    Distant,
    /// Each rank combines its operand with the operands of aligned blocks of 1, 2, 4… ranks before
    /// it.
    Prefixes,
    /// The operands are combined up a binomial tree from the root, or from rank 0.
    Binomial,
    /// The operands are combined up a k-ary tree from the root, or from rank 0.
    Branches,
    /// Each part of the vectors from a rank of its own up, in a circle.
    Ring,
    /// Each part of the vectors from the rank that gets it down, in a circle.
    Owner,
    /// The operands of each host are combined first.
    Hosts,
}

impl Algorithm {
    /// The order of combination in a collective operation; `None` if it combines nothing.
    pub fn order(self, of: Collective) -> Option<Order> {
        use Algorithm as A;
        use Collective as C;
        Some(match (of, self) {
            (C::Barrier | C::Bcast | C::Gather | C::Scatter | C::Allgather | C::Alltoall, _) => {
                return None;
            }
            (_, A::Shared | A::Direct | A::Linear) => Order::Descending,
            (_, A::TwoLevel | A::TwoLevelParts) => Order::Hosts,
            (C::Scan, A::Chain) => Order::Ascending,
            (C::Scan, _) => Order::Prefixes,
            (_, A::RecursiveDoubling | A::Rabenseifner) => Order::Neighbours,
            (_, A::RecursiveHalving) => Order::Distant,
            (_, A::KAry) => Order::Branches,
            (_, A::Ring | A::CachedRing) => Order::Ring,
            (_, A::Pairwise) => Order::Owner,
            _ => Order::Binomial,
        })
    }
}
