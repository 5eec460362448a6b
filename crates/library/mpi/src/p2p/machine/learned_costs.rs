//! Costs of the paths by which this rank fetches announced messages, learned from messages that
//! move anyway.
//!
//! Where processors copy, no constant costs hold: the fastest path depends on the caches between
//! the two cores, on the processor's string moves, and on the other load of the ranks. So the
//! receiver measures each fetch from its decision, or from the end of the fetch before it, to the
//! last byte, which leaves out the wait for a late sender. Fetches are compared within one *class*:
//! their length, whether others wait behind them, whether the cores share a cache, and the mean
//! length of the runs of the send buffer.
//!
//! Several fetches by packets are in progress at a time, so their times include what this rank
//! copies for the other direction; those of reads are the times of their steps. That is right where
//! messages flow in both directions: packets cost their sender a copy, too, and each rank is the
//! sender of the other.
//!
//! A class begins with the costs that the host's ranks have stored ([`HostCosts`]), and stores what
//! it measures.
//!
//! The ring of a pair grows with its traffic, so its first messages by packets are slow. Where
//! packets may win, one run of fetches in four takes packets until the sender's ring is settled,
//! and nothing is learned from these. Where stored costs say that packets win, all do.
//!
//! Invariants: a choice depends on earlier times of the same class alone; a path is left only for
//! one that is better by a margin, twice in a row; a path that is not chosen is tried ever more
//! seldom, the slower it is known to be, so the loss by trials is bounded.

use super::cost_classes::{Class, LONG_CLASSES, PATHS};
use super::host_costs::{Cost, HostCosts};
use super::path_cost::{MARGIN, PathCost, TRIED, pause_by_loss};
use super::protocol::Protocol;

/// The index of the path [`Protocol::Packets`] in [`PATHS`].
const PACKETS: usize = 2;
/// Of this number of runs of [`TRIED`] fetches, one settles the ring of its sender, where that is
/// useful.
const SETTLING_EACH: u32 = 4;
/// Number of messages of a class by the expected path before the first trial of another one. It
/// doubles with each trial: a class of few messages tries little.
const FIRST_TRIAL_AFTER: u32 = 8;
/// Number of messages by a path that has replaced another before the next trial.
const TRIAL_AFTER: u32 = 64;
/// The greatest number of messages of a class between two trials of paths that are not chosen.
const TRIAL_AT_MOST: u32 = 4096;
/// Number of comparisons in a row that a path must win to replace the chosen one.
const WINS: u8 = 2;
/// The greatest number of fetches by packets that are measured at a time.
const MOST_OPEN: usize = 64;

/// The state of the ring through which a fetched message's sender sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ring {
    /// The ring is as fast as it will become; or packets will not win however fast it becomes,
    /// because shorter messages arrive faster by reads.
    Settled,
    /// The ring becomes faster with its traffic.
    Grows,
}

/// The costs of fetches that a rank has learned from their times.
pub(super) struct LearnedCosts {
    /// The costs that the ranks of this host share.
    shared: HostCosts,
    /// The costs by class. Empty until the first fetch from which this rank may learn.
    classes: Vec<ClassCosts>,
    /// Fetches by packets in progress: the receive, and the measurement to record at its end.
    open: Vec<(u32, Measured)>,
    /// The end of the last fetch that was measured, in nanoseconds.
    last_end: u64,
    clock: Clock,
}

/// The clock by which fetches are timed; tests set its time.
#[derive(Default)]
struct Clock {
    #[cfg(test)]
    set: Option<u64>,
}

impl Clock {
    fn now(&self) -> u64 {
        #[cfg(test)]
        if let Some(now) = self.set {
            return now;
        }
        channel::now()
    }
}

/// A fetch of a message whose time is being measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Measured {
    class: Class,
    path: Protocol,
    begun: u64,
    /// The end of the last step, while the fetch is between two steps.
    paused: Option<u64>,
    len: usize,
    /// True if the time is to be recorded. It is not if the fetch takes packets only to settle the
    /// ring.
    counts: bool,
}

/// The costs of all paths for fetches of one class.
#[derive(Clone, Default)]
struct ClassCosts {
    paths: [PathCost; PATHS.len()],
    /// The index of the path in use. `None`: no path has two times yet.
    chosen: Option<usize>,
    /// The index of the path that is better than the chosen one, and the number of comparisons in a
    /// row that it has won.
    rival: (usize, u8),
    /// The index of the path that is on trial, and the number of messages that are still to take
    /// it.
    on_trial: (usize, u32),
    /// The number of fetches that began before the sender's ring was settled.
    unsettled: u32,
    /// The number of messages since the last trial of another path.
    since_trial: u32,
    /// Least number of messages between two trials. It doubles with each.
    pause: u32,
    /// True once the class has taken over the shared costs.
    has_begun: bool,
}

impl ClassCosts {
    /// True if the next fetch uses packets so that its sender's ring settles.
    fn settles(&mut self) -> bool {
        let run = self.unsettled / TRIED;
        self.unsettled = self.unsettled.wrapping_add(1);
        run % SETTLING_EACH == SETTLING_EACH - 1
    }

    /// Begins with the costs that the host's ranks have stored, of contiguous messages.
    fn begin(&mut self, class: Class, shared: &HostCosts) {
        self.has_begun = true;
        let is_queued = class.is_queued();
        let is_stored = class.is_of_one_run();
        for (at, path) in self.paths.iter_mut().enumerate() {
            let stored = is_stored.then(|| shared.get(Cost::Fetch(class, at)));
            path.begin(stored.flatten().unwrap_or(0), is_queued);
        }
        self.chosen = self.best([true; PATHS.len()]);
        self.pause = FIRST_TRIAL_AFTER;
    }

    /// Chooses the path of the next fetch among those that are possible: `expected`, until times
    /// are known. Returns its index.
    fn choose(&mut self, possible: [bool; PATHS.len()], expected: usize) -> usize {
        let choice = match self.chosen {
            Some(chosen) if possible[chosen] => self.perhaps_on_trial(chosen, possible),
            _ => self.best(possible).unwrap_or(expected),
        };
        self.paths[choice].tried = self.paths[choice].tried.saturating_add(1);
        choice
    }

    /// The index of the chosen path or, from time to time, of another one on trial.
    fn perhaps_on_trial(&mut self, chosen: usize, possible: [bool; PATHS.len()]) -> usize {
        let (path, left) = self.on_trial;
        if left > 0 && possible[path] {
            self.on_trial.1 -= 1;
            return path;
        }
        self.since_trial = self.since_trial.saturating_add(1);
        if self.since_trial < self.pause {
            return chosen;
        }
        let others = (0..PATHS.len()).filter(|path| possible[*path] && *path != chosen);
        // A slow path does not keep the others from their trials.
        let due = others.filter(|path| self.since_trial >= self.pause_by_loss(chosen, *path));
        let Some(next) = due.min_by_key(|path| self.paths[*path].tried) else {
            return chosen;
        };
        self.since_trial = 0;
        self.pause = (self.pause * 2).min(TRIAL_AT_MOST);
        self.on_trial = (next, TRIED - 1);
        next
    }

    /// Number of messages by the chosen path after which a trial of another one loses the share
    /// 1 / [`MARGIN`] of their time, as far as the costs of both are known.
    fn pause_by_loss(&self, chosen: usize, next: usize) -> u32 {
        let costs = [chosen, next].map(|path| self.paths[path].estimate());
        let [Some(known), Some(other)] = costs else {
            return 0;
        };
        pause_by_loss(known, other).min(TRIAL_AT_MOST)
    }

    fn best(&self, possible: [bool; PATHS.len()]) -> Option<usize> {
        let known = (0..PATHS.len()).filter(|path| possible[*path]);
        let known = known.filter_map(|path| Some((self.paths[path].estimate()?, path)));
        known.min().map(|(_, path)| path)
    }

    /// Records the time of a fetch by this path, and changes the chosen path if another has proved
    /// better.
    fn record(&mut self, path: usize, ps_per_byte: u32) {
        self.paths[path].record(ps_per_byte);
        let is_known = |path: PathCost| path.tried > 0 || path.stored > 0;
        let Some(best) = self.best(self.paths.map(is_known)) else {
            return;
        };
        let Some(chosen) = self.chosen else {
            self.chosen = Some(best);
            (self.since_trial, self.pause) = (0, FIRST_TRIAL_AFTER);
            return;
        };
        let (Some(now), Some(then)) = (self.paths[chosen].estimate(), self.paths[best].estimate())
        else {
            return;
        };
        let is_better = best != chosen && then + then / MARGIN < now;
        let wins = match self.rival {
            (rival, wins) if is_better && rival == best => wins + 1,
            _ => u8::from(is_better),
        };
        self.rival = (best, wins);
        if wins >= WINS {
            (self.chosen, self.rival.1) = (Some(best), 0);
            (self.since_trial, self.pause) = (0, TRIAL_AFTER);
        }
    }
}

impl LearnedCosts {
    /// The costs of a rank whose host's ranks share `shared`.
    pub(super) fn new(shared: HostCosts) -> LearnedCosts {
        LearnedCosts {
            shared,
            classes: Vec::new(),
            open: Vec::new(),
            last_end: 0,
            clock: Clock::default(),
        }
    }

    /// Chooses the path of a fetch of `len` bytes among those for which `is_possible` is true, and
    /// begins to measure the fetch. `expected`: the path that estimates choose.
    pub(super) fn choose(
        &mut self,
        class: Class,
        len: usize,
        ring: Ring,
        expected: Protocol,
        is_possible: impl Fn(Protocol) -> bool,
    ) -> Measured {
        if self.classes.is_empty() {
            self.classes = vec![ClassCosts::default(); LONG_CLASSES];
        }
        let mut possible = PATHS.map(is_possible);
        let costs = &mut self.classes[class.number()];
        if !costs.has_begun {
            costs.begin(class, &self.shared);
        }
        let grows = ring == Ring::Grows && possible[PACKETS];
        let are_best = grows && costs.best(possible) == Some(PACKETS);
        let settles = grows && (are_best || costs.settles());
        let has_others = (0..PATHS.len()).any(|path| possible[path] && path != PACKETS);
        if grows && has_others {
            possible[PACKETS] = false;
        }
        let path = match settles {
            true => PACKETS,
            false => {
                let expected = PATHS.iter().position(|path| *path == expected);
                let expected = expected.filter(|path| possible[*path]);
                let first = possible.iter().position(|possible| *possible);
                costs.choose(possible, expected.or(first).unwrap_or(PACKETS))
            }
        };
        Measured {
            class,
            path: PATHS[path],
            begun: self.clock.now(),
            paused: None,
            len,
            counts: !grows || path != PACKETS,
        }
    }

    /// Begins a step of a read in several steps. The time since the step before does not count.
    pub(super) fn step_begins(&mut self, measured: &mut Option<Measured>) {
        if let Some(measured) = measured
            && let Some(paused) = measured.paused.take()
        {
            measured.begun += self.clock.now().saturating_sub(paused);
        }
    }

    /// Ends the measurement of a step of a read that is not the last one.
    pub(super) fn step_ends(&mut self, measured: &mut Option<Measured>) {
        // Without other fetches there is nothing to do between the steps.
        if let Some(measured) = measured.as_mut().filter(|it| it.class.is_queued()) {
            measured.paused = Some(self.clock.now());
        }
    }

    /// Adds a fetch by packets that is being measured. It ends when this receive completes.
    pub(super) fn by_packets(&mut self, receive: u32, measured: Measured) {
        if self.open.len() < MOST_OPEN {
            self.open.push((receive, measured));
        }
    }

    /// True if some fetch by packets is being measured.
    #[inline(always)]
    pub(super) fn measures_packets(&self) -> bool {
        !self.open.is_empty()
    }

    /// Records that a message in packets is complete, if it is a fetch that is being measured.
    #[cold]
    #[inline(never)]
    pub(super) fn packets_ended(&mut self, receive: u32) {
        let at = self.open.iter().position(|(open, _)| *open == receive);
        if let Some(at) = at {
            let (_, measured) = self.open.swap_remove(at);
            self.ended(measured);
        }
    }

    /// Stops measuring the fetches by packets, because receives have failed.
    pub(super) fn forget_open(&mut self) {
        self.open.clear();
    }

    /// Records the time of a measured fetch that has ended.
    pub(super) fn ended(&mut self, measured: Measured) {
        let now = self.clock.now();
        let Measured {
            class,
            path,
            begun,
            len,
            counts,
            paused: _,
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
        let costs = &mut self.classes[class.number()];
        costs.record(path, u32::try_from(ps_per_byte).unwrap_or(u32::MAX));
        let times = &costs.paths[path];
        if let Some(ps) = times.shared_estimate().filter(|_| class.is_of_one_run()) {
            self.shared.store(Cost::Fetch(class, path), ps);
        }
    }

    /// The one of two classes that has more recorded times.
    pub(super) fn busier(&self, [one, other]: [Class; 2]) -> Class {
        let seen = |class: Class| -> u32 {
            let costs = self.classes.get(class.number());
            costs.map_or(0, |costs| {
                costs.paths.iter().map(|path| path.recorded()).sum()
            })
        };
        if seen(other) > seen(one) { other } else { one }
    }

    /// The learned times of a class, one for each path: protocol, picoseconds per byte, and true if
    /// the path is chosen.
    pub(super) fn times(&self, class: Class) -> impl Iterator<Item = (Protocol, u64, bool)> {
        let costs = self.classes.get(class.number()).into_iter();
        costs.flat_map(|costs| {
            let paths = PATHS.iter().zip(&costs.paths).enumerate();
            paths.filter_map(|(at, (path, cost))| {
                Some((*path, cost.estimate()?, costs.chosen == Some(at)))
            })
        })
    }
}

impl Measured {
    /// The path that was chosen for the fetch.
    pub(super) fn path(&self) -> Protocol {
        self.path
    }
}

#[cfg(test)]
mod tests;
