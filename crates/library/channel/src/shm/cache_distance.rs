//! The cache distance of two ranks: near if their cores share a cache, which is then the fastest
//! path.
//!
//! A machine has near and far pairs of cores, and the virtual cores of a virtual machine migrate.
//! So a sender measures the distance repeatedly: it times the read of a cache line that the peer
//! has just written, and that is therefore in the peer's cache. A line written long ago would be
//! slow at any distance. For bodies the line holds the tail of their ring, which the peer writes
//! every few packets; for long messages it holds the word by which the peer has just opened a
//! cooperative copy.

use datatype::double::{Primitive, spend};

use crate::BodyStores;

/// Shortest body that counts towards the next measurement, in bytes.
pub(crate) const ASKED: usize = 1 << 10;
/// Number of bodies of [`ASKED`] bytes or more from one measurement to the next.
const BETWEEN: u32 = 64;
/// Number of bodies of [`ASKED`] bytes or more until the next measurement, if the peer had not
/// written the line, or if the result contradicts the assumed distance.
const AGAIN: u32 = 8;
/// Number of long messages from one measurement to the next.
const BETWEEN_LONG: u32 = 4;
/// A read of a line that takes this long or longer is from a far core, including the time to read
/// the clock. Near lines take 20 to 80 nanoseconds, far ones 120 or more, except prefetched ones.
const FAR_NS: u64 = 100;
/// Number of consecutive measurements with the other result (near or far) after which the assumed
/// distance changes.
const SURE: u32 = 3;

/// The cache distance of a peer, as a sender knows it.
pub(crate) struct CacheDistance {
    near: bool,
    /// Smallest body to write to a far peer with non-temporal stores, in bytes.
    limit: usize,
    bodies_until_measured: u32,
    long_until_measured: u32,
    /// The number of consecutive measurements that contradict `near`.
    otherwise: u32,
}

impl CacheDistance {
    /// The distance `near`, assumed before the first measurement. `limit`: the shortest body that
    /// is written to a far peer with non-temporal stores, in bytes.
    pub(crate) fn new(near: bool, limit: usize) -> CacheDistance {
        CacheDistance {
            near,
            // An odd number stands for a near peer.
            limit: limit & !1,
            bodies_until_measured: AGAIN,
            long_until_measured: BETWEEN_LONG,
            otherwise: 0,
        }
    }

    pub(crate) fn is_near(&self) -> bool {
        self.near
    }

    /// The kind of stores for bodies to the peer.
    #[inline]
    pub(crate) fn stores(&self) -> BodyStores {
        BodyStores::non_temporal_from(self.non_temporal_from())
    }

    /// Shortest body to write with non-temporal stores, in bytes.
    #[inline]
    pub(crate) fn non_temporal_from(&self) -> usize {
        match self.near {
            true => usize::MAX,
            false => self.limit,
        }
    }

    /// Counts a body that is about to be sent, and measures if a measurement is due. `read` reads
    /// the line and returns true if the peer has written it since the last call.
    #[inline]
    pub(crate) fn check(&mut self, read: impl FnOnce() -> bool) {
        self.bodies_until_measured -= 1;
        if self.bodies_until_measured == 0 {
            let is_known = self.measure(read) && self.otherwise == 0;
            self.bodies_until_measured = if is_known { BETWEEN } else { AGAIN };
        }
    }

    /// Counts a long message that the peer has just requested, and measures if a measurement is
    /// due. `read`: see [`check`](CacheDistance::check).
    #[inline]
    pub(crate) fn check_for_long(&mut self, read: impl FnOnce() -> bool) {
        self.long_until_measured -= 1;
        if self.long_until_measured == 0 {
            self.measure(read);
            self.long_until_measured = BETWEEN_LONG;
        }
    }

    /// Times `read`, and returns its result: true if the peer had written the line.
    #[cold]
    fn measure(&mut self, read: impl FnOnce() -> bool) -> bool {
        let begin = crate::now();
        let was_theirs = read();
        if was_theirs {
            spend(Primitive::Line);
        }
        let near = crate::now().saturating_sub(begin) < FAR_NS;
        if was_theirs {
            self.otherwise = match near == self.near {
                true => 0,
                false => self.otherwise + 1,
            };
            if self.otherwise == SURE {
                (self.near, self.otherwise) = (near, 0);
            }
        }
        was_theirs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 1024;

    #[test]
    fn a_peer_is_as_near_as_its_line_was_the_last_times() {
        let mut reach = CacheDistance::new(true, LIMIT);
        let slowly = || {
            std::thread::sleep(std::time::Duration::from_nanos(2 * FAR_NS));
            true
        };
        // A result that contradicts is repeated soon.
        for _ in 0..SURE * AGAIN {
            assert_eq!(reach.non_temporal_from(), usize::MAX);
            reach.check(slowly);
        }
        assert_eq!(reach.non_temporal_from(), LIMIT);
        for _ in 0..SURE * BETWEEN_LONG {
            assert!(!reach.is_near());
            reach.check_for_long(|| true);
        }
        assert!(reach.is_near());
    }

    #[test]
    fn a_line_that_the_peer_has_not_written_says_nothing() {
        for near in [false, true] {
            let mut reach = CacheDistance::new(near, LIMIT);
            let mut reads = 0;
            for _ in 0..2 * AGAIN {
                reach.check(|| {
                    reads += 1;
                    false
                });
            }
            assert_eq!((reach.is_near(), reads), (near, 2));
        }
    }
}
