//! Small blocking collectives of members that share memory: each member publishes its vector in the
//! communicator's collective buffer and reads those of the others, without packets.
//!
//! Invariants:
//! - all members take the same rounds, because whether a call takes one depends on what all know;
//! - operands are combined in one order, so all ranks get the same bits.

use channel::collective_buffer::Wake;
use datatype::reduce::reduce_into;
use datatype::{Buffer, Elements, Op, Predefined};

use super::buffer_round::SmallRound;
use super::reduce::Reduction;
use super::work::Work;
use crate::algorithms::Collective;
use crate::collective_buffers::CommBuffer;
use crate::op::Operation;
use crate::rank::Rank;
use crate::request::Waiting;
use crate::{Class, Error, Result};

/// Up to this number of members each member reads the vectors of all; in larger groups all read the
/// result of one member, which reads all vectors.
const FLAT: usize = 16;

/// A call that takes a round of the collective buffer.
pub(super) struct SmallCall<'a> {
    pub(super) rank: &'a Rank,
    pub(super) waiting: &'a Waiting<'a>,
    pub(super) comm: u32,
    pub(super) size: usize,
    pub(super) collective: Collective,
    /// Bytes of the vector.
    pub(super) len: usize,
}

impl SmallCall<'_> {
    #[inline]
    pub(super) fn run(&self, work: &Work) -> Result<()> {
        match work {
            Work::Bcast { buffer, root } => self.bcast(buffer, *root as usize),
            Work::Reduce { reduction, root } => {
                self.reduce(&Vectors::of(reduction), *root as usize)
            }
            Work::Allreduce(reduction) => self.all(&Vectors::of(reduction)),
            _ => self.all(&Vectors::none()),
        }
    }

    /// Repeats `step` until it says that the round is over for this rank.
    #[inline(always)]
    fn repeat(&self, mut step: impl FnMut(SmallRound) -> Result<bool>) -> Result<()> {
        let ended = self.rank.wait_until(self.waiting, |state| {
            let CommBuffer::Ready(buffer) = &mut state.comms.get_mut(self.comm)?.buffer else {
                return Err(gone());
            };
            let over = step(SmallRound {
                round: buffer.begin(),
                collective: self.collective,
                len: self.len,
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

    fn bcast(&self, buffer: &Buffer, root: usize) -> Result<()> {
        self.repeat(|mut round| {
            if round.me() == root {
                let published = round.publish(buffer);
                if published {
                    round.end(Wake::Nobody);
                }
                return Ok(published);
            }
            let Some(bytes) = round.vector(root)? else {
                return Ok(false);
            };
            buffer.unpack(0, bytes);
            round.end(Wake::Member(root));
            Ok(true)
        })
    }

    fn reduce(&self, vectors: &Vectors, root: usize) -> Result<()> {
        let mut left = self.size;
        self.repeat(|mut round| {
            if !round.publish(&vectors.ours) {
                return Ok(false);
            }
            if round.me() != root {
                round.end(Wake::Nobody);
                return Ok(true);
            }
            let over = vectors.fold_down(&mut round, &mut left, 0)?;
            if over {
                round.end(Wake::Everybody);
            }
            Ok(over)
        })
    }

    /// Allreduce; a barrier is one without elements.
    #[inline(always)]
    fn all(&self, vectors: &Vectors) -> Result<()> {
        if self.size > FLAT {
            return self.one_for_all(vectors);
        }
        let mut left = self.size;
        self.repeat(|mut round| {
            let over =
                round.publish(&vectors.ours) && vectors.fold_down(&mut round, &mut left, 0)?;
            if over {
                round.end(Wake::Nobody);
            }
            Ok(over)
        })
    }

    /// Allreduce in a large group: the first member combines all vectors and publishes the result.
    #[inline(never)]
    fn one_for_all(&self, vectors: &Vectors) -> Result<()> {
        let mut own = vec![0; self.len];
        vectors.ours.pack(0, &mut own);
        let mut left = self.size;
        self.repeat(|mut round| {
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
            if left > 0 {
                if !vectors.fold_down(&mut round, &mut left, 1)? {
                    return Ok(false);
                }
                vectors.fold(&own, false)?;
                left = 0;
            }
            let published = round.publish(&vectors.result);
            if published {
                round.end(Wake::Nobody);
            }
            Ok(published)
        })
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
