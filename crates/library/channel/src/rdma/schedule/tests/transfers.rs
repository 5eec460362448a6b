//! Bulk transfers over simulated links.

use super::simulator::{Simulator, Wire};
use super::{FAST, LATENCY, MIB, MS, SOON, adaptive, link, links, schedule};
use crate::rdma::schedule::{Assignment, LinkTraits, Schedule};
use knobs::RailPolicy;

/// The latency that devices over TCP state, in nanoseconds.
const POLLED_LATENCY: u64 = 15_000;

/// A simulator over links whose attributes are true.
fn honest(bandwidths: &[u64]) -> Simulator {
    let wires = bandwidths.iter().map(|&rate| Wire::new(rate)).collect();
    Simulator::new(adaptive(bandwidths), wires)
}

/// The bandwidth of `count` transfers of `len` bytes with `window` of them at a time, in bytes per
/// second.
fn stream(simulator: &mut Simulator, len: u64, count: usize, window: usize) -> f64 {
    let begin = simulator.now;
    simulator.play(std::iter::repeat_n(len, count), window);
    let end = simulator
        .arrivals
        .iter()
        .map(|arrival| arrival.0)
        .max()
        .unwrap();
    (len * count as u64) as f64 * 1e9 / (end - begin) as f64
}

/// The mean time of transfers of `len` bytes, one at a time, in nanoseconds.
fn latency(simulator: &mut Simulator, len: u64) -> f64 {
    let times = simulator.play(std::iter::repeat_n(len, 20), 1);
    times.iter().sum::<u64>() as f64 / times.len() as f64
}

/// Lengths from 1 B to 4 MiB: powers of two, and points between them.
fn sizes() -> impl Iterator<Item = u64> {
    (0..=22).flat_map(|power| {
        let size = 1u64 << power;
        [size, size + size / 8 * 3, size + size / 4 * 3]
    })
}

#[test]
fn links_of_unequal_speed_carry_95_per_cent_of_their_sum() {
    for ratio in [1, 2, 3, 4, 8, 16] {
        let rates = [FAST, FAST / ratio];
        let sum: u64 = rates.iter().sum();
        for order in [[0, 1], [1, 0]] {
            let mut simulator = honest(&order.map(|link: usize| rates[link]));
            let single = stream(&mut simulator, 4 * MIB, 20, 1) / sum as f64;
            let many = stream(&mut simulator, 4 * MIB, 100, 16) / sum as f64;
            assert!(single > 0.95 && many > 0.97, "1:{ratio}: {single} {many}");
        }
    }
}

#[test]
fn a_slow_link_never_makes_a_transfer_slower() {
    for ratio in [2, 3, 4, 7, 10, 20, 40, 63, 64, 65, 100, 1000, 100_000] {
        for len in sizes() {
            let alone = latency(&mut honest(&[FAST]), len);
            let with = latency(&mut honest(&[FAST, FAST / ratio]), len);
            let second = latency(&mut honest(&[FAST / ratio, FAST]), len);
            assert!(alone / with > 0.99, "1:{ratio}, {len} B: {alone} {with}");
            assert!(
                alone / second > 0.99,
                "{ratio}:1, {len} B: {alone} {second}"
            );
        }
    }
}

#[test]
fn a_slow_link_never_makes_a_stream_slower() {
    for ratio in [2, 4, 10, 50, 100, 1000] {
        for len in sizes().filter(|&len| len >= 2048) {
            let count = (64 * MIB / len).min(1000) as usize;
            let alone = stream(&mut honest(&[FAST]), len, count, 64);
            let with = stream(&mut honest(&[FAST, FAST / ratio]), len, count, 64);
            assert!(with / alone > 0.99, "1:{ratio}, {len} B: {alone} {with}");
        }
    }
}

#[test]
fn a_short_transfer_leaves_the_home_link_for_a_clear_gain_only() {
    let time = |bytes: u64| bytes * 1_000_000_000 / FAST;
    // A backlog that the home link works off while the processor goes to the other card and back.
    let mut schedule = adaptive(&[FAST; 2]);
    schedule.posted(0, 2048, 1000);
    assert!(time(2048) < 660);
    let on = |assignment: Assignment| match assignment {
        Assignment::Final(shares) => shares.iter().position(|&share| share > 0),
        other => panic!("{other:?}"),
    };
    assert_eq!(on(schedule.assign(2048, 1000)), Some(0));
    schedule.posted(0, 2048, 1000);
    assert_eq!(on(schedule.assign(2048, 1000)), Some(1), "two are ahead");
    // A home link that is slower without any backlog has no such excuse.
    let mut late = links(&[FAST; 2]);
    late[0].bandwidth = FAST / 2;
    late[1].latency_ns = LATENCY + time(2048) + 100;
    let mut schedule = super::schedule(RailPolicy::Adaptive, &late);
    assert_eq!(schedule.home(), 0);
    assert_eq!(on(schedule.assign(2048, 1000)), Some(0));
    assert_eq!(on(schedule.assign(8000, 1000)), Some(1), "sooner there");
}

#[test]
fn late_polls_of_short_transfers_lower_no_estimate() {
    // Each transfer is alone on the link, and done before the next one is posted. Polls come late
    // by as much as a fresh one may.
    let mut schedule = adaptive(&[FAST; 2]);
    let before = schedule.links.all[0].estimate.bandwidth();
    let mut now = 1_000_000;
    schedule.posted(0, 2048, now);
    for _ in 0..1000 {
        now += 4_900;
        // The post before this one has come meanwhile; the poll finds it 1.9 us late.
        schedule.posted(0, 2048, now - 3_100);
        schedule.completed(0, 2048, now, SOON);
    }
    let after = schedule.links.all[0].estimate.bandwidth();
    assert!(after >= before, "{before} {after}");
}

#[test]
fn eight_equal_links_carry_eight_times_one() {
    let one = stream(&mut honest(&[FAST]), 4 * MIB, 20, 1);
    let mut simulator = honest(&[FAST; 8]);
    let eight = stream(&mut simulator, 4 * MIB, 20, 1);
    assert!(eight / one > 0.95 * 8.0, "{}", eight / one);
    let many = stream(&mut simulator, 4 * MIB, 200, 64);
    assert!(many / FAST as f64 > 0.95 * 8.0, "{}", many / FAST as f64);
}

#[test]
fn links_of_a_latency_that_no_device_states_carry_their_sum() {
    // Devices over TCP state a latency of a machine room, and the speed of an interface.
    let stated = |bandwidth| LinkTraits {
        bandwidth,
        latency_ns: 15_000,
        card: 0,
        polled: true,
    };
    for rates in [[6_000_000; 2], [3_000_000, 12_000_000]] {
        for (latency, wake) in [
            (200_000, 0),
            (2 * MS, 0),
            (2 * MS, 50_000),
            (20 * MS, 50_000),
        ] {
            for speed in [1_200_000, 1_200_000_000] {
                let all = [0, 1].map(|card| LinkTraits {
                    card,
                    ..stated(speed)
                });
                let wires = rates.map(|rate| Wire::new(rate).long(latency));
                let schedule = schedule(RailPolicy::Adaptive, &all);
                let mut simulator = Simulator::new(schedule, wires.into());
                simulator.wake = wake;
                stream(&mut simulator, MIB, 40, 4);
                let found = stream(&mut simulator, MIB, 40, 4) / rates.iter().sum::<u64>() as f64;
                let context =
                    format!("{rates:?}, {latency} ns, {wake} ns, stated {speed}: {found}");
                assert!(found > 0.9, "{context}");
            }
        }
    }
}

/// Links of devices that are polled, such as TCP, on wires that carry what is stated.
fn polled(bandwidths: &[u64]) -> Simulator {
    let traits = |(card, &bandwidth): (usize, &u64)| LinkTraits {
        bandwidth,
        latency_ns: POLLED_LATENCY,
        card,
        polled: true,
    };
    let all: Vec<LinkTraits> = bandwidths.iter().enumerate().map(traits).collect();
    let wires = bandwidths.iter().map(|&rate| Wire::new(rate));
    let wires = wires.map(|wire| wire.long(POLLED_LATENCY)).collect();
    Simulator::new(schedule(RailPolicy::Adaptive, &all), wires)
}

#[test]
fn two_links_to_a_peer_that_loses_its_processor_carry_as_much_as_one() {
    const RATE: u64 = 1_200_000_000;
    for (away, wake) in [(MS, 0), (3 * MS, 0), (3 * MS, 50_000), (10 * MS, 0)] {
        for len in [64 << 10, MIB] {
            let carried = |links: usize| {
                let mut simulator = polled(&vec![RATE; links]);
                let window = (4 * MIB / len) as usize;
                stream(&mut simulator, len, 10 * window, window);
                (simulator.wake, simulator.away) = (wake, away);
                stream(&mut simulator, len, 10 * window, window);
                stream(&mut simulator, len, 20 * window, window)
            };
            let found = carried(2) / carried(1);
            assert!(found > 0.95, "{len} B, {away} ns, {wake} ns: {found}");
        }
    }
}

#[test]
fn a_horizon_returns_when_the_peer_keeps_its_processor() {
    let mut simulator = polled(&[120_000_000; 2]);
    let mut after = |away| {
        simulator.away = away;
        stream(&mut simulator, 64 << 10, 100, 1);
        simulator.schedule.links.all[1].horizon_time()
    };
    let before = after(0);
    let (meanwhile, afterwards) = (after(3 * MS), after(0));
    assert!(
        meanwhile > 3 * MS && afterwards == before,
        "{before} {meanwhile} {afterwards}"
    );
}

#[test]
fn long_work_on_a_slow_polled_link_does_not_raise_its_horizon() {
    // The link carries a hundredth of what its device states.
    let mut simulator = polled(&[1_200_000_000; 2]);
    simulator.wires[1] = Wire::new(12_000_000).long(POLLED_LATENCY);
    for (len, window) in [(4 * MIB, 1), (64 << 10, 1), (4 * MIB, 16)] {
        stream(&mut simulator, len, 200, window);
        let horizon = simulator.schedule.links.all[1].horizon();
        assert!(horizon <= 16 << 10, "{len} B: {horizon} B");
    }
}

/// Plays a stream during which the second of two equal links has a tenth of its rate for a while.
fn dip(mut simulator: Simulator, len: u64, window: usize, least_after: f64) {
    let begin = 1_000_000_000;
    let (falls, returns) = (begin + 20 * MS, begin + 60 * MS);
    let rates = vec![(0, FAST), (falls, FAST / 10), (returns, FAST)];
    simulator.wires[1] = Wire::varying(rates).long(simulator.wires[0].latency);
    let count = (600 * MIB / len) as usize;
    stream(&mut simulator, len, count, window);
    let whole = 2.0 * FAST as f64;
    let before = simulator.bandwidth(begin + 10 * MS, falls) / whole;
    let within = simulator.bandwidth(falls + MS, falls + 11 * MS) / (0.55 * whole);
    let after = simulator.bandwidth(returns + 2 * MS, returns + 12 * MS) / whole;
    let context = format!("{len} B: {before} {within} {after}");
    assert!(
        before > 0.95 && within > 0.9 && after > least_after,
        "{context}"
    );
}

#[test]
fn a_link_that_falls_to_a_tenth_is_left_and_used_again_when_it_returns() {
    for (len, window) in [(64 << 10, 64), (MIB, 16), (4 * MIB, 64), (4 * MIB, 2)] {
        dip(honest(&[FAST; 2]), len, window, 0.9);
        // The return of a link of ten times the latency is noticed later.
        dip(polled(&[FAST; 2]), len, window, 0.7);
    }
}

#[test]
fn a_link_that_stops_completing_is_given_no_more_than_its_horizon() {
    for ratio in [1, 10] {
        let mut schedule = adaptive(&[FAST, FAST / ratio]);
        let mut given = [0; 2];
        let mut left = 64 * MIB;
        for step in 0.. {
            let now = MS + step * 1000;
            match schedule.assign(left, now) {
                Assignment::Piece { link, len } => {
                    schedule.posted(link, len, now);
                    given[link] += len;
                    left -= len;
                }
                other => {
                    assert_eq!(other, Assignment::Wait);
                    break;
                }
            }
        }
        for (link, rate) in [FAST, FAST / ratio].into_iter().enumerate() {
            let horizon = rate / 10_000;
            assert!(given[link] <= horizon, "{} > {horizon}", given[link]);
            assert!(given[link] > horizon / 2, "{} of {horizon}", given[link]);
        }
        // Time alone gives no room.
        let late = schedule.assign(left, 1000 * MS);
        assert_eq!(late, Assignment::Wait);
    }
}

/// The share of each link: its bandwidth divided by the sum.
fn shares(schedule: &Schedule) -> Vec<f64> {
    let all = &schedule.links.all;
    let bandwidths = || all.iter().map(|link| link.estimate.bandwidth() as f64);
    let sum: f64 = bandwidths().sum();
    bandwidths().map(|bandwidth| bandwidth / sum).collect()
}

#[test]
fn shares_settle_within_5_per_cent_and_stay_for_100_000_messages() {
    for (rates, len, window) in [
        (vec![FAST, FAST], 64 << 10, 8),
        (vec![FAST, FAST / 3], 256 << 10, 1),
        (vec![FAST, FAST / 2, FAST / 4], 40_000, 32),
    ] {
        let wires = rates
            .iter()
            .map(|&rate| Wire::new(rate).noisy(10))
            .collect();
        let mut simulator = Simulator::new(adaptive(&rates), wires);
        let sum: u64 = rates.iter().sum();
        for round in 0..1000 {
            simulator.play(std::iter::repeat_n(len, 100), window);
            simulator.arrivals.clear();
            for (share, &rate) in shares(&simulator.schedule).iter().zip(&rates) {
                let ratio = share / (rate as f64 / sum as f64);
                let context = format!("{rates:?}, round {round}: {ratio}");
                assert!((0.95..1.05).contains(&ratio), "{context}");
            }
        }
    }
}

#[test]
fn wrong_attributes_are_corrected() {
    for wrong in [4.0, 0.25] {
        for (len, window) in [(64 << 10, 16), (4 * MIB, 1), (4 * MIB, 16)] {
            let stated = [FAST, (FAST as f64 * wrong) as u64];
            let wires = vec![Wire::new(FAST), Wire::new(FAST)];
            let mut simulator = Simulator::new(adaptive(&stated), wires);
            stream(&mut simulator, len, (256 * MIB / len) as usize, window);
            let found = shares(&simulator.schedule);
            let context = format!("{wrong}, {len} B, {window}: {found:?}");
            assert!((0.475..0.525).contains(&found[0]), "{context}");
        }
    }
}

#[test]
fn a_share_changes_by_a_quarter_per_ten_completions_at_most() {
    let mut schedule = adaptive(&[FAST; 3]);
    let mut history: Vec<Vec<f64>> = Vec::new();
    let mut most: f64 = 1.0;
    let mut now = 1000 * MS;
    for step in 0..6000u64 {
        // One link is much faster than the others, then much slower.
        let link = (step % 3) as usize;
        let rate = match (step / 1000 % 2 == 0) == (link == 0) {
            true => FAST * 8,
            false => FAST / 8,
        };
        schedule.posted(link, MIB, now);
        now += 2 * LATENCY + MIB * 1_000_000_000 / rate;
        schedule.completed(link, MIB, now, SOON);
        history.push(shares(&schedule));
        let before = &history[history.len().saturating_sub(11)];
        for (old, new) in before.iter().zip(history.last().unwrap()) {
            most = most.max(new / old);
            assert!((0.75..=1.25).contains(&(new / old)), "{old} {new}");
        }
    }
    assert!(most > 1.2, "the bound is used: {most}");
}

#[test]
fn an_unused_link_that_has_become_fast_is_found() {
    let stated = [FAST, FAST / 200];
    let mut simulator = Simulator::new(adaptive(&stated), vec![Wire::new(FAST), Wire::new(FAST)]);
    stream(&mut simulator, 4 * MIB, 1500, 1);
    let bandwidth = stream(&mut simulator, 4 * MIB, 20, 1) / FAST as f64;
    assert!(bandwidth > 1.9, "{bandwidth}");
}

/// Two ports of one card whose slot carries `slot` bytes per second.
fn two_ports(slot: u64) -> Simulator {
    let ports: Vec<LinkTraits> = (0..2).map(|_| link(0, FAST)).collect();
    let wires = (0..2).map(|_| Wire::new(FAST).behind(0)).collect();
    Simulator::new(schedule(RailPolicy::Adaptive, &ports), wires).with_slots(&[slot])
}

#[test]
fn two_ports_of_a_card_carry_what_their_slot_does() {
    for slot in [FAST, FAST * 3 / 2, FAST * 2] {
        let mut simulator = two_ports(slot);
        stream(&mut simulator, 4 * MIB, 100, 16);
        let bandwidth = stream(&mut simulator, 4 * MIB, 50, 16) / slot as f64;
        assert!(bandwidth > 0.95, "slot of {slot}: {bandwidth}");
    }
}

#[test]
fn a_dead_link_gets_nothing_and_a_mended_one_its_part() {
    let mut simulator = honest(&[FAST, FAST, FAST]);
    stream(&mut simulator, MIB, 20, 4);
    simulator.schedule.set_alive(0, false);
    assert_eq!(simulator.schedule.home(), 1);
    simulator.arrivals.clear();
    let two = stream(&mut simulator, 4 * MIB, 20, 4);
    assert!(simulator.arrivals.iter().all(|arrival| arrival.2 != 0));
    assert!(two > 1.9 * FAST as f64);
    simulator.schedule.set_alive(0, true);
    assert_eq!(simulator.schedule.home(), 0);
    let three = stream(&mut simulator, 4 * MIB, 20, 4);
    assert!(three > 2.8 * FAST as f64, "{}", three / FAST as f64);
}

#[test]
fn static_policies_share_as_their_names_say() {
    let of = |policy| schedule(policy, &links(&[FAST, FAST / 2, FAST]));
    let shares = |schedule: &mut Schedule, len| match schedule.assign(len, 0) {
        Assignment::Final(shares) => shares[..3].to_vec(),
        other => panic!("{other:?}"),
    };
    assert_eq!(shares(&mut of(RailPolicy::Single), MIB), [MIB, 0, 0]);
    let mut stripe = of(RailPolicy::Stripe);
    assert_eq!(shares(&mut stripe, 16 << 10), [16 << 10, 0, 0]);
    assert_eq!(shares(&mut stripe, (16 << 10) + 2), [5462, 5462, 5462]);
    assert_eq!(stripe.packet(100, || panic!("no clock")), 0);
    let mut turns = of(RailPolicy::RoundRobin);
    let dealt: Vec<usize> = (0..4)
        .map(|_| turns.packet(4096, || panic!("no clock")))
        .collect();
    assert_eq!(dealt, [0, 1, 2, 0]);
    assert_eq!(shares(&mut turns, 100), [0, 100, 0]);
    assert_eq!(shares(&mut turns, 30_001), [10_001, 10_000, 10_000]);
    turns.set_alive(1, false);
    let dealt: Vec<usize> = (0..4)
        .map(|_| turns.packet(4096, || panic!("no clock")))
        .collect();
    assert!(dealt.windows(2).all(|pair| pair[0] != pair[1]) && !dealt.contains(&1));
    assert_eq!(shares(&mut turns, 30_001), [15_001, 0, 15_000]);
}

#[test]
fn a_late_report_never_lowers_an_estimate_and_may_raise_it() {
    let mut schedule = adaptive(&[FAST, FAST / 10]);
    let bandwidths = |schedule: &Schedule| {
        let all = schedule.links.all.iter();
        all.map(|link| link.estimate.bandwidth())
            .collect::<Vec<_>>()
    };
    let before = bandwidths(&schedule);
    let mut now = MS;
    for _ in 0..300 {
        for link in [0, 1] {
            schedule.posted(link, MIB, now);
        }
        // The rank computes for 1 ms: each link carried 1 GB/s at least.
        now += MS;
        for link in [0, 1] {
            schedule.completed(link, MIB, now, None);
        }
    }
    let after = bandwidths(&schedule);
    assert_eq!(after[0], before[0]);
    let raised = after[1] as f64 / (MIB * 1000) as f64;
    assert!((0.95..1.05).contains(&raised), "{after:?}");
    // Work behind other work that was reported late took part of that work's time.
    schedule.posted(1, MIB, now);
    schedule.posted(1, MIB, now);
    schedule.completed(1, MIB, now + 10 * MS, None);
    schedule.completed(1, MIB, now + 10 * MS + 1, SOON);
    let last = schedule.links.all[1].estimate.pessimistic() as f64 / after[1] as f64;
    assert!((0.99..1.02).contains(&last), "{last}");
    // A late poll of one completion does not make the next one fast.
    let mut schedule = adaptive(&[FAST, FAST]);
    for round in 0..300 {
        let now = MS * (round + 1);
        schedule.posted(1, 20_000, now);
        schedule.posted(1, 20_000, now + 12_000);
        schedule.completed(1, 20_000, now + 14_500, SOON);
        schedule.completed(1, 20_000, now + 18_500, SOON);
    }
    assert!(
        bandwidths(&schedule)[1] < FAST * 21 / 20,
        "{:?}",
        bandwidths(&schedule)
    );
}

#[test]
fn transfers_are_split_when_that_ends_sooner() {
    let used = |schedule: &mut Schedule, len| match schedule.assign(len, MS) {
        Assignment::Final(shares) => shares.iter().filter(|&&share| share > 0).count(),
        other => panic!("{other:?}"),
    };
    for len in [1, 1000, 4096, 8191] {
        assert_eq!(used(&mut adaptive(&[FAST; 2]), len), 1, "{len} B");
    }
    for len in [12 << 10, 16 << 10, 40_000] {
        assert_eq!(used(&mut adaptive(&[FAST; 2]), len), 2, "{len} B");
        assert_eq!(used(&mut adaptive(&[FAST * 10; 2]), len / 4), 1, "{len} B");
        // Also behind others, where these are alike.
        let mut busy = adaptive(&[FAST; 2]);
        busy.posted(0, 100_000, MS);
        assert_eq!(used(&mut busy, len), 1, "{len} B");
        busy.posted(1, 100_000, MS);
        assert_eq!(used(&mut busy, len), 2, "{len} B");
    }
}

#[test]
fn a_probe_is_short_rare_and_hidden() {
    let mut simulator = honest(&[FAST, FAST / 200]);
    stream(&mut simulator, 4 * MIB, 100, 1);
    let mut probes: Vec<u64> = Vec::new();
    for &(arrival, bytes, link) in simulator.arrivals.iter().filter(|arrival| arrival.2 == 1) {
        assert_eq!((bytes, link), (4096, 1));
        probes.push(arrival);
    }
    assert!(probes.len() > 5, "{} probes in 120 ms", probes.len());
    assert!(
        probes.windows(2).all(|pair| pair[1] - pair[0] > 9 * MS),
        "{probes:?}"
    );
    // A message that the post of a probe would slow by more than 1 % gets none.
    let mut short = honest(&[FAST, FAST / 200]);
    stream(&mut short, 100_000, 1000, 1);
    assert!(short.arrivals.iter().all(|arrival| arrival.2 == 0));
}

#[test]
fn one_link_alone_has_no_horizon_and_several_have_one() {
    assert_eq!(adaptive(&[FAST]).room(0), u64::MAX);
    assert_eq!(
        adaptive(&[FAST]).assign(MIB, 0),
        adaptive(&[FAST]).assign(MIB, MS)
    );
    let mut two = adaptive(&[FAST, 1000]);
    assert_eq!((two.room(0), two.room(1)), (FAST / 10_000, 4096));
    two.posted(0, 300_000, 0);
    assert_eq!(two.room(0), FAST / 10_000 - 300_000);
    two.posted(0, MIB, 0);
    assert_eq!(two.room(0), 0);
    two.set_alive(0, false);
    two.set_alive(0, true);
    assert_eq!(
        two.room(0),
        FAST / 10_000,
        "nothing is posted on a link taken back"
    );
}

#[test]
fn explanations_name_every_choice_and_the_one_taken_is_the_soonest() {
    use crate::rdma::schedule::Choice;
    let schedule = adaptive(&[FAST, FAST / 2]);
    let predictions = schedule.explain(MIB);
    let choices: Vec<Choice> = predictions
        .iter()
        .map(|prediction| prediction.choice)
        .collect();
    let expected = [
        Choice::Split,
        Choice::Link(0),
        Choice::Link(1),
        Choice::EvenStripe,
    ];
    assert_eq!(choices, expected);
    let arrivals: Vec<u64> = predictions
        .iter()
        .map(|prediction| prediction.arrival_ns)
        .collect();
    assert!(
        arrivals[1..].iter().all(|&other| arrivals[0] < other),
        "{arrivals:?}"
    );
    let alone = MIB * 1_000_000_000 / FAST + LATENCY;
    assert!(arrivals[1].abs_diff(alone) < 2, "{arrivals:?}");
    // The prediction is what the simulator measures, but for the time to post.
    let measured = latency(&mut honest(&[FAST, FAST / 2]), MIB);
    let ratio = measured / arrivals[0] as f64;
    assert!((1.0..1.05).contains(&ratio), "{measured} {arrivals:?}");
    let stripe = super::schedule(RailPolicy::Stripe, &links(&[FAST; 2])).explain(MIB);
    assert_eq!(stripe[0].choice, Choice::EvenStripe);
}

#[test]
fn the_limit_of_long_messages_is_named() {
    // Each port states the bandwidth FAST. The ports share resources of the bandwidths `shared`.
    let limit = |cards: [usize; 2], wires: [Wire; 2], shared: &[u64]| {
        let traits = cards.map(|card| link(card, FAST));
        let schedule = schedule(RailPolicy::Adaptive, &traits);
        let mut simulator = Simulator::new(schedule, wires.into()).with_slots(shared);
        stream(&mut simulator, 4 * MIB, 100, 4);
        let taken = simulator.schedule.explain(4 * MIB)[0].shares;
        simulator.schedule.limit(&taken)
    };
    let wire = || Wire::new(FAST);
    assert_eq!(limit([0, 1], [wire(), wire()], &[]), Some("link"));
    let behind_one = || [wire().behind(0), wire().behind(0)];
    let shared = [FAST * 5 / 4];
    assert_eq!(limit([0, 0], behind_one(), &shared), Some("slot"));
    let of_host = limit([0, 1], behind_one(), &shared).unwrap();
    assert!(of_host.ends_with("memory or bus"), "{of_host}");
    let slower = [wire(), Wire::new(FAST / 2)];
    assert_eq!(
        limit([0, 1], slower, &[]),
        Some("a rail below its stated rate, or memory or bus")
    );
}

#[test]
fn fixed_deals_the_ranks_of_a_host_to_the_links() {
    for local_rank in 0..6 {
        let settings = super::RailSettings {
            local_rank,
            ..super::settings(RailPolicy::Fixed)
        };
        let mut schedule = Schedule::new(&settings, &links(&[FAST; 3]));
        assert_eq!(schedule.packet(5000, || panic!("no clock")), local_rank % 3);
        schedule.set_alive(local_rank % 3, false);
        let other = schedule.packet(5000, || panic!("no clock"));
        assert_ne!(other, local_rank % 3);
    }
}

/// The slot may have become slower than a link by itself would be, while its card has no work.
#[test]
fn the_first_piece_for_a_card_is_no_longer_than_the_horizon_of_its_slot() {
    let ports = [200_000_000; 2].map(|bandwidth| link(0, bandwidth));
    let mut schedule = schedule(RailPolicy::Adaptive, &ports);
    let mut slow = 200_000_000;
    while slow > 50_000_000 {
        let len = schedule.room(0).min(schedule.room(1));
        match schedule.assign(MIB, 0) {
            Assignment::Piece { len: piece, .. } => assert!(piece <= len, "{piece} in {len}"),
            other => panic!("{other:?}"),
        }
        let slot = &mut schedule.links.slots[0].estimate;
        slot.sample(1);
        slot.follow();
        slow = slot.bandwidth();
    }
}
