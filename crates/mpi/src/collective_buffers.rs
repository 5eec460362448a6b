//! The collective buffers of a rank, and which communicator uses which.
//!
//! A collective buffer is shared memory in which each member of a communicator publishes a vector
//! to the others, once in each round. Rounds are numbered. A communicator gets a buffer after a few
//! calls that could use one, by agreement of its members; until then it communicates by messages.
//!
//! What must always hold: a buffer serves one communicator at a time, and another communicator
//! begins with a round that no member has taken before.

use std::sync::Arc;

use channel::shm::{BODY, CollectiveBuffer, LANES, SLOTS};

use crate::group::Members;

/// The longest vector that fits a collective buffer, in bytes.
pub(crate) const MOST_BYTES: usize = BODY;
/// Rounds by which a member may be ahead of the slowest.
pub(crate) const ROUNDS_AHEAD: u64 = SLOTS;
/// Collective buffers of a host.
const BUFFERS: usize = LANES;
/// Calls on a communicator that could use a buffer before its members first try to agree on one.
const TRIALS: u32 = 2;

/// The collective buffer of a communicator.
pub(crate) enum CommBuffer {
    /// The communicator has none.
    Absent {
        /// Calls since the last attempt that could have used one.
        calls: u32,
        /// Calls after which the members try to agree on one.
        due: u32,
    },
    /// The communicator has one.
    Ready(Box<ReadyBuffer>),
}

impl Default for CommBuffer {
    fn default() -> Self {
        CommBuffer::Absent {
            calls: 0,
            due: TRIALS,
        }
    }
}

impl CommBuffer {
    #[inline(always)]
    pub(crate) fn is_ready(&self) -> bool {
        matches!(self, CommBuffer::Ready(_))
    }

    /// Counts a call that could use a buffer. True if the members are to agree on one now.
    #[inline]
    pub(crate) fn is_due(&mut self) -> bool {
        match self {
            CommBuffer::Absent { calls, due } => {
                *calls = calls.saturating_add(1);
                *calls > *due
            }
            CommBuffer::Ready(_) => false,
        }
    }

    /// The members found no free buffer: the next attempt comes after eight times as many calls.
    pub(crate) fn put_off(&mut self) {
        if let CommBuffer::Absent { calls, due } = self {
            (*calls, *due) = (0, due.saturating_mul(8));
        }
    }
}

/// A communicator's buffer, and this rank's progress in it.
pub(crate) struct ReadyBuffer {
    pub(crate) mapped: Arc<MappedBuffer>,
    /// The last round that this rank took.
    pub(crate) round: u64,
    /// A round that all members are known to have ended.
    pub(crate) all_done: u64,
}

impl ReadyBuffer {
    /// A buffer whose next round is `first`.
    pub(crate) fn new(mapped: Arc<MappedBuffer>, first: u64) -> ReadyBuffer {
        ReadyBuffer {
            mapped,
            round: first - 1,
            all_done: first - 1,
        }
    }
}

/// A collective buffer in use, or one that members may still read.
pub(crate) struct MappedBuffer {
    pub(crate) memory: CollectiveBuffer,
    /// The members by their places in the shared memory.
    pub(crate) places: Members,
    /// This rank's place.
    pub(crate) me: usize,
}

impl MappedBuffer {
    /// Has some member not yet ended the last round that this rank took?
    fn is_read(&self) -> bool {
        let last = self.memory.done(self.me);
        self.places
            .iter()
            .any(|place| self.memory.done(place) < last)
    }
}

/// All collective buffers of a rank.
#[derive(Default)]
pub(crate) struct CollectiveBuffers {
    mapped: Vec<Option<Arc<MappedBuffer>>>,
    /// The highest round taken in buffers that are free again.
    highest: u64,
    /// A thread has offered the free buffers in an agreement: no other may offer them meanwhile.
    offered: bool,
}

impl CollectiveBuffers {
    /// The free buffers as bits, and the first round that was never taken; both are 0 if another
    /// thread has offered the buffers.
    pub(crate) fn offer(&mut self) -> (u64, u64) {
        if self.offered {
            return (0, 0);
        }
        let mut free = u64::MAX;
        let mut highest = self.highest;
        self.mapped.resize_with(BUFFERS, || None);
        for (index, entry) in self.mapped.iter_mut().enumerate() {
            let Some(mapped) = entry else { continue };
            highest = highest.max(mapped.memory.done(mapped.me));
            if Arc::strong_count(mapped) > 1 || mapped.is_read() {
                free &= !(1 << index);
            } else {
                *entry = None;
            }
        }
        self.highest = highest;
        self.offered = free != 0;
        (free, highest + 1)
    }

    /// Ends an offer that named these free buffers.
    pub(crate) fn end_offer(&mut self, free: u64) {
        self.offered &= free == 0;
    }

    /// Keeps the buffer that the members agreed on.
    pub(crate) fn keep(&mut self, index: usize, mapped: Arc<MappedBuffer>) {
        self.mapped[index] = Some(mapped);
    }
}
