//! The exchange of a whole job under seeded simulation: every order of messages, links that break,
//! agents that repeat themselves, die or lie.

use std::collections::VecDeque;

use pmi::FromLauncher;

use super::agent::Exchange;
use super::root::Root;
use super::shape::Shape;
use super::{Down, FencePart, Put, Up};

/// The rounds of each rank: a value, questions, a fence.
const ROUNDS: u64 = 4;

/// A generator of numbers from a seed (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

/// The behaviour of a simulated job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Course {
    /// The tree is made some time.
    Tree,
    /// No tree can be made.
    Star,
    /// The tree is made, and a link of it breaks.
    Breaks,
    /// The tree is made, and agents send each message twice.
    Repeats,
    /// The tree is made, and an agent dies with its ranks.
    Dies,
}

/// A message on the stream from the launcher.
enum Order {
    Down(Down),
    Use,
    Leave,
}

#[derive(Default)]
struct Rank {
    /// The number of values that it has put.
    round: u64,
    /// The key that it waits for.
    wanted: Option<String>,
    in_fence: bool,
    /// The number of fences that it has seen end.
    fences: u64,
}

struct Job {
    course: Course,
    numbers: Numbers,
    shape: Shape,
    root: Root,
    agents: Vec<Exchange>,
    ranks: Vec<Rank>,
    /// The streams of each agent, and its connection to its parent.
    to_root: Vec<VecDeque<Up>>,
    from_root: Vec<VecDeque<Order>>,
    to_parent: Vec<VecDeque<Up>>,
    from_parent: Vec<VecDeque<Down>>,
    /// Whether the connection to the parent is lost.
    is_cut: Vec<bool>,
    uses: Vec<bool>,
    /// Messages that have been sent, not counting those of the star.
    sent: usize,
    dead: Option<usize>,
    asks: bool,
}

fn key(rank: usize, round: u64) -> String {
    format!("key{round}.{rank}")
}

fn value(rank: usize, round: u64) -> String {
    format!("value{round}of{rank}")
}

impl Job {
    fn new(course: Course, seed: u64, shape: Shape, asks: bool) -> Job {
        let agents = 0..shape.agents();
        let part = |host: usize| {
            let below = shape.children(host).map(|child| shape.subtree(child));
            Exchange::new(
                shape.own(host),
                below.collect(),
                shape.ranks(),
                shape.is_tree(),
            )
        };
        fn queues<T>(agents: usize) -> Vec<VecDeque<T>> {
            (0..agents).map(|_| VecDeque::new()).collect()
        }
        Job {
            course,
            numbers: Numbers(seed | 1),
            root: Root::new(shape.clone()),
            agents: agents.clone().map(part).collect(),
            ranks: (0..shape.ranks()).map(|_| Rank::default()).collect(),
            to_root: queues(agents.len()),
            from_root: queues(agents.len()),
            to_parent: queues(agents.len()),
            from_parent: queues(agents.len()),
            is_cut: vec![false; agents.len()],
            uses: vec![false; agents.len()],
            sent: 0,
            dead: None,
            asks,
            shape,
        }
    }

    /// The launcher orders a tree, or a star.
    fn order(&mut self, tree: bool) {
        for queue in &mut self.from_root {
            queue.push_back(if tree { Order::Use } else { Order::Leave });
        }
        match tree {
            true => self.root.use_tree(),
            false => self.root.use_star(),
        }
        self.send_root();
    }

    fn send_root(&mut self) {
        for (host, down) in self.root.take(|_| true) {
            self.sent += usize::from(self.shape.top().contains(&host));
            let frames = down.frames().into_iter().map(Order::Down);
            self.from_root[host].extend(frames);
        }
    }

    /// Sends what an agent has to say.
    fn send(&mut self, host: usize) {
        let outbox = self.agents[host].take();
        assert_eq!(outbox.misuses, []);
        let again = 1 + usize::from(self.course == Course::Repeats);
        if !outbox.up.is_empty() {
            self.sent += 1;
            let queue = match self.uses[host] && self.shape.parent(host).is_some() {
                true if self.is_cut[host] => None,
                true => Some(&mut self.to_parent[host]),
                false => Some(&mut self.to_root[host]),
            };
            if let Some(queue) = queue {
                (0..again).for_each(|_| queue.extend(outbox.up.clone().frames()));
            }
        }
        for (place, down) in outbox.down {
            let child = self.shape.children(host).start + place;
            self.sent += 1;
            if !self.is_cut[child] {
                self.from_parent[child].extend(down.frames());
            }
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

    /// A rank does its next step, if it can.
    fn step(&mut self, rank: usize) {
        let host = (0..self.shape.agents()).find(|&host| self.shape.own(host).contains(&rank));
        let host = host.expect("every rank has a host");
        let state = &mut self.ranks[rank];
        if state.wanted.is_some() || state.in_fence || self.dead == Some(host) {
            return;
        }
        let asks = self.asks && self.numbers.below(3) == 0;
        if asks && state.round > 0 {
            // A value of this round may not have been put yet; one of an earlier round has.
            let other = self.numbers.below(self.shape.ranks());
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

    /// Delivers a message of one connection, if there is one.
    fn deliver(&mut self, connection: usize) {
        let (host, kind) = (connection / 4, connection % 4);
        let of_dead = self.dead == Some(host);
        match kind {
            0 => {
                if let Some(up) = self.to_root[host].pop_front() {
                    assert_eq!(self.root.hear(host, up).unwrap(), []);
                    self.send_root();
                }
            }
            1 => match self.from_root[host].pop_front() {
                None => return,
                Some(_) if of_dead => {}
                Some(Order::Down(down)) => self.agents[host].hear_parent(down).unwrap(),
                Some(Order::Use) => {
                    self.uses[host] = true;
                    self.agents[host].use_tree();
                }
                Some(Order::Leave) => {
                    self.uses[host] = false;
                    self.agents[host].use_star();
                    self.cut(host);
                    self.shape.children(host).for_each(|child| self.cut(child));
                }
            },
            2 => {
                let parent = self.shape.parent(host);
                if let (Some(up), Some(parent)) = (self.to_parent[host].pop_front(), parent)
                    && self.dead != Some(parent)
                {
                    let place = host - self.shape.children(parent).start;
                    self.agents[parent].hear_child(place, up).unwrap();
                    self.send(parent);
                }
            }
            _ => {
                if let Some(down) = self.from_parent[host].pop_front()
                    && !of_dead
                {
                    self.agents[host].hear_parent(down).unwrap();
                }
            }
        }
        if !of_dead {
            self.send(host);
        }
    }

    fn cut(&mut self, host: usize) {
        self.is_cut[host] = true;
        self.to_parent[host].clear();
        self.from_parent[host].clear();
    }

    fn is_over(&self) -> bool {
        let over = |rank: &Rank| rank.fences == ROUNDS && rank.wanted.is_none();
        self.ranks.iter().all(over)
    }

    /// Runs the job to its end. False: it has come to a halt.
    fn run(&mut self) -> bool {
        let agents = self.shape.agents();
        let decided = self.numbers.below(200);
        let fault = decided + 1 + self.numbers.below(600);
        let left = fault + self.numbers.below(200);
        for turn in 0..400_000 {
            if turn == decided && self.shape.is_tree() {
                self.order(self.course != Course::Star);
            }
            let victim = self.shape.top().end + self.numbers.below(agents - self.shape.top().end);
            match self.course {
                Course::Breaks if turn == fault => self.cut(victim),
                Course::Breaks | Course::Dies if turn == left => self.order(false),
                Course::Dies if turn == fault => self.dead = Some(victim),
                _ => {}
            }
            match self.numbers.below(2) {
                0 => {
                    let rank = self.numbers.below(self.ranks.len());
                    self.step(rank);
                }
                _ => {
                    let connection = self.numbers.below(4 * agents);
                    self.deliver(connection);
                }
            }
            if turn > left && self.is_over() {
                return true;
            }
        }
        false
    }
}

#[test]
fn every_question_is_answered_and_every_fence_ends_whatever_happens() {
    for seed in 1..=60u64 {
        let seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for (degree, hosts) in [(1, 4), (2, 7), (3, 11)] {
            for course in [Course::Tree, Course::Star, Course::Breaks, Course::Repeats] {
                let counts: Vec<usize> = (0..hosts).map(|host| 1 + host % 3).collect();
                let mut job = Job::new(course, seed, Shape::new(degree, &counts), true);
                assert!(job.run(), "seed {seed:#x} degree {degree} {course:?}");
            }
        }
    }
}

/// The launcher ends the job for the death itself; no rank may pass a fence before.
#[test]
fn no_fence_ends_without_a_dead_agent() {
    for seed in 1..=20u64 {
        let seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut job = Job::new(Course::Dies, seed, Shape::new(2, &[2; 7]), true);
        let is_over = job.run();
        let dead = job.dead.unwrap();
        let seen = job.shape.own(dead).map(|rank| job.ranks[rank].fences);
        assert!(!is_over || seen.clone().all(|fences| fences == ROUNDS));
        let entered = job.shape.own(dead).map(|rank| &job.ranks[rank]);
        let entered = entered.map(|rank| rank.fences + u64::from(rank.in_fence));
        let most = entered.min().unwrap();
        assert!(
            job.ranks.iter().all(|rank| rank.fences <= most),
            "seed {seed:#x}"
        );
    }
}

/// Agents that have nothing else to say send one message to the parent for each fence, with all
/// values, and one to each child.
#[test]
fn a_fence_is_one_message_up_and_one_down_on_each_link() {
    for (degree, hosts) in [(1, 3), (2, 7), (16, 64), (0, 5)] {
        let mut job = Job::new(Course::Tree, 77, Shape::new(degree, &vec![3; hosts]), false);
        if degree > 0 {
            job.order(true);
            (0..hosts).for_each(|host| job.deliver(4 * host + 1));
        }
        let all = |job: &mut Job| {
            (0..job.ranks.len()).for_each(|rank| job.step(rank));
            for _ in 0..20 {
                (0..4 * hosts).for_each(|connection| job.deliver(connection));
            }
        };
        for round in 1..=ROUNDS as usize {
            // A value of each rank leaves with those of the others, and then the fence.
            all(&mut job);
            assert_eq!(
                job.sent,
                hosts * (3 * round - 2),
                "{degree} {hosts} {round}"
            );
            all(&mut job);
            assert_eq!(job.sent, hosts * 3 * round, "{degree} {hosts} {round}");
        }
        assert!(job.is_over());
    }
}

#[test]
fn lies_are_found_where_they_arrive() {
    let shape = Shape::new(2, &[2; 6]);
    let put = |by: usize| Up {
        puts: vec![Put {
            by,
            key: "k".into(),
            value: "v".into(),
        }],
        ..Up::default()
    };
    let fence = |number: u64, ranks: std::ops::Range<usize>| Up {
        fence: Some(FencePart {
            number,
            ranks: vec![ranks],
        }),
        ..Up::default()
    };
    let long = Up {
        gets: vec!["k".repeat(1000)],
        ..Up::default()
    };
    let begun = Up {
        begun: Some(3),
        ..Up::default()
    };
    let backwards = std::ops::Range { start: 6, end: 5 };
    // Host 0 is above hosts 2 and 3, with ranks 4 to 7.
    let lies = [
        put(0),
        put(8),
        put(usize::MAX),
        fence(1, 2..4),
        fence(3, 4..6),
        fence(1, backwards),
        long,
        begun,
    ];
    for lie in lies {
        let mut root = Root::new(shape.clone());
        assert!(root.hear(2, lie.clone()).is_err(), "{lie:?}");
        let children = vec![shape.subtree(2), shape.subtree(3)];
        let mut agent = Exchange::new(0..2, children, shape.ranks(), true);
        assert!(agent.hear_child(0, lie.clone()).is_err(), "{lie:?}");
    }
    let mut agent = Exchange::new(0..2, Vec::new(), shape.ranks(), false);
    for number in [1, 2] {
        let down = Down {
            fence: Some(number),
            ..Down::default()
        };
        assert!(agent.hear_parent(down).is_err());
    }
}

#[test]
fn misuses_are_named() {
    let mut agent = Exchange::new(0..2, Vec::new(), 2, false);
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

/// Once a rank has ended, the launcher hears of each fence that begins, and knows who lacks.
#[test]
fn a_rank_that_has_left_a_fence_out_is_known() {
    let mut job = Job::new(Course::Tree, 5, Shape::new(2, &[1; 7]), false);
    job.order(true);
    (0..7).for_each(|host| job.deliver(4 * host + 1));
    let fences = job.agents[6].end(6);
    job.root.end(6, fences);
    job.send_root();
    assert!(!job.root.fence_waits_for(6));
    job.agents[4].enter_fence(4);
    job.send(4);
    for _ in 0..10 {
        (0..28).for_each(|connection| job.deliver(connection));
    }
    assert!(job.root.fence_waits_for(6) && !job.root.fence_waits_for(5));
}
