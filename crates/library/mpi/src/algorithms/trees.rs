//! Costs of operations with a root, in which ranks end at different times.
//!
//! The time of each rank is followed through the tree: senders of short messages continue at once,
//! senders of long ones wait for their receivers. Ranks are numbered from the root.

use super::Case;
use super::branches::below;
use super::pieces::CHAIN_PIECE;
use channel::MessageCosts;

/// The times at which the ranks of an operation end, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Ends {
    /// The mean of the times at which the ranks end.
    pub mean: u64,
    /// The time at which the last rank ends.
    pub last: u64,
}

impl Ends {
    /// The times of an operation that all ranks end at one moment.
    pub(super) fn all(time: u64) -> Ends {
        Ends {
            mean: time,
            last: time,
        }
    }

    pub(super) fn of(ends: &[u64]) -> Ends {
        Ends {
            mean: ends.iter().sum::<u64>() / ends.len().max(1) as u64,
            last: ends.iter().copied().max().unwrap_or(0),
        }
    }

    /// The times at which ranks end if they execute `next` after this operation.
    pub(super) fn then(self, next: Ends) -> Ends {
        Ends {
            mean: self.mean + next.mean,
            last: self.last + next.last,
        }
    }
}
impl Case {
    /// True if two ranks, numbered from the root, are on different hosts.
    fn crosses(&self, one: usize, other: usize) -> bool {
        let most = self.spread.most.max(1);
        match (self.spread.hosts, self.spread.contiguous) {
            (0 | 1, _) => false,
            (_, true) => one / most != other / most,
            (_, false) => true,
        }
    }

    /// The costs of a message between two ranks, while `others` further ranks of the host move as
    /// many bytes.
    pub(super) fn between(
        &self,
        one: usize,
        other: usize,
        bytes: usize,
        others: usize,
    ) -> MessageCosts {
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

    /// The number of other ranks of a host that copy while ranks at this distance exchange
    /// messages.
    fn others(&self, distance: usize) -> usize {
        (self.spread.most / (2 * distance)).saturating_sub(1)
    }

    /// The end times of messages up a binomial tree. `bytes` returns the length of the message from
    /// the rank at a distance.
    pub(super) fn up(&self, bytes: impl Fn(usize) -> usize) -> Ends {
        Ends::of(&self.up_from(&self.together(), bytes))
    }

    /// [`up`](Case::up), by ranks that start at these times.
    pub(super) fn up_from(&self, starts: &[u64], bytes: impl Fn(usize) -> usize) -> Vec<u64> {
        self.up_with(starts, bytes, 0)
    }

    /// The end times of a reduction up a binomial tree: each rank combines what it receives with
    /// its own vector.
    pub(super) fn combined(&self) -> Ends {
        Ends::of(&self.combined_from(&self.together()))
    }

    /// [`combined`](Case::combined), by ranks that start at these times.
    pub(super) fn combined_from(&self, starts: &[u64]) -> Vec<u64> {
        let combining = self.network.combining(self.bytes);
        self.up_with(starts, |_| self.bytes, combining)
    }

    /// The end times of messages up a binomial tree. `work` is a rank's time for each message that
    /// it has received, in nanoseconds.
    fn up_with(&self, starts: &[u64], bytes: impl Fn(usize) -> usize, work: u64) -> Vec<u64> {
        let mut ready = starts.to_vec();
        let mut ends = starts.to_vec();
        for rank in (0..self.ranks).rev() {
            let mut now = starts[rank];
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
                        now = begun + message.flight + message.moving + message.receiving;
                        ends[child] = now + message.report;
                    }
                    now += work;
                }
                distance *= 2;
            }
            (ready[rank], ends[rank]) = (now, now);
        }
        ends
    }

    /// The end times of messages down a binomial tree. `bytes` returns the length of the message to
    /// the rank at a distance. `waits`: a rank sends each message only after the previous one is
    /// complete.
    pub(super) fn down(&self, bytes: impl Fn(usize) -> usize, waits: bool) -> Ends {
        Ends::of(&self.down_from(&self.together(), bytes, waits))
    }

    /// [`down`](Case::down), by ranks that start at these times.
    pub(super) fn down_from(
        &self,
        starts: &[u64],
        bytes: impl Fn(usize) -> usize,
        waits: bool,
    ) -> Vec<u64> {
        let mut ends = starts.to_vec();
        for rank in 0..self.ranks {
            let mut now = ends[rank];
            let mut distance = match rank {
                0 => self.ranks.next_power_of_two(),
                _ => rank & rank.wrapping_neg(),
            };
            let (mut done, mut gate, mut last) = (now, 0, None::<usize>);
            while distance > 1 {
                distance /= 2;
                let child = rank + distance;
                if child >= self.ranks {
                    continue;
                }
                let message = self.between(rank, child, bytes(distance), self.others(distance));
                if message.is_short {
                    now += message.sending;
                    ends[child] = ends[child].max(now + message.flight) + message.receiving;
                    done = now;
                } else {
                    // A device or the receiver moves a long message. A message starts once the last
                    // but one is complete.
                    now = now.max(gate) + message.sending;
                    let mut end = message.taken(now, starts[child]);
                    let across = self.crosses(rank, child);
                    if let Some(last) = last {
                        if across && self.crosses(rank, last) {
                            // Both messages share the link.
                            let left = ends[last].saturating_sub(now + message.flight);
                            let delay = left.min(message.moving);
                            ends[last] += delay;
                            end += delay;
                        }
                        gate = ends[last] + message.report;
                    }
                    ends[child] = end;
                    done = done.max(gate).max(end + message.report);
                    match waits {
                        true => now = done,
                        false => last = Some(child),
                    }
                }
            }
            ends[rank] = done;
        }
        ends
    }

    /// For each rank of a k-ary tree: the ranks below it, and the number of ranks of its host that
    /// send to their children at the same time.
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

    /// The time of a further piece within a host while all ranks of the host copy, in nanoseconds.
    fn next_inside(&self, message: &MessageCosts, piece: usize) -> u64 {
        let copies = self.spread.most as u64 - 1;
        let memory = self.network.memory(piece as u64, copies);
        message.flight + message.moving.max(memory)
    }

    /// The end times of a message of `bytes` bytes down a k-ary tree, in pieces.
    pub(super) fn down_branches(&self, bytes: usize, arity: usize) -> Ends {
        Ends::of(&self.down_branches_from(&self.together(), bytes, arity))
    }

    /// [`down_branches`](Case::down_branches), by ranks that start at these times.
    pub(super) fn down_branches_from(
        &self,
        starts: &[u64],
        bytes: usize,
        arity: usize,
    ) -> Vec<u64> {
        let piece = bytes.min(CHAIN_PIECE);
        let (mut ends, mut step) = (starts.to_vec(), 0);
        for (rank, (children, width)) in self.branches(arity).into_iter().enumerate() {
            let (mut now, mut done) = (ends[rank], ends[rank]);
            let (mut across, mut inside, mut begins) = (0, 0, Vec::new());
            let mut far = self.between(rank, rank, piece, 0);
            for child in children {
                let message = self.between(rank, child, piece, width - 1);
                now += message.sending;
                if message.is_short {
                    ends[child] = ends[child].max(now + message.flight) + message.receiving;
                    done = now;
                    continue;
                }
                if self.crosses(rank, child) {
                    begins.push(((now + message.flight).max(starts[child]), child));
                    far = message;
                    across = across.max(message.flight) + message.moving;
                } else {
                    ends[child] = message.taken(now, starts[child]);
                    done = done.max(ends[child] + message.report);
                    // This rank also copies a piece before others copy it from here.
                    inside = 2 * self.next_inside(&message, piece);
                }
            }
            for (end, child) in side_by_side(begins, far.moving) {
                ends[child] = end + far.receiving;
                done = done.max(ends[child] + far.report);
            }
            ends[rank] = done;
            step = step.max(across).max(inside);
        }
        behind(ends, bytes, step)
    }

    /// The end times of a reduction of vectors of `bytes` bytes up a k-ary tree, in pieces.
    pub(super) fn up_branches(&self, bytes: usize, arity: usize) -> Ends {
        Ends::of(&self.up_branches_from(&self.together(), bytes, arity))
    }

    /// [`up_branches`](Case::up_branches), by ranks that start at these times.
    pub(super) fn up_branches_from(&self, starts: &[u64], bytes: usize, arity: usize) -> Vec<u64> {
        let piece = bytes.min(CHAIN_PIECE);
        let combining = self.network.combining(piece);
        let (mut ends, mut step) = (starts.to_vec(), 0);
        for (rank, (children, width)) in self.branches(arity).into_iter().enumerate().rev() {
            let (mut now, mut each, mut flight) = (starts[rank], 0, 0);
            // Of the ranks that move messages, one of each branch copies at a time.
            let copying = width.div_ceil(arity.max(1));
            for child in children {
                let message = self.between(rank, child, piece, copying - 1);
                let sent = ends[child] + message.sending;
                if message.is_short {
                    ends[child] = sent;
                    now = now.max(sent + message.flight) + message.receiving;
                } else {
                    now = now.max(sent + message.flight) + message.moving + message.receiving;
                    ends[child] = now + message.report;
                    each += match self.crosses(rank, child) {
                        true => {
                            // A piece is requested once the memory of an earlier one is free.
                            flight = flight.max(message.flight);
                            message.moving
                        }
                        false => self.next_inside(&message, piece),
                    };
                }
                now += combining;
                each += combining;
            }
            ends[rank] = now;
            step = step.max(each + flight);
        }
        behind(ends, bytes, step)
    }

    /// The end times of messages of `bytes` bytes from each rank to the root, all at once.
    pub(super) fn collected(&self, bytes: usize) -> Ends {
        Ends::of(&self.collected_from(&self.together(), bytes))
    }

    /// [`collected`](Case::collected), by ranks that start at these times.
    pub(super) fn collected_from(&self, starts: &[u64], bytes: usize) -> Vec<u64> {
        let [near, mut far] =
            [false, true].map(|across| self.network.message(bytes as u64, across));
        far.moving *= self.spread.sharing as u64;
        let mut ends = starts.to_vec();
        // The times at which the root's processor, and the device that receives for it, are free.
        let (mut now, mut device) = (starts.first().copied().unwrap_or(0), 0);
        let mut begins = Vec::new();
        for rank in 1..self.ranks {
            let message = if self.crosses(0, rank) { &far } else { &near };
            let sent = starts[rank] + message.sending;
            if message.is_short {
                ends[rank] = sent;
                device = (sent + message.flight).max(device + message.moving);
                now = now.max(device) + message.receiving;
                continue;
            }
            now = now.max(sent + message.flight) + message.receiving;
            if self.by_device(rank) {
                begins.push((now, rank));
                continue;
            }
            // The root copies the message itself.
            now += message.moving;
            ends[rank] = now + message.report;
        }
        for (end, rank) in side_by_side(begins, far.moving) {
            device = device.max(end);
            ends[rank] = end + far.report;
        }
        if let Some(root) = ends.first_mut() {
            *root = now.max(device);
        }
        ends
    }

    /// The end times of messages of `bytes` bytes from the root to each rank, all at once.
    pub(super) fn handed_out(&self, bytes: usize) -> Ends {
        Ends::of(&self.handed_out_from(&self.together(), bytes))
    }

    /// [`handed_out`](Case::handed_out), by ranks that start at these times.
    pub(super) fn handed_out_from(&self, starts: &[u64], bytes: usize) -> Vec<u64> {
        let [mut near, mut far] =
            [false, true].map(|across| self.network.message(bytes as u64, across));
        far.moving *= self.spread.sharing as u64;
        if !near.is_short {
            // The other ranks of the host copy at the same time.
            let here = self.spread.most as u64 - 1;
            near.moving = near.moving.max(self.network.memory(bytes as u64, here));
        }
        let mut ends = starts.to_vec();
        let (mut now, mut device) = (starts.first().copied().unwrap_or(0), 0);
        let (mut done, mut begins) = (now, Vec::new());
        for rank in 1..self.ranks {
            let crosses = self.crosses(0, rank);
            let message = if crosses { &far } else { &near };
            now += message.sending;
            if message.is_short {
                let on_link = if crosses { message.moving } else { 0 };
                device = (now + message.flight).max(device + on_link);
                ends[rank] = ends[rank].max(device) + message.receiving;
                done = done.max(now);
                continue;
            }
            if self.by_device(rank) {
                begins.push(((now + message.flight).max(starts[rank]), rank));
                continue;
            }
            ends[rank] = message.taken(now, starts[rank]);
            done = done.max(ends[rank] + message.report);
        }
        for (end, rank) in side_by_side(begins, far.moving) {
            ends[rank] = end + far.receiving;
            done = done.max(ends[rank] + far.report);
        }
        if let Some(root) = ends.first_mut() {
            *root = done;
        }
        ends
    }

    /// Processor time of the root for sending a message to each rank, in nanoseconds.
    pub(super) fn sending_to_all(&self) -> u64 {
        let message = self
            .network
            .message(self.bytes as u64, self.spread.hosts > 1);
        (self.ranks as u64 - 1) * message.sending
    }

    /// True if a device moves long messages between this rank and the root.
    fn by_device(&self, rank: usize) -> bool {
        self.crosses(0, rank) || self.network.inside.by_processor == 0
    }

    /// The start times of ranks that begin at one moment: all are 0.
    pub(super) fn together(&self) -> Vec<u64> {
        vec![0; self.ranks]
    }
}

/// The end times of transfers that take `each` nanoseconds alone and share one link evenly, with
/// the numbers of their ranks. `begins` has the start time and the rank of each transfer.
fn side_by_side(mut begins: Vec<(u64, usize)>, each: u64) -> Vec<(u64, usize)> {
    begins.sort_unstable();
    let mut ends = Vec::with_capacity(begins.len());
    // The link time that each transfer in progress has received so far, the current time, and the
    // next transfer to begin.
    let (mut share, mut now, mut next) = (0, 0, 0);
    let mut under_way = std::collections::VecDeque::new();
    while next < begins.len() || !under_way.is_empty() {
        let count = under_way.len() as u64;
        let end = under_way
            .front()
            .map(|(until, _)| now + (until - share) * count);
        match begins.get(next) {
            Some(&(begin, rank)) if end.is_none_or(|end| begin <= end) => {
                share += begin.saturating_sub(now).checked_div(count).unwrap_or(0);
                now = now.max(begin);
                under_way.push_back((share + each, rank));
                next += 1;
            }
            _ => {
                let (until, rank) = under_way.pop_front().unwrap_or_default();
                (now, share) = (end.unwrap_or(now), until);
                ends.push((now, rank));
            }
        }
    }
    ends
}

/// Adds the time of all pieces of a vector but the first: each follows the previous one after
/// `step` nanoseconds.
fn behind(mut ends: Vec<u64>, bytes: usize, step: u64) -> Vec<u64> {
    let pieces = bytes.div_ceil(CHAIN_PIECE).max(1) as u64;
    for end in &mut ends {
        *end += (pieces - 1) * step;
    }
    ends
}
