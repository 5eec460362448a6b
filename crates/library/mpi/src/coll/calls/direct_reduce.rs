//! Reductions of long vectors in shared memory: each member reduces a part, directly from the
//! memory of the others.
//!
//! Invariant: the operands are combined from the last rank down on all ranks, also in place.

use std::ops::Range;

use datatype::{Buffer, Elements};

use super::direct::{Direct, Memory};
use super::reduction::Counts;
use super::signature::{Part, Root, Signature};
use crate::op::Operation;
use crate::{Class, Error, Result};

/// Bytes of a piece of a reduction: the operands of one fit a second-level cache.
const PIECE: usize = 64 << 10;

impl Direct<'_> {
    /// Reduces vectors: each member reduces a part, directly from the memory of the others.
    pub(super) async fn combine(
        &self,
        signature: &Signature<'_>,
        op: &Operation,
        part: Part<'_>,
    ) -> Result<()> {
        let Some(ours) = signature.ours() else {
            return Ok(());
        };
        match part {
            Part::Whole => self.combine_whole(signature, op, ours).await,
            Part::OfCounts(counts) => self.combine_parts(signature, op, ours, counts).await,
            Part::Before { .. } => Err(Error::new(
                Class::INTERN,
                "this collective operation has no direct form",
            )),
        }
    }

    /// Each member reduces a part of the vectors, and writes the result to the memory of the root
    /// or of all.
    async fn combine_whole(
        &self,
        signature: &Signature<'_>,
        op: &Operation,
        ours: &Elements,
    ) -> Result<()> {
        let me = self.me();
        let gets = |member: usize| match signature.root {
            Root::Gets(root) => root as usize == member,
            _ => true,
        };
        let target = signature.result().filter(|_| gets(me));
        let mine = ours.buffer();
        self.publish(Some(&mine), target.map(Elements::buffer).as_ref())
            .await?;
        let memories = self.memories().await?;
        let part = self.part_of(me, ours.count());
        let place = match target {
            Some(target) => Place {
                elements: target.clone(),
                first: 0,
            },
            None => Place {
                elements: self.call.elements(part.len(), ours.ty())?,
                first: part.start,
            },
        };
        self.fold((op, ours), &memories, part, &place, |at, sum| {
            let mut others = self.others().filter(|&member| gets(member));
            others.try_for_each(|member| self.copy_out(member, &memories[member].target, at, sum))
        })?;
        self.end().await
    }

    /// Each member reduces its own part of the vectors, and keeps the result.
    async fn combine_parts(
        &self,
        signature: &Signature<'_>,
        op: &Operation,
        ours: &Elements,
        counts: &Counts,
    ) -> Result<()> {
        let Some(receive) = signature.result() else {
            return Ok(());
        };
        self.publish(Some(&ours.buffer()), None).await?;
        let memories = self.memories().await?;
        let part = counts.elements(self.me()..self.me() + 1);
        let target = receive.part(0, part.len());
        // In place, the memory for the result still has contributions that others read.
        let in_place = !signature.gives.is_present();
        let room = match in_place {
            true => self.call.elements(part.len(), ours.ty())?,
            false => target.clone(),
        };
        let place = Place {
            first: part.start,
            elements: room,
        };
        self.fold((op, ours), &memories, part, &place, |_, _| Ok(()))?;
        self.end().await?;
        if in_place {
            place.elements.buffer().copy_to(&target.buffer());
        }
        Ok(())
    }

    /// The range of elements that one member reduces.
    fn part_of(&self, member: usize, count: usize) -> Range<usize> {
        let size = self.call.size();
        count * member / size..count * (member + 1) / size
    }

    /// Reduces the elements `part` into `target`, piece by piece. Calls `done` for each piece, with
    /// its position in the vector in bytes and the result.
    fn fold(
        &self,
        (op, ours): (&Operation, &Elements),
        memories: &[Memory],
        part: Range<usize>,
        target: &Place,
        mut done: impl FnMut(usize, &Buffer) -> Result<()>,
    ) -> Result<()> {
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
            operands.fold(op, &sum)?;
            done(start * size, &sum.buffer())?;
        }
        Ok(())
    }
}

/// Memory for the elements of a vector from the index `first` on.
struct Place {
    elements: Elements,
    first: usize,
}

/// The operands of one piece of a reduction.
struct Operands<'a> {
    direct: &'a Direct<'a>,
    memories: &'a [Memory],
    /// The contribution of this rank to the reduction.
    ours: Elements,
    /// The position of the piece in the vector, in bytes.
    at: usize,
    /// Temporary memory for the contribution of another member.
    room: Elements,
}

impl Operands<'_> {
    /// Combines the contributions of all members into `sum`, the highest rank first.
    fn fold(&self, op: &Operation, sum: &Elements) -> Result<()> {
        let (me, last) = (self.direct.me(), self.memories.len() - 1);
        let copied = match self.ours.is(sum) {
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

    /// Copies the contribution of a member into `to`.
    fn read(&self, member: usize, to: &Elements) -> Result<()> {
        let source = &self.memories[member].source;
        self.direct.copy_in(member, source, self.at, &to.buffer())
    }
}
