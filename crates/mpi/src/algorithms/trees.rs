//! Costs of operations with a root, in which ranks end at different times.
//!
//! The time of each rank is followed through the tree: senders of short messages go on at once,
//! those of long ones wait for their receivers. Ranks are numbered from the root.

use super::Case;
use super::branches::below;
use super::cost::CHAIN_PIECE;
use super::network::Message;

/// The times at which the ranks of an operation end, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Ends {
    /// The mean of all ranks.
    pub mean: u64,
    /// The last rank.
    pub last: u64,
}

impl Ends {
    /// All ranks end at one time.
    pub(super) fn all(time: u64) -> Ends {
        Ends {
            mean: time,
            last: time,
        }
    }

    fn of(ends: &[u64]) -> Ends {
        Ends {
            mean: ends.iter().sum::<u64>() / ends.len().max(1) as u64,
            last: ends.iter().copied().max().unwrap_or(0),
        }
    }

    /// The end of a vector of `bytes` bytes whose first piece ends so; each other piece follows
    /// after a step.
    fn behind(self, bytes: usize, step: u64) -> Ends {
        let pieces = bytes.div_ceil(CHAIN_PIECE).max(1) as u64;
        self.then(Ends::all((pieces - 1) * step))
    }

    /// This operation, and after it `next` on all ranks.
    pub(super) fn then(self, next: Ends) -> Ends {
        Ends {
            mean: self.mean + next.mean,
            last: self.last + next.last,
        }
    }
}

impl Case {
    /// Two ranks, numbered from the root, are on different hosts.
    fn crosses(&self, one: usize, other: usize) -> bool {
        let most = self.spread.most.max(1);
        match (self.spread.hosts, self.spread.contiguous) {
            (0 | 1, _) => false,
            (_, true) => one / most != other / most,
            (_, false) => true,
        }
    }

    /// A message between two ranks, while `others` further ranks of a host move as many bytes.
    fn between(&self, one: usize, other: usize, bytes: usize, others: usize) -> Message {
        let across = self.crosses(one, other);
        let mut message = self.network.message(bytes as u64, across);
        if !across {
            let shared = self.network.memory(bytes as u64, others as u64 + 1);
            message.moving = message.moving.max(shared);
            if message.is_short {
                let copies = self.network.copy(3 * bytes as u64);
                message.flight += (3 * shared).saturating_sub(copies);
            }
        }
        if across {
            message.moving *= self.spread.sharing as u64;
        }
        message
    }

    /// The other ranks of a host that copy while ranks at this distance exchange messages.
    fn others(&self, distance: usize) -> usize {
        (self.spread.most / (2 * distance)).saturating_sub(1)
    }

    /// Messages up a binomial tree; `bytes`: of the message from this distance.
    pub(super) fn up(&self, bytes: impl Fn(usize) -> usize) -> Ends {
        let mut ready = vec![0; self.ranks];
        let mut ends = vec![0; self.ranks];
        for rank in (0..self.ranks).rev() {
            let mut now = 0;
            let mut distance = 1;
            while distance < self.ranks && rank & distance == 0 {
                let child = rank + distance;
                if child < self.ranks {
                    let message = self.between(rank, child, bytes(distance), self.others(distance));
                    if message.is_short {
                        ends[child] = ready[child] + message.sending;
                        now = now.max(ends[child] + message.flight) + message.receiving;
                    } else {
                        let begun = now.max(ready[child] + message.sending);
                        now = begun + message.flight + message.moving;
                        ends[child] = now;
                    }
                }
                distance *= 2;
            }
            (ready[rank], ends[rank]) = (now, now);
        }
        Ends::of(&ends)
    }

    /// Messages down a binomial tree; `bytes`: of the message to this distance. `waits`: a rank
    /// sends each message once the last one is complete.
    pub(super) fn down(&self, bytes: impl Fn(usize) -> usize, waits: bool) -> Ends {
        let mut ends = vec![0; self.ranks];
        for rank in 0..self.ranks {
            let mut now = ends[rank];
            let mut distance = match rank {
                0 => self.ranks.next_power_of_two(),
                _ => rank & rank.wrapping_neg(),
            };
            let mut done = now;
            while distance > 1 {
                distance /= 2;
                let child = rank + distance;
                if child >= self.ranks {
                    continue;
                }
                let message = self.between(rank, child, bytes(distance), self.others(distance));
                if message.is_short {
                    now += message.sending;
                    ends[child] = now + message.flight + message.receiving;
                    done = now;
                } else {
                    // A device or the receiver moves a long message.
                    now += message.sending;
                    ends[child] = now + message.moving + message.flight;
                    if self.crosses(rank, child) {
                        now += message.moving;
                    }
                    done = done.max(ends[child]);
                    if waits {
                        now = done;
                    }
                }
            }
            ends[rank] = done;
        }
        Ends::of(&ends)
    }

    /// The ranks below each rank in a k-ary tree, and the number of ranks of a host that move
    /// messages from there at the same time.
    fn branches(&self, arity: usize) -> Vec<(Vec<usize>, usize)> {
        let mut branches = vec![(self.ranks, 1); self.ranks];
        let of = |rank: usize| {
            let (end, width) = branches[rank];
            let wider = (width * arity).min(self.spread.most);
            let children = below(&(rank..end), arity).map(|branch| {
                branches[branch.start] = (branch.end, wider);
                branch.start
            });
            (children.collect(), wider)
        };
        (0..self.ranks).map(of).collect()
    }

    /// A further piece within a host, while all its ranks copy.
    fn next_inside(&self, message: &Message, piece: usize) -> u64 {
        let copies = self.spread.most as u64 - 1;
        let memory = self.network.memory(piece as u64, copies);
        message.flight + message.moving.max(memory)
    }

    /// A message of `bytes` bytes down a k-ary tree, in pieces.
    pub(super) fn down_branches(&self, bytes: usize, arity: usize) -> Ends {
        let piece = bytes.min(CHAIN_PIECE);
        let (mut ends, mut step) = (vec![0; self.ranks], 0);
        for (rank, (children, width)) in self.branches(arity).into_iter().enumerate() {
            let (mut now, mut done) = (ends[rank], ends[rank]);
            let (mut across, mut inside) = (0, 0);
            for child in children {
                let message = self.between(rank, child, piece, width - 1);
                now += message.sending;
                if message.is_short {
                    ends[child] = now + message.flight + message.receiving;
                    done = now;
                    continue;
                }
                ends[child] = now + message.moving + message.flight;
                done = done.max(ends[child]);
                if self.crosses(rank, child) {
                    now += message.moving;
                    across = across.max(message.flight) + message.moving;
                } else {
                    // This rank copies a piece too, before others copy it from here.
                    inside = 2 * self.next_inside(&message, piece);
                }
            }
            ends[rank] = done;
            step = step.max(across).max(inside);
        }
        Ends::of(&ends).behind(bytes, step)
    }

    /// Messages of `bytes` bytes up a k-ary tree, in pieces.
    pub(super) fn up_branches(&self, bytes: usize, arity: usize) -> Ends {
        let piece = bytes.min(CHAIN_PIECE);
        let (mut ends, mut step) = (vec![0; self.ranks], 0);
        for (rank, (children, width)) in self.branches(arity).into_iter().enumerate().rev() {
            let (mut now, mut each, mut flight) = (0, 0, 0);
            // Of the ranks that move messages, one of each branch copies.
            let copying = width.div_ceil(arity.max(1));
            for child in children {
                let message = self.between(rank, child, piece, copying - 1);
                let sent = ends[child] + message.sending;
                if message.is_short {
                    ends[child] = sent;
                    now = now.max(sent + message.flight) + message.receiving;
                } else {
                    now = now.max(sent + message.flight) + message.moving;
                    ends[child] = now;
                    each += match self.crosses(rank, child) {
                        true => {
                            // A piece is asked for once the memory of an earlier one has left.
                            flight = flight.max(message.flight);
                            message.moving
                        }
                        false => self.next_inside(&message, piece),
                    };
                }
            }
            ends[rank] = now;
            step = step.max(each + flight);
        }
        Ends::of(&ends).behind(bytes, step)
    }

    /// The ranks beside the root on its host, and those elsewhere.
    fn around(&self) -> (u64, u64) {
        match (self.spread.hosts, self.spread.contiguous) {
            (0 | 1, _) => (self.ranks as u64 - 1, 0),
            _ => {
                let here = self.spread.most as u64 - 1;
                (here, self.ranks as u64 - 1 - here)
            }
        }
    }

    /// A message of `bytes` bytes from each rank to the root, all at once.
    pub(super) fn collected(&self, bytes: usize) -> Ends {
        let (here, there) = self.around();
        let [near, mut far] =
            [false, true].map(|across| self.network.message(bytes as u64, across));
        far.moving *= self.spread.sharing as u64;
        let ranks = self.ranks as u64;
        if near.is_short {
            let receiving = here * near.receiving + there * far.receiving;
            let last =
                near.sending + near.flight.max(far.flight) + receiving.max(there * far.moving);
            let senders = here * near.sending + there * far.sending;
            let mean = (senders + last) / ranks;
            return Ends { mean, last };
        }
        // The root reads from its host itself, while its devices read from others.
        let (own, device) = (here * near.moving, there * far.moving);
        let last = own.max(device) + own.min(device) / 2 + far.flight;
        let waits = here * (near.flight + own * 3 / 4) + there * last;
        Ends {
            mean: (waits + last) / ranks,
            last,
        }
    }

    /// A message of `bytes` bytes from the root to each rank, all at once.
    pub(super) fn handed_out(&self, bytes: usize) -> Ends {
        let (here, there) = self.around();
        let [near, mut far] =
            [false, true].map(|across| self.network.message(bytes as u64, across));
        far.moving *= self.spread.sharing as u64;
        let ranks = self.ranks as u64;
        if near.is_short {
            let sending = here * near.sending + there * far.sending;
            let link = there * far.moving;
            let last = sending.max(link) + far.flight.max(near.flight) + far.receiving;
            let middle = sending.max(link) / 2;
            let waits = here * (middle + near.flight + near.receiving)
                + there * (middle + far.flight + far.receiving);
            let mean = (waits + sending) / ranks;
            return Ends { mean, last };
        }
        // The others of the host copy side by side.
        let copies = near
            .moving
            .max(self.network.memory(bytes as u64, here) * 3 / 2);
        let device = there * far.moving;
        let last = (near.flight + copies).max(far.flight + device);
        let waits = here * (near.flight + copies) + there * (far.flight + device * 4 / 5);
        Ends {
            mean: (waits + last) / ranks,
            last,
        }
    }
}
