//! Long vectors of members that share memory: each member publishes the names of its buffers, and
//! the members copy from and to each other's memory at once, each byte as seldom as possible.
//!
//! Invariants:
//! - a member's buffers are read and written by others only between the publication of their names
//!   and the end of the round for all members;
//! - of a vector that is reduced in place, a part is overwritten only by the member that reduces
//!   it, after it has read it;
//! - the operands of a reduction are combined in one order on all ranks.

use std::ops::Range;

use channel::collective_buffer::Wake;
use channel::{RemoteKey, Transfer};
use datatype::{Buffer, Elements};

use super::blocks::Blocks;
use super::buffer_round::different_calls;
use super::call::Call;
use super::lane_turn::LaneTurn;
use super::reduce::Reduction;
use super::reduce_scatter::Counts;
use super::work::Work;
use crate::op::Operation;
use crate::{Class, Error, Result};

/// Bytes of a published record: the names of two buffers and a length.
pub(super) const RECORD: usize = 24;
/// Bytes of a piece of a reduction: the operands of one fit a second-level cache.
const PIECE: usize = 64 << 10;

/// The memory of a member that others may use.
#[derive(Clone, Copy)]
struct Memory {
    source: RemoteKey,
    target: RemoteKey,
}

/// One operation of members that copy directly.
pub(super) struct Direct<'a> {
    call: &'a Call<'a>,
    turn: LaneTurn<'a>,
    /// Bytes that all members must agree on.
    bytes: usize,
}

impl<'a> Direct<'a> {
    pub(super) fn new(call: &'a Call<'a>, turn: LaneTurn<'a>, bytes: usize) -> Direct<'a> {
        Direct { call, turn, bytes }
    }

    /// Runs the operation.
    pub(super) async fn run(&self, work: &Work) -> Result<()> {
        match work {
            Work::Bcast { buffer, root } => self.bcast(buffer, *root as usize).await,
            Work::Gather {
                send,
                receive,
                root,
            } => {
                self.gather(send.as_ref(), receive.as_ref(), *root as usize)
                    .await
            }
            Work::Scatter {
                send,
                receive,
                root,
            } => {
                self.scatter(send.as_ref(), receive.as_ref(), *root as usize)
                    .await
            }
            Work::Allgather { send, receive } => self.allgather(send.as_ref(), receive).await,
            Work::Alltoall { send, receive } => self.alltoall(send.as_ref(), receive).await,
            Work::Reduce { reduction, root } => self.reduce(reduction, *root as usize).await,
            Work::Allreduce(reduction) => self.allreduce(reduction).await,
            Work::ReduceScatter { reduction, counts } => {
                self.reduce_scatter(reduction, counts).await
            }
            _ => Err(Error::new(
                Class::INTERN,
                "this collective operation has no direct form",
            )),
        }
    }

    fn me(&self) -> usize {
        self.call.me()
    }

    /// The other members, beginning with the one after this rank, so that not all copy from one.
    fn others(&self) -> impl Iterator<Item = usize> {
        let (me, size) = (self.me(), self.call.size());
        (1..size).map(move |steps| (me + steps) % size)
    }

    /// Publishes the names of the memory that others may read and write.
    async fn publish(&self, source: Option<&Buffer>, target: Option<&Buffer>) -> Result<()> {
        let mut record = [0; RECORD];
        {
            let state = self.turn.rank.lock();
            for (at, buffer) in [source, target].into_iter().enumerate() {
                let key = buffer.and_then(|buffer| state.router.direct_key(buffer));
                let mut bytes = Vec::with_capacity(8);
                key.unwrap_or(RemoteKey::NONE).encode(&mut bytes);
                record[at * 8..at * 8 + 8].copy_from_slice(&bytes);
            }
        }
        record[16..].copy_from_slice(&(self.bytes as u64).to_ne_bytes());
        let vector = self.call.bytes(RECORD)?;
        vector.unpack(0, &record);
        self.turn
            .round(RECORD, |mut round| Ok(round.publish(&vector)))
            .await
    }

    /// The memory of a member, once it has published it.
    async fn memory(&self, member: usize) -> Result<Memory> {
        let mut memory = Memory {
            source: RemoteKey::NONE,
            target: RemoteKey::NONE,
        };
        let call = self.turn.collective;
        self.turn
            .round(RECORD, |mut round| {
                let Some(record) = round.vector(member)? else {
                    return Ok(false);
                };
                let key = |at: usize| RemoteKey::decode(&record[at..at + 8]).unwrap_or_default();
                (memory.source, memory.target) = (key(0), key(8));
                let bytes = u64::from_ne_bytes(std::array::from_fn(|at| record[16 + at]));
                if bytes != self.bytes as u64 {
                    let detail = different_calls(
                        member,
                        call.name(),
                        &format!("{bytes} bytes"),
                        call,
                        &self.bytes.to_string(),
                    );
                    return Err(Error::new(Class::TRUNCATE, detail));
                }
                Ok(true)
            })
            .await?;
        Ok(memory)
    }

    /// The memory of all members.
    async fn memories(&self) -> Result<Vec<Memory>> {
        let mut all = Vec::with_capacity(self.call.size());
        for member in 0..self.call.size() {
            all.push(self.memory(member).await?);
        }
        Ok(all)
    }

    /// Ends the round for this rank, and waits until it has ended for all: then nobody uses this
    /// rank's memory any more.
    async fn end(&self) -> Result<()> {
        self.turn
            .round(RECORD, |round| {
                round.end(Wake::Everybody);
                Ok(true)
            })
            .await?;
        self.turn.all_ended().await
    }

    /// Copies the member's bytes from position `at` on into the whole of `to`.
    fn copy_in(&self, member: usize, from: &RemoteKey, at: usize, to: &Buffer) -> Result<()> {
        let peer = self.call.world(member)?;
        let copied = self.turn.rank.lock().router.copy_in(peer, from, at, to);
        self.check(member, copied, to.len())
    }

    /// Copies the whole of `from` into the member's memory, from its position `at` on.
    fn copy_out(&self, member: usize, to: &RemoteKey, at: usize, from: &Buffer) -> Result<()> {
        let peer = self.call.world(member)?;
        let copied = self.turn.rank.lock().router.copy_out(peer, to, at, from);
        self.check(member, copied, from.len())
    }

    fn check(&self, member: usize, copied: Transfer, bytes: usize) -> Result<()> {
        match copied {
            Transfer::Done => Ok(()),
            _ => Err(refused(member, bytes)),
        }
    }

    /// The buffer, or a copy of its data if it is not one run.
    fn as_run(&self, buffer: &Buffer) -> Result<Buffer> {
        if buffer.as_dense().is_some() {
            return Ok(buffer.clone());
        }
        let run = self.call.bytes(buffer.len())?;
        buffer.copy_to(&run);
        Ok(run)
    }

    /// The buffer, or memory for its data if it is not one run.
    fn room_for(&self, buffer: &Buffer) -> Result<Buffer> {
        match buffer.as_dense() {
            Some(_) => Ok(buffer.clone()),
            None => self.call.bytes(buffer.len()),
        }
    }

    /// All members read the root's message.
    async fn bcast(&self, buffer: &Buffer, root: usize) -> Result<()> {
        if self.me() == root {
            self.publish(Some(&self.as_run(buffer)?), None).await?;
        } else {
            let memory = self.memory(root).await?;
            self.copy_in(root, &memory.source, 0, buffer)?;
        }
        self.end().await
    }

    /// All members write their blocks to the root's memory.
    async fn gather(&self, ours: Option<&Buffer>, all: Option<&Blocks>, root: usize) -> Result<()> {
        if let (true, Some(all)) = (self.me() == root, all) {
            let whole = all.whole();
            let room = self.room_for(&whole)?;
            self.publish(None, Some(&room)).await?;
            if let Some(ours) = ours {
                ours.copy_to(&all.part(root));
            }
            self.end().await?;
            if room.as_dense() != whole.as_dense() {
                for member in self.others() {
                    let block = room.slice(member * self.bytes, self.bytes);
                    block.copy_to(&all.part(member));
                }
            }
            return Ok(());
        }
        let memory = self.memory(root).await?;
        if let Some(ours) = ours {
            self.copy_out(root, &memory.target, self.me() * self.bytes, ours)?;
        }
        self.end().await
    }

    /// All members read their blocks from the root's memory.
    async fn scatter(
        &self,
        all: Option<&Blocks>,
        ours: Option<&Buffer>,
        root: usize,
    ) -> Result<()> {
        if let (true, Some(all)) = (self.me() == root, all) {
            let whole = all.whole();
            self.publish(Some(&self.as_run(&whole)?), None).await?;
            if let Some(ours) = ours {
                all.part(root).copy_to(ours);
            }
        } else if let Some(ours) = ours {
            let memory = self.memory(root).await?;
            self.copy_in(root, &memory.source, self.me() * self.bytes, ours)?;
        }
        self.end().await
    }

    /// Each member reads the block of each other.
    async fn allgather(&self, ours: Option<&Buffer>, all: &Blocks) -> Result<()> {
        let mine = match ours {
            Some(ours) => ours.clone(),
            None => all.part(self.me()),
        };
        self.publish(Some(&self.as_run(&mine)?), None).await?;
        if let Some(ours) = ours {
            ours.copy_to(&all.part(self.me()));
        }
        for member in self.others() {
            let memory = self.memory(member).await?;
            self.copy_in(member, &memory.source, 0, &all.part(member))?;
        }
        self.end().await
    }

    /// Each member reads its block from each other.
    async fn alltoall(&self, give: Option<&Blocks>, all: &Blocks) -> Result<()> {
        let source = match give {
            Some(give) => self.as_run(&give.whole())?,
            None => {
                let copy = self.call.bytes(all.total())?;
                all.whole().copy_to(&copy);
                copy
            }
        };
        self.publish(Some(&source), None).await?;
        let (me, each) = (self.me(), self.bytes);
        source.slice(me * each, each).copy_to(&all.part(me));
        for member in self.others() {
            let memory = self.memory(member).await?;
            self.copy_in(member, &memory.source, me * each, &all.part(member))?;
        }
        self.end().await
    }

    /// Each member reduces a part, and writes it to the root's memory.
    async fn reduce(&self, work: &Reduction, root: usize) -> Result<()> {
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
    async fn allreduce(&self, work: &Reduction) -> Result<()> {
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
    async fn reduce_scatter(&self, work: &Reduction, counts: &Counts) -> Result<()> {
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

#[cold]
fn refused(member: usize, bytes: usize) -> Error {
    let detail = format!(
        "{bytes} bytes could not be copied between this process and rank {member} of the communicator, though the \
         system allowed it before: a buffer is not valid memory, or FISHPLATE_SINGLE_COPY=off is needed"
    );
    Error::new(Class::OTHER, detail)
}
