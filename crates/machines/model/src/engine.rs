//! The send side of the HCA: from the doorbell through the work request and its payload to packets
//! on the link.
//!
//! A queue pair's requests leave in the order in which they were posted. The engine takes them one
//! after the other and prefetches their payloads; the packets of all queue pairs of an HCA are read
//! in turns.

use fabric::packet::{DETH, IMMEDIATE, PLAIN, READ_REQUEST, RETH};

use super::message::RequestKind;
use super::record::{Activity, HcaPart};
use super::regions::AccessKind;
use super::{Clocked, Event, MachineModel, NONE};
use device::{State, Status, Transport};

/// The prefetched payload, in bytes, at which the engine stops taking requests of a queue pair. It
/// exceeds the bytes that any bus carries within a read's latency (125 GB/s for 1 us), so it only
/// bounds memory.
const AHEAD: u64 = 128 << 10;
/// Atomic extended transport header: address, key, two operands.
const ATOMIC: u64 = 28;

impl MachineModel {
    /// Handles the arrival of the processor's store.
    pub(super) fn doorbell(&mut self, q: u32, inlined: u32, clock: &mut Clocked) {
        let (adapter, number) = (self.qps[q as usize].adapter, self.qps[q as usize].to_begin);
        self.heed(number);
        if self.timing(adapter).one_by_one {
            let qp = &mut self.qps[q as usize];
            if qp.occupied {
                qp.in_memory += 1;
                return;
            }
            qp.occupied = true;
        }
        self.take_up(q, inlined, clock);
    }

    /// Takes up a request, which the processor has pushed or which the HCA fetches.
    fn take_up(&mut self, q: u32, inlined: u32, clock: &mut Clocked) {
        let (adapter, number) = (self.qps[q as usize].adapter, self.qps[q as usize].to_begin);
        self.heed(number);
        if self.timing(adapter).blueflame {
            return self.fetched(q, clock);
        }
        let latency = self.timing(adapter).read_latency;
        let life = self.qps[q as usize].life;
        self.schedule(
            clock.now() + latency,
            Event::Fetch {
                qp: q,
                life,
                inlined,
            },
            clock,
        );
    }

    /// Starts the fetch of a work request over the bus.
    pub(super) fn fetch(&mut self, q: u32, inlined: u32, clock: &mut Clocked) {
        let (adapter, number) = (self.qps[q as usize].adapter, self.qps[q as usize].to_begin);
        self.heed(number);
        let time = self.timing(adapter).fetch(inlined);
        let end = self.down(adapter).take(clock.now(), time);
        let doing = Activity::WorkRequest.alone(inlined as usize);
        self.note_rail(adapter, HcaPart::BusDown, end, time, doing);
        let life = self.qps[q as usize].life;
        self.schedule(end, Event::Fetched { qp: q, life }, clock);
    }

    pub(super) fn fetched(&mut self, q: u32, clock: &mut Clocked) {
        let qp = &mut self.qps[q as usize];
        qp.rung += 1;
        if !qp.begin_asked {
            self.begin(q, clock);
        }
    }

    /// Schedules the engine to take the next request, as soon as it can.
    pub(super) fn ask_begin(&mut self, q: u32, clock: &mut Clocked) {
        let qp = &mut self.qps[q as usize];
        if qp.rung > 0 && !qp.begin_asked {
            qp.begin_asked = true;
            let at = qp.engine;
            self.schedule(at, Event::Begin { qp: q }, clock);
        }
    }

    /// The rank whose memory is read when the engine takes the next request.
    pub(super) fn captures(&self, q: u32) -> Option<u32> {
        let qp = &self.qps[q as usize];
        let next = qp.to_begin;
        (next != NONE && self.messages[next].is_fetched()).then_some(qp.rank)
    }

    /// Makes the engine take the next request, if it can. Called only by events that name the rank
    /// whose memory is read.
    pub(super) fn begin(&mut self, q: u32, clock: &mut Clocked) {
        let now = clock.now();
        let qp = &mut self.qps[q as usize];
        let number = qp.to_begin;
        let granted = std::mem::take(&mut qp.granted);
        if qp.rung == 0 || number == NONE || qp.state != State::Rts || qp.broken {
            return;
        }
        if qp.engine > now {
            return self.ask_begin(q, clock);
        }
        let (adapter, reads, fetching, ahead) = (qp.adapter, qp.reads, qp.fetching, qp.ahead);
        let (kind, is_fetched) = {
            let message = &self.messages[number];
            (message.kind, message.is_fetched())
        };
        self.heed(number);
        let timing = self.timing(adapter);
        let waits = match kind.is_answered() {
            true => reads >= timing.reads,
            false => is_fetched && (ahead >= AHEAD || fetching >= timing.prefetch),
        };
        if waits {
            // The event that ends the obstacle schedules this again.
            return;
        }
        let engine = timing.engine_of(kind);
        if !granted {
            let start = self.take_chip(adapter, now);
            if start > now {
                let qp = &mut self.qps[q as usize];
                (qp.granted, qp.begin_asked) = (true, true);
                return self.schedule(start, Event::Begin { qp: q }, clock);
            }
        }
        let (qp, message) = (&mut self.qps[q as usize], &mut self.messages[number]);
        qp.rung -= 1;
        qp.to_begin = message.next;
        message.begun = true;
        qp.under_way = number;
        qp.reads += u32::from(message.kind.is_answered());
        if is_fetched {
            qp.ahead += u64::from(message.len);
            qp.fetching += 1;
        }
        if !self.is_within(q) && self.breaks(clock) {
            return self.fail_locally(q, number, Status::LocalQpOperation, clock);
        }
        if is_fetched && !self.capture(q, number) {
            return self.fail_locally(q, number, Status::LocalProtection, clock);
        }
        let latency = self.timing(adapter).read_latency;
        self.qps[q as usize].engine = now + engine;
        if is_fetched {
            let life = self.qps[q as usize].life;
            self.schedule(now + latency, Event::Payload { qp: q, life }, clock);
        } else {
            self.messages[number].ready = true;
            self.go_on_sending(q, clock);
        }
        self.ask_begin(q, clock);
    }

    /// Reads the payload. False: a local key does not allow it.
    pub(super) fn capture(&mut self, q: u32, number: u32) -> bool {
        let qp = &self.qps[q as usize];
        let place = (qp.rank, self.adapters[qp.adapter as usize].domain);
        let message = &mut self.messages[number];
        for at in 0..message.slices.len() {
            let slice = message.slices[at];
            let len = u64::from(slice.len);
            if !self
                .regions
                .allow(place, slice.lkey, slice.address, len, AccessKind::LocalRead)
            {
                return false;
            }
            // SAFETY: the slice lies in a region that is still registered, so it is memory of that
            // rank, in whose process we are; its owner expects the device to read it at any time.
            unsafe { message.read(slice.address, slice.len) };
        }
        true
    }

    /// The oldest prefetched payload begins to arrive.
    pub(super) fn payload_comes(&mut self, q: u32, clock: &mut Clocked) {
        let mut number = self.qps[q as usize].to_send;
        // In the order of the prefetches.
        while number != NONE && (self.messages[number].ready || !self.messages[number].begun) {
            number = self.messages[number].next;
        }
        if number != NONE {
            self.messages[number].ready = true;
            self.go_on_sending(q, clock);
        }
    }

    /// Puts packets on the link that need no reading, and adds the queue pair to the round if the
    /// next needs it.
    pub(super) fn go_on_sending(&mut self, q: u32, clock: &mut Clocked) {
        if self.send_ready(q, clock) {
            self.join(q * 2, clock);
        }
    }

    /// Sends the leading packets that need no reading. True if the next packet can be read.
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
        can.then(|| message.piece(message.sent).1)
    }

    /// Handles a packet of the first request that has been read. True if it has another packet to
    /// read.
    pub(super) fn request_read(&mut self, q: u32, clock: &mut Clocked) -> bool {
        if self.next_packet(q * 2).is_none() {
            return false;
        }
        let number = self.qps[q as usize].to_send;
        self.send_packet(q, number, clock);
        self.send_ready(q, clock)
    }

    /// Puts the next packet of the first message on the link.
    fn send_packet(&mut self, q: u32, number: u32, clock: &mut Clocked) {
        let now = clock.now();
        let qp = &mut self.qps[q as usize];
        let (adapter, transport) = (qp.adapter, qp.transport);
        qp.progress = now;
        let message = &mut self.messages[number];
        let (packet, packets) = (message.sent, message.packets());
        message.sent += 1;
        let (first, last) = (packet == 0, packet + 1 == packets);
        let len = u64::from(message.piece(packet).1).next_multiple_of(4);
        let immediate = match message.immediate {
            Some(_) if last => IMMEDIATE,
            _ => 0,
        };
        let bytes = match message.kind {
            RequestKind::Write if first => len + PLAIN + RETH + immediate,
            RequestKind::Write => len + PLAIN + immediate,
            RequestKind::Send if transport == Transport::Ud => len + PLAIN + DETH + immediate,
            RequestKind::Send => len + PLAIN + immediate,
            RequestKind::Read => READ_REQUEST,
            RequestKind::CompareAndSwap | RequestKind::FetchAndAdd => PLAIN + ATOMIC,
        };
        let fetched = if message.is_fetched() { len } else { 0 };
        let (to, mut latency) = (message.to, message.latency);
        let is_send = message.kind == RequestKind::Send;
        self.qps[q as usize].ahead = self.qps[q as usize].ahead.saturating_sub(fetched);
        self.heed(number);
        let timing = self.timing(adapter);
        latency += timing.send + if is_send { timing.matching } else { 0 };
        let target = match to {
            NONE => adapter,
            to => self.qps[to as usize].adapter,
        };
        let doing = Activity::Packet.packet(bytes, number, packet);
        let there = self.fly(adapter, target, now, latency, doing);
        match self.fate(q, to, there, false, clock) {
            Some(there) => {
                self.messages[number].uses += 1;
                let event = Event::Arrive {
                    message: number,
                    packet,
                    life: self.qps[to as usize].life,
                };
                self.schedule(there, event, clock);
            }
            None => self.lost(q, clock),
        }
        if last {
            self.sent(q, number, clock);
        } else if fetched > 0 && self.qps[q as usize].ahead < AHEAD {
            self.ask_begin(q, clock);
        }
    }

    /// Handles a message that is entirely on the link.
    fn sent(&mut self, q: u32, number: u32, clock: &mut Clocked) {
        let message = &self.messages[number];
        let qp = &mut self.qps[q as usize];
        qp.to_send = message.next;
        if message.is_fetched() {
            // A retransmission leaves a second time.
            qp.fetching = qp.fetching.saturating_sub(1);
        }
        if qp.transport != Transport::Rc {
            // Without acknowledgements it is complete once it has left.
            self.messages[number].done = true;
            self.complete(q, clock);
        }
        if self.qps[q as usize].occupied && self.qps[q as usize].under_way == number {
            self.next_from_memory(q, clock);
        }
        self.ask_begin(q, clock);
    }

    /// Where requests are processed one by one: continues after one has left for the first time.
    fn next_from_memory(&mut self, q: u32, clock: &mut Clocked) {
        let qp = &mut self.qps[q as usize];
        qp.under_way = NONE;
        qp.occupied = qp.in_memory > 0 && qp.to_begin != NONE;
        if qp.occupied {
            qp.in_memory -= 1;
            let message = &self.messages[qp.to_begin];
            let inlined = if message.inline { message.len } else { 0 };
            let (adapter, life) = (qp.adapter, qp.life);
            match self.timing(adapter).blueflame {
                // An event starts it, because its payload may be in another rank's process.
                true => self.schedule(clock.now(), Event::Fetched { qp: q, life }, clock),
                false => self.take_up(q, inlined, clock),
            }
        }
    }
}
