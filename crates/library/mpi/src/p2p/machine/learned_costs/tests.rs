use proptest::prelude::*;

use super::super::path_cost::{MARGIN, TRIED};
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
            costs: LearnedCosts::new(4, shared),
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
    let mut costs = LearnedCosts::new(4, HostCosts::over(None));
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
        let mut costs = LearnedCosts::new(4, HostCosts::over(None));
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
        shared.store(Cost::Message(class, path), ps);
    }
    let mut costs = LearnedCosts::new(4, shared);
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
        shared.store(Cost::Message(class, path), ps);
    }
    let mut rank = Rank::of(shared.clone());
    rank.fetch_many(200, [800_000, 100_000, 300_000]);
    assert!(
        rank.has_chosen(Protocol::ReadRendezvous),
        "{:?}",
        rank.taken
    );
    let stored = [0, 1].map(|path| shared.get(Cost::Message(class, path)).unwrap());
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
    let mut costs = LearnedCosts::new(4, HostCosts::over(None));
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
    let mut costs = LearnedCosts::new(4, HostCosts::over(None));
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

/// A receiver of messages that leave at once, of rank 3 between cores at a distance.
struct Receiver {
    costs: LearnedCosts,
    class: Class,
}

impl Receiver {
    fn of(shared: HostCosts, is_near: bool) -> Receiver {
        let mut costs = LearnedCosts::new(4, shared);
        costs.set_distance(3, is_near);
        costs.clock.set = Some(0);
        let class = costs.class_of(3, LEN, RunClass::ONE).unwrap();
        Receiver { costs, class }
    }

    /// A message that is recorded: it takes `time` from its first sign, `pause` after the message
    /// before it. Returns the new preference: true for reads.
    fn takes(&mut self, is_read: bool, [pause, time]: [u64; 2]) -> Option<bool> {
        let begun = self.costs.clock.set.unwrap() + pause;
        self.costs.clock.set = Some(begun + time);
        let (path, pieces) = match is_read {
            true => (READ, usize::MAX),
            false => (PACKETS, 4),
        };
        let measured = Measured {
            sender: Some(3),
            class: self.class,
            path,
            begun,
            paused: None,
            len: LEN,
            paired: 0,
            counts: true,
        };
        self.costs.ended_in_pieces(measured, pieces);
        let new = self.costs.news(3, self.class)?;
        assert_eq!((new.sender, new.shape), (3, self.class.shape()));
        new.preferred.map(|preferred| preferred.reads)
    }

    /// A message by a read and one in packets, after pauses.
    fn takes_both(&mut self, reads: u64, packets: u64) -> Option<bool> {
        let first = self.takes(true, [100_000, reads]);
        first.or(self.takes(false, [100_000, packets]))
    }
}

#[test]
fn the_faster_path_is_preferred_and_kept_within_the_margin() {
    let mut receiver = Receiver::of(HostCosts::over(None), true);
    let first = [400_000; 2].map(|time| receiver.takes_both(time, time));
    assert_eq!(first, [None, Some(true)]);
    // With its first packet a message of 400 µs took 500: still within the margin.
    assert!((0..20).all(|_| receiver.takes_both(520_000, 400_000) != Some(false)));
    let costs = &receiver.costs;
    assert!(!costs.packets_may_win(3) && costs.packets_may_win(2));
    assert!((0..20).any(|_| receiver.takes_both(540_000, 400_000) == Some(false)));
    assert!(receiver.costs.packets_may_win(3));
}

#[test]
fn a_sender_begins_with_what_others_have_taught_about_its_distance() {
    let shared = HostCosts::over(None);
    let mut first = Receiver::of(shared.clone(), true);
    (0..TRIED).for_each(|_| _ = first.takes_both(400_000, 800_000));
    let of = |is_near, runs| {
        let class = Class::at_once(LEN, is_near, runs).unwrap();
        PathChoice::begin(class, &shared).preferred
    };
    let preferred = of(true, RunClass::ONE);
    assert!(preferred.is_some_and(|preferred| preferred.reads && preferred.pause >= 64));
    assert_eq!(of(false, RunClass::ONE), None);
    let in_runs = RunClass::all().filter(|runs| runs.long().is_some());
    assert!(
        in_runs
            .map(|runs| of(true, runs))
            .all(|none| none.is_none())
    );
    let mut second = Receiver::of(shared, true);
    let new = second.costs.news(3, second.class).unwrap();
    assert_eq!(new.preferred, preferred);
    assert_eq!(second.costs.news(3, second.class), None);
    assert_eq!(
        second.costs.news(2, second.class),
        None,
        "its distance is not known"
    );
    // Its core has moved: nothing is known there.
    second.costs.set_distance(3, false);
    let class = second.costs.class_of(3, LEN, RunClass::ONE).unwrap();
    assert_eq!(second.costs.news(3, class).unwrap().preferred, None);
}

#[test]
fn a_receiver_that_did_not_wait_adds_nothing() {
    let mut receiver = Receiver::of(HostCosts::over(None), true);
    for _ in 0..4 {
        receiver.takes(false, [0, 400_000]);
        receiver.takes(true, [0, 410_000]);
    }
    let choice = receiver.costs.of_sender(3, receiver.class).unwrap();
    let ps: Vec<u64> = choice.times().map(|row| row.1).collect();
    assert!(ps.len() == 2 && ps[1] < ps[0], "{ps:?}");
}

#[test]
fn of_messages_by_the_chosen_path_one_in_eight_is_timed_and_the_last_before_a_trial() {
    let mut receiver = Receiver::of(HostCosts::over(None), true);
    (0..TRIED).for_each(|_| _ = receiver.takes_both(400_000, 800_000));
    let mut timing = |is_read| {
        let measured = receiver
            .costs
            .arrives(3, receiver.class, LEN, [is_read, false]);
        measured.map(|measured| measured.counts)
    };
    assert_eq!(timing(false), Some(true));
    let timed: Vec<_> = (0..256).map(|_| timing(true)).collect();
    let recorded = timed.iter().filter(|counts| **counts == Some(true));
    assert_eq!((recorded.count(), timed.iter().flatten().count()), (32, 64));
    assert_eq!(timed.last(), Some(&Some(true)));
}

#[test]
fn packets_on_trial_while_own_messages_are_read_count_twice() {
    let class = Class::of(LEN, false, false);
    let shared = HostCosts::over(None);
    for (path, ps) in [(READ, 60), (PACKETS, 300)] {
        shared.store(Cost::Message(class, path), ps);
    }
    let mut costs = LearnedCosts::new(4, shared);
    let is_packets = |path| path == Protocol::Packets;
    for fetch in 0..8 {
        costs.clock.set = Some(fetch * LEN as u64);
        let settled = Ring::Settled;
        let mut measured = costs.choose(class, LEN, settled, Protocol::Packets, is_packets);
        costs.pair(&mut measured, true);
        costs.clock.set = Some(fetch * LEN as u64 + LEN as u64 / 2);
        costs.ended(measured);
    }
    let ps = |path| costs.times(class).find(|row| row.0 == path).unwrap().1;
    assert_eq!(
        (ps(Protocol::Packets), ps(Protocol::ReadRendezvous)),
        (1000, 60)
    );
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
