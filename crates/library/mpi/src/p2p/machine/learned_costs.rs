//! Costs of the paths by which this rank fetches announced messages, learned from messages that
//! move anyway.
//!
//! Where processors copy, no constant holds: the fastest path depends on the caches between the two
//! cores, on the processor's string moves, and on the other load of the ranks. So the receiver
//! measures each fetch from its decision, or from the end of the fetch before it, to the last byte,
//! which leaves out the wait for a late sender. Fetches are compared within one *class*: their
//! length, whether others wait behind them, and whether the cores share a cache.
//!
//! The ring of a pair grows with its traffic, so its first messages by packets are slow. Nothing is
//! learned from a fetch whose sender's ring is not settled; unless another path is chosen, such a
//! fetch takes packets, which settle the ring.
//!
//! Invariants: a choice depends on earlier times of the same class alone; a path is left only for
//! one that is better by a margin, twice in a row; a path that is not chosen is tried ever more
//! seldom, so the loss by trials is bounded.

use std::time::Instant;

use knobs::{Bytes, CopyCosts, CopyPath};

use super::given_costs::{distance, protocol_of};
use super::protocol::Protocol;

/// The paths that are compared.
const PATHS: [Protocol; 3] = [
    Protocol::CooperativeCopy,
    Protocol::ReadRendezvous,
    Protocol::Packets,
];
/// Times of a path that are kept.
const KEPT: usize = 8;
/// The place of packets among the paths.
const PACKETS: usize = 2;
/// Trials of each path before the first comparison.
const FIRST: u32 = 3;
/// The number of times up to which the least counts, and not the second least.
const FEW: usize = 4;
/// Messages of a class from one trial of the paths not chosen to the next, at first and at last.
const TRIAL_AFTER: u32 = 64;
const TRIAL_AT_MOST: u32 = 4096;
/// A path must be better than the chosen one by this share to take its place, as 1 / `MARGIN`.
const MARGIN: u64 = 16;
/// The comparisons in a row that it must win.
const WINS: u8 = 2;
/// Length of the shortest message of the second class, as a power of two, and number of classes.
const SECOND_CLASS: u32 = 18;
const LENGTHS: usize = 7;
/// Most fetches by packets that are measured at a time.
const MOST_OPEN: usize = 64;

/// The situation of a fetch, within which paths are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Class(usize);

impl Class {
    /// A fetch of `len` bytes. `is_near`: the cores of the two ranks share a cache. `is_followed`:
    /// other fetches wait behind it.
    pub(super) fn of(len: usize, is_near: bool, is_followed: bool) -> Class {
        let length = len.max(1).ilog2().saturating_sub(SECOND_CLASS - 1) as usize;
        let length = length.min(LENGTHS - 1);
        Class((length * 2 + usize::from(is_near)) * 2 + usize::from(is_followed))
    }

    /// The situation of the class with this number: its least length, whether the cores share a
    /// cache, and whether others wait.
    fn situation(number: usize) -> (usize, bool, bool) {
        let least = match number / 4 {
            0 => 0,
            length => 1 << (length + SECOND_CLASS as usize - 1),
        };
        (least, number & 2 != 0, number & 1 != 0)
    }
}

/// The learned costs of a rank.
#[derive(Default)]
pub(super) struct LearnedCosts {
    /// Empty until the first fetch that may be learned from.
    classes: Vec<ClassCosts>,
    /// Fetches by packets in progress: the receive, and the measurement to record at its end.
    open: Vec<(u32, Measured)>,
    /// The end of the last fetch that was measured, in nanoseconds.
    last_end: u64,
    clock: Clock,
}

/// Nanoseconds since the first fetch that was measured; tests set the time.
#[derive(Default)]
struct Clock {
    start: Option<Instant>,
    #[cfg(test)]
    set: Option<u64>,
}

impl Clock {
    fn now(&mut self) -> u64 {
        #[cfg(test)]
        if let Some(now) = self.set {
            return now;
        }
        let start = self.start.get_or_insert_with(Instant::now);
        start.elapsed().as_nanos() as u64
    }
}

/// A fetch that is being measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Measured {
    class: Class,
    path: Protocol,
    begun: u64,
    len: usize,
    /// The time says something about the path.
    counts: bool,
}

/// The paths of one class.
#[derive(Clone, Default)]
struct ClassCosts {
    paths: [PathCost; PATHS.len()],
    /// The path in use. None: the paths are being tried for the first time.
    chosen: Option<usize>,
    /// The path that is better than the chosen one, and the comparisons that it has won.
    rival: (usize, u8),
    /// The path of the next message, to confirm a good time.
    confirms: Option<usize>,
    /// Messages until the next trial, and the pause after it.
    until_trial: u32,
    pause: u32,
}

/// The times of one path, in picoseconds a byte.
#[derive(Clone, Copy, Default)]
struct PathCost {
    times: [u32; KEPT],
    next: usize,
    recorded: u32,
    tried: u32,
}

impl PathCost {
    fn record(&mut self, ps_per_byte: u32) {
        // The oldest time goes; the order of the kept ones does not matter.
        self.times[self.next] = ps_per_byte;
        self.next = (self.next + 1) % KEPT;
        self.recorded = self.recorded.saturating_add(1);
    }

    /// The second least of the last times: interrupted copies and late senders are above it, and
    /// one lucky time is below. The least of few times, of which half may have been interrupted.
    /// None: less than two.
    fn estimate(&self) -> Option<u64> {
        let known = (self.recorded as usize).min(KEPT);
        let mut times = self.times;
        let times = &mut times[..known];
        times.sort_unstable();
        let place = usize::from(known > FEW);
        let time = times.get(place).filter(|_| known > 1);
        time.map(|time| u64::from(*time))
    }
}

impl ClassCosts {
    /// The path of the next fetch, among those that are possible.
    fn choose(&mut self, possible: [bool; PATHS.len()]) -> usize {
        let all = (0..PATHS.len()).filter(|path| possible[*path]);
        let untried = |path: &usize| self.paths[*path].tried < FIRST;
        let first = all
            .clone()
            .filter(untried)
            .min_by_key(|path| self.paths[*path].tried);
        let choice = match (first, self.chosen) {
            (Some(path), _) => path,
            (None, Some(chosen)) if possible[chosen] => self.perhaps_on_trial(chosen, possible),
            _ => self
                .best(possible)
                .or(all.clone().next())
                .unwrap_or(PATHS.len() - 1),
        };
        self.paths[choice].tried = self.paths[choice].tried.saturating_add(1);
        choice
    }

    /// The chosen path, or now and then one that is not chosen.
    fn perhaps_on_trial(&mut self, chosen: usize, possible: [bool; PATHS.len()]) -> usize {
        if let Some(path) = self.confirms.take().filter(|path| possible[*path]) {
            return path;
        }
        self.until_trial = self.until_trial.saturating_sub(1);
        if self.until_trial > 0 {
            return chosen;
        }
        let others = (0..PATHS.len()).filter(|path| possible[*path] && *path != chosen);
        let Some(next) = others.min_by_key(|path| self.paths[*path].tried) else {
            self.until_trial = TRIAL_AT_MOST;
            return chosen;
        };
        self.until_trial = self.pause;
        self.pause = (self.pause * 2).min(TRIAL_AT_MOST);
        next
    }

    fn best(&self, possible: [bool; PATHS.len()]) -> Option<usize> {
        let known = (0..PATHS.len()).filter(|path| possible[*path]);
        let known = known.filter_map(|path| Some((self.paths[path].estimate()?, path)));
        known.min().map(|(_, path)| path)
    }

    /// A fetch by this path took this time.
    fn record(&mut self, path: usize, ps_per_byte: u32) {
        self.paths[path].record(ps_per_byte);
        let mut tried = self.paths.iter().filter(|path| path.tried > 0);
        if !tried.all(|path| path.recorded >= FIRST) {
            return;
        }
        let Some(best) = self.best(self.paths.map(|path| path.tried > 0)) else {
            return;
        };
        let Some(chosen) = self.chosen else {
            self.chosen = Some(best);
            (self.until_trial, self.pause) = (TRIAL_AFTER, TRIAL_AFTER * 2);
            return;
        };
        let (Some(now), Some(then)) = (self.paths[chosen].estimate(), self.paths[best].estimate())
        else {
            return;
        };
        let own = self.paths[path].estimate();
        let is_good = path != chosen && u64::from(ps_per_byte) < now;
        if is_good && own.is_none_or(|own| own > now) {
            self.confirms = Some(path);
        }
        let is_better = best != chosen && then + then / MARGIN < now;
        let wins = match self.rival {
            (rival, wins) if is_better && rival == best => wins + 1,
            _ => u8::from(is_better),
        };
        self.rival = (best, wins);
        if wins >= WINS {
            (self.chosen, self.rival.1) = (Some(best), 0);
            (self.until_trial, self.pause) = (TRIAL_AFTER, TRIAL_AFTER * 2);
        }
    }
}

impl LearnedCosts {
    /// Chooses the path of a fetch of `len` bytes, which begins, among those that `is_possible`.
    /// `is_settled`: the sender's ring is as fast as it will become.
    pub(super) fn choose(
        &mut self,
        class: Class,
        len: usize,
        is_settled: bool,
        is_possible: impl Fn(Protocol) -> bool,
    ) -> Measured {
        if self.classes.is_empty() {
            self.classes = vec![ClassCosts::default(); LENGTHS * 4];
        }
        let possible = PATHS.map(is_possible);
        let costs = &mut self.classes[class.0];
        let settles =
            !is_settled && possible[PACKETS] && costs.chosen.is_none_or(|chosen| chosen == PACKETS);
        let path = match settles {
            true => PACKETS,
            false => costs.choose(possible),
        };
        Measured {
            class,
            path: PATHS[path],
            begun: self.clock.now(),
            len,
            counts: !settles,
        }
    }

    /// Adds a fetch by packets in progress, which ends with this receive.
    pub(super) fn by_packets(&mut self, receive: u32, measured: Measured) {
        if self.open.len() < MOST_OPEN {
            self.open.push((receive, measured));
        }
    }

    /// Fetches by packets are being measured.
    #[inline(always)]
    pub(super) fn measures_packets(&self) -> bool {
        !self.open.is_empty()
    }

    /// A message in packets is complete, which may be a fetch that is being measured.
    #[cold]
    #[inline(never)]
    pub(super) fn packets_ended(&mut self, receive: u32) {
        let at = self.open.iter().position(|(open, _)| *open == receive);
        if let Some(at) = at {
            let (_, measured) = self.open.swap_remove(at);
            self.ended(measured);
        }
    }

    /// Receives have failed: the fetches in progress are not measured.
    pub(super) fn forget_open(&mut self) {
        self.open.clear();
    }

    /// A fetch has ended.
    pub(super) fn ended(&mut self, measured: Measured) {
        let now = self.clock.now();
        let Measured {
            class,
            path,
            begun,
            len,
            counts,
        } = measured;
        let begun = begun.max(self.last_end);
        self.last_end = now;
        if !counts {
            return;
        }
        let Some(path) = PATHS.iter().position(|known| *known == path) else {
            return;
        };
        let ps = now.saturating_sub(begun).saturating_mul(1000);
        let ps_per_byte = ps / len.max(1) as u64;
        self.classes[class.0].record(path, u32::try_from(ps_per_byte).unwrap_or(u32::MAX));
    }

    /// The class of which more was seen.
    pub(super) fn busier(&self, [one, other]: [Class; 2]) -> Class {
        let seen = |class: Class| -> u32 {
            let costs = self.classes.get(class.0);
            costs.map_or(0, |costs| {
                costs.paths.iter().map(|path| path.recorded).sum()
            })
        };
        if seen(other) > seen(one) { other } else { one }
    }

    /// The costs of all classes whose paths have been compared.
    pub(super) fn all(&self) -> impl Iterator<Item = CopyCosts> {
        let compared = self.classes.iter().enumerate();
        let compared = compared.filter(|(_, costs)| costs.chosen.is_some());
        compared.map(|(number, costs)| {
            let (from, is_near, others_wait) = Class::situation(number);
            let of_path = |path: CopyPath| {
                let place = PATHS.iter().position(|of| *of == protocol_of(path))?;
                let ps = costs.paths[place].estimate()?;
                Some(u32::try_from(ps).unwrap_or(u32::MAX))
            };
            CopyCosts {
                from: Bytes(from),
                cores: distance(is_near),
                others_wait,
                ps_per_byte: CopyPath::ALL.map(of_path),
            }
        })
    }

    /// The learned times of a class, in picoseconds a byte, and whether the path is chosen.
    pub(super) fn times(&self, class: Class) -> impl Iterator<Item = (Protocol, u64, bool)> {
        let costs = self.classes.get(class.0).into_iter();
        costs.flat_map(|costs| {
            let paths = PATHS.iter().zip(&costs.paths).enumerate();
            paths.filter_map(|(at, (path, cost))| {
                Some((*path, cost.estimate()?, costs.chosen == Some(at)))
            })
        })
    }
}

impl Measured {
    /// The chosen path.
    pub(super) fn path(&self) -> Protocol {
        self.path
    }
}

#[cfg(test)]
mod tests;
