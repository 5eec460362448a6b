//! The growth of the used part of a ring's wide arena.
//!
//! A page costs 2 to 5 µs where it is touched first, and lines in a second-level cache are slow to
//! change hands. So a pair begins with little memory, and takes more only where that pays: at once
//! where a stream keeps many packets in flight; after some laps of pieces while so few of them fit
//! that sender and receiver wait for each other; otherwise once so many long bodies have walked
//! through the used part that their gain has the price of the pages.

/// Bodies shorter than this, in bytes, gain nothing from lines outside of second-level caches.
const LONG: usize = 4 << 10;
/// Bodies from this length on, in bytes, gain most.
const PIECE: usize = 16 << 10;
/// Laps of a stream of long bodies through the used part before it grows.
const LAPS: u8 = 6;
/// The same for pieces.
const PIECE_LAPS: u8 = 3;
/// Packets in flight at the end of a lap of a stream. A message in pieces in each direction has
/// fewer.
const STREAM: u32 = 12;
/// A used part in which pieces never wait for room, in bytes.
const ROOMY: usize = 256 << 10;
/// Laps of pieces through less than that before it grows: a wait costs a microsecond or more, and
/// the pages of a lap some tens.
const NARROW_LAPS: usize = 16;
/// Bytes of pieces without a stream before the used part grows: a piece saves about 0.03 ns a byte,
/// and the pages of the whole arena cost about a millisecond at each end.
const MATURE: usize = 48 << 20;

/// The laps of a ring's wide arena, counted towards its growth.
#[derive(Default)]
pub(crate) struct Growth {
    /// Laps of the stream since the last growth.
    laps: u8,
    /// Laps since the last growth that ended with a piece.
    piece_laps: usize,
    /// Bytes of all laps that ended with a piece.
    moved: usize,
}

impl Growth {
    /// A lap through `used` bytes has ended with a body of `len` bytes, while `in_flight` packets
    /// were not known to be taken. True: the used part shall grow.
    pub(crate) fn end_lap(&mut self, used: usize, len: usize, in_flight: u32) -> bool {
        if len < LONG {
            return false;
        }
        let laps = if len < PIECE { LAPS } else { PIECE_LAPS };
        match in_flight >= STREAM {
            true => self.laps = (self.laps + 1).min(LAPS),
            false => self.laps = 0,
        }
        if len >= PIECE {
            self.piece_laps += 1;
            self.moved = self.moved.saturating_add(used);
        }
        let is_narrow = used < ROOMY && self.piece_laps >= NARROW_LAPS;
        let grows = self.laps >= laps || len >= PIECE && (is_narrow || self.moved >= MATURE);
        if grows {
            (self.laps, self.piece_laps) = (0, 0);
        }
        grows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Laps until the used part grows, up to 10,000.
    fn laps(used: usize, len: usize, in_flight: u32) -> usize {
        let mut growth = Growth::default();
        (1..10_000)
            .find(|_| growth.end_lap(used, len, in_flight))
            .unwrap_or(10_000)
    }

    #[test]
    fn a_stream_grows_after_some_laps() {
        assert_eq!(laps(32 << 10, LONG, STREAM), usize::from(LAPS));
        assert_eq!(laps(32 << 10, PIECE, STREAM), usize::from(PIECE_LAPS));
        assert_eq!(laps(32 << 10, LONG - 1, STREAM), 10_000);
    }

    #[test]
    fn messages_in_turn_grow_once_the_pages_have_paid() {
        assert_eq!(laps(ROOMY, PIECE, STREAM - 1), MATURE / ROOMY);
        assert_eq!(laps(ROOMY, PIECE - 1, STREAM - 1), 10_000);
    }

    #[test]
    fn pieces_that_wait_for_room_get_it_soon() {
        assert_eq!(laps(ROOMY / 2, PIECE, 1), NARROW_LAPS);
        assert_eq!(laps(ROOMY / 2, PIECE - 1, 1), 10_000);
    }

    #[test]
    fn a_pause_ends_a_stream() {
        let mut growth = Growth::default();
        for _ in 0..100 {
            for _ in 1..LAPS {
                assert!(!growth.end_lap(32 << 10, LONG, STREAM));
            }
            assert!(!growth.end_lap(32 << 10, LONG, 1));
        }
    }

    #[test]
    fn a_mature_pair_grows_with_every_lap() {
        let mut growth = Growth::default();
        while !growth.end_lap(ROOMY, PIECE, 1) {}
        assert!(growth.end_lap(2 * ROOMY, PIECE, 1));
    }
}
