//! How near the cores of two ranks are to each other: whether they share a cache, through which bytes go best.
//!
//! A machine has pairs of cores that are near and pairs that are far, and the cores of a virtual machine move. So whoever
//! sends finds it out while it does: now and then a body is written through the cache, and timed. Where the lines have to
//! come from a core that is far, that takes many times as long.

use std::time::{Duration, Instant};

use crate::Put;

/// Bodies from this size on take long enough to be timed.
pub const TIMED: usize = 2 << 10;
/// Bodies between two that are timed.
const BETWEEN: u32 = 64;
/// Long messages between two that are moved as among cores that are near, though they seem far.
const BETWEEN_LONG: u32 = 16;
/// Whoever takes longer for a byte, in picoseconds, is far: near cores take 20 to 40, others 120 to 200.
const FAR: u128 = 100;

pub struct Reach {
    near: bool,
    /// From what size on bodies go past the cache if the peer is far.
    limit: usize,
    until_timed: u32,
    until_long: u32,
}

impl Reach {
    /// What the two begin with.
    pub fn new(near: bool, limit: usize) -> Reach {
        Reach {
            near,
            limit,
            until_timed: 0,
            until_long: BETWEEN_LONG,
        }
    }

    /// From what size on the next body goes past the cache.
    #[inline]
    pub fn past_cache(&self, len: usize) -> usize {
        match self.near || len >= TIMED && self.until_timed == 0 {
            true => usize::MAX,
            false => self.limit,
        }
    }

    /// Is the next long message moved as among cores that are near?
    pub fn offers_near(&mut self) -> bool {
        self.until_long = self.until_long.checked_sub(1).unwrap_or(BETWEEN_LONG);
        if !self.near && self.until_long == 0 {
            self.until_timed = 0;
            return true;
        }
        self.near
    }

    /// Puts a body of [`TIMED`] bytes or more.
    #[inline(never)]
    pub fn put(&mut self, len: usize, put: impl FnOnce() -> Put) -> Put {
        if self.until_timed > 0 {
            self.until_timed -= 1;
            return put();
        }
        let begin = Instant::now();
        let put = put();
        if put != Put::Full {
            self.judge(len, begin.elapsed());
        }
        put
    }

    fn judge(&mut self, len: usize, took: Duration) {
        self.near = took.as_nanos() * 1000 < FAR * len as u128;
        self.until_timed = BETWEEN;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 1024;

    #[test]
    fn a_peer_is_as_near_as_the_last_body_that_was_timed() {
        let mut reach = Reach::new(true, LIMIT);
        reach.judge(16 << 10, Duration::from_nanos(3000));
        assert_eq!(reach.past_cache(16 << 10), LIMIT);
        let mut through = 0;
        for _ in 0..=BETWEEN {
            through += usize::from(reach.past_cache(TIMED) == usize::MAX);
            if reach.until_timed == 0 {
                reach.judge(16 << 10, Duration::from_nanos(400));
            } else {
                let put = reach.put(TIMED, || Put::Taken);
                assert_eq!(put, Put::Taken);
            }
        }
        assert_eq!(through, 1, "one body goes through the cache to be timed");
        assert_eq!(reach.past_cache(TIMED), usize::MAX);
    }

    #[test]
    fn a_body_that_found_no_room_is_no_measure() {
        let mut reach = Reach::new(false, LIMIT);
        let put = reach.put(TIMED, || {
            std::thread::sleep(Duration::from_millis(1));
            Put::Full
        });
        assert_eq!((put, reach.until_timed, reach.near), (Put::Full, 0, false));
    }

    #[test]
    fn long_messages_are_tried_now_and_then_though_the_peer_is_far() {
        let mut reach = Reach::new(false, LIMIT);
        let tried = (0..4 * (BETWEEN_LONG + 1)).filter(|_| reach.offers_near());
        assert_eq!(tried.count(), 4);
    }
}
