//! A small event simulator: links with given rates and latencies, and a rank that plays transfers
//! through a schedule and polls without pause.

use super::{LATENCY, SOON, Schedule};
use crate::rdma::schedule::{Assignment, Shares};
use std::collections::VecDeque;

/// The time without work after which a peer yields its processor, in nanoseconds.
const PATIENCE: u64 = 20_000;
/// Processor time of a request, in nanoseconds.
const POST: u64 = 330;

/// A wire: the true properties of a link.
pub(super) struct Wire {
    /// The bandwidth from each time on: the time, and the bytes per second. The first time is 0.
    rates: Vec<(u64, u64)>,
    /// The relative noise of a piece's time, in per cent.
    noise: u64,
    pub latency: u64,
    slot: usize,
    free: u64,
    in_flight: VecDeque<InFlight>,
}

struct InFlight {
    transfer: usize,
    bytes: u64,
    arrival: u64,
    completion: u64,
}

impl Wire {
    pub(super) fn new(rate: u64) -> Wire {
        Wire::varying(vec![(0, rate)])
    }

    pub(super) fn varying(rates: Vec<(u64, u64)>) -> Wire {
        Wire {
            rates,
            noise: 0,
            latency: LATENCY,
            slot: usize::MAX,
            free: 0,
            in_flight: VecDeque::new(),
        }
    }

    pub(super) fn noisy(self, noise: u64) -> Wire {
        Wire { noise, ..self }
    }

    /// This wire with another latency, in nanoseconds.
    pub(super) fn long(self, latency: u64) -> Wire {
        Wire { latency, ..self }
    }

    /// This wire, behind the slot with the number `slot`.
    pub(super) fn behind(self, slot: usize) -> Wire {
        Wire { slot, ..self }
    }

    /// The time at which `bytes` that begin at `start` have left.
    fn end(&self, start: u64, bytes: u64) -> u64 {
        let (mut at, mut left) = (start as f64, bytes as f64);
        for (position, &(_, rate)) in self.rates.iter().enumerate() {
            let until = self
                .rates
                .get(position + 1)
                .map_or(f64::MAX, |next| next.0 as f64);
            if at >= until {
                continue;
            }
            let per_ns = rate as f64 / 1e9;
            let carried = (until - at) * per_ns;
            if left <= carried {
                return (at + left / per_ns) as u64;
            }
            left -= carried;
            at = until;
        }
        unreachable!("the last rate lasts")
    }
}

/// The rank with its wires.
pub(super) struct Simulator {
    pub schedule: Schedule,
    pub wires: Vec<Wire>,
    /// The bandwidth of each slot, and the time from which it is free.
    slots: Vec<(u64, u64)>,
    pub now: u64,
    /// The time from a completion to the poll of the rank that it wakes, in nanoseconds; 0: the
    /// rank never sleeps.
    pub wake: u64,
    /// The time for which the peer's process has no processor after it has found nothing to do for
    /// [`PATIENCE`], in nanoseconds. Bytes that arrive meanwhile complete afterwards.
    pub away: u64,
    /// The time until which the peer has work, or is away.
    peer_until: u64,
    seed: u64,
    /// The transfers by number.
    transfers: Vec<Transfer>,
    /// The arrivals of all pieces: the time, the length in bytes, and the link.
    pub arrivals: Vec<(u64, u64, usize)>,
}

struct Transfer {
    left: u64,
    start: u64,
    arrival: u64,
}

impl Simulator {
    pub(super) fn new(schedule: Schedule, wires: Vec<Wire>) -> Simulator {
        Simulator {
            schedule,
            wires,
            slots: Vec::new(),
            now: 1_000_000_000,
            wake: 0,
            away: 0,
            peer_until: 0,
            seed: 0x9e37_79b9_7f4a_7c15,
            transfers: Vec::new(),
            arrivals: Vec::new(),
        }
    }

    pub(super) fn with_slots(self, slots: &[u64]) -> Simulator {
        let slots = slots.iter().map(|&bandwidth| (bandwidth, 0)).collect();
        Simulator { slots, ..self }
    }

    fn random(&mut self, below: u64) -> u64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        self.seed % below.max(1)
    }

    fn post(&mut self, link: usize, transfer: usize, bytes: u64) {
        self.now += POST;
        self.schedule.posted(link, bytes, self.now);
        let noise = self.random(2 * self.wires[link].noise + 1);
        let wire = &mut self.wires[link];
        let start = wire.free.max(self.now);
        let time = (wire.end(start, bytes) - start) * (100 - wire.noise + noise) / 100;
        wire.free = start + time;
        if let Some((bandwidth, free)) = self.slots.get_mut(wire.slot) {
            *free = (*free).max(self.now) + bytes * 1_000_000_000 / *bandwidth;
            wire.free = wire.free.max(*free);
        }
        let arrival = wire.free + wire.latency;
        if arrival > self.peer_until + PATIENCE {
            self.peer_until = arrival + self.away;
        }
        self.peer_until = self.peer_until.max(arrival);
        let taken = match self.away {
            0 => arrival,
            _ => self.peer_until,
        };
        let completion = taken + wire.latency * 7 / 10;
        wire.in_flight.push_back(InFlight {
            transfer,
            bytes,
            arrival,
            completion,
        });
        self.arrivals.push((arrival, bytes, link));
    }

    /// Reports the completions up to now to the schedule.
    fn poll(&mut self) {
        for link in 0..self.wires.len() {
            let is_due = |first: &InFlight, now| first.completion <= now;
            while self.wires[link]
                .in_flight
                .front()
                .is_some_and(|first| is_due(first, self.now))
            {
                let piece = self.wires[link].in_flight.pop_front().unwrap();
                let transfer = &mut self.transfers[piece.transfer];
                transfer.left -= piece.bytes;
                transfer.arrival = transfer.arrival.max(piece.arrival);
                let late = match self.wake {
                    0 => SOON,
                    wake => Some(2 * wake),
                };
                self.schedule.completed(link, piece.bytes, self.now, late);
            }
        }
    }

    /// Advances to the next completion.
    fn wait(&mut self) {
        let firsts = self.wires.iter().filter_map(|wire| wire.in_flight.front());
        let next = firsts.map(|first| first.completion).min();
        let next = next.expect("a wait ends with a completion");
        self.now = self.now.max(next + self.wake);
        self.poll();
    }

    /// Plays transfers of the given lengths, at most `window` at a time. Returns the time of each,
    /// from its start to its last arrival.
    pub(super) fn play(&mut self, lengths: impl Iterator<Item = u64>, window: usize) -> Vec<u64> {
        let first = self.transfers.len();
        let mut open: VecDeque<usize> = VecDeque::new();
        for len in lengths {
            while open.len() == window {
                self.wait();
                open.retain(|&open| self.transfers[open].left > 0);
            }
            let number = self.transfers.len();
            let (left, start, arrival) = (len, self.now, 0);
            self.transfers.push(Transfer {
                left,
                start,
                arrival,
            });
            open.push_back(number);
            self.start(number, len);
        }
        while self.wires.iter().any(|wire| !wire.in_flight.is_empty()) {
            self.wait();
        }
        let played = &self.transfers[first..];
        played
            .iter()
            .map(|played| played.arrival - played.start)
            .collect()
    }

    /// Posts a transfer completely.
    fn start(&mut self, number: usize, len: u64) {
        let mut left = len;
        while left > 0 {
            self.poll();
            match self.schedule.assign(left, self.now) {
                Assignment::Final(shares) => {
                    assert_eq!(shares.iter().sum::<u64>(), left, "{shares:?}");
                    self.post_shares(number, shares);
                    left = 0;
                }
                Assignment::Piece { link, len } => {
                    assert!((1..=left).contains(&len), "{len} of {left}");
                    self.post(link, number, len);
                    left -= len;
                }
                Assignment::Wait => self.wait(),
            }
        }
    }

    /// Posts shares in pieces, as the links have room for them.
    fn post_shares(&mut self, number: usize, mut shares: Shares) {
        while shares.iter().any(|&share| share > 0) {
            let mut posted = false;
            for (link, share) in shares.iter_mut().enumerate().take(self.wires.len()) {
                let len = self.schedule.room(link).min(*share);
                if len > 0 && (len == *share || len >= 4096) {
                    self.post(link, number, len);
                    *share -= len;
                    posted = true;
                }
            }
            match posted {
                true => self.poll(),
                false => self.wait(),
            }
        }
    }

    /// Bytes per second that arrived between two times.
    pub(super) fn bandwidth(&self, from: u64, to: u64) -> f64 {
        let within = |arrival: &&(u64, u64, usize)| (from..to).contains(&arrival.0);
        let bytes: u64 = self
            .arrivals
            .iter()
            .filter(within)
            .map(|arrival| arrival.1)
            .sum();
        bytes as f64 * 1e9 / (to - from) as f64
    }
}
