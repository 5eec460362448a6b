//! Pools of receives: each holds the buffers of one shared receive queue, which several
//! connections on one rail use.
//!
//! Invariant: the windows of the pool's connections and the grant-only messages that may come from
//! them are together no more than its receives. Each connection has a receive for one message and
//! one for a grant-only message. The others are lent to windows:
//! - only to a peer that waited for credit: it says so in its next message. An idle connection has
//!   no more than it once needed, and most have one receive;
//! - a pool without receives to lend gets further buffers from the reserve of its rail, whose
//!   length is bounded ([`RESERVE`]). A pool takes no more of it than it leaves to the others;
//! - once half of all that can be lent is lent, a window grows to its share only, as if every
//!   connection needed as much. A peer below its share that finds nothing gets the receives that
//!   larger windows, and those of peers that did not wait, return one by one as they consume.

use std::ops::Range;

use device::{Access, Node, ReceiveQueue, Srq};

use super::credit::{EMPTY, MOST};
use super::layout::{Layout, TRAILER, padded};
use super::rail_set::RailSet;
use super::registered::Registered;
use super::wr_id::{Subject, WrId};
use crate::Result;

/// The first window of a connection of a pool, in messages: what is never lent.
pub(super) const FIRST: u32 = 1;

/// The most memory that the pools of a rail take beyond two to three buffers for each connection,
/// as a number of rings.
const RESERVE: usize = 32;

/// The number of buffers that a pool gets from the reserve at one time.
const BLOCK: usize = 16;

/// The size of a buffer in bytes, and the number of buffers of a new pool, for a ring of this
/// layout.
pub(super) fn shape(layout: &Layout) -> (usize, usize) {
    let buffer = (padded(layout.max_body()) + TRAILER).next_multiple_of(64);
    (buffer, (8 * layout.bytes / buffer).clamp(16, 512))
}

/// The number of buffers that the reserve of a rail has for its pools.
fn reserve(layout: &Layout) -> usize {
    RESERVE * layout.bytes / shape(layout).0
}

/// The pools of one rail.
#[derive(Default)]
pub(super) struct Pools {
    all: Vec<Pool>,
    /// The number of buffers of the reserve that no pool has.
    reserve: usize,
}

impl Pools {
    /// True if no connection of the rail uses a pool.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Admits a connection to pools of rail `rail`, with a window of [`FIRST`] messages. Returns
    /// the pool's number and queue.
    pub(super) fn admit(
        &mut self,
        node: &mut dyn Node,
        rail: usize,
        layout: &Layout,
    ) -> Result<(usize, Srq)> {
        if self.is_empty() {
            self.reserve = reserve(layout);
        }
        if self.all.last().is_none_or(|pool| pool.room == 0) {
            self.all.push(Pool::new(node, rail, layout)?);
        }
        let number = self.all.len() - 1;
        let pool = &mut self.all[number];
        pool.room -= 1;
        pool.admitted += 1;
        Ok((number, pool.srq))
    }

    pub(super) fn pool(&self, number: usize) -> &Pool {
        &self.all[number]
    }

    /// The new size of a window of `size` in pool `number`, of which a message was consumed.
    /// `waited`: the peer waited for credit before it sent that message.
    pub(super) fn resize(
        &mut self,
        node: &mut dyn Node,
        number: usize,
        size: u32,
        waited: bool,
    ) -> u32 {
        let pool = &mut self.all[number];
        let growth = pool.growth(self.reserve);
        let more = pool.wants(size, waited, growth);
        if more > pool.spare && growth > 0 {
            match pool.grow(node) {
                Ok(()) => self.reserve -= BLOCK,
                // Without more registered memory the pool goes on with what it has.
                Err(_) => self.reserve = 0,
            }
        }
        pool.resize(size, waited, more)
    }

    /// Takes back `receives` receives of pool `number`, which were lent to a window that restarts.
    pub(super) fn take_back(&mut self, number: usize, receives: u32) {
        self.all[number].spare += receives;
    }

    /// Deregisters the buffers of all pools.
    pub(super) fn end(&mut self, node: &mut dyn Node) {
        let pools = self.all.drain(..);
        for memory in pools.flat_map(|pool| pool.memory) {
            memory.end(node);
        }
    }
}

/// A shared receive queue of one rail, with its buffers, for several connections.
pub(super) struct Pool {
    rail: usize,
    srq: Srq,
    /// The memory of the first buffers, then that of `BLOCK` buffers each.
    memory: Vec<Registered>,
    /// The number of the first buffers.
    count: usize,
    /// The length of a buffer in bytes.
    buffer: usize,
    /// The number of further connections for which the pool has receives.
    room: usize,
    /// The number of connections.
    admitted: usize,
    /// The number of receives beyond those that each connection has.
    extra: u32,
    /// The most receives that the queue holds beyond those that each connection has.
    most_extra: u32,
    /// The number of receives beyond the windows of all connections.
    spare: u32,
    /// True if a peer with less than its share has waited, and found no spare receive.
    is_short: bool,
}

impl Pool {
    fn new(node: &mut dyn Node, rail: usize, layout: &Layout) -> Result<Pool> {
        let (buffer, count) = shape(layout);
        let own = FIRST as usize + EMPTY;
        let room = (count - count / 4) / own;
        let most_extra = room * (MOST - FIRST) as usize;
        let extra = (count - room * own) as u32;
        let mut pool = Pool {
            rail,
            srq: node.rail(rail).create_srq(room * own + most_extra)?,
            memory: Vec::new(),
            count,
            buffer,
            room,
            admitted: 0,
            extra,
            most_extra: most_extra as u32,
            spare: extra,
            is_short: false,
        };
        pool.add_memory(node, 0..count)?;
        Ok(pool)
    }

    /// Registers the memory of these buffers, and posts them.
    fn add_memory(&mut self, node: &mut dyn Node, mut numbers: Range<usize>) -> Result<()> {
        let access = Access {
            local_write: true,
            ..Access::default()
        };
        let (rails, bytes) = (RailSet::only(self.rail), self.buffer * numbers.len());
        self.memory
            .push(Registered::new(node, rails, bytes, access)?);
        numbers.try_for_each(|number| self.post(node, number))
    }

    /// The memory that contains buffer `number`, and the buffer's range in it.
    pub(super) fn buffer(&self, number: usize) -> (&Registered, Range<usize>) {
        let (memory, at) = match number.checked_sub(self.count) {
            None => (0, number),
            Some(later) => (1 + later / BLOCK, later % BLOCK),
        };
        let range = at * self.buffer..(at + 1) * self.buffer;
        (&self.memory[memory], range)
    }

    /// Posts buffer `number` to the shared receive queue.
    pub(super) fn post(&self, node: &mut dyn Node, number: usize) -> Result<()> {
        let (memory, range) = self.buffer(number);
        let into = [memory.slice(self.rail, range)];
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

    /// The number of buffers that the pool may still get from a reserve of `reserve` buffers. It
    /// leaves as many there as it has got.
    fn growth(&self, reserve: usize) -> u32 {
        let got = (self.memory.len() - 1) * BLOCK;
        let most = (self.most_extra - self.extra) as usize;
        let growth = (reserve.saturating_sub(got) / 2).min(most);
        (growth / BLOCK * BLOCK) as u32
    }

    /// Adds a block of buffers of the reserve.
    fn grow(&mut self, node: &mut dyn Node) -> Result<()> {
        let first = self.count + (self.memory.len() - 1) * BLOCK;
        self.add_memory(node, first..first + BLOCK)?;
        self.extra += BLOCK as u32;
        self.spare += BLOCK as u32;
        Ok(())
    }

    /// The window of each connection if all had equal ones, where the pool may grow by `growth`
    /// receives. It is larger than the first one, so that no receive stays without use.
    fn share(&self, growth: u32) -> u32 {
        let lendable = (self.extra + growth) / self.admitted as u32;
        (FIRST + lendable.max(1)).min(MOST)
    }

    /// The number of receives by which a window of `size` should grow.
    fn wants(&self, size: u32, waited: bool, growth: u32) -> u32 {
        let is_plenty = (self.spare + growth) * 2 > self.extra + growth;
        let most = match is_plenty {
            true => MOST,
            false => self.share(growth),
        };
        match waited {
            // A window of a peer that goes on waiting doubles.
            true => most.saturating_sub(size).min(size),
            false => 0,
        }
    }

    /// The new size of a window of `size`, which should grow by `more` receives.
    fn resize(&mut self, size: u32, waited: bool, more: u32) -> u32 {
        let more = more.min(self.spare);
        let share = self.share(0);
        if more > 0 {
            self.spare -= more;
        } else if waited && size < share {
            self.is_short = true;
        } else if self.is_short && size > FIRST && (!waited || size > share) {
            self.is_short = false;
            self.spare += 1;
            return size - 1;
        }
        size + more
    }
}

#[cfg(test)]
mod tests {
    use testdevice::strict::{self, Setup};

    use super::super::config::Config;
    use super::*;

    /// The pools of a rail with the windows of their connections.
    struct Scene {
        node: Box<dyn Node + Send>,
        pools: Pools,
        layout: Layout,
        /// The pool and the window of each connection.
        windows: Vec<(usize, u32)>,
    }

    impl Scene {
        fn new(connections: usize) -> Scene {
            let mut scene = Scene {
                node: strict::nodes(1, &Setup::default()).remove(0),
                pools: Pools::default(),
                layout: Layout::of(&Config::default()),
                windows: Vec::new(),
            };
            for _ in 0..connections {
                let admitted = scene.pools.admit(&mut *scene.node, 0, &scene.layout);
                scene.windows.push((admitted.unwrap().0, FIRST));
            }
            scene
        }

        /// Consumes a message of a connection. Returns its new window.
        fn consume(&mut self, connection: usize, waited: bool) -> u32 {
            let (pool, size) = self.windows[connection];
            let size = self.pools.resize(&mut *self.node, pool, size, waited);
            self.windows[connection].1 = size;
            self.check();
            size
        }

        fn check(&self) {
            let mut buffers = 0;
            for (number, pool) in self.pools.all.iter().enumerate() {
                let of_pool = self.windows.iter().filter(|(pool, _)| *pool == number);
                let sizes = of_pool.map(|(_, size)| *size as usize + EMPTY);
                let own = pool.room * (FIRST as usize + EMPTY);
                let posted = pool.count + (pool.memory.len() - 1) * BLOCK;
                let held: usize = sizes.sum();
                assert!(held + own + pool.spare as usize <= posted);
                buffers += posted;
            }
            let mut sizes = self.windows.iter().map(|(_, size)| *size);
            assert!(sizes.all(|size| (FIRST..=MOST).contains(&size)));
            let first = self.pools.all.len() * shape(&self.layout).1;
            assert!(buffers <= first + reserve(&self.layout));
        }

        fn end(mut self) {
            self.pools.end(&mut *self.node);
        }
    }

    #[test]
    fn windows_never_hold_more_than_the_receives_of_a_bounded_memory() {
        let mut random = 1u64;
        let mut below = |of: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005) | 1;
            (random >> 33) as usize % of
        };
        // From one pool to many: at last the reserve is used up.
        for connections in [1, 40, 200, 1000] {
            let mut scene = Scene::new(connections);
            for _ in 0..20 * connections {
                let waited = below(3) > 0;
                scene.consume(below(connections), waited);
            }
            scene.end();
        }
    }

    #[test]
    fn a_peer_that_waits_is_lent_receives_although_many_others_have_sent() {
        let mut scene = Scene::new(200);
        for connection in 0..200 {
            assert_eq!(scene.consume(connection, false), FIRST);
        }
        for size in [2, 4, 8, MOST, MOST] {
            assert_eq!(scene.consume(199, true), size);
        }
        // Nothing is taken from a window while no other needs it.
        assert_eq!(scene.consume(199, false), MOST);
        scene.end();
    }

    #[test]
    fn all_peers_of_a_host_full_of_ranks_get_more_than_one_message_in_flight() {
        for (connections, least) in [(44, 6), (80, 4), (200, 2)] {
            let mut scene = Scene::new(connections);
            for connection in (0..10).flat_map(|_| 0..connections) {
                scene.consume(connection, true);
            }
            let sizes = scene.windows.iter().map(|(_, size)| *size);
            assert!(sizes.min() >= Some(least), "{:?}", scene.windows);
            scene.end();
        }
    }

    /// Peers that waited once give their receives to later ones, as far as they still send.
    #[test]
    fn receives_move_to_the_peers_that_wait_now() {
        const MANY: usize = 2000;
        let mut scene = Scene::new(MANY);
        for connection in (0..10).flat_map(|_| 0..MANY - 1) {
            scene.consume(connection, true);
        }
        let last = MANY - 1;
        for connection in (0..2).flat_map(|_| 0..last) {
            scene.consume(connection, false);
            scene.consume(last, true);
        }
        assert!(scene.windows[last].1 > FIRST);
        scene.end();
    }
}
