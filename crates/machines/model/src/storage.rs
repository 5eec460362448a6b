//! The server of a machine's storage: requests queue in the order of their times.

use fabric::Storage;
use sim::Time;

/// The server, which moves the bytes of one request after the other.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Server {
    /// The end of the last bytes that it has got.
    free: Time,
    /// The time for which it has been busy.
    pub(crate) busy: Time,
}

impl Server {
    /// Takes requests of one rank, which makes one after the other, at time `now`. The result is
    /// the end of the last one. Latency keeps nobody else from the server.
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
