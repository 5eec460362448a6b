//! The engine of a queue pair: the part of the HCA that takes its requests, and prefetches their
//! payloads.
//!
//! Requests are taken in the order of their posts. Some HCAs process them one by one.

use sim::Time;

use super::message::{Message, NONE};
use super::timing::Timing;

/// The number of prefetched bytes at which the engine stops taking requests of a queue pair. It
/// exceeds the bytes that any bus carries within a read's latency (125 GB/s for 1 us), so it only
/// bounds memory.
const AHEAD: u64 = 128 << 10;

pub(crate) struct Engine {
    /// The time from which on the engine can take a request.
    free: Time,
    /// The number of requests that the HCA has been informed of and the engine has not taken.
    rung: u32,
    /// True if a time is scheduled at which the engine takes the next request.
    asked: bool,
    /// True if the chip is reserved for the next request.
    granted: bool,
    /// On an HCA that processes requests one by one: true while it is busy with a request.
    occupied: bool,
    /// On an HCA that processes requests one by one: the number of the message that it is busy
    /// with.
    under_way: u32,
    /// On an HCA that processes requests one by one: the number of requests that wait in memory.
    in_memory: u32,
    /// The number of requests whose payloads the engine fetches and that have not left.
    fetching: u32,
    /// The number of payload bytes that the engine has taken and that have not left.
    ahead: u64,
    /// The number of reads and atomics that have no response yet.
    reads: u32,
    /// True if a request has failed locally; no later request is started.
    pub broken: bool,
    /// True during the wait for a receiver that is not ready.
    pub waits: bool,
    /// The time before which no further packet is read, if the rate of a queue pair is limited.
    pub paced: Time,
    /// The time at which the last doorbell reaches the HCA.
    last_doorbell: Time,
    /// The time of the last packet, acknowledgement or response, at which the acknowledgement
    /// timeout begins.
    pub progress: Time,
}

impl Engine {
    pub(crate) fn new() -> Engine {
        Engine {
            free: 0,
            rung: 0,
            asked: false,
            granted: false,
            occupied: false,
            under_way: NONE,
            in_memory: 0,
            fetching: 0,
            ahead: 0,
            reads: 0,
            broken: false,
            waits: false,
            paced: 0,
            last_doorbell: 0,
            progress: 0,
        }
    }

    /// Forgets all requests of the engine. Scheduled events still happen.
    pub(crate) fn reset(&mut self) {
        *self = Engine {
            free: self.free,
            asked: self.asked,
            granted: self.granted,
            paced: self.paced,
            last_doorbell: self.last_doorbell,
            progress: self.progress,
            ..Engine::new()
        };
    }

    /// The arrival of a doorbell that would arrive at `at`: doorbells do not overtake each other.
    pub(crate) fn ring(&mut self, at: Time) -> Time {
        self.last_doorbell = self.last_doorbell.max(at);
        self.last_doorbell
    }

    /// Records the arrival of a doorbell. True: the HCA fetches or takes the request now.
    pub(crate) fn take_up(&mut self, one_by_one: bool) -> bool {
        if one_by_one && self.occupied {
            self.in_memory += 1;
            return false;
        }
        self.occupied |= one_by_one;
        true
    }

    /// Records that the message `left` has left for the first time. True: the HCA, which processes
    /// requests one by one, continues with the next, which waits in memory.
    pub(crate) fn take_up_next(&mut self, left: u32, to_begin: u32) -> bool {
        if !self.occupied || self.under_way != left {
            return false;
        }
        self.under_way = NONE;
        self.occupied = self.in_memory > 0 && to_begin != NONE;
        self.in_memory -= u32::from(self.occupied);
        self.occupied
    }

    /// Records that a request has arrived in the HCA. True: no time is scheduled for the engine to
    /// take it.
    pub(crate) fn arrive(&mut self) -> bool {
        self.rung += 1;
        !self.asked
    }

    /// Takes the time at which the engine can take the next request, for the caller to schedule.
    /// `None`: there is no request, or the time is already scheduled.
    #[inline]
    pub(crate) fn ask(&mut self) -> Option<Time> {
        if self.rung == 0 || self.asked {
            return None;
        }
        self.asked = true;
        Some(self.free)
    }

    /// Records that the scheduled time has been reached, at which the engine can take the next
    /// request.
    pub(crate) fn begin(&mut self) {
        self.asked = false;
    }

    /// Ends the reservation of the chip. True: the chip was reserved for the next request.
    pub(crate) fn take_grant(&mut self) -> bool {
        std::mem::take(&mut self.granted)
    }

    /// Records that the chip is reserved for the next request, at a time that is scheduled.
    pub(crate) fn grant(&mut self) {
        (self.granted, self.asked) = (true, true);
    }

    /// True if the HCA has been informed of a request that the engine has not taken.
    pub(crate) fn has_request(&self) -> bool {
        self.rung > 0
    }

    /// True if the engine is still busy with the last request.
    pub(crate) fn is_busy(&self, now: Time) -> bool {
        self.free > now
    }

    /// True if the engine can take no request like this before earlier ones have left or are
    /// answered.
    pub(crate) fn is_full(&self, message: &Message, timing: &Timing) -> bool {
        match message.kind.is_answered() {
            true => self.reads >= timing.reads,
            false => {
                let full = self.ahead >= AHEAD || self.fetching >= timing.prefetch;
                message.is_fetched() && full
            }
        }
    }

    /// Records that the engine takes a request: the message `number`.
    pub(crate) fn take(&mut self, number: u32, message: &Message) {
        self.rung -= 1;
        self.under_way = number;
        self.reads += u32::from(message.kind.is_answered());
        if message.is_fetched() {
            self.ahead += u64::from(message.len);
            self.fetching += 1;
        }
    }

    /// Records that the engine of the queue pair is busy until `until`.
    pub(crate) fn occupy(&mut self, until: Time) {
        self.free = until;
    }

    /// Records that a packet leaves, with this number of fetched bytes.
    pub(crate) fn send(&mut self, now: Time, fetched: u64) {
        self.progress = now;
        self.ahead = self.ahead.saturating_sub(fetched);
    }

    /// True if the engine may prefetch more payload.
    pub(crate) fn has_room(&self) -> bool {
        self.ahead < AHEAD
    }

    /// Records that a message with a fetched payload has left. A retransmission leaves a second
    /// time.
    pub(crate) fn sent_fetched(&mut self) {
        self.fetching = self.fetching.saturating_sub(1);
    }

    /// Records that the response to a read or atomic is complete.
    pub(crate) fn answered(&mut self) {
        self.reads -= 1;
    }
}

#[cfg(test)]
mod tests {
    use fabric::catalogue::Catalogue;
    use sim::memory::Memory;

    use super::*;
    use crate::message::{Messages, RequestKind};

    #[test]
    fn requests_are_processed_one_by_one_where_the_hca_does() {
        let mut engine = Engine::new();
        assert!(engine.take_up(true) && !engine.take_up(true) && !engine.take_up(true));
        engine.under_way = 5;
        assert!(!engine.take_up_next(4, 7), "another one left");
        assert!(engine.take_up_next(5, 7));
        engine.under_way = 7;
        assert!(!engine.take_up_next(7, NONE), "nothing is posted");
        assert!(engine.take_up(true));
    }

    #[test]
    fn the_engine_is_asked_once_for_each_time() {
        let mut engine = Engine::new();
        assert_eq!(engine.ask(), None);
        engine.occupy(30);
        assert!(engine.arrive());
        assert_eq!((engine.ask(), engine.ask()), (Some(30), None));
        assert!(!engine.arrive(), "a time is scheduled");
        engine.begin();
        assert_eq!(engine.ask(), Some(30));
    }

    #[test]
    fn prefetching_and_reads_are_bounded() {
        let memory = Memory::private().unwrap();
        let system = Catalogue::builtin().system("edr").unwrap();
        let timing = Timing::new(memory.shared(), &system, 0);
        let mut messages = Messages::new(memory.shared());
        let number = messages.take();
        messages[number].len = 100 << 10;
        let mut engine = Engine::new();
        engine.rung = 3 + timing.reads;
        engine.take(number, &messages[number]);
        assert!(!engine.is_full(&messages[number], &timing));
        engine.take(number, &messages[number]);
        assert!(engine.is_full(&messages[number], &timing) && !engine.has_room());
        engine.send(1, 100 << 10);
        assert!(!engine.is_full(&messages[number], &timing) && engine.has_room());
        messages[number].kind = RequestKind::Read;
        (0..timing.reads).for_each(|_| engine.take(number, &messages[number]));
        assert!(engine.is_full(&messages[number], &timing));
        engine.answered();
        assert!(!engine.is_full(&messages[number], &timing));
    }
}
