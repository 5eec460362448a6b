//! The fast path of a blocking receive: it polls for its message without a request.
//!
//! While it polls, the receive stands behind all posted receives, so it takes exactly the messages
//! that a posted request would take, in the same order. It peeks at the first packet of a ring
//! only; everything else is left to progress. If the message is long, or does not arrive soon, the
//! receive becomes a request.

use channel::{First, ShortPath};
use datatype::Buffer;

use super::Engine;
use crate::matching::Key;
use crate::p2p::received;
use crate::packet::{Contents, Envelope};
use crate::{Result, Status};

impl Engine {
    /// Receives the message if it is, or soon will be, the first of its ring; the result is then
    /// its status. This is the path of the answers in a ping-pong, so nothing is called out of
    /// line, and nothing stands between the poll that finds the message and the return.
    #[inline(always)]
    pub(crate) fn receive_here(&mut self, buffer: &Buffer, key: &Key) -> Result<Option<Status>> {
        if self.fast_path.left == 0 || self.tasks.are_waited_for() || self.messages.has_unexpected()
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

    /// One poll for a whole message that a receive with the envelope `key` matches.
    #[inline(always)]
    pub(crate) fn poll_first(&mut self, buffer: &Buffer, key: &Key) -> Result<First<Status>> {
        let Engine {
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
