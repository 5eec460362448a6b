//! Responses with data, to reads and atomics, at both ends (IBA 9.4.4, 9.4.5, 9.7.5.1.8).

use fabric::packet::{AETH, PLAIN};

use super::message::RequestKind;
use super::record::Activity;
use super::regions::AccessKind;
use super::responder::Destination;
use super::{Clocked, Event, MachineModel, NONE, Refusal};
use device::{State, Status};

impl MachineModel {
    /// Accepts a request for data. Memory is read once all earlier writes of this queue pair are
    /// visible.
    pub(super) fn ask_memory(&mut self, number: u32, clock: &mut Clocked) {
        let q = self.messages[number].to;
        let to = &mut self.qps[q as usize];
        match to.last_answer {
            NONE => to.answer = number,
            last => self.messages[last].next_answer = number,
        }
        to.last_answer = number;
        let (adapter, visible) = (to.adapter, to.visible);
        self.heed(number);
        let latency = match self.messages[number].len {
            0 => 0,
            _ => self.timing(adapter).read_latency,
        };
        let is_atomic = self.messages[number].kind != RequestKind::Read;
        let start = self.take_answer(adapter, clock.now(), is_atomic);
        let message = &mut self.messages[number];
        message.next_answer = NONE;
        message.answers_sent = 0;
        message.served = false;
        // One for the event, one for the list.
        message.uses += 2;
        self.schedule(
            (start + latency).max(visible),
            Event::Serve { message: number },
            clock,
        );
    }

    /// Handles a duplicate request.
    pub(super) fn answer_again(&mut self, number: u32, clock: &mut Clocked) {
        let q = self.messages[number].to;
        let mut at = self.qps[q as usize].answer;
        while at != NONE && at != number {
            at = self.messages[at].next_answer;
        }
        if at == NONE {
            self.ask_memory(number, clock);
        } else {
            self.messages[number].answers_sent = 0;
        }
    }

    /// The rank in whose process a peer's memory is read.
    pub(super) fn server(&self, number: u32) -> Option<u32> {
        let to = &self.qps[self.messages[number].to as usize];
        to.alive.then_some(to.rank)
    }

    /// Reads a peer's memory, or changes it.
    pub(super) fn serve(&mut self, number: u32, clock: &mut Clocked) {
        let message = &self.messages[number];
        let (q, kind, first_time) = (message.to, message.kind, !message.executed);
        let to = &self.qps[q as usize];
        if to.alive && to.state == State::Rts {
            let (rank, place) = (
                to.rank,
                (to.rank, self.adapters[to.adapter as usize].domain),
            );
            let (address, len, rkey) = (message.address, message.len, message.rkey);
            let right = match kind {
                RequestKind::Read => AccessKind::RemoteRead,
                _ => AccessKind::RemoteAtomic,
            };
            if !self.regions.allow(place, rkey, address, len.into(), right) {
                let over = message.done;
                self.forget_answer(q, number);
                // A duplicate request whose response was taken long ago may find the memory
                // deregistered: it is dropped like any other duplicate.
                if !over {
                    self.refuse(number, Refusal::Access, clock);
                }
            } else {
                // Everything visible by now is in memory, even if that rank has not polled.
                self.receive_news(rank, clock.now());
                let message = &mut self.messages[number];
                message.served = true;
                if kind == RequestKind::Read || first_time {
                    message.payload.clear();
                    // SAFETY: the region is registered with this right, so the memory exists and
                    // may change at any time, and this is that rank's process.
                    unsafe { message.read(address, len) };
                }
                if kind != RequestKind::Read && first_time {
                    self.messages[number].executed = true;
                    self.change(number, address, clock);
                }
                self.go_on_answering(q, clock);
            }
        }
        self.messages.release(number);
    }

    /// Executes an atomic on memory that was read just now.
    fn change(&mut self, number: u32, address: u64, clock: &mut Clocked) {
        let message = &self.messages[number];
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
        let (rank, adapter) = (self.qps[q as usize].rank, self.qps[q as usize].adapter);
        self.write(adapter, clock.now(), 8, number, 0);
        self.ranks[rank as usize].written = true;
        self.ranks[rank as usize].fresh = true;
        clock.wake(rank);
    }

    /// Sends responses that need no reading; adds the queue pair to the round if the next needs it.
    fn go_on_answering(&mut self, q: u32, clock: &mut Clocked) {
        if self.answer_ready(q, clock) {
            self.join(q * 2 + 1, clock);
        }
    }

    fn answer_ready(&mut self, q: u32, clock: &mut Clocked) -> bool {
        loop {
            let number = self.qps[q as usize].answer;
            if number == NONE || !self.messages[number].served {
                return false;
            }
            if self.messages[number].kind == RequestKind::Read && self.messages[number].len > 0 {
                return true;
            }
            self.send_answer(q, number, clock);
        }
    }

    pub(super) fn next_answer(&self, q: u32) -> Option<u32> {
        let number = self.qps[q as usize].answer;
        if number == NONE || !self.messages[number].served {
            return None;
        }
        let message = &self.messages[number];
        Some(message.piece(message.answers_sent).1)
    }

    /// Handles a packet of the first response that has been read. True if it has another packet to
    /// read.
    pub(super) fn answer_read(&mut self, q: u32, clock: &mut Clocked) -> bool {
        if self.qps[q as usize].state != State::Rts || self.next_answer(q).is_none() {
            return false;
        }
        let number = self.qps[q as usize].answer;
        self.send_answer(q, number, clock);
        self.answer_ready(q, clock)
    }

    /// Puts the next packet of the first response on the link.
    fn send_answer(&mut self, q: u32, number: u32, clock: &mut Clocked) {
        let message = &mut self.messages[number];
        let packet = message.answers_sent;
        message.answers_sent += 1;
        let (len, from, latency) = (message.piece(packet).1, message.from, message.latency);
        let (first, last) = (packet == 0, packet + 1 >= message.response_packets());
        let header = if first || last { PLAIN + AETH } else { PLAIN };
        let bytes = u64::from(len).next_multiple_of(4) + header;
        let (here, there) = (
            self.qps[q as usize].adapter,
            self.qps[from as usize].adapter,
        );
        let doing = Activity::Answer.packet(bytes, number, packet);
        let there = self.fly(here, there, clock.now(), latency, doing);
        match self.fate(q, from, there, true, clock) {
            Some(there) => {
                self.messages[number].uses += 1;
                self.schedule(
                    there,
                    Event::Answered {
                        message: number,
                        packet,
                    },
                    clock,
                );
            }
            None => self.lost(from, clock),
        }
        if last {
            self.forget_answer(q, number);
        }
    }

    /// Ends the first response.
    fn forget_answer(&mut self, q: u32, number: u32) {
        let qp = &mut self.qps[q as usize];
        let (mut before, mut at) = (NONE, qp.answer);
        while at != NONE && at != number {
            (before, at) = (at, self.messages[at].next_answer);
        }
        if at == NONE {
            return;
        }
        let next = self.messages[number].next_answer;
        match before {
            NONE => qp.answer = next,
            before => self.messages[before].next_answer = next,
        }
        if qp.last_answer == number {
            qp.last_answer = before;
        }
        self.messages.release(number);
    }

    pub(super) fn forget_answers(&mut self, q: u32) {
        while self.qps[q as usize].answer != NONE {
            let first = self.qps[q as usize].answer;
            self.forget_answer(q, first);
        }
    }

    /// Handles a response's packet that arrives at the requester.
    pub(super) fn answered(&mut self, number: u32, packet: u32, clock: &mut Clocked) {
        let now = clock.now();
        let message = &mut self.messages[number];
        let q = message.from;
        if message.listed && !message.done && packet == message.answers {
            message.answers += 1;
            let (from, len) = message.piece(packet);
            let last = packet + 1 >= message.response_packets();
            let qp = &self.qps[q as usize];
            let (adapter, place) = (
                qp.adapter,
                (qp.rank, self.adapters[qp.adapter as usize].domain),
            );
            let slices = &self.messages[number].slices;
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
            if !allowed {
                self.messages[number].answers = u32::MAX;
                self.qps[q as usize].reads -= 1;
                self.fail_locally(q, number, Status::LocalProtection, clock);
            } else {
                self.progressed(q, now);
                let end = self.write(adapter, now, len, number, packet);
                let visible = end + self.timing(adapter).write_latency;
                self.qps[q as usize].visible = visible;
                self.place(
                    q,
                    number,
                    (from, len),
                    Destination::Slices,
                    visible,
                    last,
                    clock,
                );
                if last {
                    self.settle_up_to(q, number, false);
                    self.messages[number].done = true;
                    self.qps[q as usize].reads -= 1;
                    self.complete(q, clock);
                    self.ask_begin(q, clock);
                }
            }
        }
        self.messages.release(number);
    }
}
