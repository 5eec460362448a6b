//! Small collectives of members that share memory: each member publishes its vector in a collective
//! buffer and reads those of the others, without packets.
//!
//! Invariants:
//! - all members take the same rounds, because whether a call takes one depends on what all know;
//! - operands are combined in one order, so all ranks get the same bits.

use std::sync::Arc;

use channel::collective_buffer::{CollectiveBuffer, Wake};
use datatype::reduce::reduce_into;
use datatype::{Buffer, Elements, Op, Predefined};

use super::blocks::Blocks;
use super::buffer_round::SmallRound;
use super::lane_turn::LaneTurn;
use super::pieces::{self, Pieces};
use super::reduce::Reduction;
use super::reduce_scatter::Counts;
use super::work::{SharedCall, Work};
use crate::algorithms::Collective;
use crate::collective_buffers::CommBuffer;
use crate::comm::Core;
use crate::lanes::{Lane, Round};
use crate::op::Operation;
use crate::rank::Rank;
use crate::request::Waiting;
use crate::{Class, Error, Result};

/// Up to this number of members each member reads the vectors of all; in larger groups all read the
/// result of one member, which reads all vectors.
const FLAT: usize = 16;

/// A blocking call that takes a round of its communicator's collective buffer.
pub(super) struct SmallCall<'a> {
    pub(super) rank: &'a Rank,
    pub(super) waiting: &'a Waiting<'a>,
    pub(super) comm: u32,
    /// This rank among the members.
    pub(super) me: usize,
    pub(super) size: usize,
    pub(super) collective: Collective,
    /// Bytes of the vector that a member publishes.
    pub(super) len: usize,
}

/// This rank's part of a round. A step that must wait for another member says so by `false`, and is
/// tried again.
trait Step {
    fn step(&mut self, round: SmallRound<'_>) -> Result<bool>;
}

/// Evaluates an expression with the step of an operation, which has a type of its own.
macro_rules! with_step {
    ($work:expr, $size:expr, $len:expr, $give:expr, $step:ident => $run:expr) => {
        match $work {
            Work::Bcast { buffer, root } => {
                let mut $step = Bcast {
                    buffer,
                    root: *root as usize,
                };
                $run
            }
            Work::Reduce { reduction, root } => {
                let mut $step = Reduce {
                    vectors: Vectors::of(reduction),
                    root: *root as usize,
                    left: $size,
                };
                $run
            }
            Work::Gather {
                send,
                receive,
                root,
            } => {
                let mut $step = Gather {
                    ours: send.as_ref(),
                    all: receive.as_ref(),
                    root: *root as usize,
                    left: $size,
                };
                $run
            }
            Work::Scatter {
                send,
                receive,
                root,
            } => {
                let mut $step = Scatter {
                    all: send.as_ref(),
                    ours: receive.as_ref(),
                    root: *root as usize,
                };
                $run
            }
            Work::Allgather { send, receive } => {
                let mut $step = Allgather {
                    ours: send.as_ref(),
                    all: receive,
                    left: $size,
                };
                $run
            }
            Work::Alltoall { send, receive } => {
                let mut $step = Alltoall {
                    give: send.as_ref(),
                    all: receive,
                    left: $size,
                };
                $run
            }
            Work::ReduceScatter { reduction, counts } => {
                let mut $step = ReduceScatter {
                    vectors: Vectors::of(reduction),
                    give: $give,
                    counts,
                    element: reduction.ours().map_or(0, |ours| ours.ty().size()),
                    own: None,
                    left: $size,
                };
                $run
            }
            Work::Allreduce(reduction) if $size > FLAT => {
                let mut $step = OneForAll::new(Vectors::of(reduction), $size, $len);
                $run
            }
            Work::Allreduce(reduction) => {
                let mut $step = All {
                    vectors: Vectors::of(reduction),
                    left: $size,
                };
                $run
            }
            _ if $size > FLAT => {
                let mut $step = OneForAll::new(Vectors::none(), $size, $len);
                $run
            }
            _ => {
                let mut $step = All {
                    vectors: Vectors::none(),
                    left: $size,
                };
                $run
            }
        }
    };
}

impl SmallCall<'_> {
    #[inline]
    pub(super) fn run(&self, work: &Work) -> Result<()> {
        if self.len > pieces::WHOLE {
            return self.run_pieces(work);
        }
        self.run_one(work, None)
    }

    #[inline(always)]
    fn run_one(&self, work: &Work, give: Option<&Blocks>) -> Result<()> {
        with_step!(work, self.size, self.len, give, step => self.repeat(&mut step))
    }

    #[inline(never)]
    fn run_pieces(&self, work: &Work) -> Result<()> {
        for piece in Pieces::of(self.rank, work, self.me, self.size)? {
            SmallCall {
                len: piece.len,
                ..*self
            }
            .run_one(&piece.work, piece.give.as_ref())?;
        }
        Ok(())
    }

    /// Repeats a step until the round is over for this rank.
    #[inline(always)]
    fn repeat(&self, step: &mut impl Step) -> Result<()> {
        let ended = self.rank.wait_until(self.waiting, |state| {
            let CommBuffer::Ready(buffer) = &mut state.comms.get_mut(self.comm)?.buffer else {
                return Err(gone());
            };
            let over = step.step(SmallRound {
                round: buffer.begin(),
                collective: self.collective,
                len: self.len,
                direct: false,
            })?;
            Ok(over.then_some(()))
        });
        if ended.is_err() {
            self.abandon();
        }
        ended
    }

    /// Gives up the round after an error.
    #[cold]
    fn abandon(&self) {
        let mut state = self.rank.lock();
        if let Ok(entry) = state.comms.get_mut(self.comm)
            && let CommBuffer::Ready(buffer) = &mut entry.buffer
        {
            buffer.abandon();
        }
    }
}

/// Runs an operation of `size` members, of whom this rank is number `me`, by rounds of its lane.
/// `len`: bytes of the vector that a member publishes.
pub(super) async fn by_lane(
    turn: &LaneTurn<'_>,
    work: &Work,
    (me, size): (usize, usize),
    len: usize,
) -> Result<()> {
    if len <= pieces::WHOLE {
        return one_by_lane(turn, work, None, size, len).await;
    }
    for piece in Pieces::of(turn.rank, work, me, size)? {
        one_by_lane(turn, &piece.work, piece.give.as_ref(), size, piece.len).await?;
    }
    Ok(())
}

/// The round of an operation of `size` members in a lane; `None` if the operation is more than one
/// step that can begin anew.
pub(super) fn as_round(
    lane: Lane,
    core: &Core,
    shared: &SharedCall,
    work: &Arc<Work>,
) -> Option<Round> {
    let (collective, len, size) = (shared.collective, shared.published, core.size());
    if len > pieces::WHOLE || size > FLAT {
        return None;
    }
    let work = work.clone();
    let step = move |buffer: &mut CollectiveBuffer| {
        let round = SmallRound {
            round: buffer.begin(),
            collective,
            len,
            direct: false,
        };
        with_step!(&*work, size, len, None, step => step.step(round))
    };
    Some(Round {
        lane,
        step: Arc::new(step),
        turn: 0,
        context: core.context,
    })
}

async fn one_by_lane(
    turn: &LaneTurn<'_>,
    work: &Work,
    give: Option<&Blocks>,
    size: usize,
    len: usize,
) -> Result<()> {
    with_step!(work, size, len, give, step => turn.round(len, |round| step.step(round)).await)
}

struct Bcast<'a> {
    buffer: &'a Buffer,
    root: usize,
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

struct Reduce {
    vectors: Vectors,
    root: usize,
    left: usize,
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

/// Allreduce; a barrier is one without elements.
struct All {
    vectors: Vectors,
    left: usize,
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
struct OneForAll {
    vectors: Vectors,
    own: Vec<u8>,
    left: usize,
}

impl OneForAll {
    #[inline(never)]
    fn new(vectors: Vectors, size: usize, len: usize) -> OneForAll {
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
struct Gather<'a> {
    ours: Option<&'a Buffer>,
    all: Option<&'a Blocks>,
    root: usize,
    left: usize,
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
struct Scatter<'a> {
    all: Option<&'a Blocks>,
    ours: Option<&'a Buffer>,
    root: usize,
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
struct Allgather<'a> {
    ours: Option<&'a Buffer>,
    all: &'a Blocks,
    left: usize,
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
            if member != me || self.ours.is_some() {
                self.all.part(member).unpack(0, bytes);
            }
            self.left -= 1;
        }
        round.end(Wake::Nobody);
        Ok(true)
    }
}

/// All publish the blocks for the others, and read those for themselves. Without `give` all blocks
/// are exchanged in place.
struct Alltoall<'a> {
    give: Option<&'a Blocks>,
    all: &'a Blocks,
    left: usize,
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
struct ReduceScatter<'a> {
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
    fn of(work: &Reduction) -> Vectors {
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

    fn none() -> Vectors {
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
        while *left > last {
            let member = *left - 1;
            let Some(bytes) = round.vector(member)? else {
                return Ok(false);
            };
            let fold = |bytes: &[u8]| self.fold(bytes, *left == size);
            // This rank's published copy may be outside the cache; its source still is in it.
            let own = member == me && self.stays;
            match own.then(|| self.ours.with_dense(0, len, fold)).flatten() {
                Some(done) => done?,
                None => fold(bytes)?,
            }
            *left -= 1;
        }
        Ok(true)
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
fn gone() -> Error {
    Error::new(
        Class::INTERN,
        "the communicator lost its collective buffer while a collective operation used it",
    )
}
