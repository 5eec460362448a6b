//! The engine of a queue pair: which of its requests the HCA knows, has taken, and prefetches.
//!
//! Requests are taken in the order of their posts, one after the other; some HCAs process them one
//! by one.

use sim::Time;

use super::message::{Message, NONE};
use super::timing::Timing;

/// The prefetched payload, in bytes, at which the engine stops taking requests of a queue pair. It
/// exceeds the bytes that any bus carries within a read's latency (125 GB/s for 1 us), so it only
/// bounds memory.
const AHEAD: u64 = 128 << 10;

pub(crate) struct Engine {
    /// The time from which on it can take a request.
    free: Time,
    /// The number of requests that the HCA knows of and the engine has not taken.
    rung: u32,
    /// The engine is to take the next request at a time that is scheduled.
    asked: bool,
    /// The chip is reserved for the next request.
    granted: bool,
    /// On an HCA that processes requests one by one: it is busy with a request, the number of that
    /// request, and the number that wait in memory.
    occupied: bool,
    under_way: u32,
    in_memory: u32,
    /// The number of requests whose payloads the engine fetches and that have not left.
    fetching: u32,
    /// The bytes of requests that the engine has taken and that have not left.
    ahead: u64,
    /// The number of reads and atomics without a response.
    reads: u32,
    /// A request has failed locally: no later one is started.
    pub broken: bool,
    /// In a receiver-not-ready wait.
    pub waits: bool,
    /// The time before which no further packet is read, where the rate of a queue pair is bounded.
    pub paced: Time,
    /// The arrival of the last doorbell.
    last_doorbell: Time,
    /// The time of the last packet, acknowledgement or response.
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

    /// Forgets all requests. Events that are scheduled still happen.
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

    /// The arrival of a doorbell that arrives at `at` unless an earlier one is later.
    pub(crate) fn ring(&mut self, at: Time) -> Time {
        self.last_doorbell = self.last_doorbell.max(at);
        self.last_doorbell
    }

    /// A doorbell has arrived. True: the HCA takes the request up now.
    pub(crate) fn take_up(&mut self, one_by_one: bool) -> bool {
        if one_by_one && self.occupied {
            self.in_memory += 1;
            return false;
        }
        self.occupied |= one_by_one;
        true
    }

    /// A request has left for the first time. True: where requests are processed one by one, the
    /// HCA takes up the next, which waits in memory.
    pub(crate) fn take_up_next(&mut self, left: u32, to_begin: u32) -> bool {
        if !self.occupied || self.under_way != left {
            return false;
        }
        self.under_way = NONE;
        self.occupied = self.in_memory > 0 && to_begin != NONE;
        self.in_memory -= u32::from(self.occupied);
        self.occupied
    }

    /// A request has arrived in the HCA. True: the engine is to take it now.
    pub(crate) fn arrive(&mut self) -> bool {
        self.rung += 1;
        !self.asked
    }

    /// The time at which the engine is to take the next request. None: there is no request, or the
    /// time is scheduled.
    #[inline]
    pub(crate) fn ask(&mut self) -> Option<Time> {
        if self.rung == 0 || self.asked {
            return None;
        }
        self.asked = true;
        Some(self.free)
    }

    /// The scheduled time has come.
    pub(crate) fn begin(&mut self) {
        self.asked = false;
    }

    /// The chip was reserved for the next request. It no longer is.
    pub(crate) fn take_grant(&mut self) -> bool {
        std::mem::take(&mut self.granted)
    }

    /// The chip is reserved for the next request, at a time that is scheduled.
    pub(crate) fn grant(&mut self) {
        (self.granted, self.asked) = (true, true);
    }

    /// True if the HCA knows of a request.
    pub(crate) fn has_request(&self) -> bool {
        self.rung > 0
    }

    /// True if the engine has not finished the last request.
    pub(crate) fn is_busy(&self, now: Time) -> bool {
        self.free > now
    }

    /// True if the engine can take no request like this before others have left or are answered.
    pub(crate) fn is_full(&self, message: &Message, timing: &Timing) -> bool {
        match message.kind.is_answered() {
            true => self.reads >= timing.reads,
            false => {
                let full = self.ahead >= AHEAD || self.fetching >= timing.prefetch;
                message.is_fetched() && full
            }
        }
    }

    /// Takes a request.
    pub(crate) fn take(&mut self, number: u32, message: &Message) {
        self.rung -= 1;
        self.under_way = number;
        self.reads += u32::from(message.kind.is_answered());
        if message.is_fetched() {
            self.ahead += u64::from(message.len);
            self.fetching += 1;
        }
    }

    /// The engine is busy with the request that it has taken until `until`.
    pub(crate) fn occupy(&mut self, until: Time) {
        self.free = until;
    }

    /// A packet with this many fetched bytes leaves.
    pub(crate) fn send(&mut self, now: Time, fetched: u64) {
        self.progress = now;
        self.ahead = self.ahead.saturating_sub(fetched);
    }

    /// True if more payload can be prefetched.
    pub(crate) fn has_room(&self) -> bool {
        self.ahead < AHEAD
    }

    /// A message whose payload was fetched has left. A retransmission leaves a second time.
    pub(crate) fn sent_fetched(&mut self) {
        self.fetching = self.fetching.saturating_sub(1);
    }

    /// A read or atomic has got its response.
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
