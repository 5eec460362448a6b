//! The serial numbers of a peer's datagrams, by which each datagram is accepted once.

/// Number of the latest serial numbers that are remembered individually. Older ones count as
/// accepted: their datagrams are late by more than a window of fragments, and were retransmitted.
const REMEMBERED: u64 = u64::BITS as u64;

/// The serial numbers of datagrams that have arrived from one peer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Serials {
    newest: u64,
    /// Bit `n` is set if the datagram with the number `newest - n` has arrived.
    come: u64,
}

impl Serials {
    /// Records an arrived number. True: it has not arrived before.
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
        // A number far ahead forgets all remembered numbers.
        assert!(serials.is_new(164));
        assert!(serials.is_new(163) && !serials.is_new(100));
    }
}
