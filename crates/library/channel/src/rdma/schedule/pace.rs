//! The time of packets that leave one after the other, with few readings of the clock.
//!
//! A reading costs as much as a twentieth of a short message. Between two readings, the time is the
//! last reading and the usual time of the packets since.

/// The most packets that are sent from one reading of the clock to the next.
const PACKETS: u64 = 8;
/// The most bytes of packets from one reading of the clock to the next.
const BYTES: u64 = 16 << 10;
/// The number of classes of lengths, by the logarithm to base 2. The longest packets share one
/// class.
const CLASSES: usize = 20;

/// The pace of the packets of one burst: their number and times.
#[derive(Default)]
pub(super) struct Pace {
    /// The time of the last reading of the clock. `None`: the rank has waited since then.
    read: Option<u64>,
    /// The number of packets since the last reading.
    packets: u64,
    /// The bytes of the packets since the last reading.
    bytes: u64,
    /// The time from one packet to the next, in nanoseconds, by the class of their length. 0:
    /// unknown.
    each: [u64; CLASSES],
    /// The class of the packets since the last reading.
    class: usize,
}

impl Pace {
    /// The time at which a packet of `len` bytes leaves. `clock` reads the clock.
    pub(super) fn now(&mut self, len: u64, clock: impl FnOnce() -> u64) -> u64 {
        let class = (len.max(1).ilog2() as usize).min(CLASSES - 1);
        if let Some(read) = self.read
            && class == self.class
            && self.each[class] > 0
            && self.packets + 1 < PACKETS
            && self.bytes.saturating_add(len) < BYTES
        {
            self.packets += 1;
            self.bytes += len;
            return read.saturating_add(self.packets.saturating_mul(self.each[class]));
        }
        let now = clock();
        if let Some(read) = self.read {
            self.learn(now.saturating_sub(read) / (self.packets + 1));
        }
        (self.read, self.packets, self.bytes) = (Some(now), 0, len);
        self.class = class;
        now
    }

    /// Learns that each packet since the last reading took `each` nanoseconds. A sender that had no
    /// room for a packet is not slow: the pace falls slowly.
    fn learn(&mut self, each: u64) {
        let usual = &mut self.each[self.class];
        *usual = match *usual {
            0 => each,
            usual => each.min(usual.saturating_add(usual.div_ceil(8))),
        };
    }

    /// Records that the rank has waited: the next packet begins a burst.
    pub(super) fn rest(&mut self) {
        self.read = None;
    }
}
