//! The fast path of a blocking receive: it polls for its message right here, without a request.
//!
//! While it polls, the receive stands behind all posted receives, so it takes the messages that a posted request would take,
//! in the same order. It peeks at the first packet of a ring only; everything else is left to progress. If the message is
//! long, or does not come, the receive becomes a request.

use channel::{First, Head};
use datatype::Buffer;

use super::Messages;
use super::receive::received;
use crate::matching::Key;
use crate::packet::{Contents, Envelope};
use crate::rank::{Rank, State};
use crate::{Result, Status};

/// Receives that may find their message with their first polls before there is a round of progress.
const FAST_RECEIVES: u32 = 256;

/// The allowance of receives that end with their first polls, without a round of progress.
#[derive(Clone, Copy, Default)]
pub(crate) struct FastPath {
    /// Number of such receives until the next round of progress.
    left: u32,
    /// Polls of each.
    polls: u32,
}

impl State {
    /// Receives the message if it is the first of its ring, or soon will be; gives its status then. This is the way of the
    /// answers in a ping-pong: so nothing is called here, and nothing stands between the look that finds it and the return.
    #[inline(always)]
    pub fn receive_here(&mut self, buffer: &Buffer, key: &Key) -> Result<Option<Status>> {
        if self.fast_path.left == 0 || !self.tasks.is_empty() || self.messages.unexpected.is_some()
        {
            return Ok(None);
        }
        self.fast_path.left -= 1;
        for _ in 0..self.fast_path.polls {
            match self.poll_first(buffer, key)? {
                First::Taken(status) => return Ok(Some(status)),
                First::Other => return Ok(None),
                First::Nothing => std::hint::spin_loop(),
            }
        }
        Ok(None)
    }
}

impl Rank {
    /// Receives the message if it comes soon. `None`: it has not, or it cannot be received without a request.
    #[inline(never)]
    pub(crate) fn receive_soon(
        &self,
        state: &mut State,
        buffer: &Buffer,
        key: &Key,
    ) -> Result<Option<Status>> {
        if self.threads() || !state.tasks.is_empty() || !state.router.can_peek() {
            // Somebody else could complete the receive, or wait for something meanwhile; or there is no ring to look at.
            return Ok(None);
        }
        let polls = self.waiter.polls();
        state.fast_path = FastPath {
            left: FAST_RECEIVES,
            polls: polls.first,
        };
        let mut round = true;
        for poll in 1..=polls.all {
            // Before the round, too: what a probe has shown must not be taken back by its sender now.
            if state.messages.unexpected.is_some() {
                break;
            }
            match state.poll_first(buffer, key)? {
                First::Taken(status) => {
                    if round {
                        state.progress()?;
                    }
                    return Ok(Some(status));
                }
                // It may be the first piece of this very message, which should find a request.
                First::Other => break,
                First::Nothing => {}
            }
            let moved = round && state.progress()?;
            round = !moved && poll.is_multiple_of(polls.per_round);
        }
        Ok(None)
    }
}

impl State {
    /// One look for a whole message that `key` takes.
    #[inline(always)]
    fn poll_first(&mut self, buffer: &Buffer, key: &Key) -> Result<First<Status>> {
        let State {
            router, messages, ..
        } = self;
        Ok(router.first_if(
            #[inline(always)]
            |head| messages.is_for(head, key),
            #[inline(always)]
            |head, body| {
                Contents::of(head, body).unpack(buffer, 0);
                received(buffer, Envelope::key(head), body.len())
            },
        )?)
    }
}

impl Messages {
    /// Is this a whole message that `key` takes before any posted receive does?
    #[inline(always)]
    fn is_for(&self, head: Head, key: &Key) -> bool {
        let sent = Envelope::key(head);
        Envelope::is_whole(head) && key.takes(&sent) && !self.posted.has(&sent)
    }
}
