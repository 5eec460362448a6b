//! The collective buffer of a communicator: shared memory in which each member publishes a vector
//! to the others, once in each round. A communicator gets a buffer after a few calls that could use
//! one, by agreement of its members; until then it communicates by messages.

use channel::collective_buffer::CollectiveBuffer;

/// Calls on a communicator that could use a buffer before its members first try to agree on one.
const TRIALS: u32 = 2;

/// The collective buffer of a communicator.
pub(crate) enum CommBuffer {
    /// The communicator has no collective buffer yet.
    Absent {
        /// The number of calls since the last attempt that could have used a buffer.
        calls: u32,
        /// The number of calls that could have used a buffer, after which the members try to agree
        /// on one.
        due: u32,
    },
    /// The collective buffer of the communicator.
    Ready(Box<CollectiveBuffer>),
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

    /// Records that the members share no memory: they never try to agree on a buffer.
    pub(crate) fn rule_out(&mut self) {
        *self = CommBuffer::Absent {
            calls: 0,
            due: u32::MAX,
        };
    }

    /// Records that the members found no free buffer. They try again after eight times as many
    /// calls.
    pub(crate) fn put_off(&mut self) {
        if let CommBuffer::Absent { calls, due } = self {
            (*calls, *due) = (0, due.saturating_mul(8));
        }
    }
}
