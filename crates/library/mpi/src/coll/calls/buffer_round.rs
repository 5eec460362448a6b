//! One round of a collective buffer, used by one small collective call: each vector carries a note
//! that identifies the call.
//!
//! Calls that do not match are reported as an error when a member reads a vector of another call,
//! or waits for the vector of a member that has ended the round without one. Members that wait for
//! each other deadlock, as they would over messages.

use channel::collective_buffer::{CollectiveBuffer, MOST_BYTES, NOTES, Round, Wake};
use datatype::Buffer;

use super::blocks::Blocks;
use crate::algorithms::Collective;
use crate::{Class, Error, Result};

/// The number of bits that contain the length of the vector in a note, the description of a call
/// beside its vector; the higher bits contain the kind of call.
const LENGTH_BITS: u32 = 18;

/// The bit of a call's note that is set if members publish remote keys of their memory instead of
/// vectors.
const DIRECT: u32 = NOTES >> 1;

const _: () = assert!(MOST_BYTES < 1 << LENGTH_BITS && KINDS <= (DIRECT >> LENGTH_BITS) as usize);

/// The number of kinds of calls that members' notes distinguish.
const KINDS: usize = Collective::ALL.len() + 2 * ROOTS;
/// The number of extra kinds for a collective whose root reads the vectors of others. The kind
/// shows the root's number modulo one more than this; remainder 0 has the collective's usual kind.
const ROOTS: usize = 3;

/// The kind of a call in notes: the collective and, if its root reads the vectors of others, the
/// root's number modulo a small number, which shows when members name different roots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Kind(u8);

impl Kind {
    /// The kind of calls of a collective, as members note it in a buffer.
    #[inline(always)]
    pub(super) fn of(collective: Collective) -> Kind {
        Kind(collective as u8)
    }

    /// The kind of a call whose root reads the vectors of others.
    #[inline(always)]
    pub(super) fn to_root(collective: Collective, root: i32) -> Kind {
        let first = match collective {
            Collective::Gather => Collective::ALL.len() - 1,
            Collective::Reduce => Collective::ALL.len() - 1 + ROOTS,
            _ => return Kind::of(collective),
        };
        match root as usize % (ROOTS + 1) {
            0 => Kind::of(collective),
            root => Kind((first + root) as u8),
        }
    }

    fn in_note(note: u32) -> Kind {
        Kind(((note & !DIRECT) >> LENGTH_BITS) as u8)
    }

    /// The name of the collective.
    pub(super) fn name(self) -> &'static str {
        let collective = match (self.0 as usize).checked_sub(Collective::ALL.len()) {
            None => Collective::ALL[self.0 as usize],
            Some(root) if root < ROOTS => Collective::Gather,
            Some(_) => Collective::Reduce,
        };
        collective.name()
    }
}

/// The description of a call in notes, which must be equal on all members.
#[derive(Clone, Copy)]
pub(super) struct NotedCall {
    /// The bits of the call's note above the bits of the vector's length.
    head: u32,
    /// The length of the vector that each member publishes, in bytes.
    pub(super) len: usize,
}

impl NotedCall {
    /// A call in which members publish vectors of `len` bytes, or, if `direct`, remote keys of
    /// their memory.
    #[inline(always)]
    pub(super) fn new(kind: Kind, len: usize, direct: bool) -> NotedCall {
        let direct = if direct { DIRECT } else { 0 };
        NotedCall {
            head: direct | u32::from(kind.0) << LENGTH_BITS,
            len,
        }
    }

    /// This call, with vectors of another length.
    #[inline(always)]
    pub(super) fn with_len(self, len: usize) -> NotedCall {
        NotedCall { len, ..self }
    }

    pub(super) fn kind(self) -> Kind {
        Kind::in_note(self.head)
    }

    /// Executes a step of the current round of a buffer. Returns false if the step must wait for
    /// another member and be repeated. An error if that member has ended the round without a
    /// vector.
    #[inline(always)]
    pub(super) fn step(
        self,
        buffer: &mut CollectiveBuffer,
        step: impl FnOnce(CallRound<'_>) -> Result<bool>,
    ) -> Result<bool> {
        let round = CallRound {
            round: buffer.begin(),
            noted: self,
        };
        match step(round)? {
            true => Ok(true),
            false => still_waits(buffer, self),
        }
    }

    /// The note of the call, by which members detect that another member made another call.
    #[inline(always)]
    fn note(self) -> u32 {
        self.head | self.len as u32
    }
}

/// This rank's side of one round of a call. Its steps are polled: a step that must wait for another
/// member reports that, and is made again.
pub(super) struct CallRound<'a> {
    round: Round<'a>,
    noted: NotedCall,
}

impl CallRound<'_> {
    /// This rank's number among the members of the buffer.
    #[inline(always)]
    pub(super) fn me(&self) -> usize {
        self.round.me()
    }

    #[inline(always)]
    pub(super) fn size(&self) -> usize {
        self.round.size()
    }

    /// The length of the vector that each member publishes, in bytes.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.noted.len
    }

    /// Publishes this rank's vector unless it is published already, and wakes the other members.
    /// Returns false while a member may still read the previous vector in the slot.
    #[inline(always)]
    pub(super) fn publish(&mut self, vector: &Buffer) -> bool {
        self.round.publish(self.noted.note(), vector, self.len())
    }

    /// Publishes the blocks for all other members, one after the other, and `last` behind them, as
    /// [`publish`](Self::publish) does.
    pub(super) fn publish_blocks(&mut self, blocks: &Blocks, last: Option<&Buffer>) -> bool {
        let (me, size) = (self.me(), self.size());
        let others = (0..size).filter(|member| *member != me);
        let blocks = others.map(|member| blocks.part(member));
        self.publish_in_order(blocks.chain(last.cloned()))
    }

    /// Publishes these buffers, one after the other, as [`publish`](Self::publish) does.
    #[inline(always)]
    pub(super) fn publish_in_order(&mut self, buffers: impl Iterator<Item = Buffer>) -> bool {
        let len = self.len();
        self.round.publish_in_order(self.noted.note(), buffers, len)
    }

    /// The index of this rank's block among the blocks that another member has published.
    pub(super) fn block_in(&self, member: usize) -> usize {
        self.me() - usize::from(self.me() > member)
    }

    /// The vector of a member; `None` if the member has not published it yet. An error if it made
    /// another call.
    #[inline(always)]
    pub(super) fn vector(&mut self, member: usize) -> Result<Option<&[u8]>> {
        let noted = self.noted;
        let Some(published) = self.round.published(member) else {
            return Ok(None);
        };
        let theirs = published.note();
        if theirs != noted.note() {
            return Err(mismatch(member, theirs, noted));
        }
        Ok(Some(published.bytes(noted.len)))
    }

    /// Copies the vector of a member, from byte `at` on, to `to`. False: the member has not
    /// published it yet. An error if it made another call.
    #[inline(always)]
    pub(super) fn copy(&mut self, member: usize, at: usize, to: &Buffer) -> Result<bool> {
        let noted = self.noted;
        let Some(published) = self.round.published(member) else {
            return Ok(false);
        };
        let theirs = published.note();
        if theirs != noted.note() {
            return Err(mismatch(member, theirs, noted));
        }
        published.copy_to(to, at, noted.len);
        Ok(true)
    }

    /// The vectors of two members, as [`vector`](Self::vector) returns one.
    #[inline(always)]
    pub(super) fn vectors(&mut self, members: [usize; 2]) -> Result<Option<[&[u8]; 2]>> {
        let noted = self.noted;
        let Some(published) = self.round.both_published(members) else {
            return Ok(None);
        };
        for (member, vector) in members.iter().zip(&published) {
            let theirs = vector.note();
            if theirs != noted.note() {
                return Err(mismatch(*member, theirs, noted));
            }
        }
        Ok(Some(published.map(|vector| vector.bytes(noted.len))))
    }

    /// Ends the round for this rank, and wakes the sleeping members that `wake` selects.
    #[inline(always)]
    pub(super) fn end(self, wake: Wake) {
        self.round.end(wake);
    }
}

/// Checks, now and then, whether the member for which this rank waits has ended the round without a
/// vector.
#[cold]
fn still_waits(buffer: &CollectiveBuffer, noted: NotedCall) -> Result<bool> {
    let Some(member) = buffer.gone() else {
        return Ok(false);
    };
    let name = noted.kind().name();
    let detail = format!(
        "rank {member} of the communicator has ended its call without data for the {name} of this rank: the ranks \
         named different roots, or called different collectives"
    );
    Err(Error::new(Class::TRUNCATE, detail))
}

#[cold]
fn mismatch(member: usize, theirs: u32, noted: NotedCall) -> Error {
    let (kind, ours, len) = (Kind::in_note(theirs), noted.kind(), noted.len);
    let bytes = match theirs & DIRECT {
        0 => format!("{} bytes", theirs & ((1 << LENGTH_BITS) - 1)),
        _ => format!("more than {MOST_BYTES} bytes"),
    };
    let detail = match kind != ours && kind.name() == ours.name() {
        true => format!(
            "rank {member} of the communicator named another root than this rank in {}: all ranks must name one root",
            ours.name()
        ),
        false => different_calls(member, kind.name(), &bytes, ours, &format!("{len}")),
    };
    Error::new(Class::TRUNCATE, detail)
}

/// The text of the error that members made different calls in one round.
#[cold]
pub(super) fn different_calls(
    member: usize,
    theirs: &str,
    bytes: &str,
    ours: Kind,
    len: &str,
) -> String {
    format!(
        "rank {member} of the communicator called {theirs} with {bytes} where this rank called {} with {len}: all \
         ranks must call the same collective with counts and datatypes that fit together",
        ours.name(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_differ_and_have_the_names_of_their_collectives() {
        let mut seen = Vec::new();
        for &collective in Collective::ALL {
            for root in 0..=ROOTS as i32 {
                let kind = Kind::to_root(collective, root);
                assert_eq!(kind.name(), collective.name());
                assert_eq!(kind, Kind::to_root(collective, root + ROOTS as i32 + 1));
                seen.push(kind.0 as usize);
            }
        }
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, (0..KINDS).collect::<Vec<_>>());
    }
}
