//! TCP: one end of an established connection, as a state machine without device or clock.
//!
//! Sliding window and acknowledgements are those of RFC 9293, congestion control is that of RFC
//! 5681 with fast recovery of RFC 6582 and the initial window of RFC 6928, and Nagle's algorithm
//! delays short segments (RFC 896). Every second full segment is acknowledged at once. Others are
//! acknowledged when a reader waits, or with data in the other direction, so no timer delays an
//! acknowledgement.

use std::collections::{BTreeMap, VecDeque};
use std::io::Read;

use sim::Time;

use crate::frame::Head;

/// The least time after which unacknowledged bytes are sent again, in picoseconds: 200 ms, as in
/// Linux.
const TIMEOUT: Time = 200_000_000_000;
/// The initial congestion window, in segments (RFC 6928).
const INITIAL: u64 = 10;
/// The number of duplicate acknowledgements that indicate a loss (RFC 5681).
const DUPLICATES: u32 = 3;

/// One end of a TCP connection.
pub struct Connection {
    payload: u64,
    window: u64,
    nodelay: bool,
    /// The bytes from `unacknowledged` on: those in flight, then those not yet sent.
    outgoing: VecDeque<u8>,
    unacknowledged: u64,
    next: u64,
    /// The end of the bytes that have been sent at least once, as a sequence number.
    highest: u64,
    /// The end of the bytes for which the peer has room, as a sequence number.
    limit: u64,
    congestion: u64,
    threshold: u64,
    duplicates: u32,
    /// During the recovery from a loss: the sequence number whose acknowledgement ends it.
    recovery: Option<u64>,
    /// True if the first unacknowledged segment must be sent again.
    again: bool,
    /// True if one byte more than the peer has room for must be sent, as a probe.
    probe: bool,
    timer: Option<Time>,
    backoff: u32,
    /// The bytes that have arrived in order and have not been read.
    incoming: VecDeque<u8>,
    /// The sequence number of the next byte that is expected in order.
    expected: u64,
    /// Bytes that have arrived after a gap, by their sequence numbers.
    early: BTreeMap<u64, Vec<u8>>,
    /// The number of bytes that have arrived since the last acknowledgement.
    since: u64,
    /// True if an acknowledgement of received data is due now.
    due: bool,
    /// The end of the window that was last advertised to the peer, as a sequence number.
    advertised: u64,
}

/// A TCP segment that is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The header of the segment.
    pub head: Head,
    /// The data of the segment.
    pub payload: Vec<u8>,
}

impl Connection {
    /// A connection with segments of at most `payload` bytes, whose ends keep at most `window`
    /// bytes in each direction. `nodelay`: short segments are sent at once.
    pub fn new(payload: usize, window: usize, nodelay: bool) -> Connection {
        let (payload, window) = (payload as u64, window as u64);
        Connection {
            payload,
            window,
            nodelay,
            outgoing: VecDeque::new(),
            unacknowledged: 0,
            next: 0,
            highest: 0,
            limit: window,
            congestion: INITIAL * payload,
            threshold: u64::MAX,
            duplicates: 0,
            recovery: None,
            again: false,
            probe: false,
            timer: None,
            backoff: 0,
            incoming: VecDeque::new(),
            expected: 0,
            early: BTreeMap::new(),
            since: 0,
            due: false,
            advertised: window,
        }
    }

    /// The number of bytes that can be written to the connection now.
    pub fn room(&self) -> usize {
        (self.window as usize).saturating_sub(self.outgoing.len())
    }

    /// True if a waiting writer should continue: a third of the send buffer is free.
    pub fn is_writable(&self) -> bool {
        self.room() as u64 * 3 >= self.window
    }

    /// Accepts as many of the bytes as there is room for; returns their number.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.room());
        self.outgoing.extend(&bytes[..count]);
        count
    }

    /// Takes the next segment that may be sent at the time `now`. `None`: nothing may be sent.
    pub fn segment(&mut self, now: Time) -> Option<Segment> {
        let end = self.unacknowledged + self.outgoing.len() as u64;
        let first = match std::mem::take(&mut self.again) {
            true => self.unacknowledged,
            false => self.next,
        };
        let again = first < self.next;
        let probe = std::mem::take(&mut self.probe);
        let allowed = match again {
            true => self.next,
            false => self.limit.min(self.unacknowledged + self.congestion),
        };
        let left = end
            .min(allowed.max(first + u64::from(probe)))
            .saturating_sub(first);
        let len = left.min(self.payload);
        let waits = !again && len < self.payload && self.holds_back(first + len, end);
        if len == 0 || waits {
            if end > first && self.next == self.unacknowledged {
                // The peer's report of room may be lost.
                self.timer.get_or_insert(now + TIMEOUT);
            }
            return None;
        }
        let start = (first - self.unacknowledged) as usize;
        let payload = slice(&self.outgoing, start, len as usize);
        self.next = self.next.max(first + len);
        self.highest = self.highest.max(self.next);
        self.timer.get_or_insert(now + (TIMEOUT << self.backoff));
        let head = self.head(first);
        Some(Segment { head, payload })
    }

    /// True if a short segment that ends at `to` must wait for more data. `end` is the end of all
    /// written bytes.
    fn holds_back(&self, to: u64, end: u64) -> bool {
        let in_flight = self.next > self.unacknowledged;
        match to == end {
            // Nagle's algorithm.
            true => in_flight && !self.nodelay,
            // More bytes exist, but the window ends: avoidance of the silly window syndrome.
            false => in_flight,
        }
    }

    /// The header of a segment that is sent now. It acknowledges everything that has arrived in
    /// order.
    fn head(&mut self, sequence: u64) -> Head {
        (self.since, self.due) = (0, false);
        let window = self.window.saturating_sub(self.incoming.len() as u64);
        self.advertised = self.advertised.max(self.expected + window);
        Head::Segment {
            sequence,
            acknowledged: self.expected,
            window,
            gap: !self.early.is_empty(),
        }
    }

    /// Takes an acknowledgement without data, if one is due. `waiting`: a reader waits, so one is
    /// due for any new bytes.
    pub fn acknowledgement(&mut self, waiting: bool) -> Option<Head> {
        let due = self.due || waiting && self.since > 0;
        due.then(|| self.head(self.next))
    }

    /// Processes a segment that has arrived at the time `now`.
    pub fn take(&mut self, head: Head, bytes: &[u8], now: Time) {
        let Head::Segment {
            sequence,
            acknowledged,
            window,
            gap,
        } = head
        else {
            return;
        };
        self.take_acknowledgement(acknowledged, window, gap && bytes.is_empty(), now);
        if bytes.is_empty() {
            return;
        }
        let end = sequence + bytes.len() as u64;
        if end <= self.expected || sequence > self.expected {
            // Bytes are missing, or an acknowledgement was lost.
            self.due = true;
        }
        if sequence > self.expected {
            if end <= self.expected + self.window {
                self.early.entry(sequence).or_insert_with(|| bytes.to_vec());
            }
            return;
        }
        self.append(sequence, bytes);
        while let Some((start, _)) = self.early.first_key_value()
            && *start <= self.expected
            && let Some((start, bytes)) = self.early.pop_first()
        {
            self.append(start, &bytes);
            // The gap is closed.
            self.due = true;
        }
        self.due |= self.since >= 2 * self.payload;
    }

    /// Appends to the readable bytes those that they do not contain yet. `sequence` is the sequence
    /// number of the first byte, and not after the expected one.
    fn append(&mut self, sequence: u64, bytes: &[u8]) {
        let known = (self.expected - sequence) as usize;
        if let Some(fresh) = bytes.get(known..) {
            self.incoming.extend(fresh);
            self.expected += fresh.len() as u64;
            self.since += fresh.len() as u64;
        }
    }

    fn take_acknowledgement(&mut self, to: u64, window: u64, duplicate: bool, now: Time) {
        if to > self.highest || to < self.unacknowledged {
            return;
        }
        self.limit = self.limit.max(to + window);
        let acked = to - self.unacknowledged;
        if acked == 0 {
            if duplicate && self.next > self.unacknowledged {
                self.duplicates += 1;
                if self.duplicates == DUPLICATES && self.recovery.is_none() {
                    self.lose();
                    self.congestion = self.threshold;
                    (self.recovery, self.again) = (Some(self.next), true);
                }
            }
            return;
        }
        self.outgoing.drain(..acked as usize);
        self.unacknowledged = to;
        self.next = self.next.max(to);
        (self.duplicates, self.backoff) = (0, 0);
        match self.recovery {
            Some(end) if to < end => self.again = true,
            Some(_) => self.recovery = None,
            None if self.congestion < self.threshold => self.congestion += acked,
            None => self.congestion += (self.payload * acked / self.congestion).max(1),
        }
        // There are never more bytes in flight than both buffers hold.
        self.congestion = self.congestion.min(2 * self.window);
        let in_flight = self.next > self.unacknowledged;
        self.timer = in_flight.then(|| now + TIMEOUT);
    }

    /// Sets the slow-start threshold after a loss: half of the bytes in flight.
    fn lose(&mut self) {
        let in_flight = self.next - self.unacknowledged;
        self.threshold = (in_flight / 2).max(2 * self.payload);
    }

    /// The time at which [`expire`](Connection::expire) must be called. `None`: no timer runs.
    pub fn timer(&self) -> Option<Time> {
        self.timer
    }

    /// If the timer has expired by `now`, schedules all unacknowledged bytes to be sent again; if
    /// there are none, one byte that queries the peer's window.
    pub fn expire(&mut self, now: Time) {
        if self.timer.is_none_or(|timer| timer > now) {
            return;
        }
        self.timer = None;
        if self.next == self.unacknowledged {
            self.probe = true;
            return;
        }
        self.lose();
        self.congestion = self.payload;
        self.next = self.unacknowledged;
        (self.recovery, self.again, self.duplicates) = (None, false, 0);
        self.backoff = (self.backoff + 1).min(8);
    }

    /// The number of received bytes that can be read.
    pub fn readable(&self) -> usize {
        self.incoming.len()
    }

    /// Moves received bytes to `into`; returns their number.
    pub fn read(&mut self, into: &mut [u8]) -> usize {
        let count = self.incoming.read(into).unwrap_or(0);
        let room = self.expected + self.window.saturating_sub(self.incoming.len() as u64);
        // A window that has grown by two segments, or half of its greatest size, is advertised at
        // once.
        let step = (2 * self.payload).min(self.window / 2);
        self.due |= room >= self.advertised + step;
        count
    }

    /// True if the peer has acknowledged all written bytes.
    pub fn is_settled(&self) -> bool {
        self.outgoing.is_empty()
    }

    /// Sets whether short segments are sent at once.
    pub fn set_nodelay(&mut self, nodelay: bool) {
        self.nodelay = nodelay;
    }
}

/// A copy of `len` bytes of a queue, from position `from` on.
fn slice(queue: &VecDeque<u8>, from: usize, len: usize) -> Vec<u8> {
    let (front, back) = queue.as_slices();
    let mut bytes = Vec::with_capacity(len);
    let end = from + len;
    if from < front.len() {
        bytes.extend(&front[from..end.min(front.len())]);
    }
    if end > front.len() {
        bytes.extend(&back[from.saturating_sub(front.len())..end - front.len()]);
    }
    bytes
}
