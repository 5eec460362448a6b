//! Collective operations by rounds of a collective buffer: each member publishes its vector in
//! shared memory and reads those of the others, without packets. A blocking call uses its
//! communicator's buffer, an operation in a lane the lane's.
//!
//! Invariant: all members use the same rounds, because whether a call uses one depends only on
//! facts that all members know.

use std::sync::Arc;

use channel::collective_buffer::CollectiveBuffer;

use super::Work;
use super::buffer_round::NotedCall;
use super::combining_steps::{Combine, CombineBefore, CombineParts, OneForAll};
use super::lane_turn::LaneTurn;
use super::pieces::{Piece, Pieces};
use super::signature::{Data, Part, Root, SharedFacts, Signature, WHOLE};
use super::steps::{Meet, Move, Spread, Step};
use crate::coll::collective_buffers::CommBuffer;
use crate::coll::lanes::{Lane, Round};
use crate::comm::{Comm, Core};
use crate::rank::Rank;
use crate::request::Waiting;
use crate::{Class, Error, Result};

/// Up to this number of members each member reads the vectors of all; in larger groups one member
/// reads all vectors, and the others read its result.
const FLAT: usize = 16;

/// The choice of one of the collective buffers of a communicator.
pub(super) trait BufferPlace: Copy {
    fn of(self, comm: &mut Comm) -> &mut CommBuffer;
}

/// The choice of the buffer of all members of a communicator with one group.
#[derive(Clone, Copy)]
pub(super) struct OfAll;

impl BufferPlace for OfAll {
    #[inline(always)]
    fn of(self, comm: &mut Comm) -> &mut CommBuffer {
        &mut comm.buffer
    }
}

/// A blocking call that uses rounds of a collective buffer of its communicator.
pub(super) struct BlockingCall<'a, B> {
    pub(super) buffer: B,
    pub(super) rank: &'a Rank,
    pub(super) waiting: &'a Waiting<'a>,
    pub(super) comm: u32,
    /// This rank's number among the members of the buffer.
    pub(super) me: usize,
    pub(super) size: usize,
    pub(super) noted: NotedCall,
}

/// Evaluates an expression with the step that fits the signature; each kind of step is a type of
/// its own.
macro_rules! with_step {
    ($signature:expr, $place:expr, $len:expr, $piece:expr, $step:ident => $run:expr) => {
        match $signature {
            signature @ Signature {
                gives: Data::Nothing,
                ..
            } => {
                if $place.1 > FLAT {
                    let mut $step = OneForAll::new(signature, $place.1, $len);
                    $run
                } else {
                    let mut $step = Meet::new($place.1);
                    $run
                }
            }
            Signature {
                gives: Data::One(Some(message)),
                gets: Data::One(_),
                root: Root::Gives(root),
                ..
            } => {
                let mut $step = Spread::new(message, root);
                $run
            }
            signature @ Signature { combines: None, .. } => {
                match (signature.gives, signature.gets, signature.root) {
                    (Data::Each(_), Data::Each(_), _) => {
                        let mut $step =
                            Move::<true, true, false>::new(signature, $place.0, $place.1);
                        $run
                    }
                    (Data::Each(_), _, _) => {
                        let mut $step =
                            Move::<true, false, true>::new(signature, $place.0, $place.1);
                        $run
                    }
                    (_, _, Root::None) => {
                        let mut $step =
                            Move::<false, true, false>::new(signature, $place.0, $place.1);
                        $run
                    }
                    _ => {
                        let mut $step =
                            Move::<false, true, true>::new(signature, $place.0, $place.1);
                        $run
                    }
                }
            }
            signature @ Signature {
                combines: Some((_, part)),
                root,
                ..
            } => match part {
                Part::Whole if let Root::Gets(root) = root => {
                    let mut $step = Combine::<true>::new(signature, root, $place.1);
                    $run
                }
                Part::Whole if $place.1 > FLAT => {
                    let mut $step = OneForAll::new(signature, $place.1, $len);
                    $run
                }
                Part::Whole => {
                    let mut $step = Combine::<false>::new(signature, 0, $place.1);
                    $run
                }
                Part::OfCounts(counts) => {
                    let mut $step = CombineParts::new(signature, counts, $piece, $place.1);
                    $run
                }
                Part::Before { exclusive } => {
                    let mut $step = CombineBefore::new(signature, exclusive, $place.1);
                    $run
                }
            },
        }
    };
}

impl<B: BufferPlace> BlockingCall<'_, B> {
    #[inline]
    pub(super) fn run(&self, work: &Work) -> Result<()> {
        if self.noted.len > WHOLE {
            return self.run_pieces(work);
        }
        let ran = work.with_signature(
            #[inline(always)]
            |signature| self.run_one(signature, None),
        );
        ran.unwrap_or_else(|| Err(no_round()))
    }

    #[inline(always)]
    fn run_one(&self, signature: Signature<'_>, piece: Option<&Piece<'_>>) -> Result<()> {
        let place = (self.me, self.size);
        with_step!(signature, place, self.noted.len, piece, step => self.repeat(&mut step))
    }

    #[inline(never)]
    fn run_pieces(&self, work: &Work) -> Result<()> {
        let Some(whole) = work.signature() else {
            return Err(no_round());
        };
        let core_each = {
            let mut state = self.rank.lock();
            let entry = state.objects.comms.get_mut(self.comm)?;
            match self.buffer.of(entry) {
                CommBuffer::Ready(buffer) => buffer.core_each,
                CommBuffer::Absent { .. } => return Err(gone()),
            }
        };
        for piece in Pieces::of(self.rank, &whole, (self.me, self.size), core_each)? {
            let noted = self.noted.with_len(piece.len);
            BlockingCall { noted, ..*self }.run_one(piece.signature(), Some(&piece))?;
        }
        Ok(())
    }

    /// Repeats a step until it has ended the round for this rank.
    #[inline(always)]
    pub(super) fn repeat(&self, step: &mut impl Step) -> Result<()> {
        let ended = self.rank.wait_until(self.waiting, |state| {
            let entry = state.objects.comms.get_mut(self.comm)?;
            let CommBuffer::Ready(buffer) = self.buffer.of(entry) else {
                return Err(gone());
            };
            let over = self.noted.step(buffer, |round| step.step(round))?;
            Ok(over.then_some(()))
        });
        if ended.is_err() {
            self.abandon();
        }
        ended
    }

    /// Ends the round after an error without its result.
    #[cold]
    fn abandon(&self) {
        let mut state = self.rank.lock();
        if let Ok(entry) = state.objects.comms.get_mut(self.comm)
            && let CommBuffer::Ready(buffer) = self.buffer.of(entry)
        {
            buffer.abandon();
        }
    }
}

/// Runs an operation by rounds of its lane. `place` is this rank's number among the members, and
/// the number of members.
pub(super) async fn by_lane(
    turn: &LaneTurn<'_>,
    signature: &Signature<'_>,
    place: (usize, usize),
) -> Result<()> {
    let len = turn.noted.len;
    if len <= WHOLE {
        return one_by_lane(turn, *signature, None, place, len).await;
    }
    for piece in Pieces::of(turn.rank, signature, place, turn.core_each())? {
        one_by_lane(turn, piece.signature(), Some(&piece), place, piece.len).await?;
    }
    Ok(())
}

/// The round that is the whole operation in a lane; `None` if the operation needs more than one
/// step that can be repeated from its beginning.
pub(super) fn as_round(
    lane: Lane,
    core: &Core,
    shared: &SharedFacts,
    work: &Arc<Work>,
) -> Option<Round> {
    let place = (core.rank, core.size());
    let noted = shared.noted(false);
    if noted.len > WHOLE || place.1 > FLAT {
        return None;
    }
    let work = work.clone();
    let step = move |buffer: &mut CollectiveBuffer| {
        noted.step(buffer, |round| {
            let over = work.with_signature(
                #[inline(always)]
                |signature| with_step!(signature, place, noted.len, None, step => step.step(round)),
            );
            over.unwrap_or_else(|| Err(no_round()))
        })
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
    signature: Signature<'_>,
    piece: Option<&Piece<'_>>,
    place: (usize, usize),
    len: usize,
) -> Result<()> {
    with_step!(signature, place, len, piece, step => {
        turn.round(len, |round| step.step(round)).await
    })?;
    turn.has_ended();
    Ok(())
}

#[cold]
fn gone() -> Error {
    Error::new(
        Class::INTERN,
        "the communicator lost its collective buffer while a collective operation used it",
    )
}

#[cold]
fn no_round() -> Error {
    let detail = "an operation among neighbours takes no round of a collective buffer";
    Error::new(Class::INTERN, detail)
}
