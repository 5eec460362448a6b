//! Reductions of long vectors in shared memory: each member reduces a part, straight from the
//! memory of the others.
//!
//! Invariant: the operands are combined in one order on all ranks.

use std::ops::Range;

use datatype::{Buffer, Elements};

use super::direct::{Direct, Memory};
use super::reduce::Reduction;
use super::reduce_scatter::Counts;
use crate::Result;
use crate::op::Operation;

/// Bytes of a piece of a reduction: the operands of one fit a second-level cache.
const PIECE: usize = 64 << 10;

impl Direct<'_> {
    /// Each member reduces a part, and writes it to the root's memory.
    pub(super) async fn reduce(&self, work: &Reduction, root: usize) -> Result<()> {
        let Some(ours) = work.ours() else {
            return Ok(());
        };
        let target = work.receive.as_ref().filter(|_| self.me() == root);
        let mine = ours.buffer();
        self.publish(Some(&mine), target.map(Elements::buffer).as_ref())
            .await?;
        let memories = self.memories().await?;
        let part = self.part_of(self.me(), ours.count());
        match target {
            Some(target) => self.fold(work, &memories, part, target, |_, _| Ok(()))?,
            None => {
                let room = self.call.elements(part.len(), ours.ty())?;
                let room = Place {
                    elements: room,
                    first: part.start,
                };
                let write =
                    |at: usize, sum: &Buffer| self.copy_out(root, &memories[root].target, at, sum);
                self.fold_at(work, &memories, part, &room, write)?;
            }
        }
        self.end().await
    }

    /// Each member reduces a part, and writes it to the memory of all.
    pub(super) async fn allreduce(&self, work: &Reduction) -> Result<()> {
        let (Some(ours), Some(target)) = (work.ours(), &work.receive) else {
            return Ok(());
        };
        let (mine, result) = (ours.buffer(), target.buffer());
        self.publish(Some(&mine), Some(&result)).await?;
        let memories = self.memories().await?;
        let part = self.part_of(self.me(), ours.count());
        self.fold(work, &memories, part, target, |at, sum| {
            self.others()
                .try_for_each(|member| self.copy_out(member, &memories[member].target, at, sum))
        })?;
        self.end().await
    }

    /// Each member reduces its own part.
    pub(super) async fn reduce_scatter(&self, work: &Reduction, counts: &Counts) -> Result<()> {
        let (Some(ours), Some(receive)) = (work.ours(), &work.receive) else {
            return Ok(());
        };
        self.publish(Some(&ours.buffer()), None).await?;
        let memories = self.memories().await?;
        let part = counts.elements(self.me()..self.me() + 1);
        let target = receive.part(0, part.len());
        // In place, the memory for the result still has contributions that others read.
        let in_place = work.send.is_none();
        let room = match in_place {
            true => self.call.elements(part.len(), ours.ty())?,
            false => target.clone(),
        };
        let place = Place {
            first: part.start,
            elements: room,
        };
        self.fold_at(work, &memories, part, &place, |_, _| Ok(()))?;
        self.end().await?;
        if in_place {
            place.elements.buffer().copy_to(&target.buffer());
        }
        Ok(())
    }

    /// The elements that a member reduces.
    fn part_of(&self, member: usize, count: usize) -> Range<usize> {
        let size = self.call.size();
        count * member / size..count * (member + 1) / size
    }

    /// Reduces the elements `part` into the same elements of `target`.
    fn fold(
        &self,
        work: &Reduction,
        memories: &[Memory],
        part: Range<usize>,
        target: &Elements,
        done: impl FnMut(usize, &Buffer) -> Result<()>,
    ) -> Result<()> {
        let place = Place {
            elements: target.clone(),
            first: 0,
        };
        self.fold_at(work, memories, part, &place, done)
    }

    /// Reduces the elements `part` into `target`, piece by piece. `done` hears of each piece: its
    /// position in bytes, and the result.
    fn fold_at(
        &self,
        work: &Reduction,
        memories: &[Memory],
        part: Range<usize>,
        target: &Place,
        mut done: impl FnMut(usize, &Buffer) -> Result<()>,
    ) -> Result<()> {
        let Some(ours) = work.ours() else {
            return Ok(());
        };
        let size = ours.ty().size();
        let each = (PIECE / size.max(1)).max(1);
        let room = self.call.elements(part.len().min(each), ours.ty())?;
        for start in part.clone().step_by(each) {
            let count = each.min(part.end - start);
            let sum = target.elements.part(start - target.first, count);
            let operands = Operands {
                direct: self,
                memories,
                ours: ours.part(start, count),
                at: start * size,
                room: room.part(0, count),
            };
            operands.fold(&work.op, &sum)?;
            done(start * size, &sum.buffer())?;
        }
        Ok(())
    }
}

/// Memory for the elements of a vector from `first` on.
struct Place {
    elements: Elements,
    first: usize,
}

/// The operands of one piece of a reduction.
struct Operands<'a> {
    direct: &'a Direct<'a>,
    memories: &'a [Memory],
    /// This rank's contribution.
    ours: Elements,
    /// Position of the piece in the vector, in bytes.
    at: usize,
    /// Memory for the contribution of another member.
    room: Elements,
}

impl Operands<'_> {
    /// Combines the contributions of all members into `sum`, the highest rank first.
    fn fold(&self, op: &Operation, sum: &Elements) -> Result<()> {
        let (me, last) = (self.direct.me(), self.memories.len() - 1);
        let in_place = self.ours.is(sum);
        if in_place && op.is_commutative() {
            return self.fold_others(op, sum);
        }
        let copied = match in_place {
            true => {
                let copy = self
                    .direct
                    .call
                    .elements(self.ours.count(), self.ours.ty())?;
                self.ours.buffer().copy_to(&copy.buffer());
                Some(copy)
            }
            false => None,
        };
        let ours = copied.as_ref().unwrap_or(&self.ours);
        if me == last {
            ours.buffer().copy_to(&sum.buffer());
        } else {
            self.read(last, sum)?;
        }
        for member in (0..last).rev() {
            if member == me {
                op.combine(ours, sum)?;
            } else {
                self.read(member, &self.room)?;
                op.combine(&self.room, sum)?;
            }
        }
        Ok(())
    }

    /// Combines the contributions of the other members into `sum`, which has this rank's.
    fn fold_others(&self, op: &Operation, sum: &Elements) -> Result<()> {
        for member in (0..self.memories.len()).rev() {
            if member != self.direct.me() {
                self.read(member, &self.room)?;
                op.combine(&self.room, sum)?;
            }
        }
        Ok(())
    }

    /// Reads the contribution of a member.
    fn read(&self, member: usize, to: &Elements) -> Result<()> {
        let source = &self.memories[member].source;
        self.direct.copy_in(member, source, self.at, &to.buffer())
    }
}
