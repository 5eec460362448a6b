//! How many messages may be on their way to a rank: so many as it has granted, so none ever meets a queue without a
//! receive, also where nobody looks at it for seconds.
//!
//! A grant is a number: up to which message of this connection the peer may send. It travels in all packets of the
//! other way, and where none goes, in a message of its own, an empty one, which takes a receive like any other.
//!
//! What must always hold, at the receiver:
//! - a grant ends at most `size` messages after the last one that has been taken, and there are `size` receives for it;
//! - at most one empty message is under way, and there is one more receive for it: the next goes only once the peer has
//!   sent a message that it could not know to be allowed before the last, so that has been heard and its receive is there
//!   again. Nothing comes to a stand by that: a peer that has sent all it may has shown that it heard.

/// Messages under way from one peer, at most: others need buffers too.
pub(super) const MOST: u32 = 8;
/// Receives for empty messages.
pub(super) const EMPTY: usize = 1;

/// What a rank has granted to a peer.
#[derive(Debug)]
pub(super) struct Window {
    pub size: u32,
    /// The peer may send up to here.
    granted: u64,
    /// The same, as it has been told.
    told: u64,
    /// What it had been told before the empty message that it may not have heard.
    under_way: Option<u64>,
    /// It stands among those that may be owed a message.
    pub listed: bool,
}

impl Window {
    /// What the peer is told with the hello.
    pub fn new(size: u32) -> Window {
        Window {
            size,
            granted: size.into(),
            told: size.into(),
            under_way: None,
            listed: false,
        }
    }

    pub fn granted(&self) -> u64 {
        self.granted
    }

    /// Message `taken` has been taken and its receive is there again. The window has the size that it is to have.
    pub fn taken(&mut self, taken: u64) {
        self.granted = self.granted.max(taken + u64::from(self.size));
        if self.under_way.is_some_and(|before| taken > before) {
            self.under_way = None;
        }
    }

    /// What a packet of the other way says.
    pub fn tell(&mut self) -> u32 {
        self.told = self.granted;
        self.granted as u32
    }

    /// The peer should be told, if need be by an empty message.
    pub fn owes(&self) -> bool {
        self.under_way.is_none() && (self.granted - self.told) * 2 >= u64::from(self.size)
    }

    /// What an empty message says.
    pub fn tell_alone(&mut self) -> u32 {
        self.under_way = Some(self.told);
        self.tell()
    }
}

/// Up to which message this rank may send, as a peer says by the lower half of the number. None: it cannot say that.
pub(super) fn heard(granted: u64, last: u64, lower: u32) -> Option<u64> {
    let ahead = lower.wrapping_sub(granted as u32) as i32;
    let now = granted.checked_add_signed(ahead.into())?;
    (now <= last + u64::from(MOST)).then_some(now.max(granted))
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// A receiver that now and then looks, takes or talks by itself, and a sender that sends all it may.
    #[test]
    fn nothing_meets_a_queue_without_a_receive_and_nothing_stands_still() {
        let mut random = 1u64;
        let mut below = |of: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005) | 1;
            (random >> 33) % of
        };
        for size in 1..=MOST {
            let mut window = Window::new(size);
            let (mut may, mut sent, mut taken) = (u64::from(size), 0, 0);
            // What is on its way back: what it says, and whether it is an empty message.
            let mut back: VecDeque<(u32, bool)> = VecDeque::new();
            for _ in 0..20_000 {
                match below(5) {
                    0 if sent < may => sent += 1,
                    1 if taken < sent => {
                        taken += 1;
                        // Windows change while they are in use.
                        window.size = (window.size + below(2) as u32).min(size);
                        if below(4) == 0 && window.size > 1 {
                            window.size -= 1;
                        }
                        window.taken(taken);
                    }
                    2 if window.owes() => back.push_back((window.tell_alone(), true)),
                    3 if below(9) == 0 => back.push_back((window.tell(), false)),
                    _ => {
                        if let Some((says, _)) = back.pop_front() {
                            may = heard(may, sent, says).unwrap();
                        }
                    }
                }
                assert!(
                    sent - taken <= u64::from(size) && window.granted() <= taken + u64::from(size)
                );
                assert!(back.iter().filter(|(_, empty)| *empty).count() <= EMPTY);
                let moves = sent < may || taken < sent || window.owes() || !back.is_empty();
                assert!(moves, "{window:?}");
            }
            assert!(taken > 1000, "{taken}");
        }
    }

    #[test]
    fn what_a_peer_cannot_grant_is_not_believed() {
        assert_eq!(heard(5, 3, 4), Some(5), "old news");
        assert_eq!(heard(5, 3, 3 + MOST), Some(u64::from(3 + MOST)));
        assert_eq!(heard(5, 3, 4 + MOST), None);
        assert_eq!(heard(2, 2, u32::MAX), None);
        let later = u64::from(u32::MAX);
        assert_eq!(heard(later, later, 3), Some(later + 4));
    }
}
