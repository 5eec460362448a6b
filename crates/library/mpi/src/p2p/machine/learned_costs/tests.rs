use proptest::prelude::*;

use super::*;

const LEN: usize = 1 << 20;

/// A rank that learns from fetches whose times are given.
struct Rank {
    costs: LearnedCosts,
    taken: [u32; PATHS.len()],
}

impl Default for Rank {
    fn default() -> Rank {
        Rank::of(HostCosts::over(None))
    }
}

impl Rank {
    /// A rank of a host with these shared costs.
    fn of(shared: HostCosts) -> Rank {
        Rank {
            costs: LearnedCosts::new(shared),
            taken: [0; PATHS.len()],
        }
    }

    fn fetch(&mut self, times: [u64; PATHS.len()]) -> usize {
        let class = Class::of(LEN, false, false);
        let now = *self.costs.clock.set.get_or_insert(0);
        let measured =
            self.costs
                .choose(class, LEN, Ring::Settled, Protocol::CooperativeCopy, |_| {
                    true
                });
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
fn a_late_sender_counts_only_once_the_fetch_before_has_ended() {
    let mut costs = LearnedCosts::new(HostCosts::over(None));
    let class = Class::of(LEN, false, true);
    costs.clock.set = Some(0);
    let one = costs.choose(
        class,
        LEN,
        Ring::Settled,
        Protocol::CooperativeCopy,
        |path| path == Protocol::Packets,
    );
    let two = costs.choose(
        class,
        LEN,
        Ring::Settled,
        Protocol::CooperativeCopy,
        |path| path == Protocol::Packets,
    );
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
fn of_a_read_in_steps_only_the_steps_count_where_others_wait() {
    let of = |is_followed| {
        let class = Class::of(LEN, false, is_followed);
        let mut costs = LearnedCosts::new(HostCosts::over(None));
        for fetch in 0u64..20 {
            let time = |quarters: u64| Some((4 * fetch + quarters) * LEN as u64 / 4);
            costs.clock.set = time(0);
            let only = |path| path == Protocol::ReadRendezvous;
            let read = Protocol::ReadRendezvous;
            let mut measured = Some(costs.choose(class, LEN, Ring::Settled, read, only));
            // Two steps of a quarter each, and half of the time between them.
            costs.step_begins(&mut measured);
            costs.clock.set = time(1);
            costs.step_ends(&mut measured);
            costs.clock.set = time(3);
            costs.step_begins(&mut measured);
            costs.clock.set = time(4);
            costs.ended(measured.unwrap());
        }
        costs.times(class).next().map(|row| row.1)
    };
    assert_eq!((of(true), of(false)), (Some(500), Some(1000)));
}

#[test]
fn a_class_shows_the_times_of_its_paths_and_the_chosen_one() {
    let mut rank = Rank::default();
    let class = Class::of(LEN, false, false);
    assert_eq!(rank.costs.times(class).count(), 0);
    rank.fetch_many(100, [200_000, 100_000, 300_000]);
    let times: Vec<_> = rank.costs.times(class).collect();
    let ps = |ns: u64| ns * 1000 / LEN as u64;
    let [together, read, packets] = PATHS;
    let all = [
        (together, ps(200_000), false),
        (read, ps(100_000), true),
        (packets, ps(300_000), false),
    ];
    assert_eq!(times, all);
}

#[test]
fn a_rank_begins_with_what_another_has_measured_and_tries_the_slow_paths_seldom() {
    let shared = HostCosts::over(None);
    let times = [200_000, 100_000, 800_000];
    Rank::of(shared.clone()).fetch_many(200, times);
    let mut second = Rank::of(shared);
    second.fetch_many(20, times);
    assert_eq!(second.taken, [0, 20, 0]);
    second.fetch_many(1000, times);
    let lost = 100 * second.taken[0] + 700 * second.taken[2];
    assert!(lost < 100 * 1020 / 8, "{:?}", second.taken);
}

#[test]
fn where_stored_costs_say_that_packets_win_the_ring_is_settled_by_all_fetches() {
    let class = Class::of(LEN, false, false);
    let shared = HostCosts::over(None);
    for (path, ps) in [(0, 70), (1, 90), (PACKETS, 30)] {
        shared.store(Cost::Fetch(class, path), ps);
    }
    let mut costs = LearnedCosts::new(shared);
    for _ in 0..64 {
        let measured = costs.choose(class, LEN, Ring::Grows, Protocol::CooperativeCopy, |_| true);
        assert_eq!(measured.path(), Protocol::Packets);
        costs.ended(measured);
    }
}

#[test]
fn stored_costs_that_are_wrong_now_are_soon_replaced() {
    let class = Class::of(LEN, false, false);
    let shared = HostCosts::over(None);
    for (path, ps) in [(0, 10), (1, 200), (PACKETS, 300)] {
        shared.store(Cost::Fetch(class, path), ps);
    }
    let mut rank = Rank::of(shared.clone());
    rank.fetch_many(200, [800_000, 100_000, 300_000]);
    assert!(
        rank.has_chosen(Protocol::ReadRendezvous),
        "{:?}",
        rank.taken
    );
    let stored = [0, 1].map(|path| shared.get(Cost::Fetch(class, path)).unwrap());
    assert!(stored[1] == 95 && stored[0] > 600, "{stored:?}");
}

#[test]
fn a_class_of_few_messages_takes_the_expected_path() {
    let mut rank = Rank::default();
    rank.fetch_many(9, [200_000, 100_000, 300_000]);
    assert_eq!(rank.taken, [9, 0, 0]);
    rank.fetch_many(50, [200_000, 100_000, 300_000]);
    assert!(
        rank.has_chosen(Protocol::ReadRendezvous),
        "{:?}",
        rank.taken
    );
    assert!(rank.taken[1] > 30, "{:?}", rank.taken);
}

#[test]
fn packets_settle_a_ring_and_teach_nothing_before() {
    let class = Class::of(LEN, false, false);
    let mut costs = LearnedCosts::new(HostCosts::over(None));
    let mut by_packets = 0;
    for _ in 0..256 {
        let measured = costs.choose(class, LEN, Ring::Grows, Protocol::CooperativeCopy, |_| true);
        by_packets += u32::from(measured.path() == Protocol::Packets);
        costs.ended(measured);
    }
    assert_eq!(by_packets, 64);
    let known: Vec<_> = costs.times(class).map(|row| row.0).collect();
    assert_eq!(known, [Protocol::CooperativeCopy, Protocol::ReadRendezvous]);
    // Once the ring is settled, packets are compared, too.
    let compares = (0..600).any(|_| {
        let measured = costs.choose(class, LEN, Ring::Settled, Protocol::CooperativeCopy, |_| {
            true
        });
        costs.ended(measured);
        measured.path() == Protocol::Packets
    });
    assert!(compares && costs.times(class).count() >= 2);
    // Where only packets are possible, they go on.
    let measured = costs.choose(class, LEN, Ring::Grows, Protocol::CooperativeCopy, |path| {
        path == Protocol::Packets
    });
    assert_eq!(measured.path(), Protocol::Packets);
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
    let mut costs = LearnedCosts::new(HostCosts::over(None));
    let class = Class::of(LEN, true, false);
    for _ in 0..100 {
        let measured = costs.choose(
            class,
            LEN,
            Ring::Settled,
            Protocol::CooperativeCopy,
            |path| path == Protocol::Packets,
        );
        assert_eq!(measured.path(), Protocol::Packets);
        costs.ended(measured);
    }
    for _ in 0..100 {
        let measured = costs.choose(
            class,
            LEN,
            Ring::Settled,
            Protocol::CooperativeCopy,
            |path| path != Protocol::Packets,
        );
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
        // At most a dozen trials, each of some messages.
        let bound = 800 * (best + best / MARGIN + 1) + 12 * u64::from(TRIED) * worst;
        prop_assert!(spent <= bound, "{spent} > {bound}");
        prop_assert!(changes <= 24, "{changes} changes");
    }
}
