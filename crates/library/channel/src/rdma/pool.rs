//! A pool of receives: the buffers of one shared receive queue, which several connections on one
//! rail use.
//!
//! Invariant: the windows of the pool's connections and the grant-only messages that may come from
//! them are together no more than its receives. Each connection has a receive for one message and
//! one for a grant-only message. The others are lent to windows that are in use. While other
//! connections need them, each consumed message returns one lent receive.

use std::ops::Range;

use device::{Access, Node, ReceiveQueue, Srq};

use super::credit::{EMPTY, MOST};
use super::layout::{Layout, TRAILER, padded};
use super::rail_set::RailSet;
use super::registered::Registered;
use super::wr_id::{Subject, WrId};
use crate::Result;

/// The first window of a new peer, in messages, while few receives are lent.
const EAGER: u32 = 4;

/// The size of a buffer in bytes, and the number of buffers of a pool, for a ring of this layout.
pub(super) fn shape(layout: &Layout) -> (usize, usize) {
    let buffer = (padded(layout.max_body()) + TRAILER).next_multiple_of(64);
    (buffer, (8 * layout.bytes / buffer).clamp(16, 512))
}

/// A shared receive queue of one rail, with its buffers, for several connections.
pub(super) struct Pool {
    rail: usize,
    srq: Srq,
    memory: Registered,
    buffer: usize,
    room: usize,
    /// The number of receives beyond those that each connection has by its window.
    extra: u32,
    /// The number of receives beyond the windows of all connections.
    spare: u32,
}

impl Pool {
    pub(super) fn new(node: &mut dyn Node, rail: usize, layout: &Layout) -> Result<Pool> {
        let (buffer, count) = shape(layout);
        let access = Access {
            local_write: true,
            ..Access::default()
        };
        let memory = Registered::new(node, RailSet::only(rail), buffer * count, access)?;
        let room = (count - count / 4) / (1 + EMPTY);
        let extra = (count - room * (1 + EMPTY)) as u32;
        let pool = Pool {
            rail,
            srq: node.rail(rail).create_srq(count)?,
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

    /// The number of further connections for which the pool has receives.
    pub(super) fn room(&self) -> usize {
        self.room
    }

    pub(super) fn srq(&self) -> Srq {
        self.srq
    }

    /// Admits a connection. Returns its first window: the number of messages that it may have in
    /// flight.
    pub(super) fn admit(&mut self) -> u32 {
        self.room -= 1;
        // Half of the extra receives stay for windows that grow.
        let more = match self.spare * 2 > self.extra {
            true => self.spare.min(EAGER - 1),
            false => 0,
        };
        self.spare -= more;
        1 + more
    }

    /// The memory that contains buffer `number`, and the buffer's range in it.
    pub(super) fn buffer(&self, number: usize) -> (&Registered, Range<usize>) {
        (&self.memory, self.place(number))
    }

    fn place(&self, number: usize) -> Range<usize> {
        number * self.buffer..(number + 1) * self.buffer
    }

    /// Posts buffer `number` to the shared receive queue.
    pub(super) fn post(&self, node: &mut dyn Node, number: usize) -> Result<()> {
        let into = [self.memory.slice(self.rail, self.place(number))];
        let queue = ReceiveQueue::Shared(self.srq);
        let id = WrId {
            rail: self.rail,
            subject: Subject::PoolBuffer { buffer: number },
        };
        // SAFETY: the memory stays until the queue pairs are gone, and is read only between a
        // completion and the next post.
        unsafe {
            node.rail(self.rail)
                .post_receive(queue, id.encode(), &into)?
        };
        Ok(())
    }

    /// The new size of a window of `size` whose peer is sending: it grows while receives are spare,
    /// and shrinks while other windows need them.
    pub(super) fn resize(&mut self, size: u32) -> u32 {
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

    /// Takes back the receives that were lent to a window of `size`, which restarts with `own`
    /// receives.
    pub(super) fn take_back(&mut self, size: u32, own: u32) {
        self.spare += size.saturating_sub(own);
    }

    /// Deregisters the buffers of the pool.
    pub(super) fn end(self, node: &mut dyn Node) {
        self.memory.end(node);
    }
}

#[cfg(test)]
mod tests {
    use testdevice::strict::{self, Setup};

    use super::super::config::Config;
    use super::*;

    #[test]
    fn windows_never_hold_more_than_the_receives() {
        let layout = Layout::of(&Config::default());
        let mut node = strict::nodes(1, &Setup::default()).remove(0);
        let mut pool = Pool::new(&mut *node, 0, &layout).unwrap();
        let receives = shape(&layout).1;
        let mut windows = Vec::new();
        let check = |windows: &[u32], pool: &Pool| {
            let held: u32 = windows.iter().sum();
            let messages = held as usize + windows.len() * EMPTY;
            assert!(windows.iter().all(|size| (1..=MOST).contains(size)));
            assert!(messages + pool.room() * (1 + EMPTY) + pool.spare as usize <= receives);
        };
        while pool.room() > 0 {
            windows.push(pool.admit());
            // The first connection is the busiest.
            windows[0] = pool.resize(windows[0]);
            check(&windows, &pool);
        }
        assert_eq!(windows[0], MOST);
        // Once all are busy, receives move from large windows to small ones.
        for round in 0..10 * windows.len() {
            let at = round % windows.len();
            windows[at] = pool.resize(windows[at]);
            check(&windows, &pool);
        }
        pool.end(&mut *node);
    }
}
