//! The steps of small collectives in shared memory: a member publishes its vector and reads those
//! of the others, in one round.
//!
//! Invariant: operands are combined in one order, so all ranks get the same bits.

use channel::collective_buffer::Wake;
use datatype::reduce::{reduce_into, reduce_pair};
use datatype::{Buffer, Elements, Op, Predefined};

use super::blocks::Blocks;
use super::buffer_round::SmallRound;
use super::reduce::Reduction;
use super::reduce_scatter::Counts;
use crate::op::Operation;
use crate::{Class, Error, Result};

/// This rank's part of a round. A step that must wait for another member says so by `false`, and is
/// tried again.
pub(super) trait Step {
    fn step(&mut self, round: SmallRound<'_>) -> Result<bool>;
}

pub(super) struct Bcast<'a> {
    pub(super) buffer: &'a Buffer,
    pub(super) root: usize,
}

impl Step for Bcast<'_> {
    #[inline(always)]
    fn step(&mut self, mut round: SmallRound<'_>) -> Result<bool> {
        if round.me() == self.root {
            let published = round.publish(self.buffer);
            if published {
                round.end(Wake::Nobody);
            }
            return Ok(published);
        }
        let Some(bytes) = round.vector(self.root)? else {
            return Ok(false);
        };
        self.buffer.unpack(0, bytes);
        round.end(Wake::Member(self.root));
        Ok(true)
    }
}

pub(super) struct Reduce {
    pub(super) vectors: Vectors,
    pub(super) root: usize,
    pub(super) left: usize,
}

impl Step for Reduce {
    #[inline(always)]
    fn step(&mut self, mut round: SmallRound<'_>) -> Result<bool> {
        if !round.publish(&self.vectors.ours) {
            return Ok(false);
        }
        if round.me() != self.root {
            round.end(Wake::Nobody);
            return Ok(true);
        }
        let over = self.vectors.fold_down(&mut round, &mut self.left, 0)?;
        if over {
            round.end(Wake::Everybody);
        }
        Ok(over)
    }
}

/// Barrier: each member sees that all others take part.
pub(super) struct Meet {
    pub(super) left: usize,
}

impl Step for Meet {
    #[inline(always)]
    fn step(&mut self, mut round: SmallRound<'_>) -> Result<bool> {
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

/// Allreduce.
pub(super) struct All {
    pub(super) vectors: Vectors,
    pub(super) left: usize,
}

impl Step for All {
    #[inline(always)]
    fn step(&mut self, mut round: SmallRound<'_>) -> Result<bool> {
        let over = round.publish(&self.vectors.ours)
            && self.vectors.fold_down(&mut round, &mut self.left, 0)?;
        if over {
            round.end(Wake::Nobody);
        }
        Ok(over)
    }
}

/// Allreduce in a large group: the first member combines all vectors and publishes the result.
pub(super) struct OneForAll {
    pub(super) vectors: Vectors,
    pub(super) own: Vec<u8>,
    pub(super) left: usize,
}

impl OneForAll {
    #[inline(never)]
    pub(super) fn new(vectors: Vectors, size: usize, len: usize) -> OneForAll {
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
    fn step(&mut self, mut round: SmallRound<'_>) -> Result<bool> {
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

/// The root reads the blocks of all; its own is `None` if it is in `all` already.
pub(super) struct Gather<'a> {
    pub(super) ours: Option<&'a Buffer>,
    pub(super) all: Option<&'a Blocks>,
    pub(super) root: usize,
    pub(super) left: usize,
}

impl Step for Gather<'_> {
    fn step(&mut self, mut round: SmallRound<'_>) -> Result<bool> {
        let me = round.me();
        if me != self.root {
            let published = self.ours.is_none_or(|ours| round.publish(ours));
            if published {
                round.end(Wake::Nobody);
            }
            return Ok(published);
        }
        let Some(all) = self.all else {
            return Err(gone());
        };
        while self.left > 0 {
            let member = self.left - 1;
            if member != me {
                let Some(bytes) = round.vector(member)? else {
                    return Ok(false);
                };
                all.part(member).unpack(0, bytes);
            } else if let Some(ours) = self.ours {
                ours.copy_to(&all.part(me));
            }
            self.left -= 1;
        }
        round.end(Wake::Everybody);
        Ok(true)
    }
}

/// All read their blocks from the root; the root's own is `None` if it stays in `all`.
pub(super) struct Scatter<'a> {
    pub(super) all: Option<&'a Blocks>,
    pub(super) ours: Option<&'a Buffer>,
    pub(super) root: usize,
}

impl Step for Scatter<'_> {
    fn step(&mut self, mut round: SmallRound<'_>) -> Result<bool> {
        let me = round.me();
        if me != self.root {
            let at = round.block_in(self.root);
            let Some(bytes) = round.vector(self.root)? else {
                return Ok(false);
            };
            if let Some(ours) = self.ours {
                ours.unpack(0, &bytes[at * ours.len()..]);
            }
            round.end(Wake::Member(self.root));
            return Ok(true);
        }
        let Some(all) = self.all else {
            return Err(gone());
        };
        if !round.publish_blocks(all) {
            return Ok(false);
        }
        if let Some(ours) = self.ours {
            all.part(me).copy_to(ours);
        }
        round.end(Wake::Nobody);
        Ok(true)
    }
}

/// All read the blocks of all; this rank's own is `None` if it is in `all` already.
pub(super) struct Allgather<'a> {
    pub(super) ours: Option<&'a Buffer>,
    pub(super) all: &'a Blocks,
    pub(super) left: usize,
}

impl Step for Allgather<'_> {
    fn step(&mut self, mut round: SmallRound<'_>) -> Result<bool> {
        let me = round.me();
        let published = match self.ours {
            Some(ours) => round.publish(ours),
            None => round.publish(&self.all.part(me)),
        };
        if !published {
            return Ok(false);
        }
        while self.left > 0 {
            let member = self.left - 1;
            let Some(bytes) = round.vector(member)? else {
                return Ok(false);
            };
            if member != me {
                self.all.part(member).unpack(0, bytes);
            } else if let Some(ours) = self.ours {
                ours.copy_to(&self.all.part(me));
            }
            self.left -= 1;
        }
        round.end(Wake::Nobody);
        Ok(true)
    }
}

/// All publish the blocks for the others, and read those for themselves. Without `give` all blocks
/// are exchanged in place.
pub(super) struct Alltoall<'a> {
    pub(super) give: Option<&'a Blocks>,
    pub(super) all: &'a Blocks,
    pub(super) left: usize,
}

impl Step for Alltoall<'_> {
    fn step(&mut self, mut round: SmallRound<'_>) -> Result<bool> {
        let me = round.me();
        if !round.publish_blocks(self.give.unwrap_or(self.all)) {
            return Ok(false);
        }
        while self.left > 0 {
            let member = self.left - 1;
            let at = round.block_in(member);
            let Some(bytes) = round.vector(member)? else {
                return Ok(false);
            };
            if member != me {
                let each = self.all.len(member);
                self.all.part(member).unpack(0, &bytes[at * each..]);
            } else if let Some(give) = self.give {
                give.part(me).copy_to(&self.all.part(me));
            }
            self.left -= 1;
        }
        round.end(Wake::Nobody);
        Ok(true)
    }
}

/// All publish their vectors, and combine their own parts of them.
pub(super) struct ReduceScatter<'a> {
    pub(super) vectors: Vectors,
    /// The parts of the contribution, where they are not one after the other.
    pub(super) give: Option<&'a Blocks>,
    pub(super) counts: &'a Counts,
    /// Bytes of an element.
    pub(super) element: usize,
    /// A copy of this rank's part of its contribution, which is not published with the blocks for
    /// others; the result may replace the original.
    pub(super) own: Option<Vec<u8>>,
    pub(super) left: usize,
}

impl Step for ReduceScatter<'_> {
    fn step(&mut self, mut round: SmallRound<'_>) -> Result<bool> {
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
pub(super) struct Scan {
    pub(super) vectors: Vectors,
    /// The result leaves out this rank's contribution.
    pub(super) exclusive: bool,
    pub(super) left: usize,
}

impl Step for Scan {
    fn step(&mut self, mut round: SmallRound<'_>) -> Result<bool> {
        let (me, len) = (round.me(), round.len);
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
pub(super) struct Vectors {
    /// This rank's contribution.
    pub(super) ours: Buffer,
    /// The contribution stays unchanged: the result goes elsewhere.
    pub(super) stays: bool,
    /// The place of the result; empty where there is none.
    pub(super) result: Buffer,
    pub(super) combine: Option<(Op, Predefined)>,
}

impl Vectors {
    pub(super) fn of(work: &Reduction) -> Vectors {
        let buffer =
            |elements: Option<&Elements>| elements.map_or_else(Buffer::empty, Elements::buffer);
        let ty = work.ours().and_then(|ours| ours.ty().predefined());
        let combine = match work.op {
            Operation::Predefined(op) => ty.map(|ty| (op, ty)),
            Operation::User { .. } => None,
        };
        Vectors {
            ours: buffer(work.ours()),
            stays: work.send.is_some(),
            result: buffer(work.receive.as_ref()),
            combine,
        }
    }

    pub(super) fn none() -> Vectors {
        Vectors {
            ours: Buffer::empty(),
            stays: false,
            result: Buffer::empty(),
            combine: None,
        }
    }

    /// Combines published vectors into the result, from the one before `left` down to `last`.
    /// False: a member has not published yet.
    #[inline(always)]
    fn fold_down(&self, round: &mut SmallRound, left: &mut usize, last: usize) -> Result<bool> {
        let (me, size, len) = (round.me(), round.size(), round.len);
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

#[cold]
pub(super) fn gone() -> Error {
    Error::new(
        Class::INTERN,
        "the communicator lost its collective buffer while a collective operation used it",
    )
}
