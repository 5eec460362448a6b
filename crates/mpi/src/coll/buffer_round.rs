//! One round of a collective buffer, as a small collective operation takes it: each vector carries
//! a note that names the call.

use channel::collective_buffer::{MOST_BYTES, NOTES, Round, Wake};
use datatype::{Buffer, Direction};

use super::blocks::Blocks;
use crate::algorithms::Collective;
use crate::{Class, Error, Result};

/// Bits of a note for the length of the vector; above them stands the operation.
const LENGTH_BITS: u32 = 18;

/// Bit of a note: the members publish names of memory instead of vectors.
const DIRECT: u32 = NOTES >> 1;

const _: () = assert!(
    MOST_BYTES < 1 << LENGTH_BITS && Collective::ALL.len() <= (DIRECT >> LENGTH_BITS) as usize
);

/// The round of a member in one call. It is polled: a step that must wait for another member says
/// so, and is tried again.
pub(super) struct SmallRound<'a> {
    pub(super) round: Round<'a>,
    pub(super) collective: Collective,
    /// Bytes of the vector.
    pub(super) len: usize,
    /// The vector is the name of memory.
    pub(super) direct: bool,
}

impl SmallRound<'_> {
    /// This rank among the members.
    #[inline(always)]
    pub(super) fn me(&self) -> usize {
        self.round.me()
    }

    #[inline(always)]
    pub(super) fn size(&self) -> usize {
        self.round.size()
    }

    /// The note of this call, by which others recognize another call.
    #[inline(always)]
    fn note(&self) -> u32 {
        let direct = if self.direct { DIRECT } else { 0 };
        direct | (self.collective as u32) << LENGTH_BITS | self.len as u32
    }

    /// Publishes this rank's vector unless it is published already, and wakes the other members.
    /// False: a member may still read the slot's last vector.
    #[inline(always)]
    pub(super) fn publish(&mut self, vector: &Buffer) -> bool {
        self.round.publish(self.note(), vector, self.len)
    }

    /// Publishes the blocks for all other members, one after the other, as
    /// [`publish`](Self::publish) does.
    pub(super) fn publish_blocks(&mut self, blocks: &Blocks) -> bool {
        let (me, size) = (self.me(), self.size());
        self.round.publish_with(self.note(), self.len, |room| {
            let mut rest = room;
            for member in (0..size).filter(|member| *member != me) {
                let block = blocks.part(member);
                let (place, after) = rest.split_at_mut(block.len().min(rest.len()));
                block.hand_over(Direction::Forward, 0, place);
                rest = after;
            }
        })
    }

    /// The number of this rank's block among those that another member has published.
    pub(super) fn block_in(&self, member: usize) -> usize {
        self.me() - usize::from(self.me() > member)
    }

    /// The vector of a member; `None` if the member has not published it yet. An error if it made
    /// another call.
    #[inline(always)]
    pub(super) fn vector(&mut self, member: usize) -> Result<Option<&[u8]>> {
        let ours = self.note();
        let Some(published) = self.round.published(member) else {
            return Ok(None);
        };
        let theirs = published.note();
        if theirs != ours {
            return Err(mismatch(member, theirs, self.collective, self.len));
        }
        Ok(Some(published.bytes(self.len)))
    }

    /// The vectors of two members, as [`vector`](Self::vector) returns one.
    #[inline(always)]
    pub(super) fn vectors(&mut self, members: [usize; 2]) -> Result<Option<[&[u8]; 2]>> {
        let ours = self.note();
        let (collective, len) = (self.collective, self.len);
        let Some(published) = self.round.both_published(members) else {
            return Ok(None);
        };
        for (member, vector) in members.iter().zip(&published) {
            let theirs = vector.note();
            if theirs != ours {
                return Err(mismatch(*member, theirs, collective, len));
            }
        }
        Ok(Some(published.map(|vector| vector.bytes(len))))
    }

    /// Ends the round for this rank, and wakes members that may sleep until then.
    #[inline(always)]
    pub(super) fn end(self, wake: Wake) {
        self.round.end(wake);
    }
}

#[cold]
fn mismatch(member: usize, theirs: u32, collective: Collective, len: usize) -> Error {
    let name = Collective::ALL
        .get(((theirs & !DIRECT) >> LENGTH_BITS) as usize)
        .map_or("something else", |of| of.name());
    let bytes = match theirs & DIRECT {
        0 => format!("{} bytes", theirs & ((1 << LENGTH_BITS) - 1)),
        _ => format!("more than {MOST_BYTES} bytes"),
    };
    Error::new(
        Class::TRUNCATE,
        different_calls(member, name, &bytes, collective, &format!("{len}")),
    )
}

/// The message about members whose calls do not fit together.
#[cold]
pub(super) fn different_calls(
    member: usize,
    theirs: &str,
    bytes: &str,
    ours: Collective,
    len: &str,
) -> String {
    format!(
        "rank {member} of the communicator called {theirs} with {bytes} where this rank called {} with {len}: all \
         ranks must call the same collective with counts and datatypes that fit together",
        ours.name(),
    )
}
