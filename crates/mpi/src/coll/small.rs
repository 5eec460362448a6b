//! Small blocking collectives of members that share memory: each member publishes its vector in the
//! communicator's collective buffer and reads those of the others, without packets.
//!
//! What must always hold:
//! - all members take the same rounds, because whether a call takes one depends on what all know;
//! - operands are combined in one order, so all ranks get the same bits.

use datatype::reduce::reduce_into;
use datatype::{Buffer, Elements, Op, Predefined};

use super::buffer_round::Round;
use super::reduce::Reduction;
use super::work::Work;
use crate::algorithms::Collective;
use crate::collective_buffers::CommBuffer;
use crate::op::Operation;
use crate::rank::{Rank, State};
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
    fn repeat(&self, mut step: impl FnMut(&mut Round) -> Result<bool>) -> Result<()> {
        self.rank.wait_until(self.waiting, |state| {
            let State { comms, router, .. } = state;
            let entry = comms.get_mut(self.comm)?;
            let (CommBuffer::Ready(buffer), Some(shm)) =
                (&mut entry.buffer, router.shared_memory())
            else {
                return Err(gone());
            };
            let over = step(&mut Round {
                buffer,
                shm,
                me: entry.core.rank,
                collective: self.collective,
                len: self.len,
                past_cache: shm.non_temporal_vectors_from(),
            })?;
            Ok(over.then_some(()))
        })
    }

    fn bcast(&self, buffer: &Buffer, root: usize) -> Result<()> {
        self.repeat(|round| {
            if round.me == root {
                let published = round.publish(buffer);
                if published {
                    round.end(false);
                }
                return Ok(published);
            }
            if !round.has_published(root)? {
                return Ok(false);
            }
            round.read(root, |bytes| buffer.unpack(0, bytes));
            round.end(false);
            round.wake(root);
            Ok(true)
        })
    }

    fn reduce(&self, vectors: &Vectors, root: usize) -> Result<()> {
        let (mut published, mut left) = (false, self.size);
        self.repeat(|round| {
            published = published || round.publish(&vectors.ours);
            if round.me != root || !published {
                if published {
                    round.end(false);
                }
                return Ok(published);
            }
            if !vectors.fold_down(round, &mut left, 0)? {
                return Ok(false);
            }
            round.end(true);
            let others = (0..self.size).filter(|&member| member != root);
            others.for_each(|member| round.wake(member));
            Ok(true)
        })
    }

    /// Allreduce; a barrier is one without elements.
    #[inline(always)]
    fn all(&self, vectors: &Vectors) -> Result<()> {
        if self.size > FLAT {
            return self.one_for_all(vectors);
        }
        let (mut published, mut left) = (false, self.size);
        self.repeat(|round| {
            published = published || round.publish(&vectors.ours);
            let over = published && vectors.fold_down(round, &mut left, 0)?;
            if over {
                round.end(true);
            }
            Ok(over)
        })
    }

    /// Allreduce in a large group: the first member combines all vectors and publishes the result.
    #[inline(never)]
    fn one_for_all(&self, vectors: &Vectors) -> Result<()> {
        let mut own = vec![0; self.len];
        vectors.ours.pack(0, &mut own);
        let (mut published, mut left) = (false, self.size);
        self.repeat(|round| {
            if round.me > 0 {
                published = published || round.publish(&vectors.ours);
                if !published || !round.has_published(0)? {
                    return Ok(false);
                }
                round.read(0, |bytes| vectors.result.unpack(0, bytes));
                round.end(true);
                return Ok(true);
            }
            if left > 0 {
                if !vectors.fold_down(round, &mut left, 1)? {
                    return Ok(false);
                }
                vectors.fold(&own, false)?;
                left = 0;
            }
            published = round.publish(&vectors.result);
            if published {
                round.end(true);
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
    fn fold_down(&self, round: &Round, left: &mut usize, last: usize) -> Result<bool> {
        while *left > last {
            if !round.has_published(*left - 1)? {
                return Ok(false);
            }
            let member = *left - 1;
            let fold = |bytes: &[u8]| self.fold(bytes, *left == round.size());
            // This rank's published copy may be outside the cache; its source still is in it.
            let own = member == round.me && self.stays;
            match own
                .then(|| self.ours.with_dense(0, round.len, fold))
                .flatten()
            {
                Some(done) => done?,
                None => round.read(member, fold)?,
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
