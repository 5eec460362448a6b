//! The steps of small collective operations in shared memory: a member publishes its vector and
//! reads those of the others, in one round. This file has the steps that move data;
//! `combining_steps` has those of reductions.

use std::ops::Range;

use channel::collective_buffer::Wake;
use datatype::Buffer;

use super::blocks::Blocks;
use super::buffer_round::CallRound;
use super::signature::{Data, Root, Signature};
use crate::Result;
use crate::algorithms::Collective;

/// This rank's part of a round. A step that must wait for another member returns false, and is made
/// again.
pub(super) trait Step {
    fn step(&mut self, round: CallRound<'_>) -> Result<bool>;
}

/// The step of a barrier: each member sees that all others take part.
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

/// A broadcast: the members read the root's message.
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
        if !round.copy(self.root, 0, self.message)? {
            return Ok(false);
        }
        round.end(Wake::Member(self.root));
        Ok(true)
    }
}

/// An operation that moves blocks: members publish the blocks that others read, and read those for
/// them. `GIVES`, `GETS`: a member gives, or gets, a block for each member, not one block. `ROOT`:
/// only the root gives or gets such blocks.
///
/// The shape is known at compile time, since a small call takes only some hundred instructions.
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
    /// The data movement of an operation for this rank.
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

    /// Publishes this rank's data. Returns false if that is not possible yet.
    #[inline(always)]
    fn publish(&self, round: &mut CallRound<'_>) -> bool {
        let me = round.me();
        let signature = self.signature();
        match (signature.gives, signature.gets) {
            (Data::One(Some(block)), _) => round.publish(block),
            (Data::Each(Some(all)), _) | (Data::Each(None), Data::Each(Some(all))) => {
                round.publish_blocks(all, None)
            }
            (Data::One(None), Data::Each(Some(all))) => round.publish(&all.part(me)),
            _ => round.publish(&Buffer::empty()),
        }
    }

    /// Reads the data of a member. Returns false if that member has not published them yet.
    #[inline(always)]
    fn read(&self, round: &mut CallRound<'_>, member: usize) -> Result<bool> {
        let (me, Signature { gives, gets, .. }) = (round.me(), self.signature());
        let before = match gives {
            Data::Each(_) => round.block_in(member),
            _ => 0,
        };
        match gets {
            Data::One(Some(block)) => round.copy(member, before * block.len(), block),
            Data::Each(Some(all)) if member != me => {
                let block = all.part(member);
                round.copy(member, before * block.len(), &block)
            }
            _ => Ok(round.vector(member)?.is_some()),
        }
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

/// The step of an exchange of blocks with the members of the remote group.
pub(super) struct MoveOf {
    /// The blocks that this rank publishes, and (`take`) the memory for the block from each of the
    /// members `of`.
    pub(super) give: Box<[Buffer]>,
    pub(super) take: Box<[Buffer]>,
    pub(super) of: Range<usize>,
    /// The index of this rank's block among those that a remote member publishes.
    pub(super) place: usize,
    /// The number of blocks that are still to be read.
    pub(super) left: usize,
}

impl Step for MoveOf {
    fn step(&mut self, mut round: CallRound<'_>) -> Result<bool> {
        if !round.publish_in_order(self.give.iter().cloned()) {
            return Ok(false);
        }
        while self.left > 0 {
            let block = &self.take[self.left - 1];
            let member = self.of.start + self.left - 1;
            if !round.copy(member, self.place * block.len(), block)? {
                return Ok(false);
            }
            self.left -= 1;
        }
        round.end(Wake::Nobody);
        Ok(true)
    }
}
