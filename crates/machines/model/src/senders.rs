//! The send side of the HCAs: from the doorbell through the work request and its payload to packets
//! on the link, and from the answer to a peer's request to its packets.
//!
//! A queue pair's requests leave in the order of their posts. Its engine takes them one after the
//! other and prefetches their payloads; the packets of all queue pairs of an HCA are read round
//! robin.

use fabric::packet::{AETH, DETH, IMMEDIATE, PLAIN, READ_REQUEST, RETH};
use sim::memory::Vec;

use super::engine::Engine;
use super::event::{Clocked, Event};
use super::flights::deliver;
use super::message::{NONE, RequestKind};
use super::queue_pairs::QueuePairs;
use super::rounds::Rounds;
use super::run::Run;
use super::span::Activity;
use device::{Status, Transport};

/// The atomic extended transport header in bytes: address, key, two operands.
const ATOMIC: u64 = 28;

/// The engines of all queue pairs, and the round robins by which adapters read their packets.
pub(crate) struct Senders {
    engines: Vec<Engine>,
    rounds: Rounds,
}

/// The packet that a stream reads next: its message, its number in the message, and its length.
struct Packet {
    message: u32,
    number: u32,
    len: u32,
}

impl Senders {
    /// The senders of a machine with this number of adapters.
    pub(crate) fn new(run: &Run, adapters: usize) -> Senders {
        Senders {
            engines: Vec::new_in(run.memory),
            rounds: Rounds::new(run.memory, adapters),
        }
    }

    /// Adds the engine of a new queue pair.
    pub(crate) fn add(&mut self) {
        self.engines.push(Engine::new());
        self.rounds.add();
    }

    /// Handles the arrival of the processor's store at the HCA.
    pub(crate) fn doorbell(
        &mut self,
        qps: &mut QueuePairs,
        q: u32,
        inlined: u32,
        clock: &mut Clocked,
    ) {
        qps.heed(qps[q].requests.to_begin);
        let timing = qps.ports.timing(qps[q].adapter);
        if !self[q].take_up(timing.one_by_one) {
            return;
        }
        match timing.blueflame {
            true => self.fetched(qps, q, clock),
            false => Senders::ask_fetch(qps, q, inlined, clock),
        }
    }

    /// Schedules the fetch of a request that the processor has not pushed to the HCA.
    fn ask_fetch(qps: &mut QueuePairs, q: u32, inlined: u32, clock: &mut Clocked) {
        let latency = qps.ports.timing(qps[q].adapter).read_latency;
        let life = qps[q].life;
        let fetch = Event::Fetch {
            qp: q,
            life,
            inlined,
        };
        qps.run.schedule(clock.now() + latency, fetch, clock);
    }

    /// Starts the fetch of a work request over the bus.
    pub(crate) fn fetch(qps: &mut QueuePairs, q: u32, inlined: u32, clock: &mut Clocked) {
        qps.heed(qps[q].requests.to_begin);
        let (adapter, life) = (qps[q].adapter, qps[q].life);
        let (ports, run) = (&mut qps.ports, &mut qps.run);
        let end = ports.fetch(run, adapter, clock.now(), inlined);
        run.schedule(end, Event::Fetched { qp: q, life }, clock);
    }

    pub(crate) fn fetched(&mut self, qps: &mut QueuePairs, q: u32, clock: &mut Clocked) {
        if self[q].arrive() {
            self.begin(qps, q, clock);
        }
    }

    /// Schedules the time at which the engine of a queue pair can take the next request.
    pub(crate) fn ask_begin(&mut self, run: &mut Run, q: u32, clock: &mut Clocked) {
        if let Some(at) = self[q].ask() {
            run.schedule(at, Event::Begin { qp: q }, clock);
        }
    }

    /// The rank whose memory is read when the engine of a queue pair takes the next request.
    pub(crate) fn captures(qps: &QueuePairs, q: u32) -> Option<u32> {
        let next = qps[q].requests.to_begin;
        (next != NONE && qps.run.messages[next].is_fetched()).then_some(qps[q].rank)
    }

    /// Makes the engine of a queue pair take the next request, if it can. Called only by events
    /// that name the rank whose memory is read.
    pub(crate) fn begin(&mut self, qps: &mut QueuePairs, q: u32, clock: &mut Clocked) {
        let now = clock.now();
        let (own, qp) = (&mut self.engines[q as usize], &qps[q]);
        let (number, adapter) = (qp.requests.to_begin, qp.adapter);
        let granted = own.take_grant();
        if !own.has_request() || number == NONE || !qp.is_ready() || own.broken {
            return;
        }
        if own.is_busy(now) {
            return self.ask_begin(&mut qps.run, q, clock);
        }
        qps.heed(number);
        let timing = qps.ports.timing(adapter);
        let message = &mut qps.run.messages[number];
        if own.is_full(message, timing) {
            // The event that ends the obstacle schedules this again.
            return;
        }
        let is_fetched = message.is_fetched();
        let until = now + timing.engine_of(message.kind).max(message.interval);
        if !granted {
            let start = qps.ports.take_chip(&mut qps.run, adapter, now);
            if start > now {
                own.grant();
                return qps.run.schedule(start, Event::Begin { qp: q }, clock);
            }
        }
        let message = &mut qps.run.messages[number];
        own.take(number, message);
        message.begun = true;
        let next = message.next;
        qps[q].requests.to_begin = next;
        if !qps.ports.is_within(adapter) && qps.run.faults.break_now(&mut clock.random) {
            return self.fail_locally(qps, q, number, Status::LocalQpOperation, clock);
        }
        if is_fetched && !qps.capture(q, number) {
            return self.fail_locally(qps, q, number, Status::LocalProtection, clock);
        }
        self[q].occupy(until);
        if is_fetched {
            let (at, life) = (now + qps.ports.timing(adapter).read_latency, qps[q].life);
            qps.run.schedule(at, Event::Payload { qp: q, life }, clock);
        } else {
            qps.run.messages[number].ready = true;
            self.go_on_sending(qps, q, clock);
        }
        self.ask_begin(&mut qps.run, q, clock);
    }

    /// Handles the oldest prefetched payload, which begins to arrive.
    pub(crate) fn payload_comes(&mut self, qps: &mut QueuePairs, q: u32, clock: &mut Clocked) {
        let mut number = qps[q].requests.to_send;
        let messages = &mut qps.run.messages;
        // Payloads arrive in the order of the prefetches.
        while number != NONE && (messages[number].ready || !messages[number].begun) {
            number = messages[number].next;
        }
        if number != NONE {
            messages[number].ready = true;
            self.go_on_sending(qps, q, clock);
        }
    }

    /// Sends packets that need no read of memory, and adds the queue pair to the round robin if the
    /// next packet needs one.
    pub(crate) fn go_on_sending(&mut self, qps: &mut QueuePairs, q: u32, clock: &mut Clocked) {
        if self.send_ready(qps, q, clock) {
            self.join(qps, q * 2, clock);
        }
    }

    /// Sends the leading packets that need no read of memory. True: the next packet can be read.
    fn send_ready(&mut self, qps: &mut QueuePairs, q: u32, clock: &mut Clocked) -> bool {
        loop {
            let number = qps[q].requests.to_send;
            if number == NONE || self[q].waits || !qps[q].is_ready() {
                return false;
            }
            let message = &qps.run.messages[number];
            if !message.ready || message.status != Status::Success {
                return false;
            }
            if message.is_fetched() {
                return true;
            }
            self.send_packet(qps, q, number, clock);
        }
    }

    /// The packet of a queue pair's requests that is read next.
    fn next_request(&self, qps: &QueuePairs, q: u32) -> Option<Packet> {
        let number = qps[q].requests.to_send;
        if number == NONE || self[q].waits {
            return None;
        }
        let message = &qps.run.messages[number];
        let can = message.ready && message.is_fetched() && message.status == Status::Success;
        can.then(|| Packet {
            message: number,
            number: message.sent,
            len: message.piece(message.sent).1,
        })
    }

    /// The packet of a queue pair's responses that is read next.
    fn next_answer(qps: &QueuePairs, q: u32) -> Option<Packet> {
        let number = qps[q].answers.first;
        if number == NONE || !qps.run.messages[number].served {
            return None;
        }
        let message = &qps.run.messages[number];
        Some(Packet {
            message: number,
            number: message.answers_sent,
            len: message.piece(message.answers_sent).1,
        })
    }

    /// The packet that a stream reads next.
    fn next_packet(&self, qps: &QueuePairs, stream: u32) -> Option<Packet> {
        let q = stream / 2;
        match qps[q].is_ready() {
            false => None,
            true if stream % 2 == 1 => Senders::next_answer(qps, q),
            true => self.next_request(qps, q),
        }
    }

    /// Sends the next packet of the request `number` on the link.
    fn send_packet(&mut self, qps: &mut QueuePairs, q: u32, number: u32, clock: &mut Clocked) {
        let now = clock.now();
        let (adapter, transport) = (qps[q].adapter, qps[q].transport);
        let message = &mut qps.run.messages[number];
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
        self[q].send(now, fetched);
        qps.heed(number);
        let timing = qps.ports.timing(adapter);
        latency += timing.send + if is_send { timing.matching } else { 0 };
        let (target, life) = match qps.get(to) {
            None => (adapter, 0),
            Some(peer) => (peer.adapter, peer.life),
        };
        let doing = Activity::Packet.packet(bytes, number, packet);
        let ends = (adapter, target);
        let flight = qps.ports.fly(&mut qps.run, ends, now, latency, doing);
        let arrive = Event::Arrive {
            message: number,
            packet,
            life,
        };
        deliver(qps, (q, to), (flight, 0), false, Some(arrive), clock);
        if last {
            self.sent(qps, q, number, clock);
        } else if fetched > 0 && self[q].has_room() {
            self.ask_begin(&mut qps.run, q, clock);
        }
    }

    /// Handles a message whose packets have all been sent on the link.
    fn sent(&mut self, qps: &mut QueuePairs, q: u32, number: u32, clock: &mut Clocked) {
        let message = &qps.run.messages[number];
        let (next, is_fetched) = (message.next, message.is_fetched());
        qps[q].requests.to_send = next;
        if is_fetched {
            self[q].sent_fetched();
        }
        if qps[q].transport != Transport::Rc {
            // Without acknowledgements the message is complete once it has left.
            qps.run.messages[number].done = true;
            self.complete(qps, q, clock);
        }
        let to_begin = qps[q].requests.to_begin;
        if self[q].take_up_next(number, to_begin) {
            let message = &qps.run.messages[to_begin];
            let inlined = if message.inline { message.len } else { 0 };
            Senders::next_from_memory(qps, q, inlined, clock);
        }
        self.ask_begin(&mut qps.run, q, clock);
    }

    /// On an HCA that processes requests one by one: continues with the next request.
    fn next_from_memory(qps: &mut QueuePairs, q: u32, inlined: u32, clock: &mut Clocked) {
        let (adapter, life) = (qps[q].adapter, qps[q].life);
        match qps.ports.timing(adapter).blueflame {
            true => {
                // An event starts the request, because its payload may be in another rank's
                // process.
                let fetched = Event::Fetched { qp: q, life };
                qps.run.schedule(clock.now(), fetched, clock);
            }
            false => {
                qps.heed(qps[q].requests.to_begin);
                Senders::ask_fetch(qps, q, inlined, clock);
            }
        }
    }

    /// Completes the leading requests of the queue pair that are done.
    pub(crate) fn complete(&mut self, qps: &mut QueuePairs, q: u32, clock: &mut Clocked) {
        loop {
            let first = qps[q].requests.first;
            if first == NONE || !qps.run.messages[first].done {
                return;
            }
            let status = qps.run.messages[first].status;
            // The acknowledgement arrived before the message was sent again.
            let was_next = qps[q].requests.to_send == first;
            qps.report(q, clock.now(), status, clock);
            if status != Status::Success {
                return qps.break_qp(q, clock);
            }
            if was_next {
                self.go_on_sending(qps, q, clock);
            }
        }
    }

    /// Fails a request locally: earlier requests proceed, later ones do not.
    pub(crate) fn fail_locally(
        &mut self,
        qps: &mut QueuePairs,
        q: u32,
        number: u32,
        status: Status,
        clock: &mut Clocked,
    ) {
        let message = &mut qps.run.messages[number];
        message.status = status;
        message.done = true;
        self[q].broken = true;
        self.complete(qps, q, clock);
    }

    /// Sends responses that need no read of memory, and adds the queue pair to the round robin if
    /// the next packet needs one.
    pub(crate) fn go_on_answering(&mut self, qps: &mut QueuePairs, q: u32, clock: &mut Clocked) {
        if Senders::answer_ready(qps, q, clock) {
            self.join(qps, q * 2 + 1, clock);
        }
    }

    /// Sends the leading responses that need no read of memory. True: the next packet can be read.
    fn answer_ready(qps: &mut QueuePairs, q: u32, clock: &mut Clocked) -> bool {
        loop {
            let number = qps[q].answers.first;
            if number == NONE || !qps.run.messages[number].served {
                return false;
            }
            let message = &qps.run.messages[number];
            if message.kind == RequestKind::Read && message.len > 0 {
                return true;
            }
            Senders::send_answer(qps, q, number, clock);
        }
    }

    /// Sends the next packet of the response to `number` on the link.
    fn send_answer(qps: &mut QueuePairs, q: u32, number: u32, clock: &mut Clocked) {
        let message = &mut qps.run.messages[number];
        let packet = message.answers_sent;
        message.answers_sent += 1;
        let (len, from, latency) = (message.piece(packet).1, message.from, message.latency);
        let (first, last) = (packet == 0, packet + 1 >= message.response_packets());
        let header = if first || last { PLAIN + AETH } else { PLAIN };
        let bytes = u64::from(len).next_multiple_of(4) + header;
        let ends = (qps[q].adapter, qps[from].adapter);
        let doing = Activity::Answer.packet(bytes, number, packet);
        let (ports, run) = (&mut qps.ports, &mut qps.run);
        let flight = ports.fly(run, ends, clock.now(), latency, doing);
        let answered = Event::Answered {
            message: number,
            packet,
        };
        deliver(qps, (q, from), (flight, 0), true, Some(answered), clock);
        if last {
            qps.forget_answer(q, number);
        }
    }

    /// Adds a stream whose next packet can be read from memory to its adapter's round robin.
    pub(crate) fn join(&mut self, qps: &mut QueuePairs, stream: u32, clock: &mut Clocked) {
        let adapter = qps[stream / 2].adapter;
        if self.rounds.join(adapter, stream) {
            self.read_on(qps, adapter, clock);
        }
    }

    /// Starts reading the next packet of an adapter, if there is one and the adapter is free.
    fn read_on(&mut self, qps: &mut QueuePairs, adapter: u32, clock: &mut Clocked) {
        let now = clock.now();
        let buffer = qps.ports.timing(adapter).buffer;
        while self.rounds.can_read(adapter) {
            let free = qps.ports.link_free(adapter);
            if free > now + buffer {
                self.rounds.pause(adapter);
                clock.at(free - buffer, Event::Pump { adapter });
                return;
            }
            let stream = self.rounds.take_first(adapter);
            let Some(packet) = self.next_packet(qps, stream) else {
                self.rounds.leave(stream);
                continue;
            };
            let own = &mut self.engines[stream as usize / 2];
            if own.paced > now {
                self.rounds.leave(stream);
                clock.at(own.paced, Event::Paced { stream });
                continue;
            }
            qps.heed(packet.message);
            let (ports, run) = (&mut qps.ports, &mut qps.run);
            own.paced = now + ports.timing(adapter).pace(packet.len);
            let of = (packet.message, packet.number);
            let end = ports.read(run, adapter, now, packet.len, of);
            self.rounds.begin(adapter, stream);
            clock.at(end, Event::Pump { adapter });
        }
    }

    /// Continues after an adapter has read a packet, or after its link has caught up.
    pub(crate) fn pump(&mut self, qps: &mut QueuePairs, adapter: u32, clock: &mut Clocked) {
        if let Some(stream) = self.rounds.end(adapter) {
            let more = self.send_read(qps, stream, clock);
            self.rounds.go_on(adapter, stream, more);
        }
        self.read_on(qps, adapter, clock);
    }

    /// Sends the packet of a stream that has been read. True: another packet of it can be read.
    fn send_read(&mut self, qps: &mut QueuePairs, stream: u32, clock: &mut Clocked) -> bool {
        let q = stream / 2;
        match self.next_packet(qps, stream) {
            None => false,
            Some(packet) if stream % 2 == 1 => {
                Senders::send_answer(qps, q, packet.message, clock);
                Senders::answer_ready(qps, q, clock)
            }
            Some(packet) => {
                self.send_packet(qps, q, packet.message, clock);
                self.send_ready(qps, q, clock)
            }
        }
    }
}

impl std::ops::Index<u32> for Senders {
    type Output = Engine;
    #[inline]
    fn index(&self, q: u32) -> &Engine {
        &self.engines[q as usize]
    }
}

impl std::ops::IndexMut<u32> for Senders {
    #[inline]
    fn index_mut(&mut self, q: u32) -> &mut Engine {
        &mut self.engines[q as usize]
    }
}
