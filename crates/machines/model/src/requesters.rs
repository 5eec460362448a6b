//! The requesters of queue pairs: requests are posted, acknowledged, answered, refused or
//! retransmitted (IBA 9.7.2, 9.9.2, 10.8, 10.10).

use sim::Time;
use sim::memory::{Vec, WorldMemory};

use super::connections;
use super::event::{Clocked, Event, Refusal};
use super::message::NONE;
use super::placed::{Destination, Placed, announce};
use super::queue_pairs::QueuePairs;
use super::regions::AccessKind;
use super::senders::Senders;
use device::{Result, State, Status, Work};

/// The value that stands for waits without a limit (IBA 9.7.5.2.8).
const WITHOUT_LIMIT: u32 = 7;

/// The retries of a queue pair since its last acknowledgement or response.
#[derive(Clone, Copy, Debug, Default)]
struct Retries {
    after_timeouts: u32,
    /// The number of waits because the peer had no receive posted.
    not_ready: u32,
}

impl Retries {
    /// Records that the acknowledgement timer has expired. False: it has done so more than `limit`
    /// times.
    fn retry(&mut self, limit: u32) -> bool {
        self.after_timeouts += 1;
        self.after_timeouts <= limit
    }

    /// Records that the peer had no receive posted. False: it has had none `limit` times before.
    fn wait(&mut self, limit: u32) -> bool {
        let can = limit == WITHOUT_LIMIT || self.not_ready < limit;
        self.not_ready += u32::from(can && limit != WITHOUT_LIMIT);
        can
    }
}

/// The requesters (sending sides) of all queue pairs.
pub(crate) struct Requesters {
    retries: Vec<Retries>,
}

impl Requesters {
    pub(crate) fn new(memory: WorldMemory) -> Requesters {
        Requesters {
            retries: Vec::new_in(memory),
        }
    }

    /// Adds the requester of a new queue pair.
    pub(crate) fn add(&mut self) {
        self.retries.push(Retries::default());
    }

    /// Forgets the retries of a queue pair whose connection ends.
    pub(crate) fn reset(&mut self, q: u32) {
        self.retries[q as usize] = Retries::default();
    }

    /// Posts a work request that the processor has ready at `at`; returns the number of its
    /// message.
    ///
    /// # Safety
    /// The inline slices must be memory of this rank.
    pub(crate) unsafe fn post(
        senders: &mut Senders,
        qps: &mut QueuePairs,
        q: u32,
        work: &Work,
        at: Time,
        clock: &mut Clocked,
    ) -> Result<u32> {
        let len = qps[q].check(q, work, !qps.run.faults.no_immediates)?;
        let (to, latency) = Requesters::destination(qps, q, work);
        let to_rank = qps.get(to).map_or(NONE, |peer| peer.rank);
        let number = qps.run.messages.take();
        let qp = &qps[q];
        let (rank, adapter, life, state) = (qp.rank, qp.adapter, qp.life, qp.state);
        let (mtu, sequence) = (qp.mtu, qp.requests.posted);
        let is_free = qps.ranks[rank].is_free;
        qps.run.record.posted += 1;
        let message = &mut qps.run.messages[number];
        message.inline = work.inline;
        message.signaled = work.signaled;
        (message.begun, message.ready, message.done) = (false, false, false);
        message.listed = true;
        message.status = Status::Success;
        (message.next, message.next_answer) = (NONE, NONE);
        (message.from, message.to, message.latency) = (q, to, latency);
        (message.from_rank, message.to_rank) = (rank, to_rank);
        (message.life, message.sequence) = (life, sequence);
        message.id = work.id;
        message.is_free = is_free;
        message.number = qps.run.record.posted;
        message.immediate = None;
        (message.len, message.mtu) = (len, mtu);
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
        let is_fetched = message.is_fetched();
        Requesters::set_times(qps, number, (rank, adapter));
        qps.append(q, number);
        if state == State::Error {
            qps.flush(q, at, clock);
            return Ok(number);
        }
        // A copy by the processor reads its data when it is posted. A copy that is not allowed
        // fails in the engine, like any other request.
        if is_fetched && qps.ports.is_within(adapter) {
            qps.run.messages[number].inline = qps.capture(q, number);
        }
        let inlined = if work.inline { len } else { 0 };
        qps.heed(number);
        let there = at + qps.ports.timing(adapter).mmio(inlined);
        let doorbell = Event::Doorbell {
            qp: q,
            life,
            inlined,
        };
        qps.run.schedule(senders[q].ring(there), doorbell, clock);
        Ok(number)
    }

    /// Sets the times of a request by its length, where a calibrated machine has such times.
    fn set_times(qps: &mut QueuePairs, number: u32, (rank, adapter): (u32, u32)) {
        let message = &mut qps.run.messages[number];
        (message.delay, message.interval) = (0, 0);
        let place = &qps.ranks[rank];
        if place.is_free || qps.ports.is_within(adapter) {
            return;
        }
        let timing = qps.ports.timing(adapter);
        let is_direct = timing.is_direct;
        let software = &qps.run.system.software;
        let library = place.library.times(software, message, is_direct);
        let (delay, interval) = timing.by_length(message.len);
        message.delay = library.steps + library.delay.unwrap_or(delay);
        message.interval = library.interval.unwrap_or(interval);
    }

    /// The queue pair to which a request goes, and the latency of the path to it.
    fn destination(qps: &mut QueuePairs, q: u32, work: &Work) -> (u32, Time) {
        let qp = &qps[q];
        let is_free = qps.ranks[qp.rank].is_free;
        let (to, latency) = match work.to {
            None => (qp.peer, qp.latency),
            Some(address) => match connections::reach(qps, q, address) {
                Some(number) => (number, connections::latency(qps, q, number)),
                None => (NONE, 0),
            },
        };
        (to, if is_free { 0 } else { latency })
    }

    /// Handles a packet of a response that arrives at the requester.
    pub(crate) fn answered(
        &mut self,
        senders: &mut Senders,
        qps: &mut QueuePairs,
        (number, packet): (u32, u32),
        clock: &mut Clocked,
    ) {
        let now = clock.now();
        let message = &mut qps.run.messages[number];
        let q = message.from;
        if message.listed && !message.done && packet == message.answers {
            message.answers += 1;
            let (from, len) = message.piece(packet);
            let last = packet + 1 >= message.response_packets();
            let adapter = qps[q].adapter;
            let slices = &qps.run.messages[number].slices;
            if !qps.allow_all(q, slices, AccessKind::LocalWrite) {
                qps.run.messages[number].answers = u32::MAX;
                senders[q].answered();
                senders.fail_locally(qps, q, number, Status::LocalProtection, clock);
            } else {
                self.progressed(senders, q, now);
                let (ports, run) = (&mut qps.ports, &mut qps.run);
                let end = ports.write(run, adapter, now, len, (number, packet));
                let visible = end + ports.timing(adapter).write_latency;
                let visible = qps.visible(q, number, visible);
                let placed = Placed {
                    message: number,
                    from,
                    len,
                    into: Destination::Slices,
                    wakes: last,
                };
                announce(qps, q, placed, visible, clock);
                if last {
                    qps.settle_up_to(q, number, false);
                    qps.run.messages[number].done = true;
                    senders[q].answered();
                    senders.complete(qps, q, clock);
                    senders.ask_begin(&mut qps.run, q, clock);
                }
            }
        }
        qps.run.messages.release(number);
    }

    /// Handles an acknowledgement that arrives at the requester.
    pub(crate) fn acknowledged(
        &mut self,
        senders: &mut Senders,
        qps: &mut QueuePairs,
        number: u32,
        clock: &mut Clocked,
    ) {
        let q = qps.run.messages[number].from;
        if qps.run.messages[number].listed {
            self.progressed(senders, q, clock.now());
            qps.settle_up_to(q, number, true);
            senders.complete(qps, q, clock);
        }
        qps.run.messages.release(number);
    }

    fn progressed(&mut self, senders: &mut Senders, q: u32, now: Time) {
        senders[q].progress = now;
        self.retries[q as usize] = Retries::default();
    }

    /// Handles the peer's refusal of a message: waits, or fails the request.
    pub(crate) fn refused(
        &mut self,
        senders: &mut Senders,
        qps: &mut QueuePairs,
        (number, why): (u32, Refusal),
        clock: &mut Clocked,
    ) {
        let q = qps.run.messages[number].from;
        if qps.run.messages[number].listed {
            qps.settle_up_to(q, number, false);
            senders[q].progress = clock.now();
            let limit = qps.run.faults.rnr_retries;
            if why == Refusal::NotReady && self.retries[q as usize].wait(limit) {
                senders[q].waits = true;
                qps.rewind(q, qps.run.messages[number].sequence, 0);
                senders.complete(qps, q, clock);
                let (at, life) = (clock.now() + qps.run.faults.rnr_wait, qps[q].life);
                qps.run.schedule(at, Event::Resume { qp: q, life }, clock);
            } else {
                let message = &mut qps.run.messages[number];
                message.status = match why {
                    Refusal::NotReady => Status::RnrRetryExceeded,
                    Refusal::InvalidRequest => Status::RemoteInvalidRequest,
                    Refusal::Access => Status::RemoteAccess,
                    Refusal::Operation => Status::RemoteOperation,
                };
                message.done = true;
                senders.complete(qps, q, clock);
            }
        }
        qps.run.messages.release(number);
    }

    /// Handles the report of a missing packet: retransmits from that packet on.
    pub(crate) fn missing(
        &mut self,
        senders: &mut Senders,
        qps: &mut QueuePairs,
        q: u32,
        (sequence, packet): (u32, u32),
        clock: &mut Clocked,
    ) {
        if qps[q].is_ready() {
            self.progressed(senders, q, clock.now());
            qps.rewind(q, sequence, packet);
            senders.go_on_sending(qps, q, clock);
        }
    }

    /// Continues after the wait for a receiver that was not ready.
    pub(crate) fn resume(senders: &mut Senders, qps: &mut QueuePairs, q: u32, clock: &mut Clocked) {
        senders[q].waits = false;
        senders.go_on_sending(qps, q, clock);
    }

    /// Handles the timeout after a loss: retransmits from the given packet, unless there was
    /// progress.
    pub(crate) fn timeout(
        &mut self,
        senders: &mut Senders,
        qps: &mut QueuePairs,
        q: u32,
        (sequence, packet): (u32, u32),
        clock: &mut Clocked,
    ) {
        let (now, limit) = (clock.now(), qps.run.faults.timeout);
        let first = qps[q].requests.first;
        qps[q].timing = false;
        if !qps[q].is_ready() || first == NONE {
            return;
        }
        let (progress, waits) = (senders[q].progress, senders[q].waits);
        if now < progress + limit || waits {
            let since = if waits { now } else { progress };
            return qps.set_timer(q, since + limit, clock);
        }
        let message = &mut qps.run.messages[first];
        if !message.begun {
            return;
        }
        if !self.retries[q as usize].retry(qps.run.faults.retries) {
            message.status = Status::RetryExceeded;
            message.done = true;
            return senders.complete(qps, q, clock);
        }
        qps.rewind(q, sequence, packet);
        senders.go_on_sending(qps, q, clock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_end_and_waits_may_have_no_limit() {
        let mut retries = Retries::default();
        assert_eq!(
            [2; 3].map(|limit| retries.retry(limit)),
            [true, true, false]
        );
        assert_eq!([2; 3].map(|limit| retries.wait(limit)), [true, true, false]);
        assert_eq!([7; 9].map(|limit| retries.wait(limit)), [true; 9]);
        assert_eq!(retries.not_ready, 2);
    }
}
