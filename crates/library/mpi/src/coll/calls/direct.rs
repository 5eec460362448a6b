//! Collective operations on long vectors by direct copies: each member publishes the remote keys of
//! its buffers, and the members copy from and to each other's memory, each byte as seldom as
//! possible.
//!
//! Invariants:
//! - a member's buffers are read and written by others only between the publication of their keys
//!   and the end of the round for all members;
//! - in a reduction in place, a part of a vector is overwritten only by the member that reduces
//!   this part, after that member has read it.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use channel::collective_buffer::Wake;
use channel::{Exposed, Exposure, Family, Fault, RemoteKey, Token, Transfer, ZeroCopy};
use datatype::Buffer;

use super::buffer_round::different_calls;
use super::call::Call;
use super::lane_turn::LaneTurn;
use super::signature::{Data, Signature};
use crate::{Class, Error, Result};

/// Bytes of a published record: two remote keys, each with the length of its buffer, and the number
/// of bytes that the member's call moves.
pub(super) const RECORD: usize = 40;
/// Bytes of a remote key with the length of its buffer.
const KEY: usize = 16;

/// The token of copies. They complete at once, so no completion carries it.
const TOKEN: Token = Token {
    family: Family::Collectives,
    id: 0,
};

/// The remote keys of the memory that a member has published: `source` to read, `target` to write.
#[derive(Clone, Copy)]
pub(super) struct Memory {
    pub(super) source: RemoteKey,
    pub(super) target: RemoteKey,
}

/// A collective operation by direct copies, as this rank executes it.
pub(super) struct Direct<'a> {
    pub(super) call: &'a Call<'a>,
    turn: LaneTurn<'a>,
    /// The number of bytes that this rank publishes with its memory, and the number that it expects
    /// in the records of others: equal, unless members of two groups exchange blocks.
    bytes: usize,
    expected: usize,
    /// The buffers that other members may access until the round ends.
    exposed: Mutex<Vec<Exposure>>,
    /// True if a member turned out to have ended its part before this rank has.
    is_left: AtomicBool,
}

impl<'a> Direct<'a> {
    pub(super) fn new(call: &'a Call<'a>, turn: LaneTurn<'a>, bytes: usize) -> Direct<'a> {
        Direct {
            call,
            turn,
            bytes,
            expected: bytes,
            exposed: Mutex::default(),
            is_left: AtomicBool::new(false),
        }
    }

    /// Runs the operation by direct copies between the members' memories.
    pub(super) async fn run(&self, signature: &Signature<'_>) -> Result<()> {
        let done = match signature.combines {
            Some((op, part)) => self.combine(signature, op, part).await,
            None => self.read_all(signature).await,
        };
        let publishers = match signature.combines {
            Some(_) => 0..self.call.size(),
            None => signature.sources(self.me(), self.call.size()),
        };
        self.explained(done, publishers).await
    }

    /// Copies a block from the memory of each of the members `theirs` into `take`. Each member
    /// publishes `source`, adjacent blocks; this rank's block has the index `place` in those of
    /// others.
    pub(super) async fn exchange_remote(
        mut self,
        theirs: Range<usize>,
        source: &Buffer,
        take: &[Buffer],
        place: usize,
    ) -> Result<()> {
        self.expected = take[0].len();
        let done = self.read_remote(&theirs, source, take, place).await;
        self.explained(done, theirs).await
    }

    async fn read_remote(
        &self,
        theirs: &Range<usize>,
        source: &Buffer,
        take: &[Buffer],
        place: usize,
    ) -> Result<()> {
        // A copy must stay until all members have read it.
        let source = self.as_run(source)?;
        let source = Some(&source).filter(|source| !source.is_empty());
        self.publish(source, None).await?;
        let count = take.len();
        // Each rank begins with another member, so that not all copy from one at a time.
        for number in (0..count).map(|step| (place + step) % count) {
            let member = theirs.start + number;
            let memory = self.memory(member).await?;
            let block = &take[number];
            if !block.is_empty() {
                self.copy_in(member, &memory.source, place * block.len(), block)?;
            }
        }
        self.end().await
    }

    /// Returns `done`, or a better error if a member has left early: members leave where calls
    /// differ, and the records of the publishers show which call differs.
    async fn explained(&self, done: Result<()>, publishers: Range<usize>) -> Result<()> {
        if self.is_left.load(Relaxed) {
            for member in publishers {
                self.memory(member).await?;
            }
        }
        done
    }

    pub(super) fn me(&self) -> usize {
        self.call.me()
    }

    /// The other members, beginning with the one after this rank, so that not all copy from one at
    /// a time.
    pub(super) fn others(&self) -> impl Iterator<Item = usize> {
        let (me, size) = (self.me(), self.call.size());
        (1..size).map(move |steps| (me + steps) % size)
    }

    /// Publishes the remote keys of the buffers that others may read (`source`) and write
    /// (`target`).
    pub(super) async fn publish(
        &self,
        source: Option<&Buffer>,
        target: Option<&Buffer>,
    ) -> Result<()> {
        // Only the operation whose turn it is exposes memory, so a lane exposes at most two buffers
        // at once.
        self.turn.round(RECORD, |_| Ok(true)).await?;
        let mut record = [0; RECORD];
        for (at, buffer) in [source, target].into_iter().enumerate() {
            let exposed = [Exposed::ToRead, Exposed::ToWrite][at];
            let key = match buffer {
                Some(buffer) => self.expose(buffer, exposed)?,
                None => RemoteKey::NONE,
            };
            let mut bytes = Vec::with_capacity(KEY);
            key.encode(&mut bytes);
            bytes.extend(key.bytes().to_ne_bytes());
            record[at * KEY..][..KEY].copy_from_slice(&bytes);
        }
        record[2 * KEY..].copy_from_slice(&(self.bytes as u64).to_ne_bytes());
        let vector = self.call.bytes(RECORD)?;
        vector.unpack(0, &record);
        self.turn
            .round(RECORD, |mut round| Ok(round.publish(&vector)))
            .await
    }

    /// Waits until a member has published its memory, and returns the remote keys.
    async fn memory(&self, member: usize) -> Result<Memory> {
        let mut memory = Memory {
            source: RemoteKey::NONE,
            target: RemoteKey::NONE,
        };
        let call = self.turn.noted.kind();
        self.turn
            .round(RECORD, |mut round| {
                let Some(record) = round.vector(member)? else {
                    return Ok(false);
                };
                let word =
                    |at: usize| u64::from_ne_bytes(std::array::from_fn(|byte| record[at + byte]));
                let key = |at: usize| {
                    RemoteKey::decode(&record[at..at + 8], word(at + 8)).unwrap_or_default()
                };
                (memory.source, memory.target) = (key(0), key(KEY));
                let bytes = word(2 * KEY);
                if bytes != self.expected as u64 {
                    let detail = different_calls(
                        member,
                        call.name(),
                        &format!("{bytes} bytes"),
                        call,
                        &self.expected.to_string(),
                    );
                    return Err(Error::new(Class::TRUNCATE, detail));
                }
                Ok(true)
            })
            .await?;
        Ok(memory)
    }

    /// The remote keys of all members' memories.
    pub(super) async fn memories(&self) -> Result<Vec<Memory>> {
        let mut all = Vec::with_capacity(self.call.size());
        for member in 0..self.call.size() {
            all.push(self.memory(member).await?);
        }
        Ok(all)
    }

    /// Ends the round for this rank, and waits until it has ended for all members: after that
    /// nobody uses this rank's memory any more.
    pub(super) async fn end(&self) -> Result<()> {
        self.turn
            .round(RECORD, |round| {
                round.end(Wake::Everybody);
                Ok(true)
            })
            .await?;
        self.turn.has_ended();
        self.turn.all_ended().await?;
        self.retract()
    }

    /// Ends the access of other members to the buffers of this rank.
    fn retract(&self) -> Result<()> {
        let exposed = std::mem::take(&mut *self.exposed());
        if exposed.is_empty() {
            return Ok(());
        }
        let router = &mut self.turn.rank.lock().engine.router;
        let mut all = exposed.into_iter();
        all.try_for_each(|exposure| Ok(router.retract(exposure)?))
    }

    fn exposed(&self) -> MutexGuard<'_, Vec<Exposure>> {
        self.exposed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the other members access to a buffer until the round ends.
    fn expose(&self, buffer: &Buffer, exposed: Exposed) -> Result<RemoteKey> {
        let Some(other) = self.others().next() else {
            return Ok(RemoteKey::NONE);
        };
        let peer = self.call.world(other)?;
        let mut state = self.turn.rank.lock();
        let (router, family) = (&mut state.engine.router, Family::Collectives);
        let exposure = router.expose(peer, buffer, buffer.len(), exposed, family)?;
        let key = exposure.as_ref().map_or(RemoteKey::NONE, Exposure::key);
        self.exposed().extend(exposure);
        Ok(key)
    }

    /// Copies from the member's memory, from byte `at` on, into the whole of `to`.
    pub(super) fn copy_in(
        &self,
        member: usize,
        from: &RemoteKey,
        at: usize,
        to: &Buffer,
    ) -> Result<()> {
        let (peer, len) = (self.call.world(member)?, to.len());
        let router = &mut self.turn.rank.lock().engine.router;
        let exposure = router.prepare(peer, to, len, Exposed::ToWrite)?;
        let (Some(from), Some(to)) = (from.part(at..at + len), exposure) else {
            return Err(refused(member, len));
        };
        let copied = router.read(peer, &from, &to, 0..len, TOKEN);
        router.retract(to)?;
        self.check(member, copied, len)
    }

    /// Copies the whole of `from` into the member's memory, from byte `at` on.
    pub(super) fn copy_out(
        &self,
        member: usize,
        to: &RemoteKey,
        at: usize,
        from: &Buffer,
    ) -> Result<()> {
        let (peer, len) = (self.call.world(member)?, from.len());
        let router = &mut self.turn.rank.lock().engine.router;
        let exposure = router.prepare(peer, from, len, Exposed::ToRead)?;
        let (Some(to), Some(from)) = (to.part(at..at + len), exposure) else {
            return Err(refused(member, len));
        };
        let copied = router.write(peer, &from, &to, 0..len, TOKEN);
        router.retract(from)?;
        self.check(member, copied, len)
    }

    /// Checks the result of a copy. A member whose part has failed no longer exposes memory; that
    /// is not treated as a violation of the protocol here.
    fn check(&self, member: usize, copied: channel::Result<Transfer>, bytes: usize) -> Result<()> {
        match copied {
            Ok(Transfer::Done) => Ok(()),
            Ok(_) => Err(refused(member, bytes)),
            Err(error) if matches!(error.fault(), Fault::Broken { .. }) => {
                self.is_left.store(true, Relaxed);
                let detail = format!(
                    "rank {member} of the communicator has ended a collective operation in which this process still \
                     takes part: {error}"
                );
                Err(Error::new(Class::OTHER, detail))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The buffer itself if it is contiguous, otherwise a contiguous copy of its data.
    fn as_run(&self, buffer: &Buffer) -> Result<Buffer> {
        if buffer.as_dense().is_some() {
            return Ok(buffer.clone());
        }
        let run = self.call.bytes(buffer.len())?;
        buffer.copy_to(&run);
        Ok(run)
    }

    /// Copies a block from the memory of each other member.
    async fn read_all(&self, signature: &Signature<'_>) -> Result<()> {
        let me = self.me();
        // A copy must stay until all members have read it.
        let source = self.source(signature)?;
        self.publish(Some(&source), None).await?;
        signature.keep_own(me);
        let at = match signature.gives {
            Data::Each(_) => me * self.bytes,
            _ => 0,
        };
        for member in self.others() {
            let memory = self.memory(member).await?;
            if let Data::Each(Some(all)) = signature.gets {
                self.copy_in(member, &memory.source, at, &all.part(member))?;
            }
        }
        self.end().await
    }

    /// The data of this rank that others read, in contiguous memory.
    fn source(&self, signature: &Signature<'_>) -> Result<Buffer> {
        match (signature.gives, signature.gets) {
            (Data::One(Some(block)), _) => self.as_run(block),
            (Data::One(None), Data::Each(Some(all))) => self.as_run(&all.part(self.me())),
            (Data::Each(Some(all)), _) => self.as_run(&all.whole()),
            // Each block is overwritten by another one.
            (Data::Each(None), Data::Each(Some(all))) => {
                let copy = self.call.bytes(all.total())?;
                all.whole().copy_to(&copy);
                Ok(copy)
            }
            _ => Ok(Buffer::empty()),
        }
    }
}

impl Drop for Direct<'_> {
    /// Retracts the memory also if the operation has failed.
    fn drop(&mut self) {
        let _ = self.retract();
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
