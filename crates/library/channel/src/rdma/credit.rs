//! Credits: the messages that a peer without a ring may send. A rank grants no more messages than
//! it has posted receives for, so no message ever arrives at a queue without a receive, even while
//! the receiving rank computes for seconds.
//!
//! A peer whose message waited for credit says so in that message, and is granted more at a time if
//! there are receives for it (`pool`): with one message in flight, each message takes a round trip.
//!
//! A grant is a number: the last message of the connection that the peer may send. It travels in
//! every packet of the other direction. Where no packet leaves, it travels in a grant-only message,
//! which consumes a receive like any other.
//!
//! Invariants of the receiver:
//! - a grant ends at most `size` messages after the last one that was consumed, and `size` receives
//!   are posted for it;
//! - at most one grant-only message is in flight, and one extra receive is reserved for it. The
//!   next is sent only after the peer has used credit from it, which proves that it arrived and
//!   that its receive is posted again. No deadlock: a peer that has used all its credit has thereby
//!   shown that it received the last grant.

use super::fence::Fence;

pub(super) const GRANTS: &str = "it grants more messages than any rank may grant";

/// The most messages in flight from one peer: other peers need buffers too.
pub(super) const MOST: u32 = 16;
/// The number of receives for one peer's messages with a grant alone.
pub(super) const EMPTY: usize = 1;

/// The credits of one connection: the rights to send messages, in both directions.
#[derive(Debug)]
pub(super) struct Credits {
    /// The credits that this rank grants to the peer: its rights to send messages.
    pub window: Window,
    /// The number of the last message that the peer allows this rank to send.
    allowed: u64,
    /// The number of times that the peer has restarted its grants, as far as this rank has learned.
    restarts: u32,
    /// The number of the peer's last packet before its last restart: grants in packets up to it are
    /// void.
    stale: u64,
    /// True if a message has waited for credit, and the peer has not learned of that.
    waited: bool,
}

impl Credits {
    /// The credits of a connection whose peer has a first window of `size` messages, and which has
    /// granted nothing yet.
    pub(super) fn new(size: u32) -> Credits {
        Credits {
            window: Window::new(size),
            allowed: 0,
            restarts: 0,
            stale: 0,
            waited: false,
        }
    }

    /// The number of the last message that the peer allows this rank to send.
    pub(super) fn allowed(&self) -> u64 {
        self.allowed
    }

    /// Checks a grant of the peer for messages up to the one whose number has the lower half
    /// `lower`. `last` is the last message that this rank has sent. `None`: no correct peer grants
    /// that.
    pub(super) fn grant(&self, last: u64, lower: u32) -> Option<Grant> {
        allowed_now(self.allowed, last, lower).map(Grant)
    }

    /// Takes over the grants of a fence, with which the peer has given up a link, if the peer has
    /// restarted its grants since the last call. `last` is the last message that this rank has
    /// sent. False: no correct peer sends that fence.
    pub(super) fn restart(&mut self, last: u64, fence: &Fence) -> bool {
        let most = fence.received.saturating_add(MOST.into());
        let is_new = fence.restarts > self.restarts;
        let is_grant = (fence.received..=most).contains(&fence.granted);
        let possible = fence.received <= last && (!is_new || is_grant);
        if possible && is_new {
            self.allowed = fence.granted;
            self.restarts = fence.restarts;
            self.stale = fence.sent;
        }
        possible
    }

    /// True if the grant in the peer's packet `sequence` is void: the peer has restarted its grants
    /// since.
    pub(super) fn is_stale(&self, sequence: u64) -> bool {
        sequence <= self.stale
    }

    /// Records that a message could not be sent after message number `last`.
    pub(super) fn note_refusal(&mut self, last: u64) {
        self.waited |= last >= self.allowed;
    }

    /// True if a message has waited for credit since the last call. The next message says so to the
    /// peer, which then grants more.
    pub(super) fn take_waited(&mut self) -> bool {
        std::mem::take(&mut self.waited)
    }

    /// Allows this rank to send the messages that a grant permits.
    pub(super) fn accept(&mut self, grant: Grant) {
        self.allowed = grant.0;
    }
}

/// A grant of credits by the peer, after a check of its value.
#[derive(Debug)]
#[must_use]
pub(super) struct Grant(u64);

/// The credits that a rank grants to one peer: its rights to send messages.
#[derive(Debug)]
pub(super) struct Window {
    size: u32,
    /// The number of the last message that the peer may send.
    granted: u64,
    /// The number of the last message that the peer may send by the grants that were sent to it.
    told: u64,
    /// `told` as it was before the grant-only message that may still be in flight.
    in_flight: Option<u64>,
    /// True if the peer is on the list of peers that may be owed a message with a grant alone.
    pub listed: bool,
    /// The number of times that the counting of grants has begun anew.
    restarts: u32,
}

impl Window {
    /// A window of `size` messages, which the hello of the handshake grants.
    pub(super) fn new(size: u32) -> Window {
        Window {
            size,
            granted: size.into(),
            told: size.into(),
            in_flight: None,
            listed: false,
            restarts: 0,
        }
    }

    /// Restarts the grants after a link was given up: the messages up to `received` have arrived.
    /// From now on at most `size` may be in flight. Returns the number of the last message that the
    /// peer may send, which the fence reports.
    pub(super) fn restart(&mut self, received: u64, size: u32) -> u64 {
        self.size = size;
        self.granted = received + u64::from(size);
        self.told = self.granted;
        self.in_flight = None;
        self.restarts += 1;
        self.granted
    }

    /// The number of times that the counting of grants has begun anew.
    pub(super) fn restarts(&self) -> u32 {
        self.restarts
    }

    /// The number of messages of the peer that may be in flight.
    pub(super) fn size(&self) -> u32 {
        self.size
    }

    /// Changes the number of messages that may be in flight. Grants that were given stay.
    pub(super) fn resize(&mut self, size: u32) {
        self.size = size;
    }

    /// The number of the last message that the peer may send.
    pub(super) fn granted(&self) -> u64 {
        self.granted
    }

    /// Records that message number `consumed` has been consumed, after its receive was posted again
    /// and the window got its new size.
    pub(super) fn consumed(&mut self, consumed: u64) {
        self.granted = self.granted.max(consumed + u64::from(self.size));
        if self.in_flight.is_some_and(|before| consumed > before) {
            self.in_flight = None;
        }
    }

    /// Returns the grant for a packet of the other direction, and records that it is sent.
    pub(super) fn report(&mut self) -> u32 {
        self.told = self.granted;
        self.granted as u32
    }

    /// True if the peer should learn of its grants soon, by a grant-only message if no packet goes
    /// to it.
    pub(super) fn owes(&self) -> bool {
        self.in_flight.is_none() && (self.granted - self.told) * 2 >= u64::from(self.size)
    }

    /// Returns the grant for a grant-only message, and records that the message is in flight.
    pub(super) fn report_alone(&mut self) -> u32 {
        self.in_flight = Some(self.told);
        self.report()
    }
}

/// The number of the last message that this rank may send after it has received a grant with the
/// lower half `lower`. Before, it was `allowed`; `last` is the last message that was sent. `None`:
/// no correct peer grants that.
fn allowed_now(allowed: u64, last: u64, lower: u32) -> Option<u64> {
    let ahead = lower.wrapping_sub(allowed as u32) as i32;
    let now = allowed.checked_add_signed(ahead.into())?;
    (now <= last + u64::from(MOST)).then_some(now.max(allowed))
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// A receiver that consumes and grants at random, and a sender that sends all it may.
    #[test]
    fn nothing_meets_a_queue_without_a_receive_and_nothing_stands_still() {
        let mut random = 1u64;
        let mut below = |of: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005) | 1;
            (random >> 33) % of
        };
        for size in 1..=MOST {
            let mut window = Window::new(size);
            let (mut may, mut sent, mut consumed) = (u64::from(size), 0, 0);
            // Grants in flight, and whether each is a grant-only message.
            let mut back: VecDeque<(u32, bool)> = VecDeque::new();
            for _ in 0..20_000 {
                match below(5) {
                    0 if sent < may => sent += 1,
                    1 if consumed < sent => {
                        consumed += 1;
                        // Windows change while they are in use.
                        window.resize((window.size() + below(2) as u32).min(size));
                        if below(4) == 0 && window.size() > 1 {
                            window.resize(window.size() - 1);
                        }
                        window.consumed(consumed);
                    }
                    2 if window.owes() => back.push_back((window.report_alone(), true)),
                    3 if below(9) == 0 => back.push_back((window.report(), false)),
                    _ => {
                        if let Some((says, _)) = back.pop_front() {
                            may = allowed_now(may, sent, says).unwrap();
                        }
                    }
                }
                assert!(
                    sent - consumed <= u64::from(size)
                        && window.granted() <= consumed + u64::from(size)
                );
                assert!(back.iter().filter(|(_, empty)| *empty).count() <= EMPTY);
                let moves = sent < may || consumed < sent || window.owes() || !back.is_empty();
                assert!(moves, "{window:?}");
            }
            assert!(consumed > 1000, "{consumed}");
        }
    }

    #[test]
    fn what_a_peer_cannot_grant_is_not_believed() {
        assert_eq!(allowed_now(5, 3, 4), Some(5), "an old grant");
        assert_eq!(allowed_now(5, 3, 3 + MOST), Some(u64::from(3 + MOST)));
        assert_eq!(allowed_now(5, 3, 4 + MOST), None);
        assert_eq!(allowed_now(2, 2, u32::MAX), None);
        let later = u64::from(u32::MAX);
        assert_eq!(allowed_now(later, later, 3), Some(later + 4));
    }
}
