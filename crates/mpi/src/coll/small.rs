//! Small collectives of members that share memory: each member publishes its vector in a collective
//! buffer and reads those of the others, without packets.
//!
//! Invariant: all members take the same rounds, because whether a call takes one depends on what
//! all know.

use std::sync::Arc;

use channel::collective_buffer::CollectiveBuffer;

use super::blocks::Blocks;
use super::buffer_round::{Kind, SmallRound, is_over};
use super::lane_turn::LaneTurn;
use super::pieces::{self, Pieces};
use super::steps::{
    All, Allgather, Alltoall, Bcast, Gather, Meet, OneForAll, Reduce, ReduceScatter, Scan, Scatter,
    Step, Vectors, gone,
};
use super::work::{SharedCall, Work};
use crate::Result;
use crate::collective_buffers::CommBuffer;
use crate::comm::Core;
use crate::lanes::{Lane, Round};
use crate::rank::Rank;
use crate::request::Waiting;

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
    pub(super) kind: Kind,
    /// Bytes of the vector that a member publishes.
    pub(super) len: usize,
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
            Work::Scan {
                reduction,
                exclusive,
            } => {
                let mut $step = Scan {
                    vectors: Vectors::of(reduction),
                    exclusive: *exclusive,
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
                let mut $step = Meet { left: $size };
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
                kind: self.kind,
                len: self.len,
                direct: false,
            })?;
            Ok(is_over(over, buffer, self.kind)?.then_some(()))
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
    let (kind, len, size) = (shared.kind, shared.published, core.size());
    if len > pieces::WHOLE || size > FLAT {
        return None;
    }
    let work = work.clone();
    let step = move |buffer: &mut CollectiveBuffer| {
        let round = SmallRound {
            round: buffer.begin(),
            kind,
            len,
            direct: false,
        };
        let over = with_step!(&*work, size, len, None, step => step.step(round))?;
        is_over(over, buffer, kind)
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
    with_step!(work, size, len, give, step => turn.round(len, |round| step.step(round)).await)?;
    turn.has_ended();
    Ok(())
}
