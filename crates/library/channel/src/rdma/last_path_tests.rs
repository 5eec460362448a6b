//! The last path to a peer is cut and mended under random traffic: nothing is lost, duplicated,
//! overtaken or stuck. A path that stays cut ends as one error at each end.
//!
//! Both ranks run in one thread, on the strict device.

use device::Placement;
use knobs::{QueuePairs, RailPolicy, RdmaDesign};
use testdevice::strict::{self, Cables, Cut, RailSetup, Setup};

use super::failover_tests::{Pair, Random};
use super::rail_tests::POLICIES;
use super::tests::DESIGNS;
use super::*;
use crate::{Transport, suite};

/// The acknowledgement timeout of the devices, in nanoseconds.
const TIMEOUT: u64 = 300_000;

/// The machine and the settings of one run.
#[derive(Clone, Copy, Debug)]
struct Plan {
    seed: u64,
    rails: usize,
    rings: [usize; 2],
    design: RdmaDesign,
    policy: RailPolicy,
    queue_pairs: QueuePairs,
    placement: Placement,
    resets: bool,
    patience: Patience,
}

fn plan_of(seed: u64) -> Plan {
    let mut random = Random(seed ^ 0x1a57);
    let rails = 1 + random.below(3) as usize;
    let rings = || [64, 1, 0];
    Plan {
        seed,
        rails,
        rings: [0; 2].map(|_| rings()[random.below(3) as usize]),
        design: match rails {
            1 => DESIGNS[random.below(4) as usize],
            _ => RdmaDesign::ZeroCopy,
        },
        policy: POLICIES[random.below(5) as usize],
        queue_pairs: match random.happens(4) {
            true => QueuePairs::Shared,
            false => QueuePairs::Separate,
        },
        placement: match random.happens(4) {
            true => Placement::Completion,
            false => Placement::Ordered,
        },
        resets: !random.happens(3),
        patience: Patience::default(),
    }
}

fn machine(plan: &Plan) -> ([Rdma; 2], Cables) {
    let mut setup = Setup {
        rails: plan.rails,
        delays: true,
        patient: true,
        inline: if plan.seed.is_multiple_of(3) { 0 } else { 64 },
        timeout_ns: TIMEOUT,
        seed: plan.seed,
        placement: plan.placement,
        ..Setup::default()
    };
    let usual = setup.of_rail(0);
    let kind = |rail: usize| RailSetup {
        resets: plan.resets,
        card: rail,
        domain: rail,
        ..usual.clone()
    };
    setup.of_rails = (0..plan.rails).map(kind).collect();
    let (nodes, cables) = strict::machine(2, &setup);
    let mut ends = nodes.into_iter().enumerate().map(|(rank, node)| {
        let config = Config {
            design: plan.design,
            ring_bytes: 16 << 10,
            chunk: 2 << 10,
            rings: plan.rings[rank],
            patience: plan.patience,
            rails: RailSettings {
                policy: plan.policy,
                stripe_above: 4 << 10,
                queue_pairs: plan.queue_pairs,
                local_rank: rank,
                ..RailSettings::default()
            },
            ..Config::default()
        };
        Rdma::attach(node, rank, 2, config).unwrap()
    });
    ([ends.next().unwrap(), ends.next().unwrap()], cables)
}

const CUTS: [Cut; 3] = [Cut::Silent, Cut::Down, Cut::Acknowledgements];

/// Cuts every rail, each at one of its ends.
fn cut_all(plan: &Plan, cables: &Cables, random: &mut Random) -> Vec<(usize, usize)> {
    let cuts = (0..plan.rails).map(|rail| (random.below(2) as usize, rail));
    let cuts: Vec<_> = cuts.collect();
    for (rank, rail) in &cuts {
        cables.cut(*rank, *rail, CUTS[random.below(3) as usize]);
    }
    cuts
}

fn run(plan: Plan) {
    let (ends, cables) = machine(&plan);
    let mut random = Random(plan.seed);
    let mut pair = Pair::new(ends);
    let mut cut: Vec<(usize, usize)> = Vec::new();
    let zero_copy = plan.design == RdmaDesign::ZeroCopy;
    for step in 0..4000 {
        let rank = random.below(2) as usize;
        match random.below(12) {
            // The first cuts may fall into the handshake.
            6 if random.happens(8) => match cut.is_empty() {
                true if step < 3500 => cut = cut_all(&plan, &cables, &mut random),
                true => (),
                false => {
                    // Not all rails return at once.
                    let (rank, rail) = cut.swap_remove(random.below(cut.len() as u64) as usize);
                    cables.mend(rank, rail);
                }
            },
            4 if !zero_copy => pair.step(rank, 9, &mut random),
            action => pair.step(rank, action, &mut random),
        }
    }
    for (rank, rail) in cut {
        cables.mend(rank, rail);
    }
    pair.finish(&format!("{plan:?}"));
}

#[test]
fn nothing_is_lost_while_the_last_path_fails_and_comes_back() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seeds = match number("SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SEEDS").unwrap_or(60),
    };
    for seed in seeds {
        let plan = plan_of(seed);
        println!("SEED={seed} {plan:?}");
        run(plan);
    }
}

/// Polls and waits as a rank does that has nothing else to do.
fn idle(end: &mut Rdma) -> Result<()> {
    suite::take(end, |_, _, _| ())?;
    end.wait(1_000)
}

#[test]
fn a_path_that_stays_cut_is_one_error_at_each_end() {
    for seed in 0..24 {
        let plan = Plan {
            patience: Patience {
                silence: Some(5_000_000),
                ..Patience::default()
            },
            ..plan_of(seed)
        };
        println!("SEED={seed} {plan:?}");
        let (ends, cables) = machine(&plan);
        let mut random = Random(seed);
        let mut pair = Pair::new(ends);
        (0..random.below(200)).for_each(|_| {
            let rank = random.below(2) as usize;
            pair.put(rank, 100);
            pair.poll_both();
        });
        // Cuts of acknowledgements only are left out, because datagrams would pass.
        for rail in 0..plan.rails {
            cables.cut(
                random.below(2) as usize,
                rail,
                CUTS[random.below(2) as usize],
            );
        }
        pair.put(random.below(2) as usize, 8);
        let mut errors = [0; 2];
        let begin = std::time::Instant::now();
        let mut more = 200;
        while errors != [1; 2] || more > 0 {
            more -= u32::from(errors == [1; 2]);
            for (rank, errors) in errors.iter_mut().enumerate() {
                if let Err(error) = idle(&mut pair.ends[rank]) {
                    assert_eq!(error.lost_peer(), Some(1 - rank), "{error}");
                    let text = error.to_string();
                    assert!(text.contains(&format!("rank {}", 1 - rank)), "{text}");
                    *errors += 1;
                }
                let put = pair.ends[rank].put(1 - rank, [0; 3], 0, |_| ()).unwrap();
                assert!(*errors == 0 || put == crate::Put::Full);
            }
            assert!(
                begin.elapsed().as_secs() < 20,
                "errors {errors:?}: {plan:?}"
            );
        }
        assert_eq!(errors, [1; 2]);
        // The network returns too late: a lost peer stays lost.
        (0..plan.rails).for_each(|rail| (0..2).for_each(|rank| cables.mend(rank, rail)));
        for _ in 0..200 {
            (0..2).for_each(|rank| idle(&mut pair.ends[rank]).unwrap());
        }
        for rank in 0..2 {
            assert!(
                pair.ends[rank].close().unwrap(),
                "nothing is left to be closed"
            );
        }
    }
}

/// Only one end gives up: the other one learns of it when the network returns.
#[test]
fn a_peer_that_gave_up_says_so() {
    for seed in 0..12 {
        let plan = plan_of(seed);
        let (ends, cables) = machine(&plan);
        let mut pair = Pair::new(ends);
        pair.ends[0].connections.local.config.patience.silence = Some(2_000_000);
        pair.put(0, 8);
        while !pair.is_idle() || !pair.is_whole() {
            pair.poll_both();
        }
        (0..plan.rails).for_each(|rail| cables.cut(0, rail, Cut::Silent));
        pair.put(0, 8);
        let begin = std::time::Instant::now();
        let hear = |rank: usize, pair: &mut Pair| loop {
            if let Err(error) = idle(&mut pair.ends[rank]) {
                return error;
            }
            assert!(begin.elapsed().as_secs() < 20, "rank {rank}: {plan:?}");
        };
        let first = hear(0, &mut pair);
        assert!(first.to_string().contains("no sign of life"), "{first}");
        (0..plan.rails).for_each(|rail| cables.mend(0, rail));
        let second = hear(1, &mut pair);
        assert!(second.to_string().contains("given up"), "{second}");
    }
}
