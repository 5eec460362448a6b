//! The cache distance of two ranks: near if their cores share a cache, through which bytes go best.
//!
//! A machine has near and far pairs of cores, and the cores of a virtual machine move. So a sender
//! measures the distance now and then: it times the read of a line that the peer has just written,
//! and that is therefore in the peer's cache. A line written long ago would be slow anyway. With
//! bodies, the line is the tail of their ring, which the peer writes every few packets; with long
//! messages, the word by which the peer has just opened a cooperative copy.

use std::time::{Duration, Instant};

/// Smallest body that triggers measurements, in bytes.
pub(crate) const ASKED: usize = 1 << 10;
/// Such bodies between two measurements.
const BETWEEN: u32 = 64;
/// Such bodies before the next attempt, if the peer had not written the line.
const AGAIN: u32 = 8;
/// Long messages between two measurements.
const BETWEEN_LONG: u32 = 4;
/// Longest read of a line from a near core, the reading of the clock included. Near lines take 20
/// to 80 nanoseconds, far ones 120 or more, except where they were prefetched.
const FAR: Duration = Duration::from_nanos(100);
/// Measurements in a row that must agree before the distance changes.
const SURE: u32 = 3;

/// The cache distance of a peer, as a sender knows it.
pub(crate) struct CacheDistance {
    near: bool,
    /// Smallest body to write to a far peer with non-temporal stores, in bytes.
    limit: usize,
    bodies_until_measured: u32,
    long_until_measured: u32,
    /// Measurements in a row that disagree.
    otherwise: u32,
}

impl CacheDistance {
    /// The distance that is assumed before the first measurement.
    pub(crate) fn new(near: bool, limit: usize) -> CacheDistance {
        CacheDistance {
            near,
            limit,
            bodies_until_measured: BETWEEN,
            long_until_measured: BETWEEN_LONG,
            otherwise: 0,
        }
    }

    pub(crate) fn is_near(&self) -> bool {
        self.near
    }

    /// Smallest body to write with non-temporal stores, in bytes.
    #[inline]
    pub(crate) fn non_temporal_from(&self) -> usize {
        match self.near {
            true => usize::MAX,
            false => self.limit,
        }
    }

    /// Measures now and then when a body is about to be sent. `read` reads the line, and says
    /// whether the peer has written it since the last time.
    #[inline]
    pub(crate) fn look(&mut self, read: impl FnOnce() -> bool) {
        self.bodies_until_measured -= 1;
        if self.bodies_until_measured == 0 {
            self.bodies_until_measured = match self.measure(read) {
                true => BETWEEN,
                false => AGAIN,
            };
        }
    }

    /// Measures now and then when the peer has just asked for a long message. `read`: see
    /// [`look`](CacheDistance::look).
    #[inline]
    pub(crate) fn look_for_long(&mut self, read: impl FnOnce() -> bool) {
        self.long_until_measured -= 1;
        if self.long_until_measured == 0 {
            self.measure(read);
            self.long_until_measured = BETWEEN_LONG;
        }
    }

    /// Times `read`. True if the peer had written the line.
    #[cold]
    fn measure(&mut self, read: impl FnOnce() -> bool) -> bool {
        let begin = Instant::now();
        let was_theirs = read();
        let near = begin.elapsed() < FAR;
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
            std::thread::sleep(2 * FAR);
            true
        };
        for _ in 0..SURE * BETWEEN {
            assert_eq!(reach.non_temporal_from(), usize::MAX);
            reach.look(slowly);
        }
        assert_eq!(reach.non_temporal_from(), LIMIT);
        for _ in 0..SURE * BETWEEN_LONG {
            assert!(!reach.is_near());
            reach.look_for_long(|| true);
        }
        assert!(reach.is_near());
    }

    #[test]
    fn a_line_that_the_peer_has_not_written_says_nothing() {
        for near in [false, true] {
            let mut reach = CacheDistance::new(near, LIMIT);
            let mut reads = 0;
            for _ in 0..BETWEEN + AGAIN {
                reach.look(|| {
                    reads += 1;
                    false
                });
            }
            assert_eq!((reach.is_near(), reads), (near, 2));
        }
    }
}
