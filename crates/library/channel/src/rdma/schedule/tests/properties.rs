//! Properties of every schedule, whatever its links and calls.

use knobs::{QueuePairs, RailPolicy};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::{LinkTraits, RailSettings, Schedule};
use crate::rdma::rail_set::MAX_RAILS;
use crate::rdma::rail_tests::POLICIES;
use crate::rdma::schedule::{Assignment, Policy};

/// A call on a schedule. Numbers of links are taken modulo the number of links.
#[derive(Clone, Copy, Debug)]
enum Call {
    Packet(usize),
    Idle,
    Transfer(u64),
    Complete { link: usize, fresh: bool },
    Alive { link: usize, alive: bool },
    Pass(u64),
}

fn extreme() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(1),
        Just(u64::MAX),
        1..100_000_000u64,
        any::<u64>()
    ]
}

fn traits() -> impl Strategy<Value = LinkTraits> {
    let traits = (extreme(), extreme(), 0..4usize, any::<bool>());
    traits.prop_map(|(bandwidth, latency_ns, card, polled)| LinkTraits {
        bandwidth,
        latency_ns,
        card,
        polled,
    })
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        any::<usize>().prop_map(Call::Packet),
        (0..20_000usize).prop_map(Call::Packet),
        Just(Call::Idle),
        extreme().prop_map(Call::Transfer),
        (any::<usize>(), any::<bool>()).prop_map(|(link, fresh)| Call::Complete { link, fresh }),
        (any::<usize>(), any::<bool>()).prop_map(|(link, fresh)| Call::Complete { link, fresh }),
        (any::<usize>(), any::<bool>()).prop_map(|(link, alive)| Call::Alive { link, alive }),
        extreme().prop_map(Call::Pass),
        (0..100_000u64).prop_map(Call::Pass),
    ]
}

fn settings() -> impl Strategy<Value = RailSettings> {
    // `Adaptive` is drawn most often, because it has the most rules.
    let policy = prop_oneof![Just(RailPolicy::Adaptive), select(&POLICIES[..])];
    let pairs = [QueuePairs::Separate, QueuePairs::Shared];
    (policy, 0..pairs.len(), any::<usize>(), 0..100_000usize).prop_map(
        move |(policy, queue_pairs, local_rank, stripe_above)| RailSettings {
            policy,
            queue_pairs: pairs[queue_pairs],
            local_rank,
            stripe_above,
            most: usize::MAX,
        },
    )
}

/// A schedule with a model of its links: those that are alive, and the work posted on each.
struct Player {
    schedule: Schedule,
    alive: Vec<bool>,
    posted: Vec<Vec<u64>>,
    now: u64,
}

impl Player {
    fn new(settings: &RailSettings, links: &[LinkTraits]) -> Player {
        Player {
            schedule: Schedule::new(settings, links),
            alive: vec![true; links.len()],
            posted: vec![Vec::new(); links.len()],
            now: 0,
        }
    }

    fn post(&mut self, link: usize, bytes: u64) {
        assert!(self.alive[link], "link {link} is dead");
        self.schedule.posted(link, bytes, self.now);
        self.posted[link].push(bytes);
    }

    /// Starts a transfer. Gives it up at the first wait, or after some pieces.
    fn transfer(&mut self, len: u64) -> Vec<Assignment> {
        let mut left = len;
        let mut assignments = Vec::new();
        for _ in 0..50 {
            let assignment = self.schedule.assign(left, self.now);
            assignments.push(assignment);
            match assignment {
                Assignment::Final(shares) => {
                    let sum: u128 = shares.iter().map(|&share| u128::from(share)).sum();
                    assert_eq!(sum, u128::from(left));
                    for link in (0..MAX_RAILS).filter(|&link| shares[link] > 0) {
                        self.post(link, shares[link]);
                    }
                    break;
                }
                Assignment::Piece { link, len } => {
                    assert!(len > 0 && len <= left);
                    let room = self.schedule.room(link);
                    let is_first = self.posted[link].is_empty();
                    assert!(len <= room || is_first && len <= 4096, "{len} in {room}");
                    self.post(link, len);
                    left -= len;
                    if left == 0 {
                        break;
                    }
                }
                Assignment::Wait => {
                    let has_work = |link: usize| self.posted[link].iter().any(|&post| post > 0);
                    assert!((0..self.alive.len()).any(has_work), "a wait without end");
                    break;
                }
            }
        }
        assignments
    }

    /// Makes a call. Returns the choices, which another player must repeat.
    fn play(&mut self, call: Call) -> Vec<Assignment> {
        let links = self.alive.len();
        match call {
            Call::Packet(len) => {
                let now = self.now;
                let link = self.schedule.packet(len, || now);
                assert!(self.alive[link], "link {link} is dead");
                return vec![Assignment::Piece { link, len: 0 }];
            }
            Call::Idle => self.schedule.idle(),
            Call::Transfer(len) => return self.transfer(len),
            Call::Complete { link, fresh } => {
                let link = link % links;
                if !self.posted[link].is_empty() {
                    let bytes = self.posted[link].remove(0);
                    let late = fresh.then_some(2_000);
                    self.schedule.completed(link, bytes, self.now, late);
                }
            }
            Call::Alive { link, alive } => {
                let link = link % links;
                let others = (0..links).any(|other| other != link && self.alive[other]);
                if self.alive[link] != alive && (alive || others) {
                    self.alive[link] = alive;
                    self.posted[link].clear();
                    self.schedule.set_alive(link, alive);
                }
            }
            Call::Pass(time) => self.now = self.now.saturating_add(time),
        }
        let home = self.alive.iter().position(|&alive| alive);
        match self.schedule.policy {
            Policy::Static(_) => assert_eq!(Some(self.schedule.home()), home),
            Policy::Adaptive(_) => assert!(self.alive[self.schedule.home()]),
        }
        Vec::new()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_choice_is_live_complete_and_repeatable(
        settings in settings(),
        links in vec(traits(), 1..=MAX_RAILS),
        calls in vec(call(), 1..80),
    ) {
        let mut one = Player::new(&settings, &links);
        let mut other = Player::new(&settings, &links);
        for call in calls {
            prop_assert_eq!(one.play(call), other.play(call));
            let predictions = one.schedule.explain(one.now);
            for prediction in &predictions {
                let sum: u128 = prediction.shares.iter().map(|&share| u128::from(share)).sum();
                prop_assert_eq!(sum, u128::from(one.now));
            }
        }
    }

    #[test]
    fn unknown_bandwidths_are_assumed_equal(
        count in 2..=MAX_RAILS,
        bandwidth in 1_000_000..100_000_000_000u64,
        len in 0..10_000_000u64,
    ) {
        let link = |card, bandwidth| LinkTraits { bandwidth, latency_ns: 1000, card, polled: false };
        let known: Vec<_> = (0..count).map(|card| link(card, bandwidth)).collect();
        let unknown: Vec<_> =
            (0..count).map(|card| link(card, if card == 1 { 0 } else { bandwidth })).collect();
        let assign = |links: &[LinkTraits]| {
            Schedule::new(&RailSettings::default(), links).assign(len, 5)
        };
        prop_assert_eq!(assign(&known), assign(&unknown));
    }
}
