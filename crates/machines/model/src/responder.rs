//! The responder: packets arrive, are placed, answered and acknowledged, or refused (IBA 9.7.5,
//! 9.8, 9.9.3).

use fabric::packet::{ACKNOWLEDGEMENT, GRH};
use sim::Time;

use super::message::RequestKind;
use super::rank::Arrival;
use super::record::Activity;
use super::regions::AccessKind;
use super::{Clocked, Event, MachineModel, NONE, Refusal};
use device::{Completed, Completion, Qp, Slice, State, Status, Transport};

/// The destination of a message's bytes.
#[derive(Clone, Copy)]
pub(super) enum Destination {
    Region { address: u64, key: u32 },
    Receive { receive: u32 },
    Slices,
}

impl MachineModel {
    /// Handles a packet that has come through the chip.
    pub(super) fn arrive(&mut self, number: u32, packet: u32, life: u32, clock: &mut Clocked) {
        let message = &self.messages[number];
        let (from, now) = (message.from, self.qps[message.to as usize].life);
        if life > 0 && life != now {
            // It left for a connection that has ended meanwhile.
            self.lost(from, clock);
        } else if self.is_next(number, packet, clock) {
            self.take_packet(number, packet, clock);
        }
        self.messages.release(number);
    }

    /// True if a packet is the one that its queue pair expects.
    fn is_next(&mut self, number: u32, packet: u32, clock: &mut Clocked) -> bool {
        let message = &self.messages[number];
        let (from, life, sequence) = (message.from, message.life, message.sequence);
        let kind = message.kind;
        let last = packet + 1 == message.packets();
        let transport = self.qps[from as usize].transport;
        let to = &mut self.qps[message.to as usize];
        let connected = to.transport == Transport::Ud || to.peer == from;
        let same = to.transport == transport;
        if !to.alive || to.state != State::Rts || !connected || !same {
            self.lost(from, clock);
            return false;
        }
        match to.transport {
            Transport::Ud => return true,
            Transport::Uc => {
                // A message begins with its first packet and continues with the next; otherwise all
                // of it is dropped.
                let next = packet == 0
                    || (!to.dropping && sequence == to.expected && packet == to.expected_packet);
                if packet == 0 {
                    to.expected = sequence;
                }
                to.dropping = !next;
                to.expected_packet = packet + 1;
                return next;
            }
            Transport::Rc => {}
        }
        if (life.wrapping_sub(to.past_life) as i32) <= 0 {
            // A packet of a connection that has ended.
            self.lost(from, clock);
            return false;
        }
        if to.peer_life != life {
            // A packet of an earlier connection, or the first of a new one.
            if (life.wrapping_sub(to.peer_life) as i32) < 0
                || to.expected != 0
                || sequence != 0
                || packet != 0
            {
                self.lost(from, clock);
                return false;
            }
            to.peer_life = life;
        }
        let ahead = sequence.wrapping_sub(to.expected) as i32;
        if ahead == 0 && packet == to.expected_packet {
            to.complained = false;
            return true;
        }
        if ahead > 0 || ahead == 0 && packet > to.expected_packet {
            if !to.complained {
                to.complained = true;
                let event = Event::Missing {
                    qp: from,
                    sequence: to.expected,
                    packet: to.expected_packet,
                };
                self.send_back(number, event, clock);
            }
            return false;
        }
        // A duplicate: the response was lost, or is in flight.
        if last && kind.is_answered() {
            self.answer_again(number, clock);
        } else if last {
            self.acknowledge(number, clock.now(), true, clock);
        }
        false
    }

    /// Places a packet, and ends the message if it is the last.
    fn take_packet(&mut self, number: u32, packet: u32, clock: &mut Clocked) {
        let now = clock.now();
        let message = &self.messages[number];
        let (q, kind) = (message.to, message.kind);
        if packet == 0 && !self.open(number, clock) {
            return;
        }
        if kind.is_answered() {
            let to = &mut self.qps[q as usize];
            to.expected = to.expected.wrapping_add(1);
            return self.ask_memory(number, clock);
        }
        let message = &self.messages[number];
        let last = packet + 1 == message.packets();
        let (from, len) = message.piece(packet);
        let into = match kind {
            RequestKind::Write => Destination::Region {
                address: message.address,
                key: message.rkey,
            },
            _ => Destination::Receive {
                receive: self.qps[q as usize].receive,
            },
        };
        let adapter = self.qps[q as usize].adapter;
        // A datagram has one packet.
        let header = self.header(q);
        let end = self.write(adapter, now, len + header, number, packet);
        let visible = end + self.timing(adapter).write_latency;
        self.qps[q as usize].visible = visible;
        // The receiver of sends waits for completions.
        self.place(
            q,
            number,
            (from, len),
            into,
            visible,
            last && kind == RequestKind::Write,
            clock,
        );
        let to = &mut self.qps[q as usize];
        if to.transport == Transport::Rc {
            to.expected_packet += 1;
        }
        if last {
            self.close(number, end, clock);
        }
    }

    /// The length of the header that the HCA writes in front of a datagram's payload, and that the
    /// program never sees.
    fn header(&self, q: u32) -> u32 {
        match self.qps[q as usize].transport {
            Transport::Ud => GRH as u32,
            _ => 0,
        }
    }

    /// Handles the first packet of a message: checks its rights, and takes a receive if it needs
    /// one.
    fn open(&mut self, number: u32, clock: &mut Clocked) -> bool {
        let message = &self.messages[number];
        let q = message.to;
        let to = &self.qps[q as usize];
        let place = (to.rank, self.adapters[to.adapter as usize].domain);
        let to_do = match message.kind {
            RequestKind::Write => Some(AccessKind::RemoteWrite),
            RequestKind::Read => Some(AccessKind::RemoteRead),
            RequestKind::CompareAndSwap | RequestKind::FetchAndAdd => {
                Some(AccessKind::RemoteAtomic)
            }
            RequestKind::Send => None,
        };
        let (address, len) = (message.address, u64::from(message.len));
        if let Some(to_do) = to_do {
            let atomic = to_do == AccessKind::RemoteAtomic;
            if atomic && !address.is_multiple_of(8) {
                self.refuse(number, Refusal::InvalidRequest, clock);
                return false;
            }
            if !self.regions.allow(place, message.rkey, address, len, to_do) {
                self.refuse(number, Refusal::Access, clock);
                return false;
            }
        }
        if message.kind == RequestKind::Send || message.immediate.is_some() {
            let Some(receive) = self.receives.take(to.receives) else {
                self.refuse(number, Refusal::NotReady, clock);
                return false;
            };
            // The receive of an earlier message that was never finished.
            let before = std::mem::replace(&mut self.qps[q as usize].receive, receive);
            if before != NONE {
                self.receives.free(before);
            }
            if self.messages[number].kind == RequestKind::Send {
                return self.fits(number, receive, clock);
            }
        }
        true
    }

    /// True if a message may be written to a receive; otherwise the receive fails.
    fn fits(&mut self, number: u32, receive: u32, clock: &mut Clocked) -> bool {
        let q = self.messages[number].to;
        let to = &self.qps[q as usize];
        let place = (to.rank, self.adapters[to.adapter as usize].domain);
        let need = u64::from(self.messages[number].len);
        let slices = &self.receives.get(receive).slices;
        let room: u64 = slices.iter().map(|slice| u64::from(slice.len)).sum();
        let allowed = slices.iter().all(|slice| {
            let len = u64::from(slice.len);
            self.regions.allow(
                place,
                slice.lkey,
                slice.address,
                len,
                AccessKind::LocalWrite,
            )
        });
        let (status, why) = match (need <= room, allowed) {
            (true, true) => return true,
            (false, _) => (Status::LocalLength, Refusal::InvalidRequest),
            (_, false) => (Status::LocalProtection, Refusal::Operation),
        };
        self.finish_receive(q, number, status, clock.now(), clock);
        self.refuse(number, why, clock);
        // IBA 9.9.3: a datagram that does not fit breaks its queue pair too.
        self.break_qp(q, clock);
        false
    }

    /// Ends a message whose last packet is on the bus at `end`.
    fn close(&mut self, number: u32, end: Time, clock: &mut Clocked) {
        let message = &self.messages[number];
        let (q, from) = (message.to, message.from);
        if message.kind == RequestKind::Send || message.immediate.is_some() {
            self.finish_receive(q, number, Status::Success, end, clock);
        }
        let to = &mut self.qps[q as usize];
        if to.transport != Transport::Rc {
            return;
        }
        to.expected = to.expected.wrapping_add(1);
        to.expected_packet = 0;
        let silent = !self.messages[number].signaled && !self.faults.lose_packets();
        self.acknowledge(number, end, !silent, clock);
        if silent && self.messages[number].listed {
            // The requester expects no acknowledgement.
            self.messages[number].done = true;
            self.qps[from as usize].progress = clock.now();
            self.complete(from, clock);
        }
    }

    fn finish_receive(
        &mut self,
        q: u32,
        number: u32,
        status: Status,
        at: Time,
        clock: &mut Clocked,
    ) {
        let receive = std::mem::replace(&mut self.qps[q as usize].receive, NONE);
        if receive == NONE {
            return;
        }
        let message = &self.messages[number];
        let of = match message.kind {
            RequestKind::Write => Completed::ReceiveWrite,
            _ => Completed::Receive,
        };
        let completion = Completion {
            id: self.receives.get(receive).id,
            qp: Qp(q),
            status,
            of,
            bytes: message.len,
            immediate: message.immediate,
        };
        self.receives.free(receive);
        let cq = self.qps[q as usize].receive_cq;
        self.put_completion(cq, at, completion, None, clock);
    }

    /// Flushes the receives of a queue pair in ERROR.
    pub(super) fn flush_receives(&mut self, q: u32, at: Time, clock: &mut Clocked) {
        loop {
            let qp = &mut self.qps[q as usize];
            let mut receive = std::mem::replace(&mut qp.receive, NONE);
            let (shared, queue, cq) = (qp.shared, qp.receives, qp.receive_cq);
            if receive == NONE && !shared {
                receive = self.receives.take(queue).unwrap_or(NONE);
            }
            if receive == NONE {
                return;
            }
            let completion = Completion {
                id: self.receives.get(receive).id,
                qp: Qp(q),
                status: Status::Flushed,
                of: Completed::Receive,
                bytes: 0,
                immediate: None,
            };
            self.receives.free(receive);
            self.put_completion(cq, at, completion, None, clock);
        }
    }

    /// Announces bytes of a message that become visible.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn place(
        &mut self,
        q: u32,
        number: u32,
        (from, len): (u32, u32),
        into: Destination,
        at: Time,
        wakes: bool,
        clock: &mut Clocked,
    ) {
        if len == 0 {
            return;
        }
        let rank = self.qps[q as usize].rank;
        if let Destination::Region { address, key } = into {
            let to = address + u64::from(from);
            let what = Arrival::Bytes {
                message: number,
                from,
                len,
                key,
                to,
            };
            return self.announce_bytes(rank, at, what, wakes, clock);
        }
        // The part of each slice that these bytes fall into.
        let (mut index, mut passed) = (0, 0);
        let (start, end) = (from, from + len);
        while passed < end {
            let slices: &[Slice] = match into {
                Destination::Receive { receive } => &self.receives.get(receive).slices,
                _ => &self.messages[number].slices,
            };
            let Some(&slice) = slices.get(index) else {
                return;
            };
            let (low, high) = (start.max(passed), end.min(passed + slice.len));
            if low < high {
                let what = Arrival::Bytes {
                    message: number,
                    from: low,
                    len: high - low,
                    key: slice.lkey,
                    to: slice.address + u64::from(low - passed),
                };
                self.announce_bytes(rank, at, what, wakes && high == end, clock);
            }
            passed += slice.len;
            index += 1;
        }
    }

    /// Acknowledges a message; `heard`: the requester acts on the acknowledgement.
    fn acknowledge(&mut self, number: u32, at: Time, heard: bool, clock: &mut Clocked) {
        let (from, to) = (self.messages[number].from, self.messages[number].to);
        // It takes its place on the link now, and leaves when the write is on the bus.
        let wait = at.saturating_sub(clock.now());
        let there = self.fly_back(number, clock) + wait;
        if !heard {
            return;
        }
        match self.fate(to, from, there, true, clock) {
            Some(there) => {
                self.messages[number].uses += 1;
                self.schedule(there, Event::Acknowledged { message: number }, clock);
            }
            None => self.lost(from, clock),
        }
    }

    /// Sends a packet to the requester.
    fn send_back(&mut self, number: u32, event: Event, clock: &mut Clocked) {
        let (from, to) = (self.messages[number].from, self.messages[number].to);
        let there = self.fly_back(number, clock);
        match self.fate(to, from, there, true, clock) {
            Some(there) => {
                if let Event::Refused { message, .. } = event {
                    self.messages[message].uses += 1;
                }
                self.schedule(there, event, clock);
            }
            None => self.lost(from, clock),
        }
    }

    /// Puts an acknowledgement on the link to the requester; returns its arrival.
    fn fly_back(&mut self, number: u32, clock: &Clocked) -> Time {
        let message = &self.messages[number];
        let (from, to, latency) = (message.from, message.to, message.latency);
        let here = self.qps[to as usize].adapter;
        let there = self.qps[from as usize].adapter;
        let doing = Activity::Acknowledgement.packet(ACKNOWLEDGEMENT, number, 0);
        self.fly(here, there, clock.now(), latency, doing)
    }

    /// Refuses a message. Only a reliable connection reports this to the requester.
    pub(super) fn refuse(&mut self, number: u32, why: Refusal, clock: &mut Clocked) {
        let q = self.messages[number].to;
        let to = &mut self.qps[q as usize];
        match to.transport {
            Transport::Rc => {
                to.complained = true;
                let event = Event::Refused {
                    message: number,
                    why,
                };
                self.send_back(number, event, clock);
                if why != Refusal::NotReady {
                    self.break_qp(q, clock);
                }
            }
            Transport::Uc => to.dropping = true,
            Transport::Ud => {}
        }
    }
}
