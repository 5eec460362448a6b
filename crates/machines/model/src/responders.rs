//! The responders of queue pairs: packets arrive, are written to memory, answered and acknowledged,
//! or refused (IBA 9.7.5, 9.8, 9.9.3); memory is read for responses, and changed by atomics (IBA
//! 9.4.4, 9.4.5, 9.7.5.1.8).

use fabric::packet::GRH;
use sim::Time;
use sim::memory::{Vec, WorldMemory};

use super::event::{Clocked, Event, Refusal};
use super::flights::deliver;
use super::message::{NONE, RequestKind};
use super::placed::{Destination, Placed, announce};
use super::queue_pairs::QueuePairs;
use super::reception::{Admission, Packet, Reception};
use super::regions::AccessKind;
use super::senders::Senders;
use device::{Status, Transport};

/// The responders (answering sides) of all queue pairs.
pub(crate) struct Responders {
    all: Vec<Reception>,
}

impl Responders {
    pub(crate) fn new(memory: WorldMemory) -> Responders {
        Responders {
            all: Vec::new_in(memory),
        }
    }

    /// Adds the responder of a new queue pair.
    pub(crate) fn add(&mut self) {
        self.all.push(Reception::default());
    }

    /// Ends the connection of a queue pair's responder.
    pub(crate) fn reset(&mut self, q: u32) {
        self.all[q as usize].reset();
    }

    /// The message and packet from which the requester of queue pair `q` must send again, after its
    /// oldest message got no acknowledgement. Acknowledgements within a message are not modelled as
    /// packets; the responder's state is used instead.
    pub(crate) fn resumption(&self, qps: &QueuePairs, q: u32) -> (u32, u32) {
        let first = qps[q].requests.first;
        if first == NONE {
            return (0, 0);
        }
        let message = &qps.run.messages[first];
        match qps.get(message.to) {
            Some(peer) if peer.peer == q => {
                self.all[message.to as usize].resumption(message.life, message.sequence)
            }
            _ => (message.sequence, 0),
        }
    }

    /// Handles a packet of a request that has passed the chip.
    pub(crate) fn arrive(
        &mut self,
        senders: &mut Senders,
        qps: &mut QueuePairs,
        (number, packet, life): (u32, u32, u32),
        clock: &mut Clocked,
    ) {
        let message = &qps.run.messages[number];
        let (from, to, now) = (message.from, message.to, qps[message.to].life);
        let admission = match life > 0 && life != now {
            // The packet left for a connection that has ended meanwhile.
            true => Admission::Lost,
            false => self.admit(qps, number, packet),
        };
        match admission {
            Admission::Next => self.take_packet(senders, qps, (number, packet), clock),
            Admission::Dropped => {}
            Admission::Lost => qps.lost(from, clock),
            Admission::Missing { sequence, packet } => {
                let missing = Event::Missing {
                    qp: from,
                    sequence,
                    packet,
                };
                let flight = qps.acknowledge(number, clock);
                deliver(qps, (to, from), (flight, 0), true, Some(missing), clock);
            }
            Admission::Duplicate => Responders::answer_again(qps, number, packet, clock),
        }
        qps.run.messages.release(number);
    }

    /// Classifies a packet by comparing it with the one that its queue pair expects.
    fn admit(&mut self, qps: &QueuePairs, number: u32, packet: u32) -> Admission {
        let message = &qps.run.messages[number];
        let to = &qps[message.to];
        let connected = to.transport == Transport::Ud || to.peer == message.from;
        let same = to.transport == qps[message.from].transport;
        if !to.alive || !to.is_ready() || !connected || !same {
            return Admission::Lost;
        }
        let packet = Packet {
            life: message.life,
            sequence: message.sequence,
            packet,
        };
        self.all[message.to as usize].admit(to.transport, packet)
    }

    /// Writes a packet to memory, and completes its message if it is the last packet.
    fn take_packet(
        &mut self,
        senders: &mut Senders,
        qps: &mut QueuePairs,
        (number, packet): (u32, u32),
        clock: &mut Clocked,
    ) {
        if packet == 0 && !self.open(qps, number, clock) {
            return;
        }
        let message = &qps.run.messages[number];
        let (q, kind) = (message.to, message.kind);
        if kind.is_answered() {
            self.all[q as usize].take_message();
            return Responders::ask_memory(qps, number, clock);
        }
        let last = packet + 1 == message.packets();
        let (from, len) = message.piece(packet);
        let into = match kind {
            RequestKind::Write => Destination::Region {
                address: message.address,
                key: message.rkey,
            },
            _ => Destination::Receive {
                receive: qps[q].receive,
            },
        };
        let (adapter, transport) = (qps[q].adapter, qps[q].transport);
        // A datagram has one packet, with a header before its payload that the HCA writes and the
        // program never sees.
        let header = match transport {
            Transport::Ud => GRH as u32,
            _ => 0,
        };
        let (ports, run) = (&mut qps.ports, &mut qps.run);
        let end = ports.write(run, adapter, clock.now(), len + header, (number, packet));
        let visible = end + ports.timing(adapter).write_latency;
        let visible = qps.visible(q, number, visible);
        let placed = Placed {
            message: number,
            from,
            len,
            into,
            // The receiver of a send waits for the completion.
            wakes: last && kind == RequestKind::Write,
        };
        announce(qps, q, placed, visible, clock);
        self.all[q as usize].take_packet(transport);
        if last {
            self.close(senders, qps, number, end, clock);
        }
    }

    /// Handles the first packet of a message: checks the rights, and takes a receive if the message
    /// needs one. False: the message was refused.
    fn open(&mut self, qps: &mut QueuePairs, number: u32, clock: &mut Clocked) -> bool {
        let message = &qps.run.messages[number];
        let (q, kind) = (message.to, message.kind);
        let to_do = match kind {
            RequestKind::Write => Some(AccessKind::RemoteWrite),
            RequestKind::Read => Some(AccessKind::RemoteRead),
            RequestKind::CompareAndSwap | RequestKind::FetchAndAdd => {
                Some(AccessKind::RemoteAtomic)
            }
            RequestKind::Send => None,
        };
        let needs_receive = kind == RequestKind::Send || message.immediate.is_some();
        if let Some(to_do) = to_do {
            let (address, len) = (message.address, u64::from(message.len));
            let atomic = to_do == AccessKind::RemoteAtomic;
            if atomic && !address.is_multiple_of(8) {
                self.refuse(qps, number, Refusal::InvalidRequest, clock);
                return false;
            }
            let regions = &qps.ranks.regions;
            if !regions.allow(qps.place(q), message.rkey, address, len, to_do) {
                self.refuse(qps, number, Refusal::Access, clock);
                return false;
            }
        }
        if needs_receive {
            let Some(receive) = qps.receives.take(qps[q].receives) else {
                self.refuse(qps, number, Refusal::NotReady, clock);
                return false;
            };
            // This receive belongs to an earlier message that was never finished.
            let before = std::mem::replace(&mut qps[q].receive, receive);
            if before != NONE {
                qps.receives.free(before);
            }
            if kind == RequestKind::Send {
                return self.fits(qps, number, receive, clock);
            }
        }
        true
    }

    /// True if a message may be written to a receive. Otherwise the receive fails, and the message
    /// is refused.
    fn fits(
        &mut self,
        qps: &mut QueuePairs,
        number: u32,
        receive: u32,
        clock: &mut Clocked,
    ) -> bool {
        let q = qps.run.messages[number].to;
        let need = u64::from(qps.run.messages[number].len);
        let slices = &qps.receives.get(receive).slices;
        let room: u64 = slices.iter().map(|slice| u64::from(slice.len)).sum();
        let allowed = qps.allow_all(q, slices, AccessKind::LocalWrite);
        let (status, why) = match (need <= room, allowed) {
            (true, true) => return true,
            (false, _) => (Status::LocalLength, Refusal::InvalidRequest),
            (_, false) => (Status::LocalProtection, Refusal::Operation),
        };
        qps.finish_receive(q, number, status, clock.now(), clock);
        self.refuse(qps, number, why, clock);
        // IBA 9.9.3: a datagram that does not fit breaks its queue pair too.
        qps.break_qp(q, clock);
        false
    }

    /// Completes a message whose last packet has crossed the bus at `end`.
    fn close(
        &mut self,
        senders: &mut Senders,
        qps: &mut QueuePairs,
        number: u32,
        end: Time,
        clock: &mut Clocked,
    ) {
        let message = &qps.run.messages[number];
        let (q, from, is_signaled) = (message.to, message.from, message.signaled);
        if message.kind == RequestKind::Send || message.immediate.is_some() {
            qps.finish_receive(q, number, Status::Success, end, clock);
        }
        if qps[q].transport != Transport::Rc {
            return;
        }
        self.all[q as usize].take_message();
        let silent = !is_signaled && !qps.run.faults.lose_packets();
        Responders::acknowledge(qps, number, end, !silent, clock);
        let message = &mut qps.run.messages[number];
        if silent && message.listed {
            // The requester expects no acknowledgement.
            message.done = true;
            senders[from].progress = clock.now();
            senders.complete(qps, from, clock);
        }
    }

    /// Acknowledges a message at the time `at`. `heard`: the acknowledgement matters to the
    /// requester.
    fn acknowledge(qps: &mut QueuePairs, number: u32, at: Time, heard: bool, clock: &mut Clocked) {
        let (from, to) = (qps.run.messages[number].from, qps.run.messages[number].to);
        // The acknowledgement reserves the link now, and leaves when the write has crossed the bus.
        let wait = at.saturating_sub(clock.now());
        let flight = qps.acknowledge(number, clock);
        let acknowledged = heard.then_some(Event::Acknowledged { message: number });
        deliver(qps, (to, from), (flight, wait), true, acknowledged, clock);
    }

    /// Refuses a message. Only a reliable connection reports this to the requester.
    fn refuse(&mut self, qps: &mut QueuePairs, number: u32, why: Refusal, clock: &mut Clocked) {
        let (from, q) = (qps.run.messages[number].from, qps.run.messages[number].to);
        let transport = qps[q].transport;
        self.all[q as usize].refuse(transport);
        if transport != Transport::Rc {
            return;
        }
        let refused = Event::Refused {
            message: number,
            why,
        };
        let flight = qps.acknowledge(number, clock);
        deliver(qps, (q, from), (flight, 0), true, Some(refused), clock);
        if why != Refusal::NotReady {
            qps.break_qp(q, clock);
        }
    }

    /// Accepts a request for data. Its memory is read after all earlier writes of this queue pair
    /// have become visible.
    fn ask_memory(qps: &mut QueuePairs, number: u32, clock: &mut Clocked) {
        qps.heed(number);
        let message = &mut qps.run.messages[number];
        let q = message.to;
        let is_atomic = message.kind != RequestKind::Read;
        message.answers_sent = 0;
        message.served = false;
        // One use for the event, and one for the list.
        message.uses += 2;
        let is_empty = message.len == 0;
        qps.answer_later(q, number);
        let (adapter, visible) = (qps[q].adapter, qps[q].visible);
        let latency = match is_empty {
            true => 0,
            false => qps.ports.timing(adapter).read_latency,
        };
        let (ports, run) = (&mut qps.ports, &mut qps.run);
        let start = ports.take_answer(run, adapter, clock.now(), is_atomic);
        let serve = Event::Serve { message: number };
        run.schedule((start + latency).max(visible), serve, clock);
    }

    /// Handles a packet of a duplicate request: acknowledges or answers the request again.
    fn answer_again(qps: &mut QueuePairs, number: u32, packet: u32, clock: &mut Clocked) {
        let message = &mut qps.run.messages[number];
        let (q, is_answered) = (message.to, message.kind.is_answered());
        if packet + 1 != message.packets() {
            return;
        }
        if !is_answered {
            return Responders::acknowledge(qps, number, clock.now(), true, clock);
        }
        if !qps[q].answers.contains(&qps.run.messages, number) {
            Responders::ask_memory(qps, number, clock);
        } else {
            qps.run.messages[number].answers_sent = 0;
        }
    }

    /// The rank in whose process the memory for a request is read.
    pub(crate) fn server(qps: &QueuePairs, number: u32) -> Option<u32> {
        let to = &qps[qps.run.messages[number].to];
        to.alive.then_some(to.rank)
    }

    /// Reads the memory that a request asks for, or changes it.
    pub(crate) fn serve(
        &mut self,
        senders: &mut Senders,
        qps: &mut QueuePairs,
        number: u32,
        clock: &mut Clocked,
    ) {
        let message = &qps.run.messages[number];
        let (q, kind, first_time) = (message.to, message.kind, !message.executed);
        if qps[q].alive && qps[q].is_ready() {
            let place = qps.place(q);
            let (address, len, rkey) = (message.address, message.len, message.rkey);
            let right = match kind {
                RequestKind::Read => AccessKind::RemoteRead,
                _ => AccessKind::RemoteAtomic,
            };
            let regions = &qps.ranks.regions;
            if !regions.allow(place, rkey, address, len.into(), right) {
                let over = message.done;
                qps.forget_answer(q, number);
                // A duplicate request whose response was taken long ago may find the memory
                // deregistered: it is dropped like any other duplicate.
                if !over {
                    self.refuse(qps, number, Refusal::Access, clock);
                }
            } else {
                // Everything visible by now must be in memory, even if that rank has not polled.
                let messages = &mut qps.run.messages;
                qps.ranks.receive(messages, place.0, clock.now());
                let message = &mut messages[number];
                message.served = true;
                if kind == RequestKind::Read || first_time {
                    message.payload.clear();
                    // SAFETY: the region is registered with this right, so the memory exists and
                    // may change at any time, and this is that rank's process.
                    unsafe { message.read(address, len) };
                }
                if kind != RequestKind::Read && first_time {
                    message.executed = true;
                    Responders::change(qps, number, address, clock);
                }
                senders.go_on_answering(qps, q, clock);
            }
        }
        qps.run.messages.release(number);
    }

    /// Executes an atomic on memory that has just been read.
    fn change(qps: &mut QueuePairs, number: u32, address: u64, clock: &mut Clocked) {
        let message = &qps.run.messages[number];
        let (q, [operand, swap]) = (message.to, message.operands);
        let old = message
            .payload
            .first_chunk()
            .map_or(0, |old| u64::from_ne_bytes(*old));
        let new = match message.kind {
            RequestKind::CompareAndSwap if old == operand => swap,
            RequestKind::CompareAndSwap => old,
            _ => old.wrapping_add(operand),
        };
        // SAFETY: registered like the bytes just read; aligned, within the region, and the region
        // may be changed.
        unsafe { (address as *mut u64).write_volatile(new) };
        let (rank, adapter) = (qps[q].rank, qps[q].adapter);
        let (ports, run) = (&mut qps.ports, &mut qps.run);
        ports.write(run, adapter, clock.now(), 8, (number, 0));
        let own = &mut qps.ranks[rank];
        (own.written, own.fresh) = (true, true);
        clock.wake(rank);
    }
}
