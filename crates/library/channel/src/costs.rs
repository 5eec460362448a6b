//! The costs of a path to a peer: the one source of estimates. The limit of eager messages, the
//! protocol table and the algorithms of collectives follow from them, so they never contradict each
//! other.
//!
//! All of it is pure: equal numbers of host and device give equal costs, so a limit that follows
//! from them is the same in every run.

use device::{Attributes, HostCosts, StoreCosts};

/// Bytes that a packet has beside its body.
const HEADER: u64 = 40;
/// Bytes of a cache line.
const LINE: u64 = 64;
/// Shorter transfers count as those of one rail, in bytes: the limit of eager messages must not
/// depend on the number of rails. A sender that waits for its receiver loses more than a second
/// rail gains at such lengths.
const UNSPLIT: u64 = 16 << 10;
/// Time from the post of one part of a transfer to that of the next, on another rail, in
/// nanoseconds.
const NEXT_RAIL: u64 = 330;
/// Length of a packet whose arrival decides the rail of packets, in bytes.
const HOME: u64 = 1 << 10;
/// Longest copy that stays in caches, in bytes: longer ones also wait for the memory.
const CACHED: u64 = 1 << 10;
/// Bytes of a packet that announces a message.
const ANNOUNCEMENT: u64 = 48;
/// Bytes of a packet that opens the receiver's buffer to the sender.
const ANSWER: u64 = 64;

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

    /// The time from the send until both ranks can go on: the sender of a long message waits for
    /// the report. A loop of a program takes this time for an exchange.
    pub fn both(&self) -> u64 {
        self.total() + self.report
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

    /// A path over rails with these attributes. Packets and short transfers take one of them: that
    /// on which a short packet arrives first. A read waits `answer_ns` for the peer's answer.
    pub(crate) fn over(rails: &[Attributes], host: &HostCosts, answer_ns: u64) -> PathCosts {
        let arrival = |rail: &&Attributes| rail.latency_ns + duration(HOME, rail.bandwidth);
        let home = rails.iter().min_by_key(arrival);
        let home = home.expect("a path has a rail");
        let request = &home.request;
        let processors = request.post_ns + request.poll_ns;
        let costs = PathCosts {
            post_ns: request.post_ns,
            poll_ns: request.poll_ns,
            flight_ns: home.latency_ns.saturating_sub(processors),
            inline: home.inline as u64,
            line_ns: request.line_ns,
            fetch_ns: request.fetch_ns,
            store_ps: request.store_ps,
            unit: home.mtu as u64,
            read_ns: request.read_ns + answer_ns,
            packet_bandwidth: home.bandwidth,
            bandwidth: rails.iter().map(|rail| rail.bandwidth).sum(),
            by_processor: 0,
            ..PathCosts::MEMORY
        };
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

    /// The path with the longest message, of at most `packet` bytes, that leaves at once: up to it
    /// both ranks can go on no later than after an announcement. `can_transfer`: devices can move
    /// announced messages.
    pub(crate) fn with_limit(self, packet: usize, can_transfer: bool) -> PathCosts {
        let is_faster = |bytes: u64| self.at_once(bytes).both() <= self.announced(bytes).both();
        let (mut below, mut above) = (0, packet as u64 + 1);
        while can_transfer && above - below > 1 {
            let middle = below.midpoint(above);
            match is_faster(middle) {
                true => below = middle,
                false => above = middle,
            }
        }
        PathCosts {
            longest: packet as u64,
            eager: above - 1,
            ..self
        }
    }

    /// The shortest access to exposed memory of a peer that is faster than the exchange of two
    /// messages, where the memory stays registered. `None`: no length is.
    pub fn shortest_access(&self) -> Option<u64> {
        let packet = self.at_once(0).total();
        let access = self.read(0).total().saturating_sub(packet + self.expose_ns);
        let late = access.saturating_sub(2 * packet);
        let byte = |bandwidth: u64| 1_000_000_000_000 / bandwidth.max(1);
        let gain = byte(self.packet_bandwidth) + 2 * self.copy_ps;
        match (late, gain.saturating_sub(byte(self.bandwidth))) {
            (0, _) => Some(0),
            (_, 0) => None,
            (late, gain) => Some((late * 1000).div_ceil(gain)),
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
            false => self.fetch_ns + self.storing(packet),
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

    /// The steps of a message that leaves in several packets, of which one is copied out while the
    /// next is copied in. Two processors that copy slow each other down.
    pub fn in_pieces(&self, bytes: u64) -> MessageCosts {
        let first = self.at_once(0);
        MessageCosts {
            sending: first.sending + self.copy(bytes) * 3 / 2,
            ..first
        }
    }

    /// The steps of a message that is announced, by the protocol that lets both ranks go on first.
    pub fn announced(&self, bytes: u64) -> MessageCosts {
        let (read, written) = (self.read(bytes), self.written(bytes));
        match read.both() <= written.both() {
            true => read,
            false => written,
        }
    }

    /// The steps of a message that its receiver reads after an announcement.
    pub fn read(&self, bytes: u64) -> MessageCosts {
        let [announcement, report] = [ANNOUNCEMENT, 0].map(|bytes| self.at_once(bytes));
        // The processor posts the read, and finds its end.
        let read = self.post_ns + self.poll_ns;
        MessageCosts {
            is_short: false,
            sending: announcement.sending,
            flight: announcement.flight + self.read_ns.saturating_sub(read) + self.storing(bytes),
            receiving: announcement.receiving + self.expose_ns + read + self.send_ns + self.post_ns,
            moving: self.transfer(bytes),
            report: report.flight + report.receiving,
        }
    }

    /// The steps of a message that its receiver reads together with the sender: each copies half.
    pub fn read_together(&self, bytes: u64) -> MessageCosts {
        let read = self.read(bytes);
        MessageCosts {
            moving: read.moving / 2,
            ..read
        }
    }

    /// The steps of a message that its sender writes after an announcement and the receiver's
    /// answer.
    pub fn written(&self, bytes: u64) -> MessageCosts {
        self.after_answer(&self.written_unasked(bytes))
    }

    /// The steps of a message that its sender sends in packets after an announcement and the
    /// receiver's answer.
    pub fn in_packets(&self, bytes: u64) -> MessageCosts {
        let further = bytes.saturating_sub(1) / self.longest.max(1);
        let packets = self.at_once(bytes);
        // The receiver handles one packet while the sender makes the next.
        self.after_answer(&MessageCosts {
            receiving: packets.receiving + further * (self.poll_ns + self.receive_ns),
            ..packets
        })
    }

    /// The steps of a message that its sender writes to a buffer that the receiver has announced: a
    /// packet says that the write begins.
    pub fn written_unasked(&self, bytes: u64) -> MessageCosts {
        let start = self.at_once(0);
        MessageCosts {
            is_short: false,
            sending: start.sending + self.post_ns,
            flight: self.flight_ns + self.fetch_ns + self.storing(bytes),
            receiving: start.receiving + self.poll_ns,
            moving: self.transfer(bytes),
            // The acknowledgement of the write.
            report: self.flight_ns,
        }
    }

    /// The steps of a message that goes as `rest` after an announcement and an answer.
    fn after_answer(&self, rest: &MessageCosts) -> MessageCosts {
        let [announcement, answer] = [ANNOUNCEMENT, ANSWER].map(|bytes| self.at_once(bytes));
        MessageCosts {
            is_short: false,
            sending: announcement.sending,
            flight: announcement.flight
                + announcement.receiving
                + answer.total()
                + rest.sending
                + rest.flight,
            receiving: self.expose_ns + rest.receiving,
            moving: match rest.is_short {
                true => 0,
                false => rest.moving,
            },
            report: rest.report,
        }
    }

    /// Additional time of bytes that buses store before they pass them on, in nanoseconds.
    fn storing(&self, bytes: u64) -> u64 {
        bytes.min(self.unit) * self.store_ps / 1000
    }

    /// Time of a transfer, in nanoseconds: over one rail, or over all of them where that is faster.
    fn transfer(&self, bytes: u64) -> u64 {
        let one = duration(bytes, self.packet_bandwidth.min(self.bandwidth));
        match bytes < UNSPLIT {
            true => one,
            false => one.min(duration(bytes, self.bandwidth) + NEXT_RAIL),
        }
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
mod tests;
