//! How near the cores of two ranks are to each other: whether they share a cache, through which bytes go best.
//!
//! A machine has pairs of cores that are near and pairs that are far, and the cores of a virtual machine move. So whoever
//! sends finds it out while it does: now and then it reads a line that the peer has written since the last time, which is
//! therefore in the peer's cache, and takes the time. The line must have been written lately: one that has left the peer's
//! cache comes slowly from wherever it is. So with bodies it is the tail of their ring, which the peer writes every few of
//! them, and with long messages the word by which the peer has just asked for help.

use std::time::{Duration, Instant};

/// Bodies from this size on are worth asking.
pub(crate) const ASKED: usize = 1 << 10;
/// Such bodies between two measurements.
const BETWEEN: u32 = 64;
/// And before the next attempt, if the line was not the peer's.
const AGAIN: u32 = 8;
/// Long messages between two measurements.
const BETWEEN_LONG: u32 = 4;
/// A line that takes longer, the reading of the clock included, comes from a core that is far. From near ones it takes 20 to
/// 80 nanoseconds, from others 120 or more, except where it has been fetched beforehand.
const FAR: Duration = Duration::from_nanos(100);
/// So many measurements in a row must say so before it is believed that this has changed.
const SURE: u32 = 3;

pub(crate) struct CacheDistance {
    near: bool,
    /// From what size on bodies go past the cache if the peer is far.
    limit: usize,
    bodies_until_measured: u32,
    long_until_measured: u32,
    /// Measurements in a row that say otherwise.
    otherwise: u32,
}

impl CacheDistance {
    /// What the two begin with.
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

    /// From what size on bodies go past the cache.
    #[inline]
    pub(crate) fn non_temporal_from(&self) -> usize {
        match self.near {
            true => usize::MAX,
            false => self.limit,
        }
    }

    /// A body is to be sent: is it time to measure? `read` reads the line, and says whether the peer has written it since.
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

    /// The same for a long message that the peer has just asked for.
    #[inline]
    pub(crate) fn look_for_long(&mut self, read: impl FnOnce() -> bool) {
        self.long_until_measured -= 1;
        if self.long_until_measured == 0 {
            self.measure(read);
            self.long_until_measured = BETWEEN_LONG;
        }
    }

    /// True if the line was the peer's.
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
