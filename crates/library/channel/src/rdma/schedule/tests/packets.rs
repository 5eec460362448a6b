//! Packets: the choice of the link and of when to read the clock.

use super::{FAST, LATENCY, RailSettings, SOON, Schedule, adaptive, links};
use knobs::{QueuePairs, RailPolicy};
use std::cell::Cell;

fn no_clock() -> u64 {
    panic!("the clock is read")
}

#[test]
fn a_single_packet_takes_the_home_link_without_a_clock() {
    let mut schedule = adaptive(&[FAST; 2]);
    for len in [0, 1, 8, 1694, 1695, 8192, 16 << 10] {
        assert_eq!(schedule.packet(len, no_clock), 0);
        schedule.idle();
    }
    for _ in 0..100 {
        assert_eq!(
            schedule.packet(1694, no_clock),
            0,
            "short ones never read it"
        );
    }
}

/// The number of readings of the clock for `count` packets of `len` bytes, one every 400 ns.
fn readings(schedule: &mut Schedule, len: usize, count: u64) -> u64 {
    let reads = Cell::new(0);
    for number in 0..count {
        let clock = || {
            reads.set(reads.get() + 1);
            5000 + 400 * number
        };
        schedule.packet(len, clock);
    }
    reads.get()
}

#[test]
fn the_clock_is_read_once_for_several_packets() {
    for (len, expected) in [(2048, 19), (4096, 43), (8192, 127), (12_000, 127)] {
        let mut schedule = adaptive(&[FAST; 2]);
        assert_eq!(readings(&mut schedule, len, 128), expected, "{len} B");
        schedule.idle();
        // The first packet of a burst needs no time, the second one does.
        assert_eq!(readings(&mut schedule, len, 1), 0, "{len} B");
        assert_eq!(readings(&mut schedule, len, 1), 1, "{len} B");
    }
}

#[test]
fn packets_that_leave_more_slowly_than_a_link_carries_them_stay_on_it() {
    let mut schedule = adaptive(&[FAST; 2]);
    let mut dealt = |from: u64| {
        let packet = |number| schedule.packet(1800, || number * 600);
        (from..from + 64)
            .map(packet)
            .filter(|&link| link != 0)
            .count()
    };
    dealt(0);
    assert_eq!(dealt(64), 0, "the pace is known");
    // At twice the pace one link is too slow.
    let mut schedule = adaptive(&[FAST; 2]);
    let other = (0..256).map(|number| schedule.packet(1800, || number * 300));
    let other = other.filter(|&link| link == 1).count();
    assert!((100..=150).contains(&other), "{other} of 256");
}

#[test]
fn packets_of_changing_lengths_find_no_backlog_that_is_not_there() {
    // Every packet has left before the next one, whichever link of 4:1 carried it.
    let mut schedule = adaptive(&[FAST, FAST / 4]);
    let mut now = 0;
    let mut slow = 0;
    for number in 0..400 {
        let (len, each) = match number % 4 {
            0 => (4500, 1400),
            _ => (2040, 700),
        };
        slow += usize::from(schedule.packet(len, || now) == 1);
        now += each;
    }
    assert_eq!(slow, 0, "of 400");
}

#[test]
fn a_pause_of_the_sender_hides_no_backlog_for_long() {
    let mut schedule = adaptive(&[FAST; 2]);
    let mut now = 0;
    let mut burst = |schedule: &mut Schedule, count: u64| {
        let mut packets = [0_u64; 2];
        for _ in 0..count {
            now += 100;
            packets[schedule.packet(1800, || now)] += 1;
        }
        now += 100_000;
        packets
    };
    burst(&mut schedule, 64);
    for _ in 0..5 {
        let [home, other] = burst(&mut schedule, 64);
        assert!(home.abs_diff(other) <= 16, "{home} {other}");
    }
}

#[test]
fn packets_behind_one_another_fill_equal_links() {
    let mut schedule = adaptive(&[FAST; 2]);
    let dealt: Vec<usize> = (0..32).map(|_| schedule.packet(8192, || 1000)).collect();
    let second = dealt.iter().filter(|&&link| link == 1).count();
    assert!((15..=17).contains(&second), "{dealt:?}");
}

/// The time at which the last of `count` packets arrives, in nanoseconds. They are posted every 100
/// ns, over links of these bandwidths.
fn arrival(bandwidths: &[u64], len: usize, count: u64) -> u64 {
    let mut schedule = adaptive(bandwidths);
    let mut free = vec![0; bandwidths.len()];
    let mut last = 0;
    for number in 0..count {
        let now = number * 100;
        let link = schedule.packet(len, || now);
        free[link] = now.max(free[link]) + len as u64 * 1_000_000_000 / bandwidths[link];
        last = last.max(free[link] + LATENCY);
    }
    last
}

#[test]
fn a_slow_link_delays_no_packet() {
    for ratio in [1, 2, 3, 5, 10, 100] {
        for len in [1, 512, 1024, 1500, 2048, 4096, 8192, 12 << 10] {
            for count in [1, 2, 3, 8, 64] {
                let alone = arrival(&[FAST], len, count);
                let with = arrival(&[FAST, FAST / ratio], len, count);
                let context = format!("1:{ratio}, {count} of {len} B: {alone} {with}");
                assert!(with as f64 <= alone as f64 * 1.01, "{context}");
            }
        }
        for len in [1, 512, 1024, 1500, 2048, 4096, 8192, 12 << 10] {
            let alone = arrival(&[FAST], len, 1);
            let with = arrival(&[FAST / ratio, FAST], len, 1);
            assert_eq!(with, alone, "1:{ratio}, slow first, {len} B");
        }
        let (alone, with) = (
            arrival(&[FAST], 8192, 64),
            arrival(&[FAST, FAST / ratio], 8192, 64),
        );
        let possible = alone as f64 / (1.0 + 1.0 / ratio as f64);
        assert!(
            with as f64 <= possible * 1.15,
            "1:{ratio}: {with} of {possible}"
        );
    }
}

#[test]
fn packets_avoid_links_with_bulk_work() {
    for queue_pairs in [QueuePairs::Shared, QueuePairs::Separate] {
        let settings = RailSettings {
            queue_pairs,
            ..super::settings(RailPolicy::Adaptive)
        };
        let mut schedule = Schedule::new(&settings, &links(&[FAST; 2]));
        schedule.posted(0, 100_000, 1000);
        assert_eq!(schedule.packet(4096, || 1000), 1);
        assert_eq!(schedule.packet(100, no_clock), 0, "short ones stay");
        // A second link of a tenth: the wire of the first is worth sharing, its queue is not worth
        // waiting in.
        let mut schedule = Schedule::new(&settings, &links(&[FAST, FAST / 10]));
        schedule.posted(0, 100_000, 1000);
        let expected = match queue_pairs {
            QueuePairs::Separate => 0,
            QueuePairs::Shared => 1,
        };
        assert_eq!(schedule.packet(8192, || 1000), expected);
    }
}

#[test]
fn packets_leave_a_dead_home_link() {
    let mut schedule = adaptive(&[FAST; 3]);
    schedule.packet(8192, no_clock);
    schedule.set_alive(0, false);
    for len in [8, 8192, 8192, 8192] {
        assert_ne!(schedule.packet(len, || 2000), 0);
    }
    schedule.set_alive(2, false);
    assert_eq!(
        schedule.packet(8192, no_clock),
        1,
        "one link needs no clock"
    );
}

#[test]
fn the_home_link_is_the_swiftest_live_one_by_its_attributes() {
    let mut schedule = adaptive(&[FAST / 4, FAST, FAST]);
    assert_eq!(schedule.home(), 1);
    assert_eq!(schedule.packet(8, no_clock), 1);
    schedule.set_alive(1, false);
    assert_eq!(schedule.home(), 2);
    schedule.set_alive(2, false);
    assert_eq!(schedule.home(), 0);
    schedule.set_alive(1, true);
    assert_eq!(schedule.home(), 1);
    // Estimates of one end do not count: the other end may have others.
    for step in 1..100 {
        schedule.posted(1, 1 << 20, step * 100_000_000);
        schedule.completed(1, 1 << 20, step * 100_000_000 + 50_000_000, SOON);
    }
    schedule.set_alive(2, true);
    assert_eq!(schedule.home(), 1);
    let fixed = super::schedule(RailPolicy::Single, &links(&[FAST / 4, FAST]));
    assert_eq!(fixed.home(), 0, "the first one");
}

#[test]
fn coalesced_packets_leave_a_link_for_a_clear_gain_only() {
    let mut schedule = adaptive(&[FAST; 2]);
    // 2 KiB take 0.6 us, which is not worth a change of the link; 8 KiB take 2.4 us.
    let dealt: Vec<usize> = (0..8).map(|_| schedule.coalesced(2048, || 1000)).collect();
    assert_eq!(dealt, [0; 8]);
    let dealt: Vec<usize> = (0..8).map(|_| schedule.coalesced(8192, || 1000)).collect();
    assert!(dealt.contains(&0) && dealt.contains(&1), "{dealt:?}");
    // Coalesced packets never take a link of a quarter, single ones do.
    let mut schedule = adaptive(&[FAST, FAST / 4]);
    let coalesced: Vec<usize> = (0..20).map(|_| schedule.coalesced(8192, || 1000)).collect();
    assert_eq!(coalesced, [0; 20]);
    assert!((0..20).any(|_| schedule.packet(8192, || 1000) == 1));
}
