//! Contests: members that share memory measure each [`Way`] of a collective operation, and use the
//! fastest.
//!
//! Which one is fastest depends on the caches between the cores, on the processor's copies and on
//! the other load of the cores, so sizes measured on one machine are wrong on the next. All members
//! make the calls of a communicator in one order. So each member derives from its count of calls
//! which [`Way`] the call uses, and times its own calls; after a set of turns the members add up
//! their times. Equal sums lead to equal decisions.
//!
//! Only operations that move data have contests: in a reduction, the order of combining must follow
//! from the facts of the call alone.
//!
//! Invariants:
//! - a contest advances by calls and by agreed sums, never by the time of one member;
//! - most calls use the winner of the last contest: the pauses between contests double.
//!
//! If all members know the costs that earlier jobs have kept ([`KeptWays`]), the first calls use
//! the best of them, and the first contest comes after a pause.

use std::sync::Arc;

use super::case::ALWAYS_SHARED;
use super::names::{Algorithm, Collective};

/// The data path of a collective operation among members that share memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// The members publish vectors in a collective buffer.
    Buffer,
    /// The members copy data directly between their memories.
    Direct,
    /// Messages carry the data, by the algorithm that the table chooses.
    Messages,
}

impl Way {
    /// All data paths among which contests decide, in their order.
    pub(crate) const ALL: [Way; WAYS] = [Way::Buffer, Way::Direct, Way::Messages];

    /// The data path that an algorithm uses.
    #[inline(always)]
    pub(crate) fn of(algorithm: Algorithm) -> Way {
        match algorithm {
            Algorithm::Shared => Way::Buffer,
            Algorithm::Direct => Way::Direct,
            _ => Way::Messages,
        }
    }
}

/// The number of data paths among which contests decide.
pub(crate) const WAYS: usize = 3;

/// The names of the data paths in messages, in their order.
pub(crate) const WAY_NAMES: [&str; WAYS] = ["buffer", "direct", "messages"];

/// The number of calls before the first contest: about twice those in a contest. Its result is kept
/// for later jobs, so it pays even where this job ends soon after.
const BEFORE: u32 = 64;
/// The number of consecutive calls by each [`Way`], in the first and in the second set of turns.
/// The first of these calls is not timed.
const TURNS: [usize; 2] = [4, 8];
/// The number of calls from one contest to the next: at first, and (`PAUSE_AT_MOST`) at last.
const PAUSE: u32 = 1024;
const PAUSE_AT_MOST: u32 = 8192;
/// A [`Way`] is left out of the second set if its time is more than 3 / 2 of the least time.
const CLOSE: (u64, u64) = (3, 2);
/// A [`Way`] whose time is more than this multiple of the least is in every second contest only.
const FAR: u64 = 4;
/// A [`Way`], or a path of messages, replaces the chosen one only if it is faster by at least
/// 1 / `MARGIN` of its own time.
pub(crate) const MARGIN: u64 = 16;

/// The action of a member in the next call of a contest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    /// The members must add up these times by an exchange, and pass the sums to
    /// [`Contests::compared`]; then they ask for the next action of the call again. In nanoseconds.
    Compare([u64; WAYS]),
    /// The call uses this data path.
    Take {
        /// The data path of the call.
        way: Way,
        /// True if the time of the call is recorded.
        timed: bool,
    },
}

/// The contests of one communicator.
#[derive(Debug, Default)]
pub(crate) struct Contests {
    all: Vec<(Subject, Contest)>,
    /// The costs that earlier jobs have kept, if all members know them.
    kept: Option<KeptWays>,
}

/// The costs of each [`Way`] for each class of calls, as earlier jobs have kept them.
#[derive(Clone, Debug)]
pub(crate) struct KeptWays(Arc<[[u32; WAYS]]>);

impl KeptWays {
    /// The costs that `cost` returns for each data path by index; 0 means an unknown cost.
    pub(crate) fn new(cost: impl Fn(Subject, usize) -> u32) -> KeptWays {
        let all = Subject::all().map(|subject| std::array::from_fn(|way| cost(subject, way)));
        KeptWays(all.collect())
    }

    /// The fastest possible [`Way`], if the costs of all that are possible are known.
    fn best(&self, of: Subject, possible: [bool; WAYS]) -> Option<Way> {
        let costs = self.0.get(of.number())?;
        let known = || (0..WAYS).filter(|way| possible[*way]);
        if known().any(|way| costs[way] == 0) {
            return None;
        }
        known()
            .min_by_key(|way| costs[*way])
            .map(|way| Way::ALL[way])
    }
}

/// A class of calls: calls of one collective with vectors of similar length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Subject {
    collective: Collective,
    /// The binary logarithm of the length of the published vector in bytes, rounded down.
    length: u32,
}

/// The least and the greatest `length` of a [`Subject`]: calls with longer vectors are in the
/// class of the greatest.
const SHORTEST: u32 = ALWAYS_SHARED.ilog2();
const LONGEST: u32 = 24;
/// The collective operations that have contests.
const MOVERS: [Collective; 5] = [
    Collective::Bcast,
    Collective::Gather,
    Collective::Scatter,
    Collective::Allgather,
    Collective::Alltoall,
];
const LENGTHS: usize = (LONGEST - SHORTEST + 1) as usize;

impl Subject {
    /// The number of classes of calls.
    pub(crate) const COUNT: usize = MOVERS.len() * LENGTHS;

    /// All classes of calls, by their numbers.
    pub(crate) fn all() -> impl Iterator<Item = Subject> {
        let lengths = || SHORTEST..=LONGEST;
        let of = move |collective| lengths().map(move |length| Subject { collective, length });
        MOVERS.into_iter().flat_map(of)
    }

    /// The number of the class, less than [`COUNT`](Subject::COUNT).
    pub(crate) fn number(self) -> usize {
        let mover = MOVERS.iter().position(|mover| *mover == self.collective);
        mover.unwrap_or(0) * LENGTHS + (self.length - SHORTEST) as usize
    }

    /// The collective, and the least length in bytes of the vectors of the class.
    pub(crate) fn situation(self) -> (Collective, usize) {
        (self.collective, 1 << self.length)
    }

    /// The class of a call in which members would publish `published` bytes. `None`: there are no
    /// contests for such calls.
    pub(crate) fn of(collective: Collective, published: usize) -> Option<Subject> {
        let moves = MOVERS.contains(&collective);
        let is_long = (ALWAYS_SHARED..usize::MAX).contains(&published);
        (moves && is_long).then(|| Subject {
            collective,
            length: published.ilog2().min(LONGEST),
        })
    }
}

#[derive(Debug)]
struct Contest {
    phase: Phase,
    chosen: Way,
    /// True for each [`Way`] that takes part in the current set of turns.
    contenders: [bool; WAYS],
    /// True for each [`Way`] whose time was more than [`FAR`] times the least time in the last
    /// contest.
    far: [bool; WAYS],
    times: [Times; WAYS],
    contests: u32,
    pause: u32,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// The number of calls until the next contest.
    Pause(u32),
    /// The number of the set of turns, the data path that is used now, and the number of its calls
    /// in the set.
    Turns {
        set: usize,
        way: usize,
        calls: usize,
    },
    /// The members compare the times of the calls in the set with this number.
    Compare(usize),
}

/// The times of one data path in one set of calls, in nanoseconds.
#[derive(Clone, Copy, Default, Debug)]
struct Times {
    kept: [u32; TURNS[1]],
    count: usize,
}

impl Times {
    fn record(&mut self, ns: u64) {
        if let Some(slot) = self.kept.get_mut(self.count) {
            *slot = u32::try_from(ns).unwrap_or(u32::MAX);
            self.count += 1;
        }
    }

    /// The mean of all times but the greatest, whose call may have been interrupted. If ranks share
    /// a core, some calls of a [`Way`] always take long, so a median would be too low.
    fn mean(&self) -> u64 {
        let known = &self.kept[..self.count];
        let greatest = known.iter().copied().max().unwrap_or(0);
        let sum: u64 = known.iter().map(|time| u64::from(*time)).sum();
        let count = self.count.saturating_sub(1).max(1) as u64;
        (sum - u64::from(greatest)) / count
    }
}

impl Contests {
    /// The next action in a call. `first` is the choice of the table. `possible` returns true for
    /// each [`Way`] that works, in the order of the enum; it is called when a contest begins.
    pub(crate) fn next(
        &mut self,
        of: Subject,
        first: Way,
        possible: impl Fn() -> [bool; WAYS],
    ) -> Turn {
        let known = self.all.iter().position(|(subject, _)| *subject == of);
        let at = match (known, &self.kept) {
            (Some(at), _) => at,
            (None, None) => self.add(of, Contest::new(first)),
            (None, Some(kept)) => {
                let contest = match kept.best(of, possible()) {
                    Some(best) => Contest::after_a_pause(best),
                    None => Contest::new(first),
                };
                self.add(of, contest)
            }
        };
        self.all[at].1.next(possible)
    }

    fn add(&mut self, of: Subject, contest: Contest) -> usize {
        self.all.push((of, contest));
        self.all.len() - 1
    }

    /// Begins contests of further classes with these costs, which all members know.
    pub(crate) fn begin_with(&mut self, kept: KeptWays) {
        self.kept = Some(kept);
    }

    /// The contests for another communicator with the same members. They begin with the winners of
    /// this communicator's contests.
    pub(crate) fn inherited(&self) -> Contests {
        let all = self.all.iter();
        let all = all.map(|(subject, contest)| (*subject, Contest::after_a_pause(contest.chosen)));
        Contests {
            all: all.collect(),
            kept: self.kept.clone(),
        }
    }

    /// The winner of the last contest, or the choice of the table before the first. `None`: no such
    /// call has been made.
    pub(crate) fn chosen(&self, of: Subject) -> Option<Way> {
        let mut all = self.all.iter();
        let (_, contest) = all.find(|(subject, _)| *subject == of)?;
        Some(contest.chosen)
    }

    /// Processes the sums of the members' times, and decides on the winner or on a second set of
    /// turns.
    pub(crate) fn compared(&mut self, of: Subject, sums: [u64; WAYS]) {
        if let Some((_, contest)) = self.all.iter_mut().find(|(subject, _)| *subject == of) {
            contest.compared(sums);
        }
    }

    /// Records the time of a call that used this data path, in nanoseconds.
    pub(crate) fn record(&mut self, of: Subject, way: Way, ns: u64) {
        if let Some((_, contest)) = self.all.iter_mut().find(|(subject, _)| *subject == of) {
            contest.times[way as usize].record(ns);
        }
    }
}

impl Contest {
    fn new(chosen: Way) -> Contest {
        Contest {
            phase: Phase::Pause(BEFORE),
            chosen,
            contenders: [false; WAYS],
            far: [false; WAYS],
            times: [Times::default(); WAYS],
            contests: 0,
            pause: PAUSE,
        }
    }

    /// A contest that another one has preceded.
    fn after_a_pause(chosen: Way) -> Contest {
        let mut contest = Contest::new(chosen);
        contest.rest(false);
        contest
    }

    fn next(&mut self, possible: impl FnOnce() -> [bool; WAYS]) -> Turn {
        if let Phase::Pause(0) = self.phase {
            self.enter(possible());
        }
        self.turn()
    }

    /// Begins a contest, if at least two data paths are possible.
    fn enter(&mut self, possible: [bool; WAYS]) {
        let includes_far = self.contests.is_multiple_of(2);
        self.contests = self.contests.wrapping_add(1);
        self.contenders =
            std::array::from_fn(|way| possible[way] && (includes_far || !self.far[way]));
        self.contenders[self.chosen as usize] = true;
        match self
            .contenders
            .iter()
            .filter(|takes_part| **takes_part)
            .count()
        {
            1 => self.rest(false),
            _ => self.begin(0),
        }
    }

    fn turn(&mut self) -> Turn {
        match self.phase {
            Phase::Pause(calls) => {
                self.phase = Phase::Pause(calls.saturating_sub(1));
                let way = self.chosen;
                Turn::Take { way, timed: false }
            }
            Phase::Turns { set, way, calls } if calls < TURNS[set] => {
                let timed = calls > 0;
                let calls = calls + 1;
                self.phase = Phase::Turns { set, way, calls };
                Turn::Take {
                    way: Way::ALL[way],
                    timed,
                }
            }
            Phase::Turns { set, way, .. } => {
                let next = (way + 1..WAYS).find(|way| self.contenders[*way]);
                self.phase = match next {
                    Some(way) => Phase::Turns { set, way, calls: 0 },
                    None => Phase::Compare(set),
                };
                self.turn()
            }
            Phase::Compare(_) => Turn::Compare(self.times.map(|times| times.mean())),
        }
    }

    fn begin(&mut self, set: usize) {
        let first = self.contenders.iter().position(|takes_part| *takes_part);
        self.times = [Times::default(); WAYS];
        self.phase = Phase::Turns {
            set,
            way: first.unwrap_or(self.chosen as usize),
            calls: 0,
        };
    }

    fn compared(&mut self, sums: [u64; WAYS]) {
        let Phase::Compare(set) = self.phase else {
            return;
        };
        let contenders = self.contenders;
        let known = || (0..WAYS).filter(|way| contenders[*way]);
        let Some(best) = known().min_by_key(|way| sums[*way]) else {
            return self.rest(false);
        };
        if set == 0 {
            for way in known() {
                self.far[way] = sums[way] > sums[best].saturating_mul(FAR);
                let (most, of) = CLOSE;
                self.contenders[way] =
                    sums[way].saturating_mul(of) <= sums[best].saturating_mul(most);
            }
            if self
                .contenders
                .iter()
                .filter(|takes_part| **takes_part)
                .count()
                > 1
            {
                return self.begin(1);
            }
        }
        let chosen = self.chosen as usize;
        let is_beaten = !self.contenders[chosen]
            || sums[best].saturating_add(sums[best] / MARGIN) < sums[chosen];
        if is_beaten {
            self.chosen = Way::ALL[best];
        }
        self.rest(is_beaten);
    }

    /// Ends a contest. `changed`: the winner differs from the winner of the last contest.
    fn rest(&mut self, changed: bool) {
        if changed {
            self.pause = PAUSE;
        }
        self.phase = Phase::Pause(self.pause);
        self.pause = (self.pause * 2).min(PAUSE_AT_MOST);
    }
}

#[cfg(test)]
mod tests;
