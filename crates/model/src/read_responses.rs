//! Requests that are answered with data, reads and atomics, at both ends (IBA 9.4.4, 9.4.5, 9.7.5.1.8).

use fabric::packet::{AETH, PLAIN};

use super::message::Kind;
use super::record::Act;
use super::regions::Use;
use super::responder::Into;
use super::{Clocked, Event, NONE, Net, Refusal};
use device::{State, Status};

impl Net {
    /// A request for data: memory is asked, after all that this queue pair has written before is there.
    pub(super) fn ask_memory(&mut self, number: u32, clock: &mut Clocked) {
        let q = self.messages[number].to;
        let to = &mut self.qps[q as usize];
        match to.last_answer {
            NONE => to.answer = number,
            last => self.messages[last].next_answer = number,
        }
        to.last_answer = number;
        let (adapter, visible) = (to.adapter, to.visible);
        let latency = match self.messages[number].len {
            0 => 0,
            _ => self.timing(adapter).read_latency,
        };
        let message = &mut self.messages[number];
        message.next_answer = NONE;
        message.answers_sent = 0;
        message.served = false;
        // For the event, and for standing in the list.
        message.uses += 2;
        clock.at(
            (clock.now() + latency).max(visible),
            Event::Serve { message: number },
        );
    }

    /// The request came a second time.
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

    /// In whose process a peer's memory is read.
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
            let (rank, place) = (to.rank, (to.rank, self.adapters[to.adapter as usize].rail));
            let (address, len, rkey) = (message.address, message.len, message.rkey);
            let right = match kind {
                Kind::Read => Use::RemoteRead,
                _ => Use::RemoteAtomic,
            };
            if !self.regions.allow(place, rkey, address, len.into(), right) {
                let over = message.done;
                self.forget_answer(q, number);
                // A request that comes again when its answer has long been taken finds the memory gone: nobody asks for it
                // any more, so it is dropped as any other duplicate.
                if !over {
                    self.refuse(number, Refusal::Access, clock);
                }
            } else {
                // What has become visible by now is in memory, whether or not that rank has looked.
                self.receive_news(rank, clock.now());
                let message = &mut self.messages[number];
                message.served = true;
                if kind == Kind::Read || first_time {
                    message.payload.clear();
                    // SAFETY: the region is registered with this right, so the memory is there, it may change at any time,
                    // and this is that rank's process.
                    unsafe { message.read(address, len) };
                }
                if kind != Kind::Read && first_time {
                    self.messages[number].executed = true;
                    self.change(number, address, clock);
                }
                self.go_on_answering(q, clock);
            }
        }
        self.messages.release(number);
    }

    /// An atomic, on memory that was read just now.
    fn change(&mut self, number: u32, address: u64, clock: &mut Clocked) {
        let message = &self.messages[number];
        let (q, [operand, swap]) = (message.to, message.operands);
        let old = message
            .payload
            .first_chunk()
            .map_or(0, |old| u64::from_ne_bytes(*old));
        let new = match message.kind {
            Kind::CompareAndSwap if old == operand => swap,
            Kind::CompareAndSwap => old,
            _ => old.wrapping_add(operand),
        };
        // SAFETY: as for the read of it; it is aligned and within the region, which may be changed.
        unsafe { (address as *mut u64).write_volatile(new) };
        let (rank, adapter) = (self.qps[q as usize].rank, self.qps[q as usize].adapter);
        self.write(adapter, clock.now(), 8, number, 0);
        self.ranks[rank as usize].written = true;
        self.ranks[rank as usize].fresh = true;
        clock.wake(rank);
    }

    /// Answers that need no reading leave at once; those that do join the round.
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
            if self.messages[number].kind == Kind::Read && self.messages[number].len > 0 {
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
        Some(message.piece(message.answers_sent, self.mtu).1)
    }

    /// A packet of the first answer has been read. True if there is another to be read.
    pub(super) fn answer_read(&mut self, q: u32, clock: &mut Clocked) -> bool {
        if self.qps[q as usize].state != State::Rts || self.next_answer(q).is_none() {
            return false;
        }
        let number = self.qps[q as usize].answer;
        self.send_answer(q, number, clock);
        self.answer_ready(q, clock)
    }

    /// The next packet of the first answer goes on the link.
    fn send_answer(&mut self, q: u32, number: u32, clock: &mut Clocked) {
        let mtu = self.mtu;
        let message = &mut self.messages[number];
        let packet = message.answers_sent;
        message.answers_sent += 1;
        let (len, from, way) = (message.piece(packet, mtu).1, message.from, message.way);
        let (first, last) = (packet == 0, packet + 1 >= message.len.div_ceil(mtu).max(1));
        let header = if first || last { PLAIN + AETH } else { PLAIN };
        let bytes = u64::from(len).next_multiple_of(4) + header;
        let (here, there) = (
            self.qps[q as usize].adapter,
            self.qps[from as usize].adapter,
        );
        let doing = Act::Answer.packet(bytes, number, packet);
        let there = self.fly(here, there, clock.now(), way, doing);
        match self.fate(q, from, there, clock) {
            Some(there) => {
                self.messages[number].uses += 1;
                clock.at(
                    there,
                    Event::Answered {
                        message: number,
                        packet,
                    },
                );
            }
            None => self.lost(from, clock),
        }
        if last {
            self.forget_answer(q, number);
        }
    }

    /// The first answer is over.
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

    /// A packet of an answer is back at the requester.
    pub(super) fn answered(&mut self, number: u32, packet: u32, clock: &mut Clocked) {
        let (now, mtu) = (clock.now(), self.mtu);
        let message = &mut self.messages[number];
        let q = message.from;
        if message.listed && !message.done && packet == message.answers {
            message.answers += 1;
            let (from, len) = message.piece(packet, mtu);
            let last = packet + 1 >= message.len.div_ceil(mtu).max(1);
            let qp = &self.qps[q as usize];
            let (adapter, place) = (
                qp.adapter,
                (qp.rank, self.adapters[qp.adapter as usize].rail),
            );
            let slices = &self.messages[number].slices;
            let allowed = slices.iter().all(|slice| {
                let len = u64::from(slice.len);
                self.regions
                    .allow(place, slice.lkey, slice.address, len, Use::LocalWrite)
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
                self.place(q, number, (from, len), Into::Slices, visible, last, clock);
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
