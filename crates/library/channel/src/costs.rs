//! The costs of a path to a peer: the only source of estimates. The limit of eager messages, the
//! protocol table and the algorithms of collectives are computed from them, so they never
//! contradict each other.
//!
//! All functions are pure: the same costs of host and device give the same results, so a limit
//! computed from them is the same in every run.

use device::{Attributes, HostCosts, StoreCosts};

/// Bytes that a packet carries besides its body.
const HEADER: u64 = 40;
/// The length of a cache line in bytes.
const LINE: u64 = 64;
/// Shortest transfer that is estimated over several rails, in bytes. Below this a transfer counts
/// as one of one rail, so that the limit of eager messages does not depend on the number of rails:
/// a sender that waits for its receiver loses more than a second rail gains.
const UNSPLIT: u64 = 16 << 10;
/// Time from the post of a transfer's part on one rail to that of the next part on another rail, in
/// nanoseconds.
const NEXT_RAIL: u64 = 330;
/// Length of the packet whose arrival time decides which rail carries packets, in bytes.
const HOME: u64 = 1 << 10;
/// Longest copy that stays in caches, in bytes: a longer one is also limited by the memory.
const CACHED: u64 = 1 << 10;
/// Bytes of a packet that announces a message (RTS).
const ANNOUNCEMENT: u64 = 48;
/// Bytes of a packet that gives the sender access to the receiver's buffer (CTS).
const ANSWER: u64 = 64;

/// The costs of the path to a peer, in nanoseconds, or picoseconds per byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PathCosts {
    /// Processor time to send a packet, without the post, in nanoseconds.
    pub send_ns: u64,
    /// Processor time of the post of a work request, in nanoseconds.
    pub post_ns: u64,
    /// Processor time to receive a packet, without the poll that finds it, in nanoseconds.
    pub receive_ns: u64,
    /// Processor time of the poll that finds arrivals, in nanoseconds.
    pub poll_ns: u64,
    /// Time from the post of a short packet until the peer's poll can find it, in nanoseconds.
    pub flight_ns: u64,
    /// Number of copies of a packet by its sender's processor. The receiver makes one more.
    pub copies: u64,
    /// Time per byte of a copy by one processor, in picoseconds.
    pub copy_ps: u64,
    /// Time per byte for which a copy occupies the memory of the host, in picoseconds.
    pub memory_ps: u64,
    /// Longest packet that travels inside its work request, in bytes.
    pub inline: u64,
    /// Time for each cache line, after the first, of a packet inside its work request, in
    /// nanoseconds.
    pub line_ns: u64,
    /// Additional time of a packet that is not inside its work request, so that the device fetches
    /// it from memory, in nanoseconds.
    pub fetch_ns: u64,
    /// Additional time per byte for the first [`unit`](PathCosts::unit) bytes of a packet or
    /// transfer, which buses store before they forward them, in picoseconds.
    pub store_ps: u64,
    /// The largest payload that travels as one unit, in bytes.
    pub unit: u64,
    /// Time from the post of a short read until its completion, in nanoseconds.
    pub read_ns: u64,
    /// Time to prepare a buffer for access by a device, in nanoseconds.
    pub expose_ns: u64,
    /// Bandwidth of a single packet, in bytes per second.
    pub packet_bandwidth: u64,
    /// Bandwidth of transfers over all rails, or by the processor that copies, in bytes per second.
    pub bandwidth: u64,
    /// The longest body of a packet on the path, in bytes.
    pub longest: u64,
    /// Longest message that is sent without waiting for the receiver, in bytes.
    pub eager: u64,
    /// 1 if processors carry out transfers, 0 if a device does.
    pub by_processor: u64,
}

/// The estimated times of the steps of one message, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageCosts {
    /// True if the message is sent in one packet, and its sender does not wait for the receiver.
    pub is_short: bool,
    /// Processor time that the sender spends on the message.
    pub sending: u64,
    /// Time from the end of `sending` until the first byte can be received. For a long message this
    /// includes the exchange of announcement and answer.
    pub flight: u64,
    /// Processor time of the receiver. For a long message this includes the report to the sender.
    pub receiving: u64,
    /// Time that the message occupies the link, or the processor that copies it.
    pub moving: u64,
    /// Time from the end of the receive until the sender is notified of it; zero if the sender does
    /// not wait for it.
    pub report: u64,
}

impl MessageCosts {
    /// The time from the send to the end of the receive. The flight of a short message includes its
    /// time on the link.
    pub fn total(&self) -> u64 {
        let moving = if self.is_short { 0 } else { self.moving };
        self.sending + self.flight + moving + self.receiving
    }

    /// The time from the send until both ranks can continue: the sender of a long message waits for
    /// the report. An exchange in a loop of a program takes this time.
    pub fn both(&self) -> u64 {
        self.total() + self.report
    }

    /// Processor time that both ranks together spend on the message.
    pub fn busy(&self) -> u64 {
        self.sending + self.receiving
    }

    /// The time at which the receive of a long message ends. The message was announced at the time
    /// `sent`, and the receiver calls its receive at the time `start`.
    pub fn taken(&self, sent: u64, start: u64) -> u64 {
        (sent + self.flight).max(start) + self.moving + self.receiving
    }
}

impl PathCosts {
    /// The number of costs: fields of this struct.
    pub const COUNT: usize = 20;

    /// The costs between ranks that share memory.
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

    /// The costs of a path over rails with these attributes. Packets and short transfers use one
    /// rail: the one with the earliest arrival of a packet of [`HOME`] bytes. A read waits
    /// `answer_ns` nanoseconds longer for the peer's answer.
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

    /// The costs of a path within a host on which processors copy to and from each other's memory.
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

    /// These costs with `longest` and `eager` set. `packet` is the longest packet; `eager` is the
    /// longest message with which both ranks can continue no later than after an announcement.
    /// Without `can_transfer` devices cannot move announced messages, and `eager` is `packet`.
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

    /// The length in bytes from which an access to exposed memory of a peer, with memory that stays
    /// registered, is faster than an exchange of two messages. `None`: no length is.
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

    /// The steps of a message of `bytes` bytes. It is sent at once if it is no longer than the
    /// limit `eager`, and announced otherwise.
    pub fn message(&self, bytes: u64) -> MessageCosts {
        match bytes <= self.eager {
            true => self.at_once(bytes),
            false => self.announced(bytes),
        }
    }

    /// The steps of a message that is sent at once, in one packet.
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

    /// The steps of a message that is sent in several packets, of which the receiver copies one out
    /// while the sender copies the next one in. The two copying processors slow each other down.
    pub fn in_pieces(&self, bytes: u64) -> MessageCosts {
        let first = self.at_once(0);
        MessageCosts {
            sending: first.sending + self.copy(bytes) * 3 / 2,
            ..first
        }
    }

    /// The steps of an announced message, by the protocol with which both ranks can continue first.
    pub fn announced(&self, bytes: u64) -> MessageCosts {
        let (read, written) = (self.read(bytes), self.written(bytes));
        match read.both() <= written.both() {
            true => read,
            false => written,
        }
    }

    /// The steps of a message that its receiver reads after the announcement.
    pub fn read(&self, bytes: u64) -> MessageCosts {
        let [announcement, report] = [ANNOUNCEMENT, 0].map(|bytes| self.at_once(bytes));
        // The processor posts the read, and polls its completion.
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

    /// The steps of a message that receiver and sender copy together, each one half.
    pub fn read_together(&self, bytes: u64) -> MessageCosts {
        let read = self.read(bytes);
        MessageCosts {
            moving: read.moving / 2,
            ..read
        }
    }

    /// The steps of a message that its sender writes after the announcement and the receiver's
    /// answer.
    pub fn written(&self, bytes: u64) -> MessageCosts {
        self.after_answer(&self.written_unasked(bytes))
    }

    /// The steps of a message that its sender sends in packets after the announcement and the
    /// receiver's answer.
    pub fn in_packets(&self, bytes: u64) -> MessageCosts {
        let further = bytes.saturating_sub(1) / self.longest.max(1);
        let packets = self.at_once(bytes);
        // The receiver handles one packet while the sender prepares the next.
        self.after_answer(&MessageCosts {
            receiving: packets.receiving + further * (self.poll_ns + self.receive_ns),
            ..packets
        })
    }

    /// The steps of a message that its sender writes to a buffer that the receiver has announced in
    /// advance (RTR): a packet announces the write.
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

    /// The steps of a message that is sent with the steps `rest` after an announcement and an
    /// answer.
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

    /// Additional time for bytes that buses store before they forward them, in nanoseconds.
    fn storing(&self, bytes: u64) -> u64 {
        bytes.min(self.unit) * self.store_ps / 1000
    }

    /// Time of a transfer, in nanoseconds: on one rail, or on all of them where that is faster.
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

    /// All costs as integers, each so that a greater number means a slower path.
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

    /// Decodes costs from the words that [`words`](PathCosts::words) returns.
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
