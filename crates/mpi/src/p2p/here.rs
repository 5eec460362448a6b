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
use crate::packet::{Envelope, Kind};
use crate::rank::{Rank, State};
use crate::request::RequestId;
use crate::{Result, Status};

/// Looks before the receive becomes a request: a few microseconds.
const LOOKS: u32 = 200;

/// What became of a blocking receive.
pub enum Received {
    Here(Status),
    /// It is a request now.
    Posted(RequestId),
}

impl Rank {
    #[inline(always)]
    pub(crate) fn receive_here(
        &self,
        buffer: Buffer,
        source: i32,
        tag: i32,
        comm: u32,
    ) -> Result<Received> {
        let mut state = self.lock();
        if self.threads() || !state.tasks.is_empty() || state.messages.unexpected.is_some() {
            return state
                .receive(buffer, source, tag, comm)
                .map(Received::Posted);
        }
        let Some(key) = state.receive_key(source, tag, comm)? else {
            return Ok(Received::Here(Status::PROC_NULL));
        };
        let State {
            channels, messages, ..
        } = &mut *state;
        for _ in 0..self.looks_here() {
            if let Some(status) = messages.look_here(channels, &buffer, &key)? {
                return Ok(Received::Here(status));
            }
            if messages.unexpected.is_some() {
                break;
            }
            std::hint::spin_loop();
        }
        state
            .receive(buffer, source, tag, comm)
            .map(Received::Posted)
    }

    /// Where ranks share cores there is no point in looking long.
    #[inline(always)]
    fn looks_here(&self) -> u32 {
        if self.policy.is_crowded() { 4 } else { LOOKS }
    }
}

impl Messages {
    /// One look for a whole message that `key` takes.
    #[inline(always)]
    fn look_here(
        &mut self,
        channels: &mut Channels,
        buffer: &Buffer,
        key: &Key,
    ) -> Result<Option<Status>> {
        let mut status = None;
        let packets = channels.get(|peer, head, body| {
            self.on_packet_here(peer, head, body, buffer, key, &mut status)
        })?;
        if packets > 0 && self.has_work() {
            self.fetch(channels)?;
            self.flush(channels)?;
        }
        match self.broken.take() {
            Some(error) => Err(error),
            None => Ok(status),
        }
    }

    #[inline(always)]
    fn on_packet_here(
        &mut self,
        peer: usize,
        head: Head,
        body: &[u8],
        buffer: &Buffer,
        key: &Key,
        status: &mut Option<Status>,
    ) -> More {
        if let Some(envelope) = Envelope::decode(head)
            && envelope.kind == Kind::Eager
            && status.is_none()
            && key.takes(&envelope.key)
            && !self.posted.has(&envelope.key)
        {
            buffer.unpack(0, body);
            *status = Some(received(buffer, envelope.key, body.len()));
            return More::Enough;
        }
        self.on_packet(peer, head, body)
    }
}
