//! A blocking receive that is looked for right here, without a request: the short way for a message that is here
//! already or comes soon.
//!
//! While it looks, the receive is posted behind all others, so what it takes and in which order is what a posted
//! request would take. It looks at the first packet of a ring only; whatever else has come is progress's affair. If the
//! message is long, or does not come, the receive becomes a request.

use channel::{First, Head};
use datatype::Buffer;

use super::Messages;
use super::receive::received;
use crate::matching::Key;
use crate::packet::{Contents, Envelope};
use crate::rank::{Rank, State};
use crate::{Result, Status};

/// Looks before the receive becomes a request: a few microseconds.
const LOOKS: u32 = 1024;
/// The same where ranks share cores, so that there is no point in looking long.
const LOOKS_IN_A_CROWD: u32 = 16;
/// After so many looks there is a round of progress,
const LOOKS_PER_ROUND: u32 = 64;
/// and after so many receives that found their message with their first looks.
const SHORT_RECEIVES: u32 = 256;

/// Receives that are done with their first looks, without anything else being looked at.
#[derive(Clone, Copy, Default)]
pub(crate) struct Short {
    /// How many there may be until there is a round of progress.
    left: u32,
    /// How often each looks.
    looks: u32,
}

impl State {
    /// Receives the message if it is the first of its ring, or soon will be; gives its status then. This is the way of the
    /// answers in a ping-pong: so nothing is called here, and nothing stands between the look that finds it and the return.
    #[inline(always)]
    pub fn receive_here(&mut self, buffer: &Buffer, key: &Key) -> Result<Option<Status>> {
        if self.short.left == 0 || !self.tasks.is_empty() || self.messages.unexpected.is_some() {
            return Ok(None);
        }
        self.short.left -= 1;
        for _ in 0..self.short.looks {
            match self.look_here(buffer, key)? {
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
        if self.threads() || !state.tasks.is_empty() || state.channels.only_devices() {
            // Somebody else could complete the receive, or wait for something meanwhile; or there is no ring to look at.
            return Ok(None);
        }
        let crowd = self.policy.is_crowded();
        state.short = Short {
            left: SHORT_RECEIVES,
            looks: if crowd { 1 } else { LOOKS_PER_ROUND },
        };
        let looks = if crowd { LOOKS_IN_A_CROWD } else { LOOKS };
        let mut round = true;
        for look in 1..=looks {
            // Before the round, too: what a probe has shown must not be taken back by its sender now.
            if state.messages.unexpected.is_some() {
                break;
            }
            match state.look_here(buffer, key)? {
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
            round = !moved && look.is_multiple_of(LOOKS_PER_ROUND);
        }
        Ok(None)
    }
}

impl State {
    /// One look for a whole message that `key` takes.
    #[inline(always)]
    fn look_here(&mut self, buffer: &Buffer, key: &Key) -> Result<First<Status>> {
        let State {
            channels, messages, ..
        } = self;
        Ok(channels.get_first_if(
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
        Envelope::is_eager(head) && key.takes(&sent) && !self.posted.has(&sent)
    }
}
