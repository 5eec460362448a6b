//! The requester: requests are posted, completed, refused, retransmitted or flushed (IBA 9.7.2,
//! 9.9.2, 10.8, 10.10).

use sim::Time;

use super::message::RequestKind;
use super::{Clocked, Event, MachineModel, NONE, Refusal};
use device::check;
use device::{Completed, Completion, Error, Qp, Result, State, Status, Transport, Work};

/// The longest message (IBA 9.7.1).
pub(super) const LONGEST: u64 = 1 << 31;

impl MachineModel {
    /// Takes a work request that the processor has ready at `at`; returns the message's number.
    ///
    /// # Safety
    /// The inline slices must be memory of this rank.
    pub(super) unsafe fn post(
        &mut self,
        q: u32,
        work: &Work,
        at: Time,
        clock: &mut Clocked,
    ) -> Result<u32> {
        let len = self.check(q, work)?;
        let (to, latency) = self.destination(q, work);
        let number = self.messages.take();
        let qp = &mut self.qps[q as usize];
        let is_free = self.ranks[qp.rank as usize].is_free;
        let message = &mut self.messages[number];
        message.inline = work.inline;
        message.signaled = work.signaled;
        (message.begun, message.ready, message.done) = (false, false, false);
        message.listed = true;
        message.status = Status::Success;
        (message.next, message.next_answer) = (NONE, NONE);
        (message.from, message.to, message.latency) = (q, to, latency);
        (message.life, message.sequence) = (qp.life, qp.posted);
        message.id = work.id;
        message.is_free = is_free;
        self.record.posted += 1;
        message.number = self.record.posted;
        message.immediate = None;
        (message.len, message.mtu) = (len, qp.mtu);
        (message.sent, message.answers_sent, message.answers) = (0, 0, 0);
        (message.served, message.executed) = (false, false);
        message.set_operation(&work.operation);
        if work.inline {
            for slice in work.local {
                // SAFETY: the caller's promise.
                unsafe { message.read(slice.address, slice.len) };
            }
        } else {
            message.slices.extend_from_slice(work.local);
        }
        qp.posted = qp.posted.wrapping_add(1);
        match qp.last {
            NONE => qp.first = number,
            last => self.messages[last].next = number,
        }
        qp.last = number;
        if qp.to_begin == NONE {
            qp.to_begin = number;
        }
        if qp.to_send == NONE {
            qp.to_send = number;
        }
        if qp.state == State::Error {
            self.flush(q, at, clock);
            return Ok(number);
        }
        let adapter = qp.adapter;
        let inlined = if work.inline { len } else { 0 };
        // A processor's copy is read when it is posted. A copy that is not allowed fails in the
        // engine, as always.
        if self.is_within(q) && self.messages[number].is_fetched() {
            self.messages[number].inline = self.capture(q, number);
        }
        self.heed(number);
        let there = at + self.timing(adapter).mmio(inlined);
        let qp = &mut self.qps[q as usize];
        qp.last_doorbell = qp.last_doorbell.max(there);
        let (at, life) = (qp.last_doorbell, qp.life);
        let event = Event::Doorbell {
            qp: q,
            life,
            inlined,
        };
        self.schedule(at, event, clock);
        Ok(number)
    }

    /// The queue pair to which a request goes, and the latency of its way.
    fn destination(&mut self, q: u32, work: &Work) -> (u32, Time) {
        let qp = &self.qps[q as usize];
        let is_free = self.ranks[qp.rank as usize].is_free;
        let (to, latency) = match work.to {
            None => (qp.peer, qp.latency),
            Some(address) => match self.reach(q, address) {
                Some(number) => (number, self.latency(q, number)),
                None => (NONE, 0),
            },
        };
        (to, if is_free { 0 } else { latency })
    }

    /// Refuses a request that cannot be posted; returns the length of one that can.
    fn check(&self, q: u32, work: &Work) -> Result<u32> {
        let qp = &self.qps[q as usize];
        if qp.posted.wrapping_sub(qp.freed) >= qp.sends && qp.state != State::Reset {
            return Err(Error::Full);
        }
        let limits = check::Limits {
            transport: qp.transport,
            state: qp.state,
            inline: qp.inline.into(),
            mtu: qp.mtu.into(),
            longest: LONGEST,
            immediates: !self.faults.no_immediates,
        };
        check::work(work, &limits).map_err(|why| Error::Invalid(format!("queue pair {q}: {why}")))
    }

    /// Completes the leading messages that are done.
    pub(super) fn complete(&mut self, q: u32, clock: &mut Clocked) {
        loop {
            let first = self.qps[q as usize].first;
            if first == NONE || !self.messages[first].done {
                return;
            }
            let status = self.messages[first].status;
            // Its acknowledgement came before it was sent again.
            let was_next = self.qps[q as usize].to_send == first;
            self.report(q, clock.now(), status, clock);
            if status != Status::Success {
                return self.break_qp(q, clock);
            }
            if was_next {
                self.go_on_sending(q, clock);
            }
        }
    }

    /// Completes the oldest message.
    fn report(&mut self, q: u32, at: Time, status: Status, clock: &mut Clocked) {
        let Some(number) = self.take_first(q) else {
            return;
        };
        self.heed(number);
        let message = &self.messages[number];
        if message.signaled || status != Status::Success {
            let of = match message.kind {
                RequestKind::Write => Completed::Write,
                RequestKind::Send => Completed::Send,
                RequestKind::Read => Completed::Read,
                RequestKind::CompareAndSwap | RequestKind::FetchAndAdd => Completed::Atomic,
            };
            let completion = Completion {
                id: message.id,
                qp: Qp(q),
                status,
                of,
                bytes: if message.kind.is_answered() {
                    message.len
                } else {
                    0
                },
                immediate: None,
            };
            let freed = message.sequence.wrapping_add(1);
            let cq = self.qps[q as usize].send_cq;
            self.put_completion(cq, at, completion, Some(freed), clock);
        }
        self.messages.unlist(number);
    }

    /// Takes a queue pair to ERROR: posted requests are flushed (IBA 10.3.1.7).
    pub(super) fn break_qp(&mut self, q: u32, clock: &mut Clocked) {
        let qp = &mut self.qps[q as usize];
        if !qp.alive || qp.state != State::Rts {
            return;
        }
        qp.state = State::Error;
        let (rank, visible) = (qp.rank, qp.visible);
        self.end_life(q);
        self.forget_answers(q);
        self.flush(q, clock.now(), clock);
        if visible > clock.now() {
            // The rank may be waiting for the end of the drain.
            clock.at(visible, Event::Wake { rank });
        }
    }

    fn flush(&mut self, q: u32, at: Time, clock: &mut Clocked) {
        while self.qps[q as usize].first != NONE {
            self.report(q, at, Status::Flushed, clock);
        }
        self.flush_receives(q, at, clock);
    }

    /// Fails a request locally: earlier requests proceed, later ones do not.
    pub(super) fn fail_locally(
        &mut self,
        q: u32,
        number: u32,
        status: Status,
        clock: &mut Clocked,
    ) {
        let message = &mut self.messages[number];
        message.status = status;
        message.done = true;
        self.qps[q as usize].broken = true;
        self.complete(q, clock);
    }

    /// Settles all messages before this one, and this one too if `itself`.
    pub(super) fn settle_up_to(&mut self, q: u32, number: u32, itself: bool) {
        let mut at = self.qps[q as usize].first;
        while at != NONE {
            let message = &mut self.messages[at];
            if at != number || itself {
                message.done |= !message.kind.is_answered();
            }
            if at == number {
                break;
            }
            at = message.next;
        }
    }

    /// Handles an acknowledgement.
    pub(super) fn acknowledged(&mut self, number: u32, clock: &mut Clocked) {
        let q = self.messages[number].from;
        if self.messages[number].listed {
            self.progressed(q, clock.now());
            self.settle_up_to(q, number, true);
            self.complete(q, clock);
        }
        self.messages.release(number);
    }

    pub(super) fn progressed(&mut self, q: u32, now: Time) {
        let qp = &mut self.qps[q as usize];
        qp.progress = now;
        (qp.retries, qp.rnr_retries) = (0, 0);
    }

    /// Handles the peer's refusal of a message.
    pub(super) fn refused(&mut self, number: u32, why: Refusal, clock: &mut Clocked) {
        let q = self.messages[number].from;
        if self.messages[number].listed {
            self.settle_up_to(q, number, false);
            let status = match why {
                Refusal::NotReady => Status::RnrRetryExceeded,
                Refusal::InvalidRequest => Status::RemoteInvalidRequest,
                Refusal::Access => Status::RemoteAccess,
                Refusal::Operation => Status::RemoteOperation,
            };
            let qp = &mut self.qps[q as usize];
            let limit = self.faults.rnr_retries;
            qp.progress = clock.now();
            if why == Refusal::NotReady && (limit == 7 || qp.rnr_retries < limit) {
                qp.rnr_retries += u32::from(limit != 7);
                qp.waits = true;
                let sequence = self.messages[number].sequence;
                self.rewind(q, sequence, 0);
                self.complete(q, clock);
                let (at, life) = (
                    clock.now() + self.faults.rnr_wait,
                    self.qps[q as usize].life,
                );
                self.schedule(at, Event::Resume { qp: q, life }, clock);
            } else {
                self.messages[number].status = status;
                self.messages[number].done = true;
                self.complete(q, clock);
            }
        }
        self.messages.release(number);
    }

    /// Handles the report of a missing packet: retransmits from there.
    pub(super) fn missing(&mut self, q: u32, sequence: u32, packet: u32, clock: &mut Clocked) {
        if self.qps[q as usize].state != State::Rts {
            return;
        }
        self.progressed(q, clock.now());
        self.rewind(q, sequence, packet);
        self.go_on_sending(q, clock);
    }

    /// Makes sending continue from a packet of a message, if that is still incomplete.
    fn rewind(&mut self, q: u32, sequence: u32, packet: u32) {
        let mut at = self.qps[q as usize].first;
        while at != NONE && (self.messages[at].sequence.wrapping_sub(sequence) as i32) < 0 {
            at = self.messages[at].next;
        }
        if at == NONE || !self.messages[at].begun {
            return;
        }
        let packets = self.messages[at].packets();
        let from = match self.messages[at].sequence == sequence {
            true => packet.min(packets - 1),
            false => 0,
        };
        if self.messages[at].sent < from {
            return;
        }
        self.qps[q as usize].to_send = at;
        self.messages[at].sent = from;
        self.messages[at].answers = 0;
        at = self.messages[at].next;
        while at != NONE && self.messages[at].begun {
            self.messages[at].sent = 0;
            self.messages[at].answers = 0;
            at = self.messages[at].next;
        }
    }

    /// Continues after a receiver-not-ready wait.
    pub(super) fn resume_sending(&mut self, q: u32, clock: &mut Clocked) {
        self.qps[q as usize].waits = false;
        self.go_on_sending(q, clock);
    }

    /// Handles the loss of a packet. Only the timer of a reliable connection detects it.
    pub(super) fn lost(&mut self, q: u32, clock: &mut Clocked) {
        let qp = &mut self.qps[q as usize];
        if qp.transport == Transport::Rc && !qp.timing {
            qp.timing = true;
            let (at, life) = (clock.now() + self.faults.timeout, qp.life);
            self.schedule(at, Event::Timeout { qp: q, life }, clock);
        }
    }

    /// Handles the timer after a loss: retransmits unless there was progress.
    pub(super) fn timeout(&mut self, q: u32, clock: &mut Clocked) {
        let (now, limit) = (clock.now(), self.faults.timeout);
        let qp = &mut self.qps[q as usize];
        qp.timing = false;
        if qp.state != State::Rts || qp.first == NONE {
            return;
        }
        let first = qp.first;
        if now < qp.progress + limit || qp.waits {
            qp.timing = true;
            let life = qp.life;
            let at = match qp.waits {
                true => now + limit,
                false => qp.progress + limit,
            };
            return self.schedule(at, Event::Timeout { qp: q, life }, clock);
        }
        if !self.messages[first].begun {
            return;
        }
        qp.retries += 1;
        if qp.retries > self.faults.retries {
            self.messages[first].status = Status::RetryExceeded;
            self.messages[first].done = true;
            return self.complete(q, clock);
        }
        let (sequence, packet) = self.resumption(q, first);
        self.rewind(q, sequence, packet);
        self.go_on_sending(q, clock);
    }

    /// The place to retransmit from: the last acknowledged packet. Acknowledgements within a
    /// message are not modelled as packets; the responder's state stands for them.
    fn resumption(&self, q: u32, first: u32) -> (u32, u32) {
        let message = &self.messages[first];
        let responder = self.qps.get(message.to as usize);
        match responder {
            Some(peer) if peer.peer_life == message.life && peer.peer == q => {
                let passed = peer.expected.wrapping_sub(message.sequence) as i32;
                match passed {
                    0 => (message.sequence, peer.expected_packet),
                    // The responder has the whole message; the acknowledgement was lost.
                    1.. => (message.sequence, u32::MAX),
                    _ => (message.sequence, 0),
                }
            }
            _ => (message.sequence, 0),
        }
    }
}
