//! Tests of the exchange for a whole job, by seeded simulation: any order of messages, agents that
//! die, and agents or launchers that violate the protocol.

use std::collections::VecDeque;
use std::ops::Range;

use pmi::FromLauncher;

use super::agent::Exchange;
use super::hub::Hub;
use super::{Down, Put, Up};

/// The number of values that each rank puts, each followed by a fence, with requests in between.
const ROUNDS: u64 = 4;

/// A generator of pseudo-random numbers from a seed (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

#[derive(Default)]
struct Rank {
    host: usize,
    /// The number of values that the rank has put.
    round: u64,
    /// The key whose value the rank waits for.
    wanted: Option<String>,
    in_fence: bool,
    /// The number of fences that have ended for this rank.
    fences: u64,
}

struct Job {
    numbers: Numbers,
    hub: Hub,
    agents: Vec<Exchange>,
    ranks: Vec<Rank>,
    /// The messages in flight from each agent to the launcher, and from the launcher to each agent.
    to_hub: Vec<VecDeque<Up>>,
    from_hub: Vec<VecDeque<Down>>,
    /// The number of messages that hosts have sent.
    sent: usize,
    dead: Option<usize>,
    /// True if the ranks of the simulated job request values.
    asks: bool,
}

fn key(rank: usize, round: u64) -> String {
    format!("key{round}.{rank}")
}

fn value(rank: usize, round: u64) -> String {
    format!("value{round}of{rank}")
}

impl Job {
    /// A job with `counts` ranks on the hosts.
    fn new(seed: u64, counts: &[usize], asks: bool) -> Job {
        let mut ranks = Vec::new();
        for (host, &count) in counts.iter().enumerate() {
            ranks.extend((0..count).map(|_| Rank {
                host,
                ..Rank::default()
            }));
        }
        let mut job = Job {
            numbers: Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            hub: Hub::new(counts),
            agents: Vec::new(),
            ranks,
            to_hub: counts.iter().map(|_| VecDeque::new()).collect(),
            from_hub: counts.iter().map(|_| VecDeque::new()).collect(),
            sent: 0,
            dead: None,
            asks,
        };
        let agents = (0..counts.len()).map(|host| Exchange::new(job.own(host), job.ranks.len()));
        job.agents = agents.collect();
        job
    }

    /// The ranks of one host of the simulated job.
    fn own(&self, host: usize) -> Range<usize> {
        let start = self.ranks.partition_point(|rank| rank.host < host);
        start..self.ranks.partition_point(|rank| rank.host <= host)
    }

    fn send_hub(&mut self) {
        for (host, down) in self.hub.take(|_| true) {
            self.sent += 1;
            self.from_hub[host].extend(down.frames());
        }
    }

    /// Sends an agent's pending messages.
    fn send(&mut self, host: usize) {
        let outbox = self.agents[host].take();
        assert_eq!(outbox.misuses, []);
        if !outbox.up.is_empty() {
            self.sent += 1;
            self.to_hub[host].extend(outbox.up.frames());
        }
        for (rank, line) in outbox.lines {
            let state = &mut self.ranks[rank];
            match line {
                FromLauncher::Fence => {
                    assert!(std::mem::replace(&mut state.in_fence, false));
                    state.fences += 1;
                    let number = state.fences;
                    let entered = |rank: &Rank| rank.fences >= number || rank.in_fence;
                    assert!(self.ranks.iter().all(entered), "a fence has ended early");
                }
                FromLauncher::Value { key, value } => {
                    assert_eq!(state.wanted.take().as_deref(), Some(&*key));
                    assert_eq!(value.replace("value", "key").replace("of", "."), key);
                }
                FromLauncher::Report => unreachable!("no launcher has asked"),
            }
        }
    }

    /// Lets a rank do its next step, if it is not waiting.
    fn step(&mut self, rank: usize) {
        let ranks = self.ranks.len();
        let state = &mut self.ranks[rank];
        let host = state.host;
        if state.wanted.is_some() || state.in_fence || self.dead == Some(host) {
            return;
        }
        let asks = self.asks && self.numbers.below(3) == 0;
        if asks && state.round > 0 {
            // A value of the present fence may not have been put yet; those of earlier ones have.
            let other = self.numbers.below(ranks);
            let wanted = key(other, 1 + self.numbers.below(state.round as usize) as u64);
            state.wanted = Some(wanted.clone());
            self.agents[host].get(rank, &wanted);
        } else if state.round == state.fences && state.round < ROUNDS {
            state.round += 1;
            let round = state.round;
            self.agents[host].put(rank, key(rank, round), value(rank, round));
        } else if state.round > state.fences {
            state.in_fence = true;
            self.agents[host].enter_fence(rank);
        }
        self.send(host);
    }

    /// Delivers the next message in one direction between an agent and the launcher, if there is
    /// one.
    fn deliver(&mut self, direction: usize) {
        let (host, is_up) = (direction / 2, direction.is_multiple_of(2));
        if is_up {
            if let Some(up) = self.to_hub[host].pop_front() {
                assert_eq!(self.hub.handle(host, up).unwrap(), []);
                self.send_hub();
            }
        } else if let Some(down) = self.from_hub[host].pop_front()
            && self.dead != Some(host)
        {
            self.agents[host].handle(down).unwrap();
            self.send(host);
        }
    }

    /// Lets all ranks do their next steps, and delivers all messages.
    fn step_all(&mut self) {
        (0..self.ranks.len()).for_each(|rank| self.step(rank));
        self.deliver_all();
    }

    fn deliver_all(&mut self) {
        for _ in 0..20 {
            (0..2 * self.agents.len()).for_each(|direction| self.deliver(direction));
        }
    }

    fn is_over(&self) -> bool {
        let over = |rank: &Rank| rank.fences == ROUNDS && rank.wanted.is_none();
        self.ranks.iter().all(over)
    }

    /// Runs the job to its end. Returns false if the job stops before. `dies`: an agent dies with
    /// its ranks.
    fn run(&mut self, dies: bool) -> bool {
        let death = 1 + self.numbers.below(600);
        for turn in 0..100_000 {
            if dies && turn == death {
                self.dead = Some(self.numbers.below(self.agents.len()));
            }
            match self.numbers.below(2) {
                0 => {
                    let rank = self.numbers.below(self.ranks.len());
                    self.step(rank);
                }
                _ => {
                    let direction = self.numbers.below(2 * self.agents.len());
                    self.deliver(direction);
                }
            }
            if turn > death && self.is_over() {
                return true;
            }
        }
        false
    }
}

#[test]
fn every_question_is_answered_and_every_fence_ends_in_any_order_of_messages() {
    for seed in 1..=60 {
        for hosts in [1, 4, 11] {
            let counts: Vec<usize> = (0..hosts).map(|host| 1 + host % 3).collect();
            let mut job = Job::new(seed, &counts, true);
            assert!(job.run(false), "seed {seed} hosts {hosts}");
        }
    }
}

/// A dead agent blocks fences: the launcher ends the job for its death, and no rank may pass a
/// fence before.
#[test]
fn no_fence_ends_without_a_dead_agent() {
    for seed in 1..=20 {
        let mut job = Job::new(seed, &[2; 7], true);
        let is_over = job.run(true);
        let dead = &job.ranks[job.own(job.dead.unwrap())];
        assert!(!is_over || dead.iter().all(|rank| rank.fences == ROUNDS));
        let entered = |rank: &Rank| rank.fences + u64::from(rank.in_fence);
        let most = dead.iter().map(entered).min().unwrap();
        assert!(
            job.ranks.iter().all(|rank| rank.fences <= most),
            "seed {seed}"
        );
    }
}

/// Agents that have nothing else to send exchange two messages with the launcher for each fence:
/// one carries its entry, the other its end with all values.
#[test]
fn a_fence_is_two_messages_for_each_host() {
    for hosts in [1, 5, 64] {
        let mut job = Job::new(77, &vec![3; hosts], false);
        for round in 1..=ROUNDS as usize {
            // One message of an agent carries the values of its ranks, the next one the fence.
            job.step_all();
            assert_eq!(job.sent, hosts * (3 * round - 2), "{hosts} {round}");
            job.step_all();
            assert_eq!(job.sent, hosts * 3 * round, "{hosts} {round}");
        }
        assert!(job.is_over());
    }
}

#[test]
fn lies_are_found_where_they_arrive() {
    let put = |by: usize| Up {
        puts: vec![Put {
            by,
            key: "k".into(),
            value: "v".into(),
        }],
        ..Up::default()
    };
    let fence = |number: u64| Up {
        fence: Some(number),
        ..Up::default()
    };
    let long = Up {
        gets: vec!["k".repeat(1000)],
        ..Up::default()
    };
    let begun = Up {
        begun: Some(2),
        ..Up::default()
    };
    // Host 2 has ranks 4 and 5.
    let lies = [
        put(0),
        put(6),
        put(usize::MAX),
        fence(0),
        fence(2),
        fence(u64::MAX),
        long,
        begun,
    ];
    for lie in lies {
        let mut hub = Hub::new(&[2; 6]);
        assert!(hub.handle(2, lie.clone()).is_err(), "{lie:?}");
    }
    let mut hub = Hub::new(&[2; 6]);
    hub.handle(2, fence(1)).unwrap();
    assert!(hub.handle(2, fence(1)).is_err());
    let mut agent = Exchange::new(0..2, 12);
    let ended = |number: u64| Down {
        fence: Some(number),
        ..Down::default()
    };
    assert!(agent.handle(ended(1)).unwrap_err().contains("no rank"));
    agent.enter_fence(0);
    assert!(
        agent
            .handle(ended(1))
            .unwrap_err()
            .contains("not all ranks")
    );
    agent.enter_fence(1);
    assert!(agent.handle(ended(2)).is_err());
    agent.handle(ended(1)).unwrap();
    assert!(agent.handle(ended(1)).is_err());
}

#[test]
fn misuses_are_named() {
    let mut agent = Exchange::new(0..2, 2);
    agent.put(0, "k".into(), "1".into());
    agent.put(1, "k".into(), "2".into());
    agent.get(1, "");
    agent.enter_fence(0);
    agent.enter_fence(0);
    let misuses = agent.take().misuses;
    let named: Vec<usize> = misuses.iter().map(|misuse| misuse.rank).collect();
    assert_eq!(named, [1, 1, 0]);
    assert!(misuses[0].why.contains("put by rank 0"));
    assert!(misuses[2].why.contains("complete"));
}

/// An agent without ranks, as after an order that was refused, enters no fence.
#[test]
fn no_ranks_enter_no_fence() {
    let mut agent = Exchange::new(0..0, 0);
    assert!(agent.take().up.is_empty());
}

/// Once a rank has ended, the launcher is notified of each fence that begins, and knows which ranks
/// are missing in it.
#[test]
fn a_rank_that_has_left_a_fence_out_is_known() {
    let mut job = Job::new(5, &[1; 7], false);
    let fences = job.agents[6].end(6);
    job.hub.end(6, fences);
    job.send_hub();
    job.deliver_all();
    assert!(!job.hub.fence_waits_for(6));
    job.agents[4].enter_fence(4);
    job.send(4);
    job.deliver_all();
    assert!(job.hub.fence_waits_for(6) && !job.hub.fence_waits_for(5));
}
