//! A pool of receives: the buffers of one shared receive queue, into which the messages of so many connections come.
//!
//! What must always hold: the windows of its connections and the empty messages that may come from them are together no
//! more than its receives. Each has its own for one message and one empty one; the rest is lent to windows that are in use,
//! and comes back, one with each message that is taken, while others need it.

use std::ops::Range;

use device::{Access, Node, ReceiveQueue, Srq};

use super::credit::{EMPTY, MOST};
use super::layout::{Layout, TRAILER, padded};
use super::registered::Registered;
use super::srq_path::SHARED;
use crate::Result;

/// Messages that a new peer may send at once, while few are in use.
const EAGER: u32 = 4;

/// Bytes of a buffer, and how many there are for so many bytes of a ring.
pub(super) fn shape(layout: &Layout) -> (usize, usize) {
    let buffer = (padded(layout.max_body()) + TRAILER).next_multiple_of(64);
    (buffer, (8 * layout.bytes / buffer).clamp(16, 512))
}

/// Receives that some connections share.
pub(super) struct Pool {
    pub srq: Srq,
    pub memory: Registered,
    buffer: usize,
    room: usize,
    /// Receives beyond those that each connection has for itself: how many, and how many are in no window.
    extra: u32,
    spare: u32,
}

impl Pool {
    pub fn new(node: &mut dyn Node, layout: &Layout) -> Result<Pool> {
        let (buffer, count) = shape(layout);
        let access = Access {
            local_write: true,
            ..Access::default()
        };
        let memory = Registered::new(node.rail(0), buffer * count, access)?;
        let room = (count - count / 4) / (1 + EMPTY);
        let extra = (count - room * (1 + EMPTY)) as u32;
        let pool = Pool {
            srq: node.rail(0).create_srq(count)?,
            memory,
            buffer,
            room,
            extra,
            spare: extra,
        };
        for number in 0..count {
            pool.post(node, number)?;
        }
        Ok(pool)
    }

    /// Connections that there is still room for.
    pub fn room(&self) -> usize {
        self.room
    }

    /// One more connection: how many messages may come from it at once to begin with.
    pub fn admit(&mut self) -> u32 {
        self.room -= 1;
        // What some do not use others may need.
        let more = match self.spare * 2 > self.extra {
            true => self.spare.min(EAGER - 1),
            false => 0,
        };
        self.spare -= more;
        1 + more
    }

    pub fn place(&self, number: usize) -> Range<usize> {
        number * self.buffer..(number + 1) * self.buffer
    }

    pub fn post(&self, node: &mut dyn Node, number: usize) -> Result<()> {
        let into = [self.memory.slice(self.place(number))];
        let queue = ReceiveQueue::Shared(self.srq);
        // SAFETY: the memory stays until the queue pairs are gone, and is looked at only between a completion and the
        // next post.
        unsafe {
            node.rail(0)
                .post_receive(queue, SHARED | number as u64, &into)?
        };
        Ok(())
    }

    /// The size of a window whose peer is sending: it grows while receives are spare, and shrinks while others need them.
    pub fn resize(&mut self, size: u32) -> u32 {
        match self.spare {
            0 if size > 1 => {
                self.spare += 1;
                size - 1
            }
            1.. if size < MOST => {
                self.spare -= 1;
                size + 1
            }
            _ => size,
        }
    }
}
