//! The steps of small collectives in shared memory: a member publishes its vector and reads those
//! of the others, in one round.
//!
//! Invariant: operands are combined in one order, so all ranks get the same bits.

use std::ops::Range;

use channel::collective_buffer::Wake;
use datatype::reduce::{reduce_into, reduce_pair};
use datatype::{Buffer, Elements, Op, Predefined};

use super::blocks::Blocks;
use super::buffer_round::CallRound;
use super::reduction::Counts;
use super::signature::{Data, Root, Signature};
use crate::Result;
use crate::algorithms::Collective;
use crate::op::Operation;

/// This rank's part of a round. A step that must wait for another member says so by `false`, and is
/// tried again.
pub(super) trait Step {
    fn step(&mut self, round: CallRound<'_>) -> Result<bool>;
}

/// No data are moved: each member sees that all others take part.
pub(super) struct Meet {
    left: usize,
}

impl Meet {
    #[inline(always)]
    pub(super) fn new(size: usize) -> Meet {
        Meet { left: size }
    }
}

impl Step for Meet {
    #[inline(always)]
    fn step(&mut self, mut round: CallRound<'_>) -> Result<bool> {
        if !round.publish(&Buffer::empty()) {
            return Ok(false);
        }
        while self.left > 0 {
            if round.vector(self.left - 1)?.is_none() {
                return Ok(false);
            }
            self.left -= 1;
        }
        round.end(Wake::Nobody);
        Ok(true)
    }
}

/// The root's message is moved to all.
pub(super) struct Spread<'a> {
    message: &'a Buffer,
    root: usize,
}

impl<'a> Spread<'a> {
    #[inline(always)]
    pub(super) fn new(message: &'a Buffer, root: i32) -> Spread<'a> {
        Spread {
            message,
            root: root as usize,
        }
    }
}

impl Step for Spread<'_> {
    #[inline(always)]
    fn step(&mut self, mut round: CallRound<'_>) -> Result<bool> {
        if round.me() == self.root {
            let published = round.publish(self.message);
            if published {
                round.end(Wake::Nobody);
            }
            return Ok(published);
        }
        let Some(bytes) = round.vector(self.root)? else {
            return Ok(false);
        };
        self.message.unpack(0, bytes);
        round.end(Wake::Member(self.root));
        Ok(true)
    }
}

/// Blocks are moved: members publish what others read, and read what they get. `GIVES`, `GETS`: a
/// member gives, or gets, a block for each member, not one. `ROOT`: the root alone has them.
///
/// The shape is known when a step is compiled, since a small call is over in some hundred
/// instructions.
pub(super) struct Move<'a, const GIVES: bool, const GETS: bool, const ROOT: bool> {
    one: Option<&'a Buffer>,
    give: Option<&'a Blocks>,
    get: Option<&'a Blocks>,
    root: i32,
    collective: Collective,
    /// Members whose data are still to be read, in descending order.
    from: Range<usize>,
}

impl<'a, const GIVES: bool, const GETS: bool, const ROOT: bool> Move<'a, GIVES, GETS, ROOT> {
    /// The step of an operation with this shape.
    #[inline(always)]
    pub(super) fn new(signature: Signature<'a>, me: usize, size: usize) -> Self {
        let blocks = |data: Data<'a>| match data {
            Data::Each(blocks) => blocks,
            _ => None,
        };
        Move {
            one: match (signature.gives, signature.gets) {
                (Data::One(one), _) | (_, Data::One(one)) => one,
                _ => None,
            },
            give: blocks(signature.gives),
            get: blocks(signature.gets),
            root: match signature.root {
                Root::Gives(root) | Root::Gets(root) => root,
                Root::None => 0,
            },
            collective: signature.collective,
            from: signature.sources(me, size),
        }
    }

    #[inline(always)]
    fn signature(&self) -> Signature<'a> {
        let data = |each: bool, blocks: Option<&'a Blocks>| match each {
            true => Data::Each(blocks),
            false => Data::One(self.one),
        };
        Signature {
            root: match (ROOT, GIVES) {
                (false, _) => Root::None,
                (true, true) => Root::Gives(self.root),
                (true, false) => Root::Gets(self.root),
            },
            ..Signature::moved(
                self.collective,
                data(GIVES, self.give),
                data(GETS, self.get),
            )
        }
    }

    /// Publishes this rank's data. False: not yet.
    #[inline(always)]
    fn publish(&self, round: &mut CallRound<'_>) -> bool {
        let me = round.me();
        let signature = self.signature();
        match (signature.gives, signature.gets) {
            (Data::One(Some(block)), _) => round.publish(block),
            (Data::Each(Some(all)), _) | (Data::Each(None), Data::Each(Some(all))) => {
                round.publish_blocks(all)
            }
            (Data::One(None), Data::Each(Some(all))) => round.publish(&all.part(me)),
            _ => round.publish(&Buffer::empty()),
        }
    }

    /// Reads the data of a member. False: not yet.
    #[inline(always)]
    fn read(&self, round: &mut CallRound<'_>, member: usize) -> Result<bool> {
        let (me, Signature { gives, gets, .. }) = (round.me(), self.signature());
        let before = match gives {
            Data::Each(_) => round.block_in(member),
            _ => 0,
        };
        let Some(bytes) = round.vector(member)? else {
            return Ok(false);
        };
        match gets {
            Data::One(Some(block)) => _ = block.unpack(0, &bytes[before * block.len()..]),
            Data::Each(Some(all)) if member != me => {
                let block = all.part(member);
                block.unpack(0, &bytes[before * block.len()..]);
            }
            _ => {}
        }
        Ok(true)
    }
}

impl<const GIVES: bool, const GETS: bool, const ROOT: bool> Step for Move<'_, GIVES, GETS, ROOT> {
    #[inline(always)]
    fn step(&mut self, mut round: CallRound<'_>) -> Result<bool> {
        let (me, signature) = (round.me(), self.signature());
        let is_read = signature.is_read(me);
        if is_read && !self.publish(&mut round) {
            return Ok(false);
        }
        while let Some(member) = self.from.clone().next_back() {
            if (member != me || is_read) && !self.read(&mut round, member)? {
                return Ok(false);
            }
            self.from.end = member;
        }
        signature.keep_own(me);
        round.end(match signature.root {
            Root::Gives(root) if root as usize != me => Wake::Member(root as usize),
            Root::Gets(root) if root as usize == me => Wake::Everybody,
            _ => Wake::Nobody,
        });
        Ok(true)
    }
}

/// Vectors are combined for the root, if `ROOT`, or for each member.
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

/// The vectors of some members are combined: those of another group than this rank's.
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

/// Blocks are exchanged with the members of another group.
pub(super) struct MoveOf {
    /// The blocks that this rank publishes, and the places of those from each of the members.
    pub(super) give: Box<[Buffer]>,
    pub(super) take: Box<[Buffer]>,
    pub(super) of: Range<usize>,
    /// The number of this rank's block among those that one of them publishes.
    pub(super) place: usize,
    /// Blocks that are still to be read.
    pub(super) left: usize,
}

impl Step for MoveOf {
    fn step(&mut self, mut round: CallRound<'_>) -> Result<bool> {
        if !round.publish_in_order(self.give.iter().cloned()) {
            return Ok(false);
        }
        while self.left > 0 {
            let block = &self.take[self.left - 1];
            let Some(bytes) = round.vector(self.of.start + self.left - 1)? else {
                return Ok(false);
            };
            block.unpack(0, &bytes[self.place * block.len()..]);
            self.left -= 1;
        }
        round.end(Wake::Nobody);
        Ok(true)
    }
}

/// Vectors are combined for each member of a large group: the first member combines all, and
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

/// All publish their vectors, and combine their own parts of them.
pub(super) struct CombineParts<'a> {
    vectors: Vectors,
    /// The parts of the contribution, where they are not one after the other.
    give: Option<&'a Blocks>,
    counts: &'a Counts,
    /// Bytes of an element.
    element: usize,
    /// A copy of this rank's part of its contribution, which is not published with the blocks for
    /// others; the result may replace the original.
    own: Option<Vec<u8>>,
    left: usize,
}

impl<'a> CombineParts<'a> {
    #[inline(always)]
    pub(super) fn new(
        signature: Signature<'a>,
        counts: &'a Counts,
        give: Option<&'a Blocks>,
        size: usize,
    ) -> CombineParts<'a> {
        CombineParts {
            vectors: Vectors::of(&signature),
            give,
            counts,
            element: signature.ours().map_or(0, |ours| ours.ty().size()),
            own: None,
            left: size,
        }
    }
}

impl Step for CombineParts<'_> {
    fn step(&mut self, mut round: CallRound<'_>) -> Result<bool> {
        let published = match self.give {
            Some(blocks) => round.publish_blocks(blocks),
            None => round.publish(&self.vectors.ours),
        };
        if !published {
            return Ok(false);
        }
        let (me, size) = (round.me(), round.size());
        let part = self.counts.elements(me..me + 1);
        let (start, len) = (part.start * self.element, part.len() * self.element);
        if let (Some(blocks), None) = (self.give, &self.own) {
            let mut own = vec![0; len];
            blocks.part(me).pack(0, &mut own);
            self.own = Some(own);
        }
        while self.left > 0 {
            let (member, first) = (self.left - 1, self.left == size);
            let before = match self.give {
                Some(_) if me > member => self.counts.of(member) * self.element,
                _ => 0,
            };
            let Some(bytes) = round.vector(member)? else {
                return Ok(false);
            };
            let start = start - before;
            // Only the blocks for others are published one by one.
            match self.own.as_deref().filter(|_| member == me) {
                Some(ours) => self.vectors.fold(ours, first)?,
                None => self.vectors.fold(&bytes[start..start + len], first)?,
            }
            self.left -= 1;
        }
        round.end(Wake::Nobody);
        Ok(true)
    }
}

/// All publish their vectors, and each combines those of the members before it. The last one's is
/// of no use to others, but a step that begins anew needs it where the result replaces it.
pub(super) struct CombineBefore {
    vectors: Vectors,
    /// The result leaves out this rank's contribution.
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
    /// This rank's contribution.
    ours: Buffer,
    /// The contribution stays unchanged: the result goes elsewhere.
    stays: bool,
    /// The place of the result; empty where there is none.
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

    /// Combines published vectors into the result, from the one before `left` down to `last`.
    /// False: a member has not published yet.
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

    /// Calls `then` with a published vector. `own`: it is this rank's; its copy may be outside the
    /// cache, so its source is taken, which still is in it.
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

    /// Combines two vectors into the result, the lower rank's first.
    #[inline(always)]
    fn pair(&self, low: &[u8], high: &[u8]) -> Result<()> {
        if let Some((op, ty)) = self.combine {
            reduce_pair(op, ty, low, high, &self.result)?;
        }
        Ok(())
    }

    /// Combines a vector, as the first operand, with this rank's contribution, which stays.
    fn fold_ours(&self, bytes: &[u8], len: usize) -> Result<()> {
        let pair = |ours: &[u8]| self.pair(bytes, ours);
        if let Some(done) = self.ours.with_dense(0, len, pair) {
            return done;
        }
        self.ours.copy_to(&self.result);
        self.fold(bytes, false)
    }

    /// Combines a vector into the result; it comes from a lower rank than those before.
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
