//! The cost of this rank's own sends of medium length while messages arrive from others.
//!
//! A message in packets costs its sender a copy. With messages in one direction that copy overlaps
//! with the receiver's. With messages in both, a rank copies for its own sends what it could
//! receive meanwhile; and each rank is the sender of the other. So there the cost of a message in
//! packets is that of both copies. The receiver knows the price of its own copies, and takes it for
//! that of the sender's.
//!
//! *Turn*: consecutive sends, up to the next message that arrives. After its send in a ping-pong a
//! rank waits until the peer has received the last piece and sent its first: for two copies of a
//! piece. It finds messages at once where they flow in both directions.

use super::path_cost::TIMED_EACH;

/// The sends of a rank since messages last arrived, and the price of their copies.
#[derive(Default)]
pub(super) struct OwnSends {
    /// True if the last event was a send.
    is_sending: bool,
    turns: u32,
    /// Bytes of this turn (consecutive sends), and of earlier ones, for which no message has
    /// arrived.
    bytes: usize,
    /// The time of a copy in picoseconds per byte; 0 until one is timed.
    copy_ps: u64,
    /// The end of the last send of a timed turn (consecutive sends), in nanoseconds, and the length
    /// of its pieces.
    ended: Option<(u64, usize)>,
    /// True if messages were there after the last timed turn.
    is_both: bool,
}

impl OwnSends {
    /// Begins a send. The result is true if it is to be timed.
    pub(super) fn begins(&mut self) -> bool {
        if !std::mem::replace(&mut self.is_sending, true) {
            self.turns = self.turns.wrapping_add(1);
        }
        self.turns.is_multiple_of(TIMED_EACH)
    }

    /// Ends a send of `len` bytes in pieces of `piece` bytes. `timed`: its beginning and its end.
    /// `is_copied`: all of it has left in packets.
    pub(super) fn ends(
        &mut self,
        (len, piece): (usize, usize),
        timed: Option<(u64, u64)>,
        is_copied: bool,
    ) {
        self.bytes = self.bytes.saturating_add(len);
        if let Some((begun, end)) = timed {
            self.ended = Some((end, piece));
            if is_copied {
                let ps = end.saturating_sub(begun).saturating_mul(1000);
                self.copy_ps = ps / len.max(1) as u64;
            }
        }
    }

    /// The estimated time of a copy of `bytes` bytes, in nanoseconds.
    fn price(&self, bytes: usize) -> u64 {
        (bytes as u64).saturating_mul(self.copy_ps) / 1000
    }

    /// The time of a copy of `paired` bytes for the other direction, in nanoseconds, while a
    /// message of `len` bytes in packets takes this rank a time. Until a copy has been timed, it
    /// costs as much as that of the receiver.
    pub(super) fn copy(&self, paired: usize, (len, time): (usize, u64)) -> u64 {
        match self.copy_ps {
            0 => (u128::from(time) * paired as u128 / len.max(1) as u128) as u64,
            _ => self.price(paired),
        }
    }

    /// Records the arrival of a message of `len` bytes; `now` reads the clock. `is_read_later`: a
    /// message of this rank waits to be read, so messages flow in both directions. Returns the
    /// number of bytes in the other direction that are copied for it.
    pub(super) fn arrives(
        &mut self,
        len: usize,
        is_read_later: bool,
        now: impl FnOnce() -> u64,
    ) -> usize {
        if std::mem::take(&mut self.is_sending) {
            let ended = self.ended.take();
            if is_read_later {
                self.is_both = true;
            } else if let Some((ended, piece)) = ended {
                let waited = now().saturating_sub(ended);
                self.is_both = waited < self.price(piece);
            }
        }
        let paired = self.bytes.min(len);
        self.bytes -= paired;
        match self.is_both {
            true => paired,
            false => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: usize = 64_000;
    const PIECE: usize = LEN / 4;
    /// The time of a copy of `LEN` bytes.
    const COPY: u64 = 6_400;

    /// The price of the copy for the last message of many turns: `sends` sends, a wait, and as many
    /// arrivals.
    fn last_price(sends: usize, wait: u64) -> u64 {
        let (mut own, mut now, mut price) = (OwnSends::default(), 0, 0);
        for _ in 0..2 * TIMED_EACH {
            for _ in 0..sends {
                let begun = now;
                let is_timed = own.begins();
                now += COPY;
                own.ends((LEN, PIECE), is_timed.then_some((begun, now)), true);
            }
            now += wait;
            for _ in 0..sends {
                let paired = own.arrives(LEN, false, || now);
                price = own.copy(paired, (LEN, 1));
            }
        }
        price
    }

    #[test]
    fn messages_in_both_directions_cost_a_copy_more() {
        for sends in [1, 16] {
            assert_eq!(last_price(sends, 100), COPY);
            assert_eq!(last_price(sends, COPY / 2), 0);
        }
    }

    #[test]
    fn messages_in_one_direction_do_not() {
        let mut own = OwnSends::default();
        assert_eq!(own.arrives(LEN, false, || 7), 0);
        own.is_both = true;
        own.ends((LEN, PIECE), Some((0, COPY)), true);
        own.is_sending = false;
        let paired = [(); 2].map(|()| own.arrives(LEN, false, || 7));
        assert_eq!(paired, [LEN, 0]);
        assert_eq!(own.copy(LEN, (LEN, 1)), COPY);
    }

    #[test]
    fn messages_that_wait_to_be_read_are_in_the_other_direction() {
        let mut own = OwnSends::default();
        own.begins();
        own.ends((LEN, PIECE), None, false);
        assert_eq!(own.arrives(LEN, true, || 7), LEN);
        // No copy has been timed.
        assert_eq!(own.copy(LEN / 2, (LEN, COPY)), COPY / 2);
    }
}
