//! A blocking receive that is looked for right here, without a request: the short way for a message that is here
//! already or comes soon.
//!
//! While it looks, the receive is posted behind all others, so what it takes and in which order is what a posted
//! request would take. If the message is long, or does not come, it becomes a request.

use channel::{Channel, Channels, Head, More};
use datatype::Buffer;

use super::Messages;
use super::receive::received;
use crate::matching::Key;
use crate::packet::Envelope;
use crate::rank::{Rank, State};
use crate::{Result, Status};

/// Looks before the receive becomes a request: a few microseconds.
const LOOKS: u32 = 200;

impl Rank {
    /// True if the message is here: it is received, and this is its status.
    #[inline(always)]
    pub(crate) fn receive_here(
        &self,
        state: &mut State,
        buffer: &Buffer,
        key: &Key,
        status: &mut Status,
    ) -> Result<bool> {
        let State {
            channels,
            messages,
            tasks,
            ..
        } = state;
        if self.threads() || !tasks.is_empty() {
            return Ok(false);
        }
        for _ in 0..self.looks_here() {
            if messages.unexpected.is_some() {
                break;
            }
            if messages.look_here(channels, buffer, key, status)? {
                return Ok(true);
            }
            std::hint::spin_loop();
        }
        Ok(false)
    }

    /// Where ranks share cores there is no point in looking long.
    #[inline(always)]
    fn looks_here(&self) -> u32 {
        if self.policy.is_crowded() { 4 } else { LOOKS }
    }
}

impl Messages {
    /// One look for a whole message that `key` takes.
    #[inline(never)]
    fn look_here(
        &mut self,
        channels: &mut Channels,
        buffer: &Buffer,
        key: &Key,
        status: &mut Status,
    ) -> Result<bool> {
        let mut found = false;
        let packets = channels.get(
            #[inline(always)]
            |peer, head, body| {
                if !found && self.is_for(head, key) {
                    found = true;
                    buffer.unpack(0, body);
                    *status = received(buffer, Envelope::key(head), body.len());
                    return More::Enough;
                }
                self.on_any_packet(peer, head, body)
            },
        )?;
        if packets > 0 && self.has_work() {
            self.fetch(channels)?;
            self.flush(channels)?;
        }
        match self.broken.take() {
            Some(error) => Err(error),
            None => Ok(found),
        }
    }

    /// Is this a whole message that `key` takes before any posted receive does?
    #[inline(always)]
    fn is_for(&self, head: Head, key: &Key) -> bool {
        let sent = Envelope::key(head);
        Envelope::is_eager(head) && key.takes(&sent) && !self.posted.has(&sent)
    }
}
