use proptest::prelude::*;

use super::*;

const LEN: usize = 1 << 20;

/// A rank whose fetches take these times, in nanoseconds, by path.
#[derive(Default)]
struct Rank {
    costs: LearnedCosts,
    taken: [u32; PATHS.len()],
}

impl Rank {
    fn fetch(&mut self, times: [u64; PATHS.len()]) -> usize {
        let class = Class::of(LEN, false, false);
        let now = *self.costs.clock.set.get_or_insert(0);
        let measured = self.costs.choose(class, LEN, true, |_| true);
        let path = PATHS
            .iter()
            .position(|path| *path == measured.path())
            .unwrap();
        self.costs.clock.set = Some(now + times[path]);
        match measured.path() {
            Protocol::Packets => {
                self.costs.by_packets(7, measured);
                self.costs.packets_ended(7);
            }
            _ => self.costs.ended(measured),
        }
        self.taken[path] += 1;
        path
    }
}

impl Rank {
    fn fetch_many(&mut self, count: usize, times: [u64; PATHS.len()]) {
        for _ in 0..count {
            self.fetch(times);
        }
    }

    fn has_chosen(&self, path: Protocol) -> bool {
        let mut times = self.costs.times(Class::of(LEN, false, false));
        times.any(|row| row.0 == path && row.2)
    }
}

#[test]
fn classes_follow_length_cores_and_company() {
    let of = |len| Class::of(len, false, false).0;
    for class in 0..LENGTHS * 4 {
        let (len, is_near, is_followed) = Class::situation(class);
        assert_eq!(Class::of(len, is_near, is_followed), Class(class));
    }
    assert_eq!((of(1), of(128 << 10), of(200 << 10)), (0, 0, 0));
    assert_eq!((of(256 << 10), of(512 << 10)), (4, 8));
    assert_eq!((of(8 << 20), of(1 << 40)), (24, 24));
    let all = [(false, false), (false, true), (true, false), (true, true)];
    let mut seen: Vec<usize> = all
        .map(|(near, followed)| Class::of(LEN, near, followed).0)
        .to_vec();
    seen.dedup();
    assert_eq!(seen.len(), 4);
    assert!(of(usize::MAX) < LENGTHS * 4);
}

#[test]
fn a_late_sender_counts_only_once_the_fetch_before_has_ended() {
    let mut costs = LearnedCosts::default();
    let class = Class::of(LEN, false, true);
    costs.clock.set = Some(0);
    let one = costs.choose(class, LEN, true, |path| path == Protocol::Packets);
    let two = costs.choose(class, LEN, true, |path| path == Protocol::Packets);
    costs.by_packets(1, one);
    costs.by_packets(2, two);
    for (receive, time) in [(1, 1), (2, 2), (3, 9)] {
        costs.clock.set = Some(time * LEN as u64);
        costs.packets_ended(receive);
    }
    assert!(costs.open.is_empty());
    assert_eq!(costs.busier([Class::of(LEN, false, false), class]), class);
    // Each took 1 ns a byte, though the second waited for the first.
    assert_eq!(costs.times(class).next().map(|row| row.1), Some(1000));
}

#[test]
fn all_costs_are_those_of_compared_classes() {
    let mut rank = Rank::default();
    rank.fetch_many(2, [200_000, 100_000, 300_000]);
    assert_eq!(rank.costs.all().count(), 0);
    rank.fetch_many(100, [200_000, 100_000, 300_000]);
    let all: Vec<_> = rank.costs.all().collect();
    let [costs] = &all[..] else { panic!("{all:?}") };
    assert_eq!((costs.from, costs.others_wait), (Bytes(LEN), false));
    let ps = |ns: u64| Some((ns * 1000 / LEN as u64) as u32);
    assert_eq!(costs.ps_per_byte, [ps(200_000), ps(100_000), ps(300_000)]);
    assert_eq!(costs.fastest(|_| true), Some(CopyPath::Read));
}

#[test]
fn a_ring_that_is_not_settled_takes_packets_and_teaches_nothing() {
    let mut costs = LearnedCosts::default();
    let class = Class::of(LEN, false, false);
    for _ in 0..100 {
        let measured = costs.choose(class, LEN, false, |_| true);
        assert_eq!(measured.path(), Protocol::Packets);
        costs.ended(measured);
    }
    assert_eq!(costs.times(class).count(), 0);
    // Another peer has shown that a read is best: no more packets.
    let mut rank = Rank::default();
    rank.fetch_many(1000, [200_000, 100_000, 300_000]);
    let measured = rank.costs.choose(class, LEN, false, |_| true);
    assert_ne!(measured.path(), Protocol::Packets);
}

#[test]
fn a_path_that_becomes_better_is_found() {
    let mut rank = Rank::default();
    rank.fetch_many(1000, [100_000, 200_000, 300_000]);
    assert!(rank.taken[0] > 900, "{:?}", rank.taken);
    // The processor moves: packets are best.
    let until = (0..20_000).position(|_| {
        rank.fetch([100_000, 200_000, 50_000]);
        rank.has_chosen(Protocol::Packets)
    });
    assert!(until.is_some_and(|count| count < 5_000), "{until:?}");
    // The chosen one becomes slow: that is seen at once.
    let mut rank = Rank::default();
    rank.fetch_many(1000, [100_000, 200_000, 300_000]);
    let slow = (0..100)
        .filter(|_| rank.fetch([900_000, 200_000, 300_000]) == 0)
        .count();
    assert!(slow < 20, "{slow}");
}

#[test]
fn a_path_that_is_not_possible_is_not_taken() {
    let mut costs = LearnedCosts::default();
    let class = Class::of(LEN, true, false);
    for _ in 0..100 {
        let measured = costs.choose(class, LEN, true, |path| path == Protocol::Packets);
        assert_eq!(measured.path(), Protocol::Packets);
        costs.ended(measured);
    }
    for _ in 0..100 {
        let measured = costs.choose(class, LEN, true, |path| path != Protocol::Packets);
        assert_ne!(measured.path(), Protocol::Packets);
        costs.ended(measured);
    }
}

proptest! {
    /// Whatever the times, and one message in eight disturbed, the regret of a thousand fetches
    /// is small once the paths are known, and the choice does not flap.
    #[test]
    fn regret_is_bounded(
        times in prop::array::uniform3(20_000u64..2_000_000),
        pauses in prop::collection::vec(8usize..40, 125),
    ) {
        let mut rank = Rank::default();
        let (mut spent, mut changes, mut last) = (0, 0, None);
        let mut pauses = pauses.into_iter();
        let mut disturbed = pauses.next();
        for at in 0..1000 {
            let late = if disturbed == Some(at) { 5_000_000 } else { 0 };
            if late > 0 {
                disturbed = pauses.next().map(|pause| at + pause);
            }
            let path = rank.fetch(times.map(|time| time + late));
            if at >= 200 {
                spent += times[path];
                changes += u32::from(last.is_some_and(|last| last != path));
            }
            last = Some(path);
        }
        let best = *times.iter().min().unwrap();
        let worst = *times.iter().max().unwrap();
        // At most a dozen trials, each with a message that confirms it.
        let bound = 800 * (best + best / MARGIN + 1) + 24 * worst;
        prop_assert!(spent <= bound, "{spent} > {bound}");
        prop_assert!(changes <= 24, "{changes} changes");
    }
}
