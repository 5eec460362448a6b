//! Numbers of queue pairs that only the processes of the job know. They are derived from the job's
//! secret, so both ends of a connection compute them without exchanging them.
//!
//! A port drops a packet whose numbers are wrong. So a stranger on the network has to guess them.
//! They do not protect from a stranger that reads packets of the job, which carry them in clear.

use secret::Secret;
use secret::codes::Codes;

/// The highest bit of a queue key: set in privileged keys (IBA 10.2.5).
const PRIVILEGED: u32 = 1 << 31;
/// Mask of the bits of a packet sequence number.
const PACKET: u32 = (1 << 24) - 1;

/// The numbers that ranks derive from the job's secret.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    /// The queue key of all datagram queue pairs: they receive only datagrams that carry it.
    pub(crate) q_key: u32,
    packets: Codes,
    /// The codes that authenticate connection requests to iWARP queue pairs.
    pub(crate) calls: Codes,
}

impl Keys {
    pub(crate) fn new(secret: &Secret) -> Keys {
        Keys {
            q_key: Codes::new(secret, "a queue key").number(&[]) & !PRIVILEGED,
            packets: Codes::new(secret, "a packet sequence number"),
            calls: Codes::new(secret, "a call over iWARP"),
        }
    }

    /// The sequence number of the first packet from queue pair `from` to queue pair `to`, of 24
    /// bits.
    pub(crate) fn first_packet(&self, from: u32, to: u32) -> u32 {
        let ends = [from.to_be_bytes(), to.to_be_bytes()];
        self.packets.number(&[ends.as_flattened()]) & PACKET
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_differ_by_job_and_direction_and_stay_within_their_bits() {
        let keys = |byte| Keys::new(&Secret::from_bytes([byte; Secret::LENGTH]));
        let own = keys(1);
        assert_eq!(own.q_key, keys(1).q_key);
        assert_ne!(own.q_key, keys(2).q_key);
        assert_eq!(own.first_packet(5, 6), keys(1).first_packet(5, 6));
        assert_ne!(own.first_packet(5, 6), own.first_packet(6, 5));
        assert_ne!(own.first_packet(5, 6), keys(2).first_packet(5, 6));
        for number in 0..64 {
            assert_eq!(keys(number).q_key & PRIVILEGED, 0);
            assert_eq!(own.first_packet(number.into(), 0) & !PACKET, 0);
        }
    }
}
