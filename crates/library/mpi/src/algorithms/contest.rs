//! Contests: members that share memory measure each [`Way`] of a collective operation, and take the
//! fastest.
//!
//! The fastest one depends on the caches between the cores, on the processor's copies and on the
//! other load of the cores, so a table of sizes that was measured on one machine is wrong on the
//! next. All members make the calls of a communicator in one order. So each member derives from its
//! count of calls which [`Way`] has the turn, and times its own calls; after a set of turns the
//! members add up their times. Equal sums lead to equal decisions.
//!
//! Only operations that move data have contests: the order in which a reduction combines follows
//! from facts alone.
//!
//! Invariants:
//! - a contest moves by its calls and by agreed sums, never by a time of one member;
//! - most calls take the winner of the last contest: the pauses between contests double.

use super::case::ALWAYS_SHARED;
use super::names::{Algorithm, Collective};

/// The data path of an operation among members that share memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// Vectors in a collective buffer.
    Buffer,
    /// Copies straight between the members' memory.
    Direct,
    /// Messages, by the algorithm of the table.
    Messages,
}

impl Way {
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

/// The number of variants of [`Way`].
pub(crate) const WAYS: usize = 3;

const ALL: [Way; WAYS] = [Way::Buffer, Way::Direct, Way::Messages];

/// Calls before the first contest, ten times those of a contest: a program that calls seldom pays
/// nothing, and any other at most the tenth part of its calls.
const BEFORE: u32 = 320;
/// Calls in a row by each [`Way`], in the first and in the second set of turns. The first of them
/// is not timed.
const TURNS: [usize; 2] = [4, 8];
/// Calls from one contest to the next, at first and at last.
const PAUSE: u32 = 1024;
const PAUSE_AT_MOST: u32 = 8192;
/// A [`Way`] that takes more than 3 / 2 of the least time is left out of the second set.
const CLOSE: (u64, u64) = (3, 2);
/// A [`Way`] that takes more than this multiple of the least time is in every second contest only.
const FAR: u64 = 4;
/// A [`Way`] replaces the chosen one only if it is faster by the share 1 / `MARGIN`.
const MARGIN: u64 = 16;

/// The next thing to do in a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    /// The members add up these times, and pass the sums to [`Contests::compared`]; the call then
    /// asks again.
    Compare([u64; WAYS]),
    /// The call uses this [`Way`], and its time is recorded if it is `timed`.
    Take {
        /// The data path of the call.
        way: Way,
        /// The time of the call counts.
        timed: bool,
    },
}

/// The contests of a communicator.
#[derive(Debug, Default)]
pub(crate) struct Contests {
    all: Vec<(Subject, Contest)>,
}

/// Calls that are alike: of one collective, with vectors of similar length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Subject {
    collective: Collective,
    /// The length of the published vector, as a power of two.
    length: u32,
}

impl Subject {
    /// The subject of a call in which members would publish `published` bytes. `None`: such calls
    /// have no contest.
    pub(crate) fn of(collective: Collective, published: usize) -> Option<Subject> {
        /// Longer vectors have one subject.
        const LONGEST: u32 = 24;
        use Collective::*;
        let moves = matches!(collective, Bcast | Gather | Scatter | Allgather | Alltoall);
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
    /// True for each [`Way`] that was far behind in the last contest.
    far: [bool; WAYS],
    times: [Times; WAYS],
    contests: u32,
    pause: u32,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Calls until the next contest.
    Pause(u32),
    /// The set of turns, the [`Way`] whose turn it is, and its calls so far.
    Turns {
        set: usize,
        way: usize,
        calls: usize,
    },
    /// The members compare the times of this set.
    Compare(usize),
}

/// The times of one [`Way`] in one set of turns, in nanoseconds.
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

    /// The mean of all but the greatest, which may have been interrupted. Where ranks share a core,
    /// some calls of a [`Way`] always take long, so a median would be too low.
    fn mean(&self) -> u64 {
        let known = &self.kept[..self.count];
        let greatest = known.iter().copied().max().unwrap_or(0);
        let sum: u64 = known.iter().map(|time| u64::from(*time)).sum();
        let count = self.count.saturating_sub(1).max(1) as u64;
        (sum - u64::from(greatest)) / count
    }
}

impl Contests {
    /// The turn of the next call. `first`: the choice of the table. `possible`: true for each
    /// [`Way`] that works, in the order of the enum; called when a contest begins.
    pub(crate) fn next(
        &mut self,
        of: Subject,
        first: Way,
        possible: impl FnOnce() -> [bool; WAYS],
    ) -> Turn {
        let known = self.all.iter().position(|(subject, _)| *subject == of);
        let at = known.unwrap_or_else(|| {
            self.all.push((of, Contest::new(first)));
            self.all.len() - 1
        });
        self.all[at].1.next(possible)
    }

    /// The contests of a communicator with the same members: what has won holds there too.
    pub(crate) fn inherited(&self) -> Contests {
        let all = self.all.iter();
        let all = all.map(|(subject, contest)| {
            let mut child = Contest::new(contest.chosen);
            child.rest(false);
            (*subject, child)
        });
        Contests { all: all.collect() }
    }

    /// The winner of the last contest, or the choice of the table before the first. `None`: there
    /// was no call yet.
    pub(crate) fn chosen(&self, of: Subject) -> Option<Way> {
        let mut all = self.all.iter();
        let (_, contest) = all.find(|(subject, _)| *subject == of)?;
        Some(contest.chosen)
    }

    /// The sums of the members' times.
    pub(crate) fn compared(&mut self, of: Subject, sums: [u64; WAYS]) {
        if let Some((_, contest)) = self.all.iter_mut().find(|(subject, _)| *subject == of) {
            contest.compared(sums);
        }
    }

    /// Records the time of a call that used this [`Way`], in nanoseconds.
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

    fn next(&mut self, possible: impl FnOnce() -> [bool; WAYS]) -> Turn {
        if let Phase::Pause(0) = self.phase {
            self.enter(possible());
        }
        self.turn()
    }

    /// Begins a contest, if more than one [`Way`] takes part.
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
                    way: ALL[way],
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
            self.chosen = ALL[best];
        }
        self.rest(is_beaten);
    }

    /// Ends a contest. `changed`: the winner is not the one of the last contest.
    fn rest(&mut self, changed: bool) {
        if changed {
            self.pause = PAUSE;
        }
        self.phase = Phase::Pause(self.pause);
        self.pause = (self.pause * 2).min(PAUSE_AT_MOST);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SUBJECT: Subject = Subject {
        collective: Collective::Allgather,
        length: 16,
    };

    /// Members that each time their own calls.
    struct Members {
        all: Vec<Contests>,
        taken: [u32; WAYS],
        compared: u32,
    }

    impl Members {
        fn new(count: usize) -> Members {
            Members {
                all: (0..count).map(|_| Contests::default()).collect(),
                taken: [0; WAYS],
                compared: 0,
            }
        }

        /// One call of all members. `time`: the nanoseconds of a member by a [`Way`].
        fn call(&mut self, possible: [bool; WAYS], time: impl Fn(usize, usize) -> u64) -> Way {
            loop {
                let turns = self.all.iter_mut();
                let turns: Vec<_> = turns
                    .map(|member| member.next(SUBJECT, Way::Buffer, || possible))
                    .collect();
                if let Turn::Compare(_) = turns[0] {
                    let mut sums = [0; WAYS];
                    for turn in &turns {
                        let Turn::Compare(times) = turn else {
                            panic!("{turns:?}");
                        };
                        (0..WAYS).for_each(|way| sums[way] += times[way]);
                    }
                    self.compared += 1;
                    let members = self.all.iter_mut();
                    members.for_each(|member| member.compared(SUBJECT, sums));
                    continue;
                }
                assert!(turns.iter().all(|turn| *turn == turns[0]), "{turns:?}");
                let Turn::Take { way, timed } = turns[0] else {
                    unreachable!()
                };
                self.taken[way as usize] += 1;
                if timed {
                    for (number, member) in self.all.iter_mut().enumerate() {
                        member.record(SUBJECT, way, time(number, way as usize));
                    }
                }
                return way;
            }
        }
    }

    #[test]
    fn only_long_moved_data_have_subjects() {
        let of = Subject::of;
        assert_eq!(of(Collective::Allreduce, 1 << 20), None);
        assert_eq!(of(Collective::Bcast, ALWAYS_SHARED - 1), None);
        assert_eq!(of(Collective::Bcast, usize::MAX), None);
        let (short, long) = (
            of(Collective::Bcast, 8 << 10),
            of(Collective::Bcast, 16 << 10),
        );
        assert!(short.is_some() && long.is_some() && short != long);
        assert_eq!(of(Collective::Bcast, 9 << 10), short);
        assert_eq!(
            of(Collective::Bcast, 1 << 30),
            of(Collective::Bcast, 1 << 40)
        );
    }

    #[test]
    fn the_fastest_way_wins_and_is_left_only_for_a_better_one() {
        let mut members = Members::new(3);
        for _ in 0..400 {
            members.call([true; WAYS], |_, way| [900, 2000, 300][way]);
        }
        assert_eq!(members.all[1].chosen(SUBJECT), Some(Way::Messages));
        assert_eq!(members.compared, 1);
        // A little better is not enough.
        for _ in 0..3000 {
            members.call([true; WAYS], |_, way| [295, 2000, 300][way]);
        }
        assert_eq!(members.all[1].chosen(SUBJECT), Some(Way::Messages));
        // The machine's state changes: that is found in one of the next contests.
        for _ in 0..9000 {
            members.call([true; WAYS], |_, way| [290, 100, 300][way]);
        }
        assert_eq!(members.all[1].chosen(SUBJECT), Some(Way::Direct));
    }

    #[test]
    fn a_child_begins_with_what_has_won() {
        let mut members = Members::new(2);
        for _ in 0..400 {
            members.call([true; WAYS], |_, way| [900, 2000, 300][way]);
        }
        let mut child = members.all[0].inherited();
        let way = Way::Messages;
        let turn = child.next(SUBJECT, Way::Buffer, || [true; WAYS]);
        assert_eq!(turn, Turn::Take { way, timed: false });
    }

    #[test]
    fn a_way_that_does_not_work_is_never_taken() {
        let mut members = Members::new(2);
        for _ in 0..5000 {
            members.call([true, false, true], |_, way| [500, 1, 400][way]);
        }
        assert_eq!(members.taken[Way::Direct as usize], 0);
        let mut members = Members::new(2);
        for _ in 0..5000 {
            members.call([true, false, false], |_, _| 500);
        }
        assert_eq!((members.compared, members.taken[0]), (0, 5000));
    }

    #[test]
    fn one_interrupted_call_of_each_way_changes_nothing() {
        let mut members = Members::new(2);
        let calls = std::cell::Cell::new(0);
        for call in 0..400 {
            calls.set(call);
            members.call([true, false, true], |member, way| {
                let late = if member == 0 && calls.get() % 8 == 1 {
                    1_000_000
                } else {
                    0
                };
                [500, 0, 400][way] + late
            });
        }
        assert_eq!(members.all[0].chosen(SUBJECT), Some(Way::Messages));
    }

    proptest! {
        /// Whatever the times of each member, all take equal turns, and what contests cost is
        /// bounded.
        #[test]
        fn members_agree_and_lose_little(
            times in prop::collection::vec(prop::array::uniform3(1_000u64..4_000), 2..6),
        ) {
            let mut members = Members::new(times.len());
            let sum = |way: usize| times.iter().map(|own| own[way]).sum::<u64>();
            let least = (0..WAYS).map(sum).min().unwrap();
            let mut spent = 0;
            for _ in 0..2000 {
                spent += sum(members.call([true; WAYS], |member, way| times[member][way]) as usize);
            }
            let worst = (0..WAYS).map(sum).max().unwrap();
            // The calls before the first contest, and at most three contests.
            let lost = (u64::from(BEFORE) + 3 * (2 * 12)) * (worst - least);
            prop_assert!(spent <= 2000 * (least + least / MARGIN) + lost);
        }
    }
}
