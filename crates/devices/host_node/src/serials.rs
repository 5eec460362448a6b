//! The serial numbers of a peer's datagrams: each counts once.

/// The numbers that are remembered one by one. Older ones count as taken: their datagrams are late
/// by more than a window of fragments, and were sent again.
const REMEMBERED: u64 = u64::BITS as u64;

/// The serial numbers that have come from a peer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Serials {
    newest: u64,
    /// Bit n: the number n below the newest has come.
    come: u64,
}

impl Serials {
    /// Notes a number; returns true when it comes for the first time.
    pub(crate) fn is_new(&mut self, serial: u64) -> bool {
        if serial > self.newest {
            let ahead = serial - self.newest;
            let before = if ahead < REMEMBERED {
                self.come << ahead
            } else {
                0
            };
            *self = Serials {
                newest: serial,
                come: before | 1,
            };
            return true;
        }
        let behind = self.newest - serial;
        if behind >= REMEMBERED {
            return false;
        }
        let is_new = self.come & 1 << behind == 0;
        self.come |= 1 << behind;
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_counts_once_in_any_order() {
        let mut serials = Serials::default();
        for serial in [1, 5, 3, 64, 4, 2, 65, 66, u64::MAX, u64::MAX - 63] {
            assert!(serials.is_new(serial), "{serial}");
        }
        for serial in [1, 5, 3, 64, 4, 2, 65, 66, u64::MAX, u64::MAX - 63] {
            assert!(!serials.is_new(serial), "{serial}");
        }
    }

    #[test]
    fn a_number_far_behind_the_newest_counts_as_taken() {
        let mut serials = Serials::default();
        assert!(serials.is_new(100));
        assert!(serials.is_new(100 - 63));
        assert!(!serials.is_new(100 - 64));
        // A step over all remembered numbers forgets them.
        assert!(serials.is_new(164));
        assert!(serials.is_new(163) && !serials.is_new(100));
    }
}
