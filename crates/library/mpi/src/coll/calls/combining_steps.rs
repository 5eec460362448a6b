//! The steps of small reductions in shared memory: a member reads the vectors of the others and
//! combines them.
//!
//! Invariant: operands are combined in one order, so all ranks get the same bits.

use std::ops::Range;

use channel::collective_buffer::Wake;
use datatype::reduce::{reduce_into, reduce_pair};
use datatype::{Buffer, Elements, Op, Predefined};

use super::blocks::Blocks;
use super::buffer_round::CallRound;
use super::pieces::{Parts, Piece};
use super::reduction::Counts;
use super::signature::{Data, Signature};
use super::steps::Step;
use crate::Result;
use crate::op::Operation;

/// A reduction: the root, if `ROOT`, or each member combines the vectors of all.
pub(super) struct Combine<const ROOT: bool> {
    vectors: Vectors,
    root: i32,
    left: usize,
}

impl<const ROOT: bool> Combine<ROOT> {
    #[inline(always)]
    pub(super) fn new(signature: Signature<'_>, root: i32, size: usize) -> Self {
        Combine {
            vectors: Vectors::of(&signature),
            root,
            left: size,
        }
    }
}

impl<const ROOT: bool> Step for Combine<ROOT> {
    #[inline(always)]
    fn step(&mut self, mut round: CallRound<'_>) -> Result<bool> {
        if !round.publish(&self.vectors.ours) {
            return Ok(false);
        }
        if ROOT && round.me() != self.root as usize {
            round.end(Wake::Nobody);
            return Ok(true);
        }
        let over = self.vectors.fold_down(&mut round, &mut self.left, 0)?;
        if over {
            round.end(match ROOT {
                true => Wake::Everybody,
                false => Wake::Nobody,
            });
        }
        Ok(over)
    }
}

/// A reduction between two groups: each member combines the vectors of the other group's members,
/// `of`.
pub(super) struct CombineOf {
    vectors: Vectors,
    of: Range<usize>,
    left: usize,
}

impl CombineOf {
    pub(super) fn new(signature: Signature<'_>, of: Range<usize>) -> CombineOf {
        CombineOf {
            vectors: Vectors::of(&signature),
            left: of.end,
            of,
        }
    }
}

impl Step for CombineOf {
    fn step(&mut self, mut round: CallRound<'_>) -> Result<bool> {
        if !round.publish(&self.vectors.ours) {
            return Ok(false);
        }
        if self.left == self.of.end && self.of.len() >= 2 {
            let Some([highs, lows]) = round.vectors([self.left - 1, self.left - 2])? else {
                return Ok(false);
            };
            self.vectors.pair(lows, highs)?;
            self.left -= 2;
        }
        while self.left > self.of.start {
            let Some(bytes) = round.vector(self.left - 1)? else {
                return Ok(false);
            };
            self.vectors.fold(bytes, self.left == self.of.end)?;
            self.left -= 1;
        }
        round.end(Wake::Nobody);
        Ok(true)
    }
}

/// A reduction to all members of a large group: the first member combines all vectors, and
/// publishes the result.
pub(super) struct OneForAll {
    vectors: Vectors,
    own: Vec<u8>,
    left: usize,
}

impl OneForAll {
    #[inline(never)]
    pub(super) fn new(signature: Signature<'_>, size: usize, len: usize) -> OneForAll {
        let vectors = Vectors::of(&signature);
        let mut own = vec![0; len];
        vectors.ours.pack(0, &mut own);
        OneForAll {
            vectors,
            own,
            left: size,
        }
    }
}

impl Step for OneForAll {
    fn step(&mut self, mut round: CallRound<'_>) -> Result<bool> {
        let vectors = &self.vectors;
        if round.me() > 0 {
            if !round.publish(&vectors.ours) {
                return Ok(false);
            }
            let Some(bytes) = round.vector(0)? else {
                return Ok(false);
            };
            vectors.result.unpack(0, bytes);
            round.end(Wake::Nobody);
            return Ok(true);
        }
        if self.left > 0 {
            if !vectors.fold_down(&mut round, &mut self.left, 1)? {
                return Ok(false);
            }
            vectors.fold(&self.own, false)?;
            self.left = 0;
        }
        let published = round.publish(&vectors.result);
        if published {
            round.end(Wake::Nobody);
        }
        Ok(published)
    }
}

/// A reduction whose result is scattered: all publish their vectors, and each combines its own part
/// of them.
pub(super) struct CombineParts<'a> {
    vectors: Vectors,
    /// The piece of a long vector that the step reduces. Its parts are published as blocks for the
    /// other members.
    piece: Option<&'a Piece<'a>>,
    counts: &'a Counts,
    /// The length of an element of the vectors, in bytes.
    element: usize,
    /// A copy of this rank's own part of its contribution, if the result may overwrite the original
    /// and the part is not published.
    own: Option<Vec<u8>>,
    left: usize,
}

impl<'a> CombineParts<'a> {
    #[inline(always)]
    pub(super) fn new(
        signature: Signature<'a>,
        counts: &'a Counts,
        piece: Option<&'a Piece<'_>>,
        size: usize,
    ) -> CombineParts<'a> {
        CombineParts {
            vectors: Vectors::of(&signature),
            piece,
            counts,
            element: signature.ours().map_or(0, |ours| ours.ty().size()),
            own: None,
            left: size,
        }
    }

    /// The parts of this rank's contribution, if it publishes them as blocks.
    #[inline(always)]
    fn blocks(&self) -> Option<&'a Blocks> {
        self.piece.and_then(|piece| piece.parts.as_ref())
    }

    fn publish(&mut self, round: &mut CallRound<'_>) -> bool {
        let Some((piece, blocks)) = self.piece.zip(self.blocks()) else {
            return round.publish(&self.vectors.ours);
        };
        let published = round.publish_blocks(blocks, piece.last.as_ref().map(|last| &last.own));
        let own = blocks.part(round.me());
        if published && self.own.is_none() && (piece.is_in_place() || own.as_dense().is_none()) {
            let mut copy = vec![0; own.len()];
            own.pack(0, &mut copy);
            self.own = Some(copy);
        }
        published
    }

    /// Calls `then` with this rank's part of the contribution of a member, whose published vector
    /// is `bytes`. Of a vector in blocks, the rank's own part is not published.
    #[inline(always)]
    fn with_part(
        &self,
        (me, member): (usize, usize),
        bytes: &[u8],
        then: impl FnOnce(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let part = self.counts.elements(me..me + 1);
        let (start, len) = (part.start * self.element, part.len() * self.element);
        match (self.blocks(), &self.own) {
            (Some(_), Some(own)) if member == me => then(own),
            (Some(blocks), None) if member == me => {
                let done = blocks.part(me).with_dense(0, len, then);
                done.expect("a part that is dense or has been copied")
            }
            (Some(_), _) if me > member => {
                let start = start - self.counts.of(member) * self.element;
                then(&bytes[start..start + len])
            }
            _ => then(&bytes[start..start + len]),
        }
    }

    /// Copies a member's part of the previous piece, which stands behind its blocks, to the result.
    #[inline(always)]
    fn take_last(&self, (me, member): (usize, usize), bytes: &[u8]) {
        if let Some(Parts {
            own,
            all: Some(all),
        }) = self.piece.and_then(|it| it.last.as_ref())
            && member != me
        {
            all.part(member)
                .unpack(0, &bytes[bytes.len() - own.len()..]);
        }
    }
}

impl Step for CombineParts<'_> {
    fn step(&mut self, mut round: CallRound<'_>) -> Result<bool> {
        if !self.publish(&mut round) {
            return Ok(false);
        }
        let (me, size) = (round.me(), round.size());
        if self.left == size && size > 1 {
            let (high, low) = (size - 1, size - 2);
            let Some([highs, lows]) = round.vectors([high, low])? else {
                return Ok(false);
            };
            self.with_part((me, high), highs, |highs| {
                self.with_part((me, low), lows, |lows| self.vectors.pair(lows, highs))
            })?;
            self.take_last((me, high), highs);
            self.take_last((me, low), lows);
            self.left = low;
        }
        while self.left > 0 {
            let (member, first) = (self.left - 1, self.left == size);
            let Some(bytes) = round.vector(member)? else {
                return Ok(false);
            };
            let fold = |bytes: &[u8]| self.vectors.fold(bytes, first);
            self.with_part((me, member), bytes, fold)?;
            self.take_last((me, member), bytes);
            self.left -= 1;
        }
        round.end(Wake::Nobody);
        Ok(true)
    }
}

/// A prefix reduction: all publish their vectors, and each member combines those of the members
/// before it. No member reads the last one's vector, but in place its step needs the published
/// copy, since it may be made again after the result has overwritten the original.
pub(super) struct CombineBefore {
    vectors: Vectors,
    /// True if the result leaves out this rank's contribution.
    exclusive: bool,
    left: usize,
}

impl CombineBefore {
    #[inline(always)]
    pub(super) fn new(signature: Signature<'_>, exclusive: bool, size: usize) -> CombineBefore {
        CombineBefore {
            vectors: Vectors::of(&signature),
            exclusive,
            left: size,
        }
    }
}

impl Step for CombineBefore {
    fn step(&mut self, mut round: CallRound<'_>) -> Result<bool> {
        let (me, len) = (round.me(), round.len());
        let vectors = &self.vectors;
        let publishes = me + 1 < round.size() || !vectors.stays;
        if publishes && !round.publish(&vectors.ours) {
            return Ok(false);
        }
        if me == 0 {
            if !self.exclusive && vectors.stays {
                vectors.ours.copy_to(&vectors.result);
            }
            round.end(Wake::Nobody);
            return Ok(true);
        }
        self.left = self.left.min(me);
        while self.left > 0 {
            let (member, first) = (self.left - 1, self.left == me);
            if first && !self.exclusive && !vectors.stays {
                let Some([ours, bytes]) = round.vectors([me, member])? else {
                    return Ok(false);
                };
                vectors.pair(bytes, ours)?;
            } else {
                let Some(bytes) = round.vector(member)? else {
                    return Ok(false);
                };
                match first && !self.exclusive {
                    true => vectors.fold_ours(bytes, len)?,
                    false => vectors.fold(bytes, first)?,
                }
            }
            self.left -= 1;
        }
        // Members before this one may wait for the end of a round in which they publish only.
        round.end(Wake::Everybody);
        Ok(true)
    }
}

/// The vectors that a reduction reads and writes.
struct Vectors {
    /// The contribution of this rank to the reduction.
    ours: Buffer,
    /// True if the contribution stays unchanged, because the result has memory of its own.
    stays: bool,
    /// The memory for the result; empty if this rank gets none.
    result: Buffer,
    combine: Option<(Op, Predefined)>,
}

impl Vectors {
    #[inline(always)]
    fn of(signature: &Signature<'_>) -> Vectors {
        let buffer =
            |elements: Option<&Elements>| elements.map_or_else(Buffer::empty, Elements::buffer);
        let ty = signature.ours().and_then(|ours| ours.ty().predefined());
        let combine = match signature.combines {
            Some((Operation::Predefined(op), _)) => ty.map(|ty| (*op, ty)),
            _ => None,
        };
        Vectors {
            ours: buffer(signature.ours()),
            stays: matches!(signature.gives, Data::Vector(Some(_))),
            result: buffer(signature.result()),
            combine,
        }
    }

    /// Combines published vectors into the result, from member `left - 1` down to member `last`.
    /// Returns false if a member has not published yet.
    #[inline(always)]
    fn fold_down(&self, round: &mut CallRound, left: &mut usize, last: usize) -> Result<bool> {
        let (me, size, len) = (round.me(), round.size(), round.len());
        if *left == size && size >= last + 2 {
            let (high, low) = (size - 1, size - 2);
            let Some([highs, lows]) = round.vectors([high, low])? else {
                return Ok(false);
            };
            self.instead(high == me, len, highs, |highs| {
                self.instead(low == me, len, lows, |lows| self.pair(lows, highs))
            })?;
            *left -= 2;
        }
        while *left > last {
            let member = *left - 1;
            let Some(bytes) = round.vector(member)? else {
                return Ok(false);
            };
            let first = *left == size;
            self.instead(member == me, len, bytes, |bytes| self.fold(bytes, first))?;
            *left -= 1;
        }
        Ok(true)
    }

    /// Calls `then` with a published vector. `own`: it is this rank's vector; then `then` gets the
    /// original, which is still in the cache, while the published copy may not be.
    #[inline(always)]
    fn instead(
        &self,
        own: bool,
        len: usize,
        bytes: &[u8],
        then: impl Fn(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let own = own && self.stays;
        let done = own.then(|| self.ours.with_dense(0, len, &then)).flatten();
        done.unwrap_or_else(|| then(bytes))
    }

    /// Combines two vectors into the result; `low` belongs to the lower rank and is the first
    /// operand.
    #[inline(always)]
    fn pair(&self, low: &[u8], high: &[u8]) -> Result<()> {
        if let Some((op, ty)) = self.combine {
            reduce_pair(op, ty, low, high, &self.result)?;
        }
        Ok(())
    }

    /// Combines a vector, as the first operand, with this rank's contribution, which is not
    /// changed.
    fn fold_ours(&self, bytes: &[u8], len: usize) -> Result<()> {
        let pair = |ours: &[u8]| self.pair(bytes, ours);
        if let Some(done) = self.ours.with_dense(0, len, pair) {
            return done;
        }
        self.ours.copy_to(&self.result);
        self.fold(bytes, false)
    }

    /// Combines a vector into the result as the first operand: it belongs to a lower rank than
    /// those combined before. `first`: there are none before, so it is copied.
    #[inline(always)]
    fn fold(&self, bytes: &[u8], first: bool) -> Result<()> {
        match self.combine {
            Some(_) if first => _ = self.result.unpack(0, bytes),
            Some((op, ty)) => reduce_into(op, ty, bytes, &self.result, 0)?,
            None => {}
        }
        Ok(())
    }
}
