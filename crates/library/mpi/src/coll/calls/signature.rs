//! The signature of a collective operation: the data that a rank gives, and the data that it gets.
//!
//! From a signature follow the checks of the arguments, the facts by which an algorithm is chosen,
//! the vector that a member publishes in shared memory, and the members that read it.

use std::ops::Range;

use datatype::{Buffer, Elements};

use super::blocks::Blocks;
use super::buffer_round::{Kind, NotedCall};
use super::call::Call;
use super::reduction::{Counts, Reduction};
use crate::algorithms::{Algorithm, Case, Collective};
use crate::op::Operation;

/// The number of bytes of a published vector up to which an operation is one piece.
pub(super) const WHOLE: usize = 8 << 10;

/// The data of this rank in one direction. The contained option is `None` for `MPI_IN_PLACE`, and
/// at other ranks if only the root has the data.
#[derive(Clone, Copy)]
pub(super) enum Data<'a> {
    /// The operation has no data in this direction.
    Nothing,
    /// One block of this rank.
    One(Option<&'a Buffer>),
    /// A block of this rank for each member.
    Each(Option<&'a Blocks>),
    /// A vector whose elements are combined with those of the other members.
    Vector(Option<&'a Elements>),
}

impl Data<'_> {
    pub(super) fn is_present(&self) -> bool {
        match self {
            Data::Nothing => true,
            Data::One(block) => block.is_some(),
            Data::Each(blocks) => blocks.is_some(),
            Data::Vector(vector) => vector.is_some(),
        }
    }
}

/// The root of an operation: the member whose part differs from those of the others.
#[derive(Clone, Copy)]
pub(super) enum Root {
    /// The operation has no root.
    None,
    /// The root alone gives data.
    Gives(i32),
    /// The root alone gets data.
    Gets(i32),
}

/// The elements of the combined vectors that one member gets.
#[derive(Clone, Copy)]
pub(super) enum Part<'a> {
    /// The result is all elements, combined over all members.
    Whole,
    /// The member's part of the elements, combined from the vectors of all members.
    OfCounts(&'a Counts),
    /// All elements, combined from the vectors of the lower ranks, and from the member's own vector
    /// unless `exclusive`.
    Before { exclusive: bool },
}

/// A collective operation as a movement of data between members.
#[derive(Clone, Copy)]
pub(super) struct Signature<'a> {
    pub(super) collective: Collective,
    pub(super) root: Root,
    /// The data that this rank gives to others.
    pub(super) gives: Data<'a>,
    /// The memory for the data that this rank gets. If `gives` is absent, it also has the data that
    /// this rank gives.
    pub(super) gets: Data<'a>,
    /// The operation that combines the data, and the part of the result for this rank; `None` if
    /// the data are only moved.
    pub(super) combines: Option<(&'a Operation, Part<'a>)>,
    /// True if the size of a block is known only to the root and to the block's owner.
    pub(super) private_sizes: bool,
}

/// The facts of a collective operation by which members that share memory run it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharedFacts {
    pub(super) collective: Collective,
    /// The kind of call that members note in the buffer.
    pub(super) kind: Kind,
    /// The number of bytes by which the table chooses an algorithm.
    pub(super) bytes: usize,
    /// Bytes of the longest vector that a member would publish; `usize::MAX` if a member cannot
    /// publish it.
    pub(super) published: usize,
}

impl SharedFacts {
    /// The call as notes describe it. `direct`: members publish remote keys of memory.
    #[inline(always)]
    pub(super) fn noted(&self, direct: bool) -> NotedCall {
        NotedCall::new(self.kind, self.published, direct)
    }

    /// The facts that decide on the algorithm of a call with `size` members. `direct`: the members
    /// can copy directly.
    #[inline(always)]
    pub(super) fn case(&self, size: usize, direct: bool) -> Case {
        Case {
            shared: true,
            published: self.published,
            direct,
            ..Case::usual(self.bytes, size)
        }
    }
}

impl<'a> Signature<'a> {
    /// An operation that only moves data.
    #[inline(always)]
    pub(super) fn moved(collective: Collective, gives: Data<'a>, gets: Data<'a>) -> Signature<'a> {
        Signature {
            collective,
            root: Root::None,
            gives,
            gets,
            combines: None,
            private_sizes: false,
        }
    }

    /// An operation that combines vectors.
    #[inline(always)]
    pub(super) fn combined(
        collective: Collective,
        reduction: &'a Reduction,
        result: Part<'a>,
    ) -> Signature<'a> {
        let vector = |elements: &'a Option<Elements>| Data::Vector(elements.as_ref());
        Signature {
            combines: Some((&reduction.op, result)),
            ..Signature::moved(
                collective,
                vector(&reduction.send),
                vector(&reduction.receive),
            )
        }
    }

    /// This operation with a root that alone gives data.
    #[inline(always)]
    pub(super) fn from(self, root: i32) -> Signature<'a> {
        Signature {
            root: Root::Gives(root),
            ..self
        }
    }

    /// This operation with a root that alone gets data.
    #[inline(always)]
    pub(super) fn to(self, root: i32) -> Signature<'a> {
        Signature {
            root: Root::Gets(root),
            ..self
        }
    }

    /// An operation whose root gets a block from each member.
    #[inline(always)]
    pub(super) fn gather(
        send: &'a Option<Buffer>,
        receive: &'a Option<Blocks>,
        root: i32,
    ) -> Signature<'a> {
        let (one, all) = (Data::One(send.as_ref()), Data::Each(receive.as_ref()));
        Signature::moved(Collective::Gather, one, all).to(root)
    }

    /// An operation whose root gives a block to each member.
    #[inline(always)]
    pub(super) fn scatter(
        send: &'a Option<Blocks>,
        receive: &'a Option<Buffer>,
        root: i32,
    ) -> Signature<'a> {
        let (all, one) = (Data::Each(send.as_ref()), Data::One(receive.as_ref()));
        Signature::moved(Collective::Scatter, all, one).from(root)
    }

    /// This operation with blocks whose sizes only the root and their owners know.
    #[inline(always)]
    pub(super) fn with_private_sizes(self) -> Signature<'a> {
        Signature {
            private_sizes: true,
            ..self
        }
    }

    /// The contribution of this rank to a reduction.
    #[inline(always)]
    pub(super) fn ours(&self) -> Option<&'a Elements> {
        match (self.gives, self.gets) {
            (Data::Vector(Some(ours)), _) | (_, Data::Vector(Some(ours))) => Some(ours),
            _ => None,
        }
    }

    /// The memory for the result of a reduction.
    #[inline(always)]
    pub(super) fn result(&self) -> Option<&'a Elements> {
        match self.gets {
            Data::Vector(result) => result,
            _ => None,
        }
    }

    /// Bytes of a block; of the longest block if blocks differ, which only happens where all
    /// members know all sizes.
    #[inline(always)]
    pub(super) fn block(&self, me: usize, size: usize) -> Option<usize> {
        let of_one = |is_root: bool, one: Option<&Buffer>, all: Option<&Blocks>| match is_root {
            true => all.map(|all| all.len(0)),
            false => one.map(Buffer::len),
        };
        match (self.gives, self.gets, self.root) {
            (Data::One(one), Data::Each(all), Root::Gets(root)) => {
                of_one(root as usize == me, one, all)
            }
            (Data::Each(all), Data::One(one), Root::Gives(root)) => {
                of_one(root as usize == me, one, all)
            }
            (Data::Each(_), Data::Each(Some(all)), _) => Some(all.len(0)),
            (_, Data::Each(Some(all)), _) => Some(all.longest(size)),
            (_, Data::One(one), _) => one.map(Buffer::len),
            _ => None,
        }
    }

    /// The number of bytes by which the table of algorithms chooses: those of the vector, of a
    /// block, or of all blocks together if each member gets all.
    #[inline(always)]
    fn bytes(&self, me: usize, size: usize) -> Option<usize> {
        match (self.gives, self.gets) {
            (Data::Nothing, _) => Some(0),
            (Data::Vector(_), _) => self.ours().map(Elements::bytes),
            (Data::One(Some(vector)), Data::One(_)) => Some(vector.len()),
            (Data::One(_), Data::Each(Some(all))) if matches!(self.root, Root::None) => {
                Some(all.total())
            }
            _ => self.block(me, size),
        }
    }

    /// The number of blocks in the vector that a member publishes.
    #[inline(always)]
    pub(super) fn blocks_published(&self, size: usize) -> usize {
        match self.gives {
            Data::Each(_) => size - 1,
            _ => 1,
        }
    }

    /// True if all members know the sizes of all blocks.
    #[inline(always)]
    fn sizes_are_known(&self) -> bool {
        match (self.gives, self.gets) {
            (Data::Each(_), Data::Each(Some(all))) => all.is_even(),
            _ => !self.private_sizes,
        }
    }

    /// The facts by which members that share memory run the operation, equal on all members.
    /// `None`: only messages can carry it.
    #[inline(always)]
    pub(super) fn shared(&self, me: usize, size: usize) -> Option<SharedFacts> {
        if !self.sizes_are_known() {
            return None;
        }
        let bytes = self.bytes(me, size)?;
        let published = match (self.gives, self.gets, self.combines) {
            (_, _, Some((Operation::User { .. }, _))) => usize::MAX,
            (Data::One(_), Data::Each(Some(all)), _) if matches!(self.root, Root::None) => {
                // If few blocks are long, rounds as long as these would wait for members with empty
                // blocks.
                let longest = all.longest(size);
                match longest > WHOLE && longest * size > 2 * bytes {
                    true => usize::MAX,
                    false => longest,
                }
            }
            _ => bytes.checked_mul(self.blocks_published(size))?,
        };
        Some(SharedFacts {
            collective: self.collective,
            kind: match self.root {
                Root::Gets(root) => Kind::to_root(self.collective, root),
                _ => Kind::of(self.collective),
            },
            bytes,
            published,
        })
    }

    /// The algorithm that the table chooses for messages. `None`: there is nothing to do.
    #[inline(always)]
    pub(super) fn choose(&self, call: &Call<'_>) -> Option<Algorithm> {
        let known = self.sizes_are_known();
        let bytes = match known {
            true => self.bytes(call.me(), call.size()).unwrap_or(0),
            // The choice must not depend on sizes that others do not know.
            false => 0,
        };
        let is_empty = match (self.gives, self.gets) {
            (Data::Nothing, _) | (Data::Each(_), Data::Each(_)) => false,
            (Data::One(_), Data::One(_)) => bytes == 0 || call.size() == 1,
            _ => known && bytes == 0,
        };
        if is_empty {
            return None;
        }
        let even = match (self.gives, self.gets, self.root) {
            (Data::One(_), Data::Each(Some(all)), Root::None) => all.is_even(),
            _ => known,
        };
        let case = Case {
            even,
            commutative: self.combines.is_none_or(|(op, _)| op.is_commutative()),
            ..call.case(bytes)
        };
        Some(call.choose(self.collective, case))
    }

    /// True if parts of the vectors can be copied directly between members.
    pub(super) fn can_be_direct(&self) -> bool {
        let is_run = |ours: &Elements| ours.buffer().as_dense().is_some();
        self.combines.is_none() || self.ours().is_some_and(is_run)
    }

    /// True if other members read data of this rank.
    #[inline(always)]
    pub(super) fn is_read(&self, me: usize) -> bool {
        match self.root {
            Root::None => true,
            Root::Gives(root) => root as usize == me,
            Root::Gets(root) => root as usize != me,
        }
    }

    /// The members whose data this rank reads.
    #[inline(always)]
    pub(super) fn sources(&self, me: usize, size: usize) -> Range<usize> {
        match self.root {
            Root::Gives(root) if root as usize != me => root as usize..root as usize + 1,
            Root::Gets(root) if root as usize == me => 0..size,
            Root::Gives(_) | Root::Gets(_) => 0..0,
            Root::None => 0..size,
        }
    }

    /// Copies the block that this rank gives to itself into its receive buffer, unless it is in it
    /// already.
    #[inline(always)]
    pub(super) fn keep_own(&self, me: usize) {
        match self.root {
            Root::Gives(root) | Root::Gets(root) if root as usize != me => return,
            _ => {}
        }
        match (self.gives, self.gets) {
            (Data::One(Some(ours)), Data::Each(Some(all))) => _ = ours.copy_to(&all.part(me)),
            (Data::Each(Some(all)), Data::One(Some(ours))) => _ = all.part(me).copy_to(ours),
            (Data::Each(Some(give)), Data::Each(Some(take))) => {
                give.part(me).copy_to(&take.part(me));
            }
            // In place, or a message that the root already has.
            _ => {}
        }
    }
}

#[cfg(test)]
#[path = "signature_tests.rs"]
mod tests;
