//! The costs of a path to a peer: the one source of estimates. Protocols and algorithms of
//! collectives follow from them.
//!
//! All of it is pure: equal numbers of host and device give equal costs, so a limit that follows
//! from them is the same in every run.

use crate::CostHints;
use device::{Attributes, HostCosts, StoreCosts};

/// Bytes that a packet has beside its body.
const HEADER: u64 = 40;
/// Bytes of a cache line.
const LINE: u64 = 64;
/// Shorter transfers are not split among rails, in bytes.
const UNSPLIT: u64 = 8 << 10;
/// Longest copy that stays in caches, in bytes: longer ones also wait for the memory.
const CACHED: u64 = 1 << 10;
/// Bytes of a packet that announces a message.
const ANNOUNCEMENT: u64 = 48;
/// A message leaves at once only if that is faster by this fraction, as its denominator: a device
/// that reads it spares the processors two copies.
const SPARED: u64 = 32;

/// The costs of the path to a peer, in nanoseconds, or picoseconds per byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathCosts {
    /// Processor time of a send, without the post.
    pub send_ns: u64,
    /// Processor time of a post.
    pub post_ns: u64,
    /// Processor time of an arrival, without the poll that finds it.
    pub receive_ns: u64,
    /// Processor time of the poll that finds arrivals.
    pub poll_ns: u64,
    /// Time from the post of a short packet until the peer's poll can find it.
    pub flight_ns: u64,
    /// Copies of a packet by its sender's processor. The receiver makes one more.
    pub copies: u64,
    /// Time per byte of a copy by one processor.
    pub copy_ps: u64,
    /// Time per byte for which a copy occupies the memory of the host.
    pub memory_ps: u64,
    /// Longest packet that is part of its work request, in bytes.
    pub inline: u64,
    /// Time for each further cache line of such a packet.
    pub line_ns: u64,
    /// Additional time of a longer packet, which the device fetches.
    pub fetch_ns: u64,
    /// Additional time per byte that buses store before they pass it on: those of the first
    /// [`unit`](PathCosts::unit) bytes.
    pub store_ps: u64,
    /// The largest payload that travels as one unit, in bytes.
    pub unit: u64,
    /// Time from the post of a short read until its end.
    pub read_ns: u64,
    /// Time to prepare a buffer for a device.
    pub expose_ns: u64,
    /// Bytes per second of one packet.
    pub packet_bandwidth: u64,
    /// Bytes per second of transfers, over all rails, or by the processor that copies.
    pub bandwidth: u64,
    /// Longest packet, in bytes.
    pub longest: u64,
    /// Longest message that leaves at once, in bytes.
    pub eager: u64,
    /// 1 if processors carry out transfers, 0 if a device does.
    pub by_processor: u64,
}

/// The steps of one message, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageCosts {
    /// The message goes in one packet, and its sender does not wait for the receiver.
    pub is_short: bool,
    /// Processor time of the sender.
    pub sending: u64,
    /// Time from the end of the sending until the first byte can be received; of a long message
    /// also the exchange before it.
    pub flight: u64,
    /// Processor time of the receiver; of a long message also that of the report to the sender.
    pub receiving: u64,
    /// Time that the message occupies the link, or the processor that copies it.
    pub moving: u64,
    /// Time from the end of the receive until the sender knows of it, if the sender waits for it.
    pub report: u64,
}

impl MessageCosts {
    /// The time from the send to the end of the receive. The flight of a short message includes its
    /// time on the link.
    pub fn total(&self) -> u64 {
        let moving = if self.is_short { 0 } else { self.moving };
        self.sending + self.flight + moving + self.receiving
    }

    /// Processor time of both ends.
    pub fn busy(&self) -> u64 {
        self.sending + self.receiving
    }

    /// The end of the receive of a long message that was announced at the time `sent`; the receiver
    /// is there from the time `start` on.
    pub fn taken(&self, sent: u64, start: u64) -> u64 {
        (sent + self.flight).max(start) + self.moving + self.receiving
    }
}

impl PathCosts {
    /// The number of costs.
    pub const COUNT: usize = 20;

    /// Ranks that share memory.
    pub const MEMORY: PathCosts = PathCosts {
        send_ns: HostCosts::USUAL.send_ns,
        post_ns: 0,
        receive_ns: HostCosts::USUAL.receive_ns,
        poll_ns: 0,
        flight_ns: 100,
        copies: 1,
        copy_ps: HostCosts::USUAL.copy_ps,
        memory_ps: HostCosts::USUAL.memory_ps,
        inline: u64::MAX,
        line_ns: 0,
        fetch_ns: 0,
        store_ps: 0,
        unit: 0,
        read_ns: 300,
        expose_ns: 0,
        packet_bandwidth: u64::MAX,
        bandwidth: 1_000_000_000_000 / HostCosts::USUAL.copy_ps,
        longest: 128 << 10,
        eager: 128 << 10,
        by_processor: 1,
    };

    /// A path over rails with these attributes: a short packet takes the fastest one. A read waits
    /// `answer_ns` for the peer's answer.
    pub(crate) fn over<'a>(
        rails: impl Iterator<Item = &'a Attributes>,
        host: &HostCosts,
        answer_ns: u64,
    ) -> PathCosts {
        let mut costs = PathCosts {
            inline: u64::MAX,
            packet_bandwidth: 0,
            bandwidth: 0,
            flight_ns: u64::MAX,
            read_ns: u64::MAX,
            by_processor: 0,
            ..PathCosts::MEMORY
        };
        for rail in rails {
            let request = &rail.request;
            let processors = request.post_ns + request.poll_ns;
            costs.post_ns = request.post_ns;
            costs.poll_ns = request.poll_ns;
            let flight = rail.latency_ns.saturating_sub(processors);
            costs.flight_ns = costs.flight_ns.min(flight);
            costs.inline = costs.inline.min(rail.inline as u64);
            costs.line_ns = costs.line_ns.max(request.line_ns);
            costs.fetch_ns = costs.fetch_ns.max(request.fetch_ns);
            costs.store_ps = costs.store_ps.max(request.store_ps);
            costs.unit = costs.unit.max(rail.mtu as u64);
            costs.read_ns = costs.read_ns.min(request.read_ns + answer_ns);
            costs.packet_bandwidth = costs.packet_bandwidth.max(rail.bandwidth);
            costs.bandwidth += rail.bandwidth;
        }
        costs.of_host(host)
    }

    /// A path within a host on which processors copy from and to each other's memory.
    pub(crate) fn within(host: &HostCosts, store: &StoreCosts) -> PathCosts {
        let costs = PathCosts {
            post_ns: store.post_ns,
            poll_ns: store.poll_ns,
            flight_ns: store.handover_ns,
            copies: 2,
            read_ns: store.post_ns + 2 * store.handover_ns + store.poll_ns,
            bandwidth: 1_000_000_000_000 / host.copy_ps.max(1),
            ..PathCosts::MEMORY
        };
        costs.of_host(host)
    }

    fn of_host(self, host: &HostCosts) -> PathCosts {
        PathCosts {
            send_ns: host.send_ns,
            receive_ns: host.receive_ns,
            copy_ps: host.copy_ps,
            memory_ps: host.memory_ps,
            expose_ns: host.register_ns * (1 - self.by_processor),
            ..self
        }
    }

    /// The path with the longest message, of at most `packet` bytes, that leaves at once because
    /// that is faster than a read. `can_read`: the receiver can read.
    pub(crate) fn with_limit(self, packet: usize, can_read: bool) -> PathCosts {
        let is_faster = |bytes: u64| {
            let at_once = self.at_once(bytes).total();
            at_once + at_once / SPARED <= self.announced(bytes).total()
        };
        let (mut below, mut above) = (0, packet as u64 + 1);
        while can_read && above - below > 1 {
            let middle = below.midpoint(above);
            match is_faster(middle) {
                true => below = middle,
                false => above = middle,
            }
        }
        PathCosts {
            longest: packet as u64,
            // Whole lines, so that the limit is a round number.
            eager: (above - 1) / LINE * LINE,
            ..self
        }
    }

    /// The costs as protocols use them.
    pub(crate) fn hints(&self) -> CostHints {
        let latency_ns = self.at_once(0).total();
        let packet = (1_000_000_000_000 / self.packet_bandwidth.max(1)) + 2 * self.copy_ps;
        CostHints {
            latency_ns,
            read_ns: self
                .announced(0)
                .total()
                .saturating_sub(latency_ns + self.expose_ns),
            write_ns: 2 * self.at_once(ANNOUNCEMENT).total(),
            expose_ns: self.expose_ns,
            packet_ps_per_byte: packet,
            zero_copy_ps_per_byte: 1_000_000_000_000 / self.bandwidth.max(1),
        }
    }

    /// The steps of a message.
    pub fn message(&self, bytes: u64) -> MessageCosts {
        match bytes <= self.eager {
            true => self.at_once(bytes),
            false => self.announced(bytes),
        }
    }

    /// The steps of a message that leaves in one packet.
    pub fn at_once(&self, bytes: u64) -> MessageCosts {
        let packet = bytes + HEADER;
        let fetching = match packet <= self.inline {
            true => self.line_ns * (packet.div_ceil(LINE) - 1),
            false => self.fetch_ns + packet.min(self.unit) * self.store_ps / 1000,
        };
        let moving = duration(packet, self.packet_bandwidth);
        MessageCosts {
            is_short: true,
            sending: self.send_ns + self.post_ns + self.copies * self.copy(packet),
            flight: self.flight_ns + fetching + moving,
            receiving: self.poll_ns + self.receive_ns + self.copy(bytes),
            moving,
            report: 0,
        }
    }

    /// The steps of a message that its receiver reads after an announcement.
    pub fn announced(&self, bytes: u64) -> MessageCosts {
        let [announcement, report] = [ANNOUNCEMENT, 0].map(|bytes| self.at_once(bytes));
        // The processor posts the read, and finds its end.
        let read = self.post_ns + self.poll_ns;
        let storing = bytes.min(self.unit) * self.store_ps / 1000;
        MessageCosts {
            is_short: false,
            sending: announcement.sending,
            flight: announcement.flight + self.read_ns.saturating_sub(read) + storing,
            receiving: announcement.receiving + self.expose_ns + read + self.send_ns + self.post_ns,
            moving: self.transfer(bytes),
            report: report.flight + report.receiving,
        }
    }

    /// Time of a transfer, in nanoseconds: one rail carries its first part, all of them the rest.
    fn transfer(&self, bytes: u64) -> u64 {
        let whole = bytes.min(UNSPLIT);
        let one = self.packet_bandwidth.min(self.bandwidth);
        duration(whole, one) + duration(bytes - whole, self.bandwidth)
    }

    /// Time of a copy by one processor, in nanoseconds.
    pub fn copy(&self, bytes: u64) -> u64 {
        let byte_ps = match bytes <= CACHED {
            true => self.copy_ps,
            false => self.copy_ps.max(self.memory_ps),
        };
        bytes * byte_ps / 1000
    }

    /// All costs, each so that the greater number is the worse one.
    pub fn words(&self) -> [u64; PathCosts::COUNT] {
        [
            self.send_ns,
            self.post_ns,
            self.receive_ns,
            self.poll_ns,
            self.flight_ns,
            self.copies,
            self.copy_ps,
            self.memory_ps,
            u64::MAX - self.inline,
            self.line_ns,
            self.fetch_ns,
            self.store_ps,
            self.unit,
            self.read_ns,
            self.expose_ns,
            u64::MAX - self.packet_bandwidth,
            u64::MAX - self.bandwidth,
            u64::MAX - self.longest,
            u64::MAX - self.eager,
            self.by_processor,
        ]
    }

    /// The costs with these [`words`](PathCosts::words).
    pub fn of_words(words: [u64; PathCosts::COUNT]) -> PathCosts {
        let mut words = words.into_iter();
        let mut next = || words.next().unwrap_or(0);
        PathCosts {
            send_ns: next(),
            post_ns: next(),
            receive_ns: next(),
            poll_ns: next(),
            flight_ns: next(),
            copies: next(),
            copy_ps: next(),
            memory_ps: next(),
            inline: u64::MAX - next(),
            line_ns: next(),
            fetch_ns: next(),
            store_ps: next(),
            unit: next(),
            read_ns: next(),
            expose_ns: next(),
            packet_bandwidth: u64::MAX - next(),
            bandwidth: u64::MAX - next(),
            longest: u64::MAX - next(),
            eager: u64::MAX - next(),
            by_processor: next(),
        }
    }
}

/// Time of `bytes` bytes at a rate in bytes per second, in nanoseconds.
fn duration(bytes: u64, rate: u64) -> u64 {
    (u128::from(bytes) * 1_000_000_000 / u128::from(rate.max(1))) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// QDR between hosts of 2009, in round numbers.
    const QDR: PathCosts = PathCosts {
        send_ns: 170,
        post_ns: 80,
        receive_ns: 170,
        poll_ns: 80,
        flight_ns: 800,
        copy_ps: 200,
        memory_ps: 139,
        inline: 128,
        line_ns: 55,
        fetch_ns: 630,
        store_ps: 520,
        unit: 2048,
        read_ns: 1850,
        packet_bandwidth: 3_390_000_000,
        bandwidth: 3_390_000_000,
        by_processor: 0,
        ..PathCosts::MEMORY
    };

    #[test]
    fn words_are_the_costs() {
        assert_eq!(PathCosts::of_words(QDR.words()), QDR);
        // The greater word is the worse one.
        let better = PathCosts {
            bandwidth: QDR.bandwidth + 1,
            ..QDR
        };
        let least = QDR.words().into_iter().zip(better.words());
        assert!(least.into_iter().all(|(worse, better)| worse >= better));
    }

    #[test]
    fn messages_leave_at_once_until_a_read_is_as_fast() {
        let path = QDR.with_limit(16 << 10, true);
        assert_eq!(path.eager % LINE, 0);
        assert!((2 << 10..6 << 10).contains(&path.eager), "{}", path.eager);
        let time = |bytes| (path.at_once(bytes).total(), path.announced(bytes).total());
        let (at_once, read) = time(path.eager / 2);
        assert!(at_once < read);
        let (at_once, read) = time(2 * path.eager);
        assert!(at_once > read);
        // Without reads only the packet bounds it.
        assert_eq!(QDR.with_limit(16 << 10, false).eager, 16 << 10);
    }

    #[test]
    fn a_late_answer_keeps_all_packets_eager() {
        let slow = PathCosts {
            read_ns: QDR.read_ns + 10_000,
            ..QDR
        };
        assert_eq!(slow.with_limit(16 << 10, true).eager, 16 << 10);
    }

    #[test]
    fn only_long_transfers_use_all_rails() {
        let two = PathCosts {
            bandwidth: 2 * QDR.bandwidth,
            ..QDR
        };
        assert_eq!(two.transfer(4 << 10), QDR.transfer(4 << 10));
        assert!(two.transfer(1 << 20) < QDR.transfer(1 << 20) * 51 / 100);
    }
}
