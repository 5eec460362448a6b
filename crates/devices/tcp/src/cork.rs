//! Frames that leave together. Handing a frame to the kernel costs some microseconds, far more than
//! making it, so of the requests posted to a queue pair between two polls only the first ones leave
//! at once. Those behind them are *corked*: they wait for the next poll, for the owner's `uncork`,
//! or until there are enough of them. Between `cork` and `uncork` every frame is corked.
//!
//! Invariant: a lone request leaves at once; none waits longer than until the next poll.

/// The number of frames of a queue pair that leave at once between two polls.
const AT_ONCE: u32 = 2;
/// The number of corked bytes of a queue pair from which on they leave at once: half of the most
/// bytes that one system call hands to the kernel.
const MOST_CORKED: usize = 64 << 10;

/// The frames of a queue pair that wait for those behind them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cork {
    /// The number of the device's poll from which on requests are counted.
    since: u32,
    /// The number of requests since the poll `since`.
    frames: u32,
    /// The number of corked bytes.
    bytes: usize,
}

impl Cork {
    /// Counts a request that is posted after poll number `poll`. True: it is to be corked.
    #[inline]
    pub(super) fn joins(&mut self, poll: u32) -> bool {
        if self.since != poll {
            (self.since, self.frames) = (poll, 0);
        }
        self.frames = self.frames.saturating_add(1);
        self.frames > AT_ONCE
    }

    /// True if frames are corked.
    pub(super) fn is_in(&self) -> bool {
        self.bytes > 0
    }

    /// Adds a corked frame of `len` bytes. True: enough bytes are corked to leave now.
    pub(super) fn add(&mut self, len: usize) -> bool {
        self.bytes += len;
        self.bytes >= MOST_CORKED
    }

    /// Records that no frame is corked any more.
    pub(super) fn out(&mut self) {
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_corked_behind_the_first_ones_of_a_poll() {
        let mut cork = Cork::default();
        assert_eq!(
            [1; 4].map(|poll| cork.joins(poll)),
            [false, false, true, true]
        );
        assert_eq!([2, 3, 3].map(|poll| cork.joins(poll)), [false; 3]);
        assert!(cork.joins(3));
    }

    #[test]
    fn enough_bytes_do_not_wait() {
        let mut cork = Cork::default();
        assert!(!cork.is_in() && !cork.add(MOST_CORKED - 1) && cork.is_in());
        assert!(cork.add(1));
        cork.out();
        assert!(!cork.is_in() && !cork.add(1));
    }
}
