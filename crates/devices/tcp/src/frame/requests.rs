//! The requests of this end: in flight until the peer has executed them, complete in the order of
//! posting.
//!
//! Invariant: fewer than half of all numbers are in flight, so the order of any two is known.

use std::collections::VecDeque;

use device::{Completed, Slice, Status};

use super::host::{Break, Done, Host};

/// The greatest number of requests that one end may have in flight.
pub(crate) const MOST_REQUESTS: usize = 1 << 14;
/// The number of bytes of a stream after which a long request again needs its acknowledgement at
/// once.
const STREAM: u64 = 256 << 10;
/// The depth of a short queue, in requests. Shorter ones count as this deep.
const SHORT: usize = 16;

/// A request in flight.
#[derive(Debug)]
pub(super) struct Request {
    pub id: u64,
    pub of: Completed,
    pub signaled: bool,
    /// The memory for the answer of a read or an atomic operation, and its length in bytes.
    pub answer: Option<(Vec<Slice>, u32)>,
    /// The reason why the request never left. `None`: it has left.
    pub failed: Option<Status>,
}

/// The requests of one end, in the order of posting.
#[derive(Debug)]
pub(super) struct Requests {
    all: VecDeque<Request>,
    /// The number of the first request of `all`. The first request of a connection has number 1.
    first: u16,
    /// The number of the last request that the peer has executed.
    executed: u16,
    /// The numbers of the requests that await an answer.
    awaiting: VecDeque<u16>,
    /// The number of requests that have completed since the last report.
    unreported: u32,
    /// The number of requests since the last one that needed its acknowledgement at once because of
    /// the depth.
    patient: usize,
    /// The bytes of long requests since the last one that needed its acknowledgement at once.
    since_urgent: u64,
    /// The most requests in flight, by the depth of the queue pair's send queue.
    depth: usize,
}

impl Requests {
    pub(super) fn new(depth: usize) -> Requests {
        Requests {
            all: VecDeque::new(),
            first: 1,
            executed: 0,
            awaiting: VecDeque::new(),
            unreported: 0,
            patient: 0,
            since_urgent: 0,
            depth: depth.clamp(1, MOST_REQUESTS),
        }
    }

    /// True if any request is in flight.
    pub(super) fn any(&self) -> bool {
        !self.all.is_empty()
    }

    /// The number of requests in flight.
    #[cfg(test)]
    pub(super) fn in_flight(&self) -> usize {
        self.all.len()
    }

    /// Adds a request behind all others.
    #[inline]
    pub(super) fn add(&mut self, request: Request) {
        if request.answer.is_some() {
            let number = self.first.wrapping_add(self.all.len() as u16);
            self.awaiting.push_back(number);
        }
        self.all.push_back(request);
        self.patient += 1;
    }

    /// True if the newest request needs its acknowledgement at once: half of the queue is in
    /// flight, and no request has needed it for a while. The owner of a very short queue sends one
    /// request at a time, and the answer contains the acknowledgement.
    #[inline]
    pub(super) fn is_pressing(&mut self) -> bool {
        let depth = self.depth.max(SHORT);
        let pressing = 2 * self.all.len() >= depth && 4 * self.patient >= depth;
        if pressing {
            self.patient = 0;
        }
        pressing
    }

    /// True if the newest request, a long one, needs its acknowledgement at once: it is the only
    /// one in flight, or many bytes have left since a request last needed it. In a stream each such
    /// request would cost the peer a frame.
    pub(super) fn is_urgent(&mut self, len: u32) -> bool {
        self.since_urgent += u64::from(len);
        let urgent = self.all.len() == 1 || self.since_urgent >= STREAM;
        if urgent {
            self.since_urgent = 0;
        }
        urgent
    }

    /// Records that the peer has executed all requests up to this number.
    #[inline]
    pub(super) fn executed(&mut self, number: u16, host: &mut impl Host) -> Result<(), Break> {
        if number == self.executed {
            return Ok(());
        }
        let new = number.wrapping_sub(self.executed);
        let last = self
            .first
            .wrapping_add(self.all.len() as u16)
            .wrapping_sub(1);
        if new > last.wrapping_sub(self.executed) {
            return Err(Break::Protocol("it acknowledges what was not sent"));
        }
        self.executed = number;
        self.settle(host)
    }

    /// The memory for the next answer, and its length in bytes. `None`: no answer is awaited.
    pub(super) fn awaited(&self) -> Option<(&[Slice], u32)> {
        let number = *self.awaiting.front()?;
        let request = self.all.get(usize::from(number.wrapping_sub(self.first)))?;
        let (into, len) = request.answer.as_ref()?;
        Some((into, *len))
    }

    /// Records that the next answer has arrived completely.
    pub(super) fn answered(&mut self, host: &mut impl Host) -> Result<(), Break> {
        self.awaiting.pop_front();
        self.settle(host)
    }

    /// Completes the oldest requests, as far as they are executed and answered.
    fn settle(&mut self, host: &mut impl Host) -> Result<(), Break> {
        while let Some(request) = self.all.front() {
            if let Some(status) = request.failed {
                return Err(Break::Local(status));
            }
            let is_executed = self.executed.wrapping_sub(self.first) < 1 << 15;
            if !is_executed || self.awaiting.front() == Some(&self.first) {
                break;
            }
            self.unreported += 1;
            if request.signaled {
                let bytes = request.answer.as_ref().map_or(0, |(_, len)| *len);
                host.complete(
                    Done::of(request, Status::Success, bytes, self.unreported),
                    false,
                );
                self.unreported = 0;
            }
            self.all.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        Ok(())
    }

    /// Completes the first requests. An error: a request that never left is first, and ends the
    /// connection.
    pub(super) fn check(&mut self, host: &mut impl Host) -> Result<(), Break> {
        self.settle(host)
    }

    /// Ends all requests: the first with a status of its own, the rest flushed.
    pub(super) fn flush(&mut self, first: Status, host: &mut impl Host) {
        let mut status = first;
        for request in self.all.drain(..) {
            self.unreported += 1;
            host.complete(Done::of(&request, status, 0, self.unreported), false);
            self.unreported = 0;
            status = Status::Flushed;
        }
        self.awaiting.clear();
    }
}

impl Done {
    fn of(request: &Request, status: Status, bytes: u32, retires: u32) -> Done {
        Done {
            id: request.id,
            of: request.of,
            status,
            bytes,
            immediate: None,
            retires,
        }
    }
}
