//! Queue pairs with their posted work, and with the ranks, ports and messages that they use:
//! packets in flight, bytes written to memory, and the completion of requests and receives.

use fabric::packet::ACKNOWLEDGEMENT;
use sim::Time;
use sim::memory::Vec;

use super::completions::{Entry, Written};
use super::event::{Clocked, Event};
use super::in_transit::Flight;
use super::inbox::Arrival;
use super::message::{NONE, RequestKind};
use super::ports::Ports;
use super::queue_pair::QueuePair;
use super::ranks::Ranks;
use super::receives::Receives;
use super::regions::AccessKind;
use super::run::Run;
use super::send_queue::SendQueue;
use super::span::Activity;
use device::{Completed, Completion, Error, Qp, Result, Slice, State, Status, Transport};

/// The queue pairs of all ranks.
pub(crate) struct QueuePairs {
    all: Vec<QueuePair>,
    pub receives: Receives,
    pub ranks: Ranks,
    pub ports: Ports,
    pub run: Run,
}

impl QueuePairs {
    /// An empty set of queue pairs, for these ranks and ports.
    pub(crate) fn new(run: Run, ports: Ports, ranks: Ranks) -> QueuePairs {
        QueuePairs {
            all: Vec::new_in(run.memory),
            receives: Receives::new(run.memory),
            ranks,
            ports,
            run,
        }
    }

    /// Adds a queue pair, and returns its number.
    pub(crate) fn add(&mut self, qp: QueuePair) -> Qp {
        let number = self.all.len() as u32;
        self.ranks[qp.rank].qps.push(number);
        self.all.push(qp);
        Qp(number)
    }

    pub(crate) fn get(&self, q: u32) -> Option<&QueuePair> {
        self.all.get(q as usize)
    }

    /// The number of a queue pair. An error if it does not belong to this device.
    pub(crate) fn own(&self, (rank, rail): (u32, u32), qp: Qp) -> Result<u32> {
        let on = |adapter: u32| self.ports.adapters[adapter as usize].rail;
        match self.get(qp.0) {
            Some(own) if own.alive && own.rank == rank && on(own.adapter) == rail => Ok(qp.0),
            _ => Err(Error::Invalid(format!(
                "queue pair {} is not of this device",
                qp.0
            ))),
        }
    }

    /// The number of a queue pair's own receive queue. An error if it uses a shared one.
    pub(crate) fn own_receives(&self, device: (u32, u32), qp: Qp) -> Result<u32> {
        let q = self.own(device, qp)?;
        match self[q].shared {
            true => Err(Error::Invalid(format!(
                "queue pair {q} takes its receives from a shared queue"
            ))),
            false => Ok(self[q].receives),
        }
    }

    /// True if this queue pair is connected through its host's memory.
    #[inline]
    pub(crate) fn is_within(&self, q: u32) -> bool {
        self.ports.is_within(self[q].adapter)
    }

    /// Records to which message the present work belongs: the work for some messages occupies no
    /// resource.
    #[inline]
    pub(crate) fn heed(&mut self, message: u32) {
        self.ports.heed(&self.run.messages, message);
    }

    /// The rank of a queue pair and its protection domain, to which regions belong.
    pub(crate) fn place(&self, q: u32) -> (u32, u32) {
        let own = &self[q];
        let domain = self.ports.adapters[own.adapter as usize].domain;
        (own.rank, domain)
    }

    /// True if a queue pair may use all these slices of its rank's memory.
    pub(crate) fn allow_all(&self, q: u32, slices: &[Slice], to_do: AccessKind) -> bool {
        let place = self.place(q);
        let regions = &self.ranks.regions;
        slices.iter().all(|slice| {
            let len = u64::from(slice.len);
            regions.allow(place, slice.lkey, slice.address, len, to_do)
        })
    }

    /// Reads the payload of a message from memory. False: a local key does not allow it.
    pub(crate) fn capture(&mut self, q: u32, number: u32) -> bool {
        let place = self.place(q);
        let (message, regions) = (&mut self.run.messages[number], &self.ranks.regions);
        for at in 0..message.slices.len() {
            let slice = message.slices[at];
            let (key, len) = (slice.lkey, u64::from(slice.len));
            let to_do = AccessKind::LocalRead;
            if !regions.allow(place, key, slice.address, len, to_do) {
                return false;
            }
            // SAFETY: the slice lies in a region that is still registered, so it is memory of that
            // rank, in whose process we are; its owner expects the device to read it at any time.
            unsafe { message.read(slice.address, slice.len) };
        }
        true
    }

    /// Puts an acknowledgement on the link to the requester.
    pub(crate) fn acknowledge(&mut self, number: u32, clock: &Clocked) -> Flight {
        let message = &self.run.messages[number];
        let (from, to, latency) = (message.from, message.to, message.latency);
        let ends = (self[to].adapter, self[from].adapter);
        let doing = Activity::Acknowledgement.packet(ACKNOWLEDGEMENT, number, 0);
        self.ports
            .fly(&mut self.run, ends, clock.now(), latency, doing)
    }

    /// Schedules the event of a packet that was sent at `sent` and would arrive at `there`, unless
    /// the packet is lost.
    #[inline]
    pub(super) fn arrives(
        &mut self,
        (from, to): (u32, u32),
        (sent, there): (Time, Time),
        is_answer: bool,
        event: Event,
        clock: &mut Clocked,
    ) {
        match self.fate((from, to), (sent, there), is_answer, clock) {
            Some(there) => {
                if let Some(message) = event.message() {
                    self.run.messages[message].uses += 1;
                }
                self.run.schedule(there, event, clock);
            }
            None => self.lost(if is_answer { to } else { from }, clock),
        }
    }

    /// The time at which a packet arrives that would arrive at `there` without faults. `None`: it
    /// is lost.
    #[inline]
    fn fate(
        &mut self,
        (from, to): (u32, u32),
        (sent, there): (Time, Time),
        is_answer: bool,
        clock: &mut Clocked,
    ) -> Option<Time> {
        if to == NONE {
            return None;
        }
        if self.is_within(from) || self.run.faults.are_calm() {
            return Some(there);
        }
        self.rough_fate((from, to), (sent, there), is_answer, clock)
    }

    #[cold]
    fn rough_fate(
        &mut self,
        (from, to): (u32, u32),
        (sent, there): (Time, Time),
        is_answer: bool,
        clock: &mut Clocked,
    ) -> Option<Time> {
        let faults = &self.run.faults;
        let loses = |q: u32, at: Time, out: bool| {
            let adapter = &self.ports.adapters[self[q].adapter as usize];
            let mut faults = faults.ports.of_port(adapter.host, adapter.rail);
            faults.any(|fault| fault.loses(at, out && is_answer))
        };
        if loses(from, sent, true) || loses(to, there, false) {
            return None;
        }
        let delay = faults.delay(&mut clock.random)?;
        let qp = &mut self[from];
        qp.arrival = qp.arrival.max(there + delay);
        Some(qp.arrival)
    }

    /// Handles the loss of a packet that belongs to the requests of queue pair `q`. Only the timer
    /// of a reliable connection detects the loss.
    pub(crate) fn lost(&mut self, q: u32, clock: &mut Clocked) {
        let qp = &self[q];
        if qp.transport == Transport::Rc && !qp.timing {
            let at = clock.now() + self.run.faults.timeout;
            self.set_timer(q, at, clock);
        }
    }

    /// Schedules the acknowledgement timeout of a queue pair's requester.
    pub(crate) fn set_timer(&mut self, q: u32, at: Time, clock: &mut Clocked) {
        let qp = &mut self[q];
        qp.timing = true;
        let (life, rank) = (qp.life, qp.rank);
        let timeout = Event::Timeout { qp: q, life, rank };
        self.run.schedule(at, timeout, clock);
    }

    /// Records that bytes of a message which queue pair `q` receives have been written at `at`.
    /// Returns the time at which they are visible: not before those of earlier messages.
    #[inline]
    pub(crate) fn visible(&mut self, q: u32, number: u32, at: Time) -> Time {
        let delay = self.run.messages[number].delay;
        let qp = &mut self[q];
        qp.visible = (at + delay).max(qp.visible);
        qp.visible
    }

    /// Makes an HCA write an entry of a completion queue, from the time `at` on.
    fn write_completion(
        &mut self,
        cq: u32,
        at: Time,
        completion: Completion,
        frees: Option<u32>,
        clock: &mut Clocked,
    ) {
        let own = &self.all[completion.qp.0 as usize];
        let (adapter, life, data) = (own.adapter, own.life, own.visible);
        // No completion overtakes the data that it reports.
        let visible = self.ports.complete(&mut self.run, adapter, at).max(data);
        let entry = Entry {
            completion,
            frees,
            life,
        };
        match self.ranks.cqs.write(cq, visible, entry) {
            Written::Visible { rank, at } => {
                let what = (Arrival::Completion { cq }, true);
                self.ranks
                    .announce(&mut self.run.messages, rank, at, what, clock);
            }
            Written::Overrun => self.break_all(cq, clock),
            Written::Dropped => {}
        }
    }

    /// Takes all queue pairs that use a completion queue to ERROR, because the queue has
    /// overflowed.
    #[cold]
    fn break_all(&mut self, cq: u32, clock: &mut Clocked) {
        for q in 0..self.all.len() as u32 {
            if self[q].send_cq == cq || self[q].receive_cq == cq {
                self.break_qp(q, clock);
            }
        }
    }

    /// Moves visible completions of a queue to `into`; returns their number.
    pub(crate) fn poll(&mut self, cq: u32, into: &mut [Completion]) -> Result<usize> {
        let all = &mut self.all;
        self.ranks.cqs.poll(cq, into, |entry| {
            let qp = &mut all[entry.completion.qp.0 as usize];
            if let Some(freed) = entry.frees.filter(|_| qp.life == entry.life) {
                qp.requests.freed = freed;
            }
        })
    }

    /// Completes the oldest request of a queue pair.
    pub(crate) fn report(&mut self, q: u32, at: Time, status: Status, clock: &mut Clocked) {
        let requests = &mut self.all[q as usize].requests;
        let Some(number) = requests.take_first(&self.run.messages) else {
            return;
        };
        self.heed(number);
        let message = &self.run.messages[number];
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
            let cq = self[q].send_cq;
            self.write_completion(cq, at, completion, Some(freed), clock);
        }
        self.run.messages.unlist(number);
    }

    /// Completes the receive that the message `number` consumed, if any.
    pub(crate) fn finish_receive(
        &mut self,
        q: u32,
        number: u32,
        status: Status,
        at: Time,
        clock: &mut Clocked,
    ) {
        let receive = std::mem::replace(&mut self[q].receive, NONE);
        if receive == NONE {
            return;
        }
        let message = &self.run.messages[number];
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
        self.write_completion(self[q].receive_cq, at, completion, None, clock);
    }

    /// Flushes the receives of a queue pair in the state ERROR.
    pub(crate) fn flush_receives(&mut self, q: u32, at: Time, clock: &mut Clocked) {
        loop {
            let qp = &mut self[q];
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
            self.write_completion(cq, at, completion, None, clock);
        }
    }

    /// Posts a receive. If `of` is a queue pair in the state ERROR, whose own queue this is, the
    /// receive is flushed at once.
    pub(crate) fn post_receive(
        &mut self,
        queue: u32,
        of: Option<u32>,
        (id, into): (u64, &[Slice]),
        clock: &mut Clocked,
    ) -> Result<()> {
        self.receives.post(queue, id, into)?;
        if let Some(q) = of.filter(|q| self[*q].state == State::Error) {
            self.flush_receives(q, clock.now(), clock);
        }
        Ok(())
    }

    /// Takes a queue pair to ERROR: its posted requests are flushed (IBA 10.3.1.7).
    pub(crate) fn break_qp(&mut self, q: u32, clock: &mut Clocked) {
        let qp = &mut self[q];
        if !qp.alive || !qp.is_ready() {
            return;
        }
        qp.state = State::Error;
        let (rank, visible) = (qp.rank, qp.visible);
        self.forget_answers(q);
        self.flush(q, clock.now(), clock);
        if visible > clock.now() {
            // The rank may be waiting for the end of the drain.
            clock.at(visible, Event::Wake { rank });
        }
    }

    /// Completes all posted work of a queue pair in the state ERROR, as flushed.
    pub(crate) fn flush(&mut self, q: u32, at: Time, clock: &mut Clocked) {
        while self[q].requests.first != NONE {
            self.report(q, at, Status::Flushed, clock);
        }
        self.flush_receives(q, at, clock);
    }

    /// Adds a message, which is posted now, to the requests of a queue pair.
    #[inline]
    pub(crate) fn append(&mut self, q: u32, number: u32) {
        let requests = &mut self.all[q as usize].requests;
        requests.append(&mut self.run.messages, number);
    }

    /// Marks all requests before this message as done, and the message itself if `itself`.
    pub(crate) fn settle_up_to(&mut self, q: u32, number: u32, itself: bool) {
        let requests = &self.all[q as usize].requests;
        requests.settle_up_to(&mut self.run.messages, number, itself);
    }

    /// Makes sending continue from this packet of a message, if the message is still incomplete.
    pub(crate) fn rewind(&mut self, q: u32, sequence: u32, packet: u32) {
        let requests = &mut self.all[q as usize].requests;
        requests.rewind(&mut self.run.messages, sequence, packet);
    }

    /// Adds a request of the peer, which waits for a response.
    pub(crate) fn answer_later(&mut self, q: u32, number: u32) {
        let answers = &mut self.all[q as usize].answers;
        answers.append(&mut self.run.messages, number);
    }

    /// Removes a request of the peer from those that wait for a response.
    pub(crate) fn forget_answer(&mut self, q: u32, number: u32) {
        let answers = &mut self.all[q as usize].answers;
        if answers.remove(&mut self.run.messages, number) {
            self.run.messages.release(number);
        }
    }

    fn forget_answers(&mut self, q: u32) {
        while self[q].answers.first != NONE {
            self.forget_answer(q, self[q].answers.first);
        }
    }

    /// Takes a queue pair to RESET: forgets its posted requests. Packets that have left still
    /// arrive.
    pub(crate) fn reset(&mut self, q: u32) {
        let receive = std::mem::replace(&mut self[q].receive, NONE);
        if receive != NONE {
            self.receives.free(receive);
        }
        if !self[q].shared {
            self.receives.clear(self[q].receives);
        }
        let messages = &mut self.run.messages;
        let requests = &mut self.all[q as usize].requests;
        while let Some(message) = requests.take_first(messages) {
            messages.unlist(message);
        }
        self.forget_answers(q);
        self[q].adapter = self.ports.home(self[q].adapter);
        let qp = &mut self[q];
        qp.state = State::Reset;
        qp.peer = NONE;
        qp.requests = SendQueue::EMPTY;
        // The timer of this epoch has no effect in the next.
        qp.timing = false;
    }

    /// Destroys a queue pair, which must have been reset.
    pub(crate) fn destroy(&mut self, q: u32) {
        self.run.set_probing(q, false);
        self[q].alive = false;
        if !self[q].shared {
            self.receives.destroy(self[q].receives);
        }
    }
}

impl std::ops::Index<u32> for QueuePairs {
    type Output = QueuePair;
    #[inline]
    fn index(&self, q: u32) -> &QueuePair {
        &self.all[q as usize]
    }
}

impl std::ops::IndexMut<u32> for QueuePairs {
    #[inline]
    fn index_mut(&mut self, q: u32) -> &mut QueuePair {
        &mut self.all[q as usize]
    }
}
