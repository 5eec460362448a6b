//! Long vectors of members that share memory, cut into pieces that fit a collective buffer. Each
//! piece is a small operation of its own.
//!
//! In a piece of a reduction each member may reduce a part; then the root or all members collect
//! the parts, in the round of the next piece if there is one. Each round takes as long as the
//! members wait for each other, which is longest where they share cores.
//!
//! Invariant: all members make the same cuts, because the cuts depend only on facts that all know.

use std::ops::Range;

use channel::collective_buffer::MOST_BYTES;
use datatype::{Buffer, Elements};

use super::blocks::Blocks;
use super::reduction::Counts;
use super::signature::{Data, Part, Root, Signature};
use crate::Result;
use crate::rank::Rank;

/// The number of members from which on each reduces a part of a long vector; in smaller groups each
/// reduces all of it.
const SPLIT: usize = 3;
/// Among members that share cores: the number of bytes, of all vectors that all members read, up to
/// which each member reduces all of a piece. Beyond it the second round takes less time.
const READ_BY_ALL: usize = 1 << 20;

/// The part of this rank's data in one direction that belongs to a piece of the operation; compare
/// [`Data`].
enum Cut {
    Nothing,
    One(Option<Buffer>),
    Each(Option<Blocks>),
    Vector(Option<Elements>),
}

impl Cut {
    fn data(&self) -> Data<'_> {
        match self {
            Cut::Nothing => Data::Nothing,
            Cut::One(block) => Data::One(block.as_ref()),
            Cut::Each(blocks) => Data::Each(blocks.as_ref()),
            Cut::Vector(vector) => Data::Vector(vector.as_ref()),
        }
    }
}

/// The parts of a piece's result that the members have reduced.
#[derive(Clone)]
pub(super) struct Parts {
    /// The part that this rank has reduced.
    pub(super) own: Buffer,
    /// The memory for the parts of all members; `None` if this rank gets none.
    pub(super) all: Option<Blocks>,
}

/// One of the pieces into which an operation is divided.
pub(super) struct Piece<'a> {
    /// The signature of the whole operation; the other fields override it.
    whole: Signature<'a>,
    gives: Cut,
    gets: Cut,
    /// The parts of a combined vector that the members get, if they differ from the parts of the
    /// whole.
    counts: Option<Counts>,
    /// The length of the vector that a member publishes, in bytes.
    pub(super) len: usize,
    /// The parts of the contribution that a member publishes, if they are not adjacent.
    pub(super) parts: Option<Blocks>,
    /// The parts of the previous piece, which the round of this one moves as well.
    pub(super) last: Option<Parts>,
}

impl Piece<'_> {
    /// True if the result replaces the contribution in memory.
    pub(super) fn is_in_place(&self) -> bool {
        !self.whole.gives.is_present()
    }

    /// The signature of the piece as an operation.
    #[inline(always)]
    pub(super) fn signature(&self) -> Signature<'_> {
        let combines = self.whole.combines.map(|(op, part)| match &self.counts {
            Some(counts) => (op, Part::OfCounts(counts)),
            None => (op, part),
        });
        Signature {
            gives: self.gives.data(),
            gets: self.gets.data(),
            combines,
            ..self.whole
        }
    }
}

/// The division of an operation into pieces, in order.
pub(super) struct Pieces<'a> {
    whole: &'a Signature<'a>,
    me: usize,
    size: usize,
    /// Memory for this rank's part of a reduction's piece, if the user's memory is too small.
    room: Option<Elements>,
    /// The number of elements of a reduction, or bytes of a vector or block, that are done.
    done: usize,
    /// The number of elements or bytes of each piece.
    each: usize,
    /// The number of elements or bytes of the whole operation.
    all: usize,
    /// The parts of the last piece's result that are still to be collected.
    uncollected: Option<Parts>,
    /// True if each member of the communicator has a core of its own.
    core_each: bool,
}

impl<'a> Pieces<'a> {
    /// The pieces of an operation, for member `me` of `size`. `core_each`: each member has a core.
    ///
    /// # Errors
    /// There is no memory for an intermediate result.
    pub(super) fn of(
        rank: &Rank,
        whole: &'a Signature<'a>,
        (me, size): (usize, usize),
        core_each: bool,
    ) -> Result<Pieces<'a>> {
        let room = |element: usize| (MOST_BYTES / element.max(1)).max(1);
        let (all, each) = match (whole.combines, whole.ours()) {
            (Some((_, Part::OfCounts(counts))), Some(ours)) => {
                let longest = (0..size).map(|member| counts.of(member)).max();
                (longest.unwrap_or(0), room(size * ours.ty().size()))
            }
            (Some(_), Some(ours)) => (ours.count(), room(ours.ty().size())),
            _ => {
                let block = whole.block(me, size).unwrap_or(0);
                (block, room(whole.blocks_published(size)))
            }
        };
        // Whole cache lines, and parts of one size for all members.
        let each = match each > 64 * size {
            true => each - each % (64 * size),
            false => each,
        };
        let part = match (whole.root, whole.ours()) {
            (Root::Gets(root), Some(ours)) if core_each && root as usize != me => {
                let mut state = rank.lock();
                Some(
                    state
                        .engine
                        .scratch
                        .elements(each.min(all) / size, ours.ty())?,
                )
            }
            _ => None,
        };
        Ok(Pieces {
            whole,
            me,
            size,
            room: part,
            done: 0,
            each,
            all,
            uncollected: None,
            core_each,
        })
    }

    /// The piece of the operation with the elements or bytes `at`.
    fn cut(&mut self, at: Range<usize>) -> Piece<'a> {
        let whole = self.whole;
        match whole.combines {
            Some((_, Part::OfCounts(counts))) => return self.scatter(counts, at),
            Some((_, Part::Whole)) if self.splits(&at) => return self.split(at),
            _ => {}
        }
        let block = |block: &Buffer| block.slice(at.start, at.len());
        let blocks = |blocks: &Blocks| {
            let parts = (0..self.size).map(|member| block(&blocks.part(member)));
            Blocks::Each(parts.collect())
        };
        let slice = |data: Data<'_>| match data {
            Data::Nothing => Cut::Nothing,
            Data::One(one) => Cut::One(one.map(block)),
            Data::Each(each) => Cut::Each(each.map(blocks)),
            Data::Vector(vector) => Cut::Vector(vector.map(|vector| part_of(vector, &at))),
        };
        let element = whole.ours().map_or(1, |ours| ours.ty().size());
        Piece {
            whole: *whole,
            gives: slice(whole.gives),
            gets: slice(whole.gets),
            counts: None,
            len: at.len() * element * whole.blocks_published(self.size),
            parts: None,
            last: None,
        }
    }

    /// True if each member reduces a part of the elements `at`, rather than the root or each member
    /// all of them.
    fn splits(&self, at: &Range<usize>) -> bool {
        let element = self.whole.ours().map_or(1, |ours| ours.ty().size());
        let pays = match (self.core_each, self.whole.root) {
            (true, _) => true,
            // One member works while the others wait, on its core too.
            (false, Root::Gets(_)) => false,
            (false, _) => at.len() * element * self.size * self.size > READ_BY_ALL,
        };
        pays && self.size >= SPLIT && at.len().is_multiple_of(self.size)
    }

    /// The round in which each member reduces its part of the elements `at`. The round of the next
    /// piece, or one of its own, collects the parts.
    fn split(&mut self, at: Range<usize>) -> Piece<'a> {
        let whole = *self.whole;
        let ours = whole.ours().map(|ours| part_of(ours, &at));
        let ours = ours.expect("a vector that is cut");
        let part = at.len() / self.size;
        let at_root = match whole.root {
            Root::Gets(root) => root as usize == self.me,
            _ => true,
        };
        let result = whole.result().filter(|_| at_root);
        let result = result.map(|result| part_of(result, &at));
        let own = match (&result, &self.room) {
            (Some(result), _) => result.part(self.me * part, part),
            (None, Some(room)) => room.part(0, part),
            (None, None) => ours.part(0, 0),
        };
        let parts = |of: &Elements| {
            let part_of = |member: usize| of.part(member * part, part).buffer();
            Blocks::Each((0..self.size).map(part_of).collect())
        };
        let last = self.uncollected.replace(Parts {
            own: own.buffer(),
            all: result.as_ref().map(parts),
        });
        let moved = last.as_ref().map_or(0, |last| last.own.len());
        Piece {
            whole: Signature {
                root: Root::None,
                ..whole
            },
            len: ours.bytes() - ours.ty().size() * part + moved,
            parts: Some(parts(&ours)),
            last,
            gives: Cut::Vector(Some(ours)),
            gets: Cut::Vector(Some(own)),
            counts: Some(Counts::Even(part)),
        }
    }

    /// The piece's round in which the root or all members collect the reduced parts.
    fn collection(&self, Parts { own, all }: Parts) -> Piece<'a> {
        Piece {
            whole: Signature {
                combines: None,
                ..*self.whole
            },
            len: own.len(),
            gives: Cut::One(all.is_none().then_some(own)),
            gets: Cut::Each(all),
            counts: None,
            parts: None,
            last: None,
        }
    }

    /// The piece of a reduction whose result is scattered: the elements `at` within each member's
    /// part.
    fn scatter(&self, counts: &Counts, at: Range<usize>) -> Piece<'a> {
        let whole = *self.whole;
        let ours = whole.ours().expect("a vector that is cut");
        let within = |member: usize| {
            let part = counts.elements(member..member + 1);
            let of = |position: usize| (part.start + position).min(part.end);
            of(at.start)..of(at.end)
        };
        let places = (0..self.size).map(within);
        let parts = places.clone().map(|place| part_of(ours, &place).buffer());
        let parts = Blocks::Each(parts.collect());
        let counts: Box<[usize]> = places.map(|place| place.len()).collect();
        let place = |result: &Elements| result.part(at.start, counts[self.me]);
        Piece {
            whole,
            // The contribution of a member that reduces in place is also published.
            gives: Cut::Vector(Some(ours.clone())),
            gets: Cut::Vector(whole.result().map(place)),
            // Notes of all members carry the length of the whole piece.
            len: counts.iter().sum::<usize>() * ours.ty().size(),
            parts: Some(parts),
            last: None,
            counts: Some(Counts::Each(counts)),
        }
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        let left = self.all - self.done;
        if left == 0 {
            return self.uncollected.take().map(|parts| self.collection(parts));
        }
        let count = match (self.whole.combines, left.min(self.each)) {
            // The last elements of a vector, which may not divide among the members, are a piece of
            // their own.
            (Some((_, Part::Whole)), count) if count >= self.size => count - count % self.size,
            (_, count) => count,
        };
        let at = self.done..self.done + count;
        if !self.splits(&at)
            && let Some(parts) = self.uncollected.take()
        {
            return Some(self.collection(parts));
        }
        self.done = at.end;
        Some(self.cut(at))
    }
}

fn part_of(elements: &Elements, at: &Range<usize>) -> Elements {
    elements.part(at.start, at.len())
}
