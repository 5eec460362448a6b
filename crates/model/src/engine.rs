//! The HCA's way out: from the doorbell over the work request and its payload to packets on the link.
//!
//! A queue pair's requests leave in the order in which they were posted. The engine takes them one after the other and
//! asks for their payloads ahead of time; the packets of all queue pairs of an HCA are read in turns.

use fabric::packet::{DETH, IMMEDIATE, PLAIN, READ_REQUEST, RETH};

use super::message::Kind;
use super::record::{Act, Part};
use super::regions::Use;
use super::{Clocked, Event, NONE, Net};
use device::{State, Status, Transport};

/// How many bytes of payload have been asked for and have not left when the engine stops taking requests, of one queue pair: more than any bus carries within a
/// read's latency (25 GB/s by 1 us), so that only memory is saved by it.
const AHEAD: u64 = 64 << 10;
/// Atomic extended transport header: address, key, two operands.
const ATOMIC: u64 = 28;

impl Net {
    /// The processor's store is there.
    pub(super) fn doorbell(&mut self, q: u32, inlined: u32, clock: &mut Clocked) {
        if self.system.hca.one_by_one && !self.is_within(q) {
            let qp = &mut self.qps[q as usize];
            if qp.occupied {
                qp.in_memory += 1;
                return;
            }
            qp.occupied = true;
        }
        self.take_up(q, inlined, clock);
    }

    /// The HCA turns to a request: it has it already, or fetches it.
    fn take_up(&mut self, q: u32, inlined: u32, clock: &mut Clocked) {
        if self.system.hca.blueflame || self.is_within(q) {
            return self.fetched(q, clock);
        }
        let adapter = self.qps[q as usize].adapter;
        let latency = self.timing(adapter).read_latency;
        clock.at(clock.now() + latency, Event::Fetch { qp: q, inlined });
    }

    /// The work request comes over the bus.
    pub(super) fn fetch(&mut self, q: u32, inlined: u32, clock: &mut Clocked) {
        let adapter = self.qps[q as usize].adapter;
        let time = self.timing(adapter).fetch(inlined);
        let end = self.down(adapter).take(clock.now(), time);
        let doing = Act::WorkRequest.alone(inlined as usize);
        self.note_rail(adapter, Part::BusDown, end, time, doing);
        clock.at(end, Event::Fetched { qp: q });
    }

    pub(super) fn fetched(&mut self, q: u32, clock: &mut Clocked) {
        let qp = &mut self.qps[q as usize];
        qp.rung += 1;
        if !qp.begin_asked {
            self.begin(q, clock);
        }
    }

    /// The engine is to take the next request, as soon as it can.
    pub(super) fn ask_begin(&mut self, q: u32, clock: &mut Clocked) {
        let qp = &mut self.qps[q as usize];
        if qp.rung > 0 && !qp.begin_asked {
            qp.begin_asked = true;
            clock.at(qp.engine, Event::Begin { qp: q });
        }
    }

    /// Whose memory is read when the engine takes the next request.
    pub(super) fn captures(&self, q: u32) -> Option<u32> {
        let qp = &self.qps[q as usize];
        let next = qp.to_begin;
        (next != NONE && self.messages[next].is_fetched()).then_some(qp.rank)
    }

    /// The engine takes the next request, if it can. To be called by events that name the rank whose memory is read.
    pub(super) fn begin(&mut self, q: u32, clock: &mut Clocked) {
        let now = clock.now();
        let qp = &mut self.qps[q as usize];
        let number = qp.to_begin;
        if qp.rung == 0 || number == NONE || qp.state != State::Rts || qp.broken {
            return;
        }
        if qp.engine > now {
            return self.ask_begin(q, clock);
        }
        let message = &mut self.messages[number];
        let is_fetched = message.is_fetched();
        let most_reads = self.system.hca.reads;
        if message.kind.is_answered() && qp.reads >= most_reads || is_fetched && qp.ahead >= AHEAD {
            // What has to end first asks again.
            return;
        }
        let adapter = qp.adapter;
        qp.rung -= 1;
        qp.to_begin = message.next;
        message.begun = true;
        qp.under_way = number;
        qp.reads += u32::from(message.kind.is_answered());
        if is_fetched {
            qp.ahead += u64::from(message.len);
        }
        if !self.is_within(q) && self.breaks(clock) {
            return self.fail_locally(q, number, Status::LocalQpOperation, clock);
        }
        if is_fetched && !self.capture(q, number) {
            return self.fail_locally(q, number, Status::LocalProtection, clock);
        }
        let timing = self.timing(adapter);
        let (engine, latency) = (timing.engine, timing.read_latency);
        self.qps[q as usize].engine = now + engine;
        if is_fetched {
            clock.at(now + latency, Event::Payload { qp: q });
        } else {
            self.messages[number].ready = true;
            self.go_on_sending(q, clock);
        }
        self.ask_begin(q, clock);
    }

    /// Reads the payload; false where that is not allowed.
    pub(super) fn capture(&mut self, q: u32, number: u32) -> bool {
        let qp = &self.qps[q as usize];
        let place = (qp.rank, self.adapters[qp.adapter as usize].rail);
        let message = &mut self.messages[number];
        for at in 0..message.slices.len() {
            let slice = message.slices[at];
            let len = u64::from(slice.len);
            if !self
                .regions
                .allow(place, slice.lkey, slice.address, len, Use::LocalRead)
            {
                return false;
            }
            // SAFETY: the slice lies in a region that is still registered, so it is memory of that rank, in whose process we
            // are; who registered it expects that the device looks at it at any time.
            unsafe { message.read(slice.address, slice.len) };
        }
        true
    }

    /// The oldest payload that was asked for begins to arrive.
    pub(super) fn payload_comes(&mut self, q: u32, clock: &mut Clocked) {
        let mut number = self.qps[q as usize].to_send;
        // In the order in which they were asked for.
        while number != NONE && (self.messages[number].ready || !self.messages[number].begun) {
            number = self.messages[number].next;
        }
        if number != NONE {
            self.messages[number].ready = true;
            self.go_on_sending(q, clock);
        }
    }

    /// Puts on the link what needs no reading, and joins the round of those that read.
    pub(super) fn go_on_sending(&mut self, q: u32, clock: &mut Clocked) {
        if self.send_ready(q, clock) {
            self.join(q * 2, clock);
        }
    }

    /// Sends what stands first and needs no reading. True if what then stands first can be read.
    fn send_ready(&mut self, q: u32, clock: &mut Clocked) -> bool {
        loop {
            let qp = &self.qps[q as usize];
            let number = qp.to_send;
            if number == NONE || qp.waits || qp.state != State::Rts {
                return false;
            }
            let message = &self.messages[number];
            if !message.ready || message.status != Status::Success {
                return false;
            }
            if message.is_fetched() {
                return true;
            }
            self.send_packet(q, number, clock);
        }
    }

    /// The length of the packet that a stream reads next.
    pub(super) fn next_packet(&mut self, stream: u32) -> Option<u32> {
        let qp = &self.qps[stream as usize / 2];
        let mtu = self.mtu;
        if qp.state != State::Rts {
            return None;
        }
        if stream % 2 == 1 {
            return self.next_answer(stream / 2);
        }
        if qp.to_send == NONE || qp.waits {
            return None;
        }
        let message = &self.messages[qp.to_send];
        let can = message.ready && message.is_fetched() && message.status == Status::Success;
        can.then(|| message.piece(message.sent, mtu).1)
    }

    /// A packet of the first request has been read. True if there is another to be read.
    pub(super) fn request_read(&mut self, q: u32, clock: &mut Clocked) -> bool {
        if self.next_packet(q * 2).is_none() {
            return false;
        }
        let number = self.qps[q as usize].to_send;
        self.send_packet(q, number, clock);
        self.send_ready(q, clock)
    }

    /// The next packet of the message that stands first goes on the link.
    fn send_packet(&mut self, q: u32, number: u32, clock: &mut Clocked) {
        let (mtu, now) = (self.mtu, clock.now());
        let qp = &mut self.qps[q as usize];
        let (adapter, transport) = (qp.adapter, qp.transport);
        qp.progress = now;
        let message = &mut self.messages[number];
        let (packet, packets) = (message.sent, message.packets(mtu));
        message.sent += 1;
        let (first, last) = (packet == 0, packet + 1 == packets);
        let len = u64::from(message.piece(packet, mtu).1).next_multiple_of(4);
        let immediate = match message.immediate {
            Some(_) if last => IMMEDIATE,
            _ => 0,
        };
        let bytes = match message.kind {
            Kind::Write if first => len + PLAIN + RETH + immediate,
            Kind::Write => len + PLAIN + immediate,
            Kind::Send if transport == Transport::Ud => len + PLAIN + DETH + immediate,
            Kind::Send => len + PLAIN + immediate,
            Kind::Read => READ_REQUEST,
            Kind::CompareAndSwap | Kind::FetchAndAdd => PLAIN + ATOMIC,
        };
        let fetched = if message.is_fetched() { len } else { 0 };
        let (to, mut way) = (message.to, message.way);
        let is_send = message.kind == Kind::Send;
        self.qps[q as usize].ahead = self.qps[q as usize].ahead.saturating_sub(fetched);
        let timing = self.timing(adapter);
        way += timing.send + if is_send { timing.matching } else { 0 };
        let target = match to {
            NONE => adapter,
            to => self.qps[to as usize].adapter,
        };
        let doing = Act::Packet.packet(bytes, number, packet);
        let there = self.fly(adapter, target, now, way, doing);
        match self.fate(q, to, there, clock) {
            Some(there) => {
                self.messages[number].uses += 1;
                let message = number;
                clock.at(there, Event::Arrive { message, packet });
            }
            None => self.lost(q, clock),
        }
        if last {
            self.sent(q, number, clock);
        } else if fetched > 0 && self.qps[q as usize].ahead < AHEAD {
            self.ask_begin(q, clock);
        }
    }

    /// All of a message is on the link.
    fn sent(&mut self, q: u32, number: u32, clock: &mut Clocked) {
        let message = &mut self.messages[number];
        let next = message.next;
        let qp = &mut self.qps[q as usize];
        qp.to_send = next;
        if qp.transport != Transport::Rc {
            // Nobody answers: it is complete when it is gone.
            self.messages[number].done = true;
            self.complete(q, clock);
        }
        if self.qps[q as usize].occupied && self.qps[q as usize].under_way == number {
            self.next_from_memory(q, clock);
        }
        self.ask_begin(q, clock);
    }

    /// Requests are worked off one by one, and one has left for the first time.
    fn next_from_memory(&mut self, q: u32, clock: &mut Clocked) {
        let qp = &mut self.qps[q as usize];
        qp.under_way = NONE;
        qp.occupied = qp.in_memory > 0 && qp.to_begin != NONE;
        if qp.occupied {
            qp.in_memory -= 1;
            let message = &self.messages[qp.to_begin];
            let inlined = if message.inline { message.len } else { 0 };
            match self.system.hca.blueflame {
                // It is begun by an event, for its payload may be in another rank's process.
                true => clock.at(clock.now(), Event::Fetched { qp: q }),
                false => self.take_up(q, inlined, clock),
            }
        }
    }
}
