//! The choice among the paths of one class of messages: which path is on trial, and which one
//! replaces the chosen one.
//!
//! Invariants: a choice depends on earlier times of the class alone; a path is left only for one
//! that is better by a margin, twice in a row.

use channel::Preferred;

use super::cost_classes::{Class, Company, PACKETS, PATHS, READ};
use super::host_costs::{Cost, HostCosts};
use super::path_cost::{MARGIN, PathCost, TIMED_EACH, TRIED, pause_by_loss};
use super::trials::{LONGEST_PAUSE, Trials};

/// Of this number of runs of [`TRIED`] fetches, one settles the ring of its sender, where that is
/// useful.
const SETTLING_EACH: u32 = 4;
/// Number of comparisons in a row that a path must win to replace the chosen one.
const WINS: u8 = 2;

/// The paths that are possible, by their indices in [`PATHS`].
pub(super) type Possible = [bool; PATHS.len()];

/// The costs of all paths for messages of one class, and the choice among them.
pub(super) struct PathChoice {
    paths: [PathCost; PATHS.len()],
    /// The number of paths with known costs from which one is chosen.
    chooses_from: usize,
    /// The index of the path in use. `None`: too few costs are known.
    chosen: Option<usize>,
    /// The index of the path that is better than the chosen one, and the number of comparisons in a
    /// row that it has won.
    rival: (usize, u8),
    /// The index of the path that is or was last on trial.
    on_trial: usize,
    trials: Trials,
    /// The number of fetches that began before the sender's ring was settled.
    unsettled: u32,
    /// Number of messages by the chosen path since the last one by another.
    by_choice: u32,
    /// The preference of messages that leave at once, for their senders.
    pub(super) preferred: Option<Preferred>,
}

impl PathChoice {
    /// Begins with the costs that the host's ranks have stored, of contiguous messages.
    pub(super) fn begin(class: Class, shared: &HostCosts) -> PathChoice {
        let is_queued = class.company() == Company::Queued;
        let is_stored = class.is_of_one_run();
        let mut paths = [PathCost::default(); PATHS.len()];
        for at in class.paths() {
            let stored = is_stored.then(|| shared.get(Cost::Message(class, at)));
            paths[at].begin(stored.flatten().unwrap_or(0), is_queued);
        }
        let mut choice = PathChoice {
            paths,
            // Their sender takes both paths by turns until it knows a preference.
            chooses_from: match class.company() {
                Company::AtOnce => 2,
                Company::Alone | Company::Queued => 1,
            },
            chosen: None,
            rival: (0, 0),
            on_trial: 0,
            trials: Trials::default(),
            unsettled: 0,
            by_choice: 0,
            preferred: None,
        };
        choice.compare();
        choice
    }

    /// True if the next fetch uses packets so that its sender's ring settles.
    pub(super) fn settles(&mut self) -> bool {
        let run = self.unsettled / TRIED;
        self.unsettled = self.unsettled.wrapping_add(1);
        run % SETTLING_EACH == SETTLING_EACH - 1
    }

    /// Chooses the path of the next fetch among those that are possible: `expected`, until times
    /// are known. Returns its index.
    pub(super) fn choose(&mut self, possible: Possible, expected: usize) -> usize {
        let choice = match self.chosen {
            Some(chosen) if possible[chosen] => self.perhaps_on_trial(chosen, possible),
            _ => self.best(possible).unwrap_or(expected),
        };
        self.paths[choice].tried = self.paths[choice].tried.saturating_add(1);
        choice
    }

    /// The index of the chosen path or, from time to time, of another one on trial.
    fn perhaps_on_trial(&mut self, chosen: usize, possible: Possible) -> usize {
        let (paths, on_trial) = (&self.paths, &mut self.on_trial);
        let is_on_trial = self.trials.next(|since| {
            let others = (0..PATHS.len()).filter(|path| possible[*path] && *path != chosen);
            // A slow path does not keep the others from their trials.
            let due = others.filter(|path| since >= pause(paths, chosen, *path));
            let next = due.min_by_key(|path| paths[*path].tried);
            *on_trial = next.unwrap_or(*on_trial);
            next.is_some()
        });
        match is_on_trial && possible[self.on_trial] {
            true => self.on_trial,
            false => chosen,
        }
    }

    /// The index of the path in use. `None`: too few costs are known.
    pub(super) fn chosen(&self) -> Option<usize> {
        self.chosen
    }

    /// The index of the best one of the possible paths whose costs are known.
    pub(super) fn best(&self, possible: Possible) -> Option<usize> {
        let known = (0..PATHS.len()).filter(|path| possible[*path]);
        let known = known.filter_map(|path| Some((self.paths[path].estimate()?, path)));
        known.min().map(|(_, path)| path)
    }

    /// The use of the time of the next message that leaves at once and comes by this path. `None`:
    /// it is not timed. False: its end is needed, because the next message may be there already.
    pub(super) fn timing(&mut self, path: usize) -> Option<bool> {
        const BEFORE_LAST: u32 = TIMED_EACH - 1;
        if self.chosen != Some(path) {
            self.by_choice = 0;
            return Some(true);
        }
        self.by_choice = self.by_choice.wrapping_add(1);
        match self.by_choice % TIMED_EACH {
            0 => Some(true),
            BEFORE_LAST => Some(false),
            _ => None,
        }
    }

    /// Records the time of a message by this path, and changes the chosen path if another has
    /// proved better. Returns the cost of the path if it is to be stored for the host's ranks.
    pub(super) fn record(&mut self, path: usize, ps_per_byte: u32) -> Option<u32> {
        self.paths[path].record(ps_per_byte);
        self.compare();
        self.paths[path].shared_estimate()
    }

    fn compare(&mut self) {
        let costs = self.paths.map(|path| path.estimate());
        let best = self.best([true; PATHS.len()]);
        if let Some(chosen) = self.chosen {
            self.perhaps_replace(chosen, best.unwrap_or(chosen));
        } else if costs.iter().flatten().count() >= self.chooses_from {
            (self.chosen, self.trials) = (best, Trials::default());
        }
        if let (2, Some(chosen)) = (self.chooses_from, self.chosen) {
            let other = READ + PACKETS - chosen;
            let pause = pause(&self.paths, chosen, other);
            self.preferred = Some(Preferred::new(chosen == READ, pause));
        }
    }

    fn perhaps_replace(&mut self, chosen: usize, best: usize) {
        let costs = [chosen, best].map(|path| self.paths[path].estimate());
        let [Some(now), Some(then)] = costs else {
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
            self.trials.replaced();
        }
    }

    /// The number of times that have been recorded.
    pub(super) fn recorded(&self) -> u32 {
        self.paths.iter().map(|path| path.recorded()).sum()
    }

    /// The paths whose costs are known: index, picoseconds per byte, and true if the path is
    /// chosen.
    pub(super) fn times(&self) -> impl Iterator<Item = (usize, u64, bool)> {
        let paths = self.paths.iter().enumerate();
        paths.filter_map(|(at, cost)| Some((at, cost.estimate()?, self.chosen == Some(at))))
    }
}

/// Number of messages by the chosen path after which a trial of another one loses little of their
/// time, as far as the costs of both are known.
fn pause(paths: &[PathCost; PATHS.len()], chosen: usize, next: usize) -> u32 {
    let costs = [chosen, next].map(|path| paths[path].estimate());
    let [Some(known), Some(other)] = costs else {
        return 0;
    };
    pause_by_loss(known, other).min(LONGEST_PAUSE)
}
