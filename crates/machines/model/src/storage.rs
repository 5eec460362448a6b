//! The server of a machine's storage, at which requests queue in the order of their times.

use fabric::Storage;
use sim::Time;

/// The server of the storage. It moves the bytes of one request after the other.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Server {
    /// The time at which the server has moved all bytes so far.
    free: Time,
    /// The time for which the server has been busy.
    pub(crate) busy: Time,
}

impl Server {
    /// Serves requests that one rank makes one after the other, from the time `now` on. Returns the
    /// end of the last one. Their latency does not occupy the server.
    pub(crate) fn take(&mut self, storage: Storage, now: Time, requests: u64, bytes: u64) -> Time {
        let time = storage.bandwidth.time(bytes).picos();
        self.free = self.free.max(now).saturating_add(time);
        self.busy += time;
        let latency = storage.latency.picos().saturating_mul(requests);
        self.free.saturating_add(latency)
    }
}

#[cfg(test)]
mod tests {
    use fabric::{GbPerSec, Nanos};

    use super::*;

    #[test]
    fn bytes_queue_and_latencies_do_not() {
        let storage = Storage {
            bandwidth: GbPerSec::from_bits_per_sec(8_000_000_000),
            latency: Nanos::from_picos(500),
        };
        let mut server = Server::default();
        // A byte takes a nanosecond.
        assert_eq!(server.take(storage, 1000, 1, 3), 4500);
        assert_eq!(server.take(storage, 1000, 2, 1), 6000);
        assert_eq!(server.take(storage, 1000, 1, 0), 5500);
        assert_eq!(server.take(storage, 9000, 0, 1), 10_000);
        assert_eq!(server.busy, 5000);
    }
}
