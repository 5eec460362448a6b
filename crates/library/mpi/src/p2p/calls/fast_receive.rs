//! The start of a blocking receive: it polls a while for its message before it makes a request.

use channel::{First, ShortPath};
use datatype::Buffer;

use crate::matching::Key;
use crate::rank::Rank;
use crate::state::{FastPath, State};
use crate::{Result, Status};

/// Number of receives that may find their messages by polls alone before a pass of progress is due.
const FAST_RECEIVES: u32 = 256;

impl Rank {
    /// Receives the message if it arrives soon. `None`: it has not arrived, or its receive needs a
    /// request.
    #[inline(never)]
    pub(crate) fn receive_soon(
        &self,
        state: &mut State,
        buffer: &Buffer,
        key: &Key,
    ) -> Result<Option<Status>> {
        if self.threads() || state.engine.tasks.are_waited_for() || !state.engine.router.can_peek()
        {
            // Another thread could complete the receive, a task could wait meanwhile, or no ring
            // can be peeked at.
            return Ok(None);
        }
        let polls = self.waiter.polls();
        state.engine.fast_path = FastPath {
            left: FAST_RECEIVES,
            polls: polls.first,
        };
        let mut round = true;
        for poll in 1..=polls.all {
            // Checked before progress, too: a message that a probe has reported must not be
            // cancelled by its sender now.
            if state.engine.messages.has_unexpected() {
                break;
            }
            match state.engine.poll_first(buffer, key)? {
                First::Taken(status) => {
                    if round {
                        state.progress()?;
                    }
                    return Ok(Some(status));
                }
                // It may be the first piece of this very message, which needs a request.
                First::Other => break,
                First::Nothing => {}
            }
            let moved = round && state.progress()?;
            round = !moved && poll.is_multiple_of(polls.per_round);
        }
        Ok(None)
    }
}
