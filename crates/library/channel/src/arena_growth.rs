//! The decision when the sender of a shared-memory ring uses a larger part of the wide arena, the
//! ring's memory for long bodies.
//!
//! A page costs microseconds when it is touched first, and lines in the second-level cache of the
//! peer's core are slow to write to. So a pair begins with a small used part. It grows only where
//! that pays: after a few laps (passes of bodies through the used part) of a stream that keeps many
//! packets in flight; after more laps of pieces of messages, of which so few fit that sender and
//! receiver wait for each other. Only the whole arena exceeds the second-level caches, so all of it
//! is used once the writes have lost as much time to slow lines as the remaining pages will cost.
//!
//! Both times are measured: the first body of each lap is timed. Its loss is its time in excess of
//! a write to lines of a third-level cache, which is estimated as a multiple of a copy within this
//! core's own caches. The first body in new memory shows the price of a page. So the loss before
//! the step is about as large as the price of the step, whatever the machine, and ranks whose cores
//! share their caches keep a small arena.

/// Bodies shorter than this, in bytes, gain nothing from lines outside of second-level caches.
const LONG: usize = 4 << 10;
/// Bodies of this length or longer, in bytes, gain most: they are pieces of long messages.
const PIECE: usize = 16 << 10;
/// Number of laps of a stream of long bodies through the used part of the arena after which that
/// part doubles.
const LAPS: u8 = 6;
/// Number of laps of a stream of pieces ([`PIECE`]) through the used part of the arena after which
/// that part doubles.
const PIECE_LAPS: u8 = 3;
/// Least number of packets in flight at the end of a lap of a stream. A message in pieces in each
/// direction has fewer.
const STREAM: u32 = 12;
/// Least used part of the arena, in bytes, in which pieces never wait for free space.
const ROOMY: usize = 256 << 10;
/// Number of laps of pieces through a used part shorter than [`ROOMY`] after which it doubles: a
/// wait costs a microsecond or more, and the pages of a lap some tens.
const NARROW_LAPS: usize = 16;
const PAGE: usize = 4 << 10;
/// Number of bytes of long bodies after which an arena that has not grown is considered settled.
const SETTLED: usize = 64 << 20;
/// The time of a write to lines of a third-level cache, divided by that of a copy within a core's
/// own caches.
const UNSHARED: u64 = 3;
/// The price of a page (the time of its first use) before one has been measured, in nanoseconds.
const USUAL_PRICE: u64 = 2_000;
/// The least price of a page, in nanoseconds; a lower measured price is raised to it.
const LEAST_PRICE: u64 = 100;
/// The greatest measured price of a page, in nanoseconds. A greater one is ignored: the thread was
/// interrupted.
const MOST_PRICE: u64 = 20_000;
/// The greatest measured loss of a byte, in picoseconds. A greater one is ignored: the thread was
/// interrupted.
const MOST_LOSS: u64 = 1_000;

/// The result of a lap: how the used part of a ring's wide arena changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Stay,
    /// Double the used part of the arena.
    Double,
    /// Use the whole arena from now on.
    All,
}

/// The measurements of the laps of a ring's wide arena, from which its growth is decided.
pub(crate) struct Growth {
    /// The number of consecutive laps of a stream since the last growth of the arena.
    laps: u8,
    /// Laps since the last growth whose last body was a piece.
    piece_laps: usize,
    /// The time that writes have lost to slow lines, in nanoseconds.
    lost: u64,
    /// The price of a page (the time of its first use), in nanoseconds.
    price: u64,
    /// True if the next timed body goes to new pages.
    is_fresh: bool,
    /// Bytes of all laps that ended with a long body: in total, and since the last growth.
    walked: [usize; 2],
}

impl Default for Growth {
    fn default() -> Growth {
        Growth {
            laps: 0,
            piece_laps: 0,
            lost: 0,
            price: USUAL_PRICE,
            is_fresh: false,
            walked: [0; 2],
        }
    }
}

impl Growth {
    /// Records the end of a lap through `used` bytes, whose last body has `len` bytes, and returns
    /// the next step. `in_flight` packets are not known to be consumed; `unused` bytes of the arena
    /// are not in use.
    pub(crate) fn end_lap(
        &mut self,
        used: usize,
        unused: usize,
        len: usize,
        in_flight: u32,
    ) -> Step {
        if len < LONG {
            return Step::Stay;
        }
        self.walked = self.walked.map(|walked| walked.saturating_add(used));
        let laps = if len < PIECE { LAPS } else { PIECE_LAPS };
        match in_flight >= STREAM {
            true => self.laps = (self.laps + 1).min(LAPS),
            false => self.laps = 0,
        }
        if len >= PIECE {
            self.piece_laps += 1;
        }
        let is_narrow = len >= PIECE && used < ROOMY && self.piece_laps >= NARROW_LAPS;
        if self.lost >= (unused / PAGE) as u64 * self.price {
            Step::All
        } else if self.laps >= laps || is_narrow {
            Step::Double
        } else {
            Step::Stay
        }
    }

    /// Records that the used part of the arena has grown.
    pub(crate) fn grown(&mut self) {
        (self.laps, self.piece_laps, self.walked[1]) = (0, 0, 0);
        self.is_fresh = true;
    }

    /// Records the first body of a lap through `used` bytes: the write of its `len` bytes took
    /// `took` nanoseconds, and a copy within the caches of this core would take `copy`.
    pub(crate) fn written(&mut self, used: usize, len: usize, took: u64, copy: u64) {
        let lost = took.saturating_sub(UNSHARED * copy);
        let pages = len.div_ceil(PAGE) as u64;
        if std::mem::take(&mut self.is_fresh) {
            if lost <= pages * MOST_PRICE {
                self.price = (lost / pages).max(LEAST_PRICE);
            }
        } else if lost * 1000 <= len as u64 * MOST_LOSS {
            self.lost += lost * (used / len.max(1)) as u64;
        }
    }

    /// True if an arena is as fast as it will become: all of it is in use and has been passed twice
    /// since, or a growth would not pay for the bytes that have been written. `unused` bytes are
    /// not in use yet.
    pub(crate) fn is_settled(&self, used: usize, unused: usize) -> bool {
        let [all, since] = self.walked;
        unused == 0 && since >= 2 * used || all >= SETTLED
    }

    /// True if a first body of `len` bytes is long enough to be timed.
    pub(crate) fn is_timed(len: usize) -> bool {
        len >= LONG
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: usize = 2 << 20;

    /// The time of a copy of `len` bytes within the caches of a core, in nanoseconds.
    fn copy(len: usize) -> u64 {
        len as u64 / 40
    }

    /// The number of laps until the used part grows, 10,000 if it does not, and the step. Writes
    /// take `slower` times as long as a copy.
    fn laps_at(slower: u64, used: usize, len: usize, in_flight: u32) -> (usize, Step) {
        let mut growth = Growth::default();
        let mut lap = || {
            growth.written(used, len, slower * copy(len), copy(len));
            growth.end_lap(used, WHOLE - used, len, in_flight)
        };
        let mut laps = (1..10_000).map(|lap_number| (lap_number, lap()));
        let step = laps.find(|(_, step)| *step != Step::Stay);
        step.unwrap_or((10_000, Step::Stay))
    }

    fn laps(used: usize, len: usize, in_flight: u32) -> usize {
        let (laps, step) = laps_at(UNSHARED, used, len, in_flight);
        assert_ne!(step, Step::All);
        laps
    }

    #[test]
    fn a_stream_grows_after_some_laps() {
        assert_eq!(laps(32 << 10, LONG, STREAM), usize::from(LAPS));
        assert_eq!(laps(32 << 10, PIECE, STREAM), usize::from(PIECE_LAPS));
        assert_eq!(laps(32 << 10, LONG - 1, STREAM), 10_000);
    }

    #[test]
    fn slow_writes_use_all_once_they_have_lost_the_price_of_the_pages() {
        let lost = 2 * copy(ROOMY);
        let price = ((WHOLE - ROOMY) / PAGE) as u64 * USUAL_PRICE;
        let expected = price.div_ceil(lost) as usize;
        for len in [LONG, PIECE] {
            let (laps, step) = laps_at(UNSHARED + 2, ROOMY, len, 1);
            assert!(
                laps.abs_diff(expected) <= expected / 50,
                "{laps} {expected}"
            );
            assert_eq!(step, Step::All);
        }
        assert_eq!(laps_at(UNSHARED + 2, ROOMY, LONG - 1, 1).0, 10_000);
    }

    #[test]
    fn writes_without_a_loss_never_grow() {
        assert_eq!(laps(ROOMY, PIECE, STREAM - 1), 10_000);
    }

    #[test]
    fn interruptions_are_no_losses() {
        assert_eq!(laps_at(1000, ROOMY, PIECE, 1), (10_000, Step::Stay));
    }

    #[test]
    fn pages_that_cost_more_must_pay_more() {
        let laps = |page: u64| {
            let mut growth = Growth::default();
            growth.grown();
            let pages = (PIECE / PAGE) as u64;
            growth.written(ROOMY, PIECE, pages * page, 0);
            let mut lap = || {
                growth.written(ROOMY, PIECE, (UNSHARED + 1) * copy(PIECE), copy(PIECE));
                growth.end_lap(ROOMY, WHOLE - ROOMY, PIECE, 1)
            };
            (1..10_000u32).find(|_| lap() == Step::All).unwrap()
        };
        assert!(laps(4000).abs_diff(4 * laps(1000)) <= 4);
        // A time that only an interruption explains is not a price.
        assert_eq!(laps(MOST_PRICE + 1), laps(USUAL_PRICE));
    }

    #[test]
    fn pieces_that_wait_for_room_get_it_soon() {
        assert_eq!(laps(ROOMY / 2, PIECE, 1), NARROW_LAPS);
        assert_eq!(laps(ROOMY / 2, PIECE - 1, 1), 10_000);
    }

    #[test]
    fn an_arena_is_settled_once_its_pages_are_known_or_do_not_pay() {
        let mut growth = Growth::default();
        assert!(!growth.is_settled(ROOMY, WHOLE - ROOMY));
        growth.grown();
        for _ in 0..2 {
            assert!(!growth.is_settled(WHOLE, 0));
            growth.end_lap(WHOLE, 0, PIECE, 1);
        }
        assert!(growth.is_settled(WHOLE, 0));
        let mut growth = Growth::default();
        for _ in 0..SETTLED / ROOMY {
            assert!(!growth.is_settled(ROOMY, WHOLE - ROOMY));
            growth.end_lap(ROOMY, WHOLE - ROOMY, PIECE, 1);
        }
        assert!(growth.is_settled(ROOMY, WHOLE - ROOMY));
    }

    #[test]
    fn a_pause_ends_a_stream() {
        let mut growth = Growth::default();
        for _ in 0..100 {
            for in_flight in (1..LAPS).map(|_| STREAM).chain([1]) {
                let step = growth.end_lap(32 << 10, WHOLE, LONG, in_flight);
                assert_eq!(step, Step::Stay);
            }
        }
    }
}
