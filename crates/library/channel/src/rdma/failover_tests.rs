//! Rails that fail, slow down and come back under random traffic. Nothing is lost, duplicated,
//! overtaken or stuck, and no buffer changes after its transfer has completed.
//!
//! Both ranks run in one thread. The strict devices execute requests in random order between queue
//! pairs, and fail those over a cut cable after a while.

use device::Placement;
use knobs::{QueuePairs, RailPolicy};
use testdevice::strict::{self, Cables, Cut, RailSetup, Setup};

use super::rail_tests::POLICIES;
use super::*;
use crate::{Exposed, Family, NotifiedWrite, Put, RemoteKey, Transport, ZeroCopy, suite};

/// A generator of random numbers (SplitMix64).
pub(super) struct Random(pub(super) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub(super) fn happens(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }
}

/// A transfer in flight from one rank to the other.
struct Moving {
    number: u64,
    from: crate::Exposure,
    to: crate::Exposure,
    source: Box<[u8]>,
    target: Box<[u8]>,
    len: usize,
    /// For each rank, the one that `from` belongs to first: true if it got the completion, or the
    /// notice, of the end of the transfer.
    told: [bool; 2],
    reads: bool,
}

/// Two ranks, and the traffic between them.
pub(super) struct Pair {
    pub(super) ends: [Rdma; 2],
    sent: [u64; 2],
    heard: [u64; 2],
    moving: [Vec<Moving>; 2],
    /// Buffers whose transfers are complete: no byte of them may change.
    quiet: Vec<Box<[u8]>>,
    transfers: u64,
    polls: u64,
}

/// The content of a packet.
fn byte(number: u64, at: usize) -> u8 {
    (number * 131 + at as u64 * 7) as u8
}

const QUIET: u8 = 0xa5;
/// The acknowledgement timeout of the devices, in nanoseconds.
const TIMEOUT: u64 = 300_000;
/// A time in which every request that a fault has hit fails or arrives.
const SETTLING: std::time::Duration = std::time::Duration::from_nanos(3 * TIMEOUT);

impl Pair {
    pub(super) fn new(ends: [Rdma; 2]) -> Pair {
        Pair {
            ends,
            sent: [0; 2],
            heard: [0; 2],
            moving: [Vec::new(), Vec::new()],
            quiet: Vec::new(),
            transfers: 0,
            polls: 0,
        }
    }

    pub(super) fn put(&mut self, from: usize, len: usize) {
        let number = self.sent[from];
        let fill = |body: &mut [u8]| {
            let bytes = body.iter_mut().enumerate();
            bytes.for_each(|(at, to)| *to = byte(number, at));
        };
        let len = len.min(self.ends[from].longest_packet(1 - from));
        let put = self.ends[from].put(1 - from, [number, len as u64, 9], len, fill);
        if put.unwrap() != Put::Full {
            self.sent[from] += 1;
        }
    }

    /// Starts a transfer of `len` bytes from rank `from`: a write with notice, or a read by the
    /// peer.
    fn begin(&mut self, from: usize, len: usize, reads: bool) {
        let number = self.transfers;
        let source: Box<[u8]> = (0..len).map(|at| byte(number, at)).collect();
        let mut target = vec![0u8; len].into_boxed_slice();
        let to = 1 - from;
        let ours = suite::memory(&source);
        let theirs = suite::room(&mut target);
        let exposed = self.ends[from].expose(to, &ours, len, Exposed::ToRead, Family::Messages);
        let source_key = exposed.unwrap().unwrap();
        let exposed = self.ends[to].expose(from, &theirs, len, Exposed::ToWrite, Family::Messages);
        let target_key = exposed.unwrap().unwrap();
        let token = suite::token(number);
        if reads {
            let key: RemoteKey = source_key.key();
            let _ = self.ends[to]
                .read(from, &key, &target_key, 0..len, token)
                .unwrap();
        } else {
            let Some(notice) = self.ends[to].expect(from, token).unwrap() else {
                self.ends[from].retract(source_key).unwrap();
                self.ends[to].retract(target_key).unwrap();
                return;
            };
            let key = target_key.key();
            let _ = self.ends[from]
                .write_notified(to, &source_key, &key, len, notice, token)
                .unwrap();
        }
        self.transfers += 1;
        self.moving[from].push(Moving {
            number,
            from: source_key,
            to: target_key,
            source,
            target,
            len,
            told: [reads, false],
            reads,
        });
    }

    fn poll(&mut self, rank: usize) {
        self.polls += 1;
        let heard = &mut self.heard[1 - rank];
        suite::take(&mut self.ends[rank], |_, head, body| {
            assert_eq!(head, [*heard, body.len() as u64, 9], "at rank {rank}");
            let is_right = |(at, got): (usize, &u8)| *got == byte(*heard, at);
            assert!(body.iter().enumerate().all(is_right), "packet {heard}");
            *heard += 1;
        })
        .unwrap();
        while let Some(done) = self.ends[rank].done(Family::Messages) {
            let mut found = false;
            for from in 0..2 {
                for moving in &mut self.moving[from] {
                    if moving.number == done.token.id {
                        let side = usize::from(rank != from);
                        assert!(!std::mem::replace(&mut moving.told[side], true));
                        found = true;
                    }
                }
            }
            assert!(found, "transfer {} completes twice", done.token.id);
        }
        for from in 0..2 {
            let mut at = 0;
            while at < self.moving[from].len() {
                // The peer of a write may use its buffer as soon as it is notified.
                let moving = &mut self.moving[from][at];
                if moving.told[1] && !moving.target.is_empty() {
                    let is_right = moving.target == moving.source;
                    assert!(is_right, "transfer {}", moving.number);
                    let mut target = std::mem::take(&mut moving.target);
                    target.fill(QUIET);
                    self.quiet.push(target);
                }
                match moving.told == [true; 2] {
                    false => at += 1,
                    true => {
                        let moving = self.moving[from].swap_remove(at);
                        self.ends[from].retract(moving.from).unwrap();
                        self.ends[1 - from].retract(moving.to).unwrap();
                    }
                }
            }
        }
    }

    pub(super) fn poll_both(&mut self) {
        (0..2).for_each(|rank| self.poll(rank));
    }

    /// Makes one step of random traffic at a rank, which `action` chooses: a number from 0 to 11.
    pub(super) fn step(&mut self, rank: usize, action: u64, random: &mut Random) {
        match action {
            0..4 => {
                let len = [0, 8, 100, 700, 2000][random.below(5) as usize];
                self.put(rank, len);
            }
            4 => {
                let connected = (0..2).all(|own| {
                    let endpoint = self.ends[own].connections.endpoints.get(1 - own);
                    endpoint.is_some_and(|endpoint| endpoint.connection.is_ready())
                });
                if connected && self.moving.iter().map(Vec::len).sum::<usize>() < 12 {
                    let len = 1 + random.below(60_000) as usize;
                    self.begin(rank, len, random.happens(3));
                }
            }
            // A rank computes now and then: the other one polls alone.
            5 if random.happens(40) => {
                (0..200).for_each(|_| self.poll(rank));
            }
            _ => self.poll(rank),
        }
    }

    /// Polls until everything has arrived, and checks that nothing is written late.
    pub(super) fn finish(&mut self, what: &str) {
        let begin = std::time::Instant::now();
        while !self.is_idle() {
            self.poll_both();
            let is_stuck = begin.elapsed().as_secs() >= 20;
            if is_stuck {
                self.describe();
            }
            assert!(
                !is_stuck,
                "stuck: {what}: sent {:?}, heard {:?}, {} and {} transfers open",
                self.sent,
                self.heard,
                self.moving[0].len(),
                self.moving[1].len(),
            );
        }
        let mut quiet = self.quiet.iter().flatten();
        assert!(quiet.all(|byte| *byte == QUIET), "a late write: {what}");
    }

    /// Prints the state of everything that is open.
    pub(super) fn describe(&mut self) {
        for rank in 0..2 {
            for rail in &self.ends[rank].connections.local.rails {
                println!("rank {rank}: {}", rail.describe());
            }
            let qps: Vec<_> = self.ends[rank]
                .connections
                .endpoints
                .get(1 - rank)
                .unwrap()
                .links()
                .iter()
                .map(|l| (l.rail(), l.control.qp(), l.bulk.qp()))
                .collect();
            for (rail, control, bulk) in qps {
                let device = self.ends[rank].connections.local.node.rail(rail);
                println!(
                    "rank {rank} rail {rail}: {control:?} {:?} {bulk:?} {:?}",
                    device.state(control),
                    device.state(bulk)
                );
            }
            let end = &self.ends[rank];
            let Some(endpoint) = end.connections.endpoints.get(1 - rank) else {
                continue;
            };
            println!(
                "rank {rank}: expects {:?}",
                end.connections.transfers.bulk.expected_of(1 - rank)
            );
            let (sender, attention) = (&endpoint.sender, &end.connections.attention);
            println!(
                "  {:?}, sent {} consumed {} coalesced {:?} clear {} replays {} messages lost {:?} allowed {}, \
                 deferred {} fencing {} impaired {:?}",
                endpoint.connection,
                sender.last(),
                endpoint.receiver.consumed(),
                sender.coalesced(),
                sender.is_clear(),
                sender.has_replays(),
                endpoint.lost_messages,
                endpoint.credits.allowed(),
                attention.deferred,
                attention.fencing,
                attention.impaired
            );
            end.connections.transfers.bulk.describe();
            for link in endpoint.links() {
                println!(
                    "  {:?} held {} {} {:?}",
                    link.life,
                    link.control.held(),
                    link.bulk.held(),
                    link.reads.as_ref().map(|reads| reads.held()),
                );
            }
            for moving in &self.moving[rank] {
                let Moving {
                    number,
                    len,
                    told,
                    reads,
                    ..
                } = moving;
                println!("  transfer {number} of {len}: told {told:?}, reads {reads}");
            }
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.sent == self.heard && self.moving.iter().all(Vec::is_empty)
    }

    /// Polls for a while. True: every link of both ends is live, and no failure of a link is
    /// pending.
    pub(super) fn is_settled(&mut self) -> bool {
        for _ in 0..70 {
            self.poll_both();
        }
        self.is_whole()
    }

    /// True if every link of both ends is live.
    pub(super) fn is_whole(&self) -> bool {
        (0..2).all(|rank| {
            let endpoint = self.ends[rank].connections.endpoints.get(1 - rank);
            endpoint.is_some_and(|endpoint| {
                endpoint.connection.is_ready()
                    && endpoint.links().iter().all(|link| link.life.is_live())
            })
        })
    }
}

/// The faults of one run.
#[derive(Clone, Copy, Debug)]
struct Plan {
    seed: u64,
    rails: usize,
    /// True if the rails differ: some need completions, and one cannot reset queue pairs.
    mixed: bool,
    rings: usize,
    policy: RailPolicy,
    queue_pairs: QueuePairs,
}

fn machine(plan: &Plan) -> ([Rdma; 2], Cables) {
    let mut setup = Setup {
        rails: plan.rails,
        delays: true,
        patient: true,
        inline: if plan.seed.is_multiple_of(3) { 0 } else { 64 },
        timeout_ns: TIMEOUT,
        seed: plan.seed,
        ..Setup::default()
    };
    if plan.seed.is_multiple_of(5) {
        setup.placement = Placement::Completion;
    }
    if plan.mixed {
        let usual = setup.of_rail(0);
        let kind = |rail: usize| RailSetup {
            placement: match rail % 2 {
                0 => Placement::Ordered,
                _ => Placement::Completion,
            },
            resets: rail != 1,
            card: rail,
            domain: rail,
            ..usual.clone()
        };
        setup.of_rails = (0..plan.rails).map(kind).collect();
    }
    let (nodes, cables) = strict::machine(2, &setup);
    let config = Config {
        ring_bytes: 16 << 10,
        chunk: 2 << 10,
        rings: plan.rings,
        rails: RailSettings {
            policy: plan.policy,
            stripe_above: 4 << 10,
            queue_pairs: plan.queue_pairs,
            ..RailSettings::default()
        },
        ..Config::default()
    };
    let mut ends = nodes.into_iter().enumerate().map(|(rank, node)| {
        let mut config = config;
        config.rails.local_rank = rank;
        Rdma::attach(node, rank, 2, config).unwrap()
    });
    ([ends.next().unwrap(), ends.next().unwrap()], cables)
}

/// Two ranks whose links are all live.
fn connected(plan: &Plan) -> (Pair, Cables) {
    let (ends, cables) = machine(plan);
    let mut pair = Pair::new(ends);
    pair.put(0, 8);
    while !(pair.is_idle() && pair.is_whole()) {
        pair.poll_both();
    }
    (pair, cables)
}

fn run(plan: Plan) {
    let (ends, cables) = machine(&plan);
    let mut random = Random(plan.seed);
    let mut pair = Pair::new(ends);
    let mut cut: Option<(usize, usize)> = None;
    let mut cuts = 0;
    let mut mended = std::time::Instant::now();
    for step in 0..4000 {
        let rank = random.below(2) as usize;
        match random.below(12) {
            6 if random.happens(6) => match cut {
                // Requests of the last fault may fail a little later: two rails would be dead.
                None if step < 3500 && mended.elapsed() > SETTLING && pair.is_settled() => {
                    let rail = random.below(plan.rails as u64) as usize;
                    let how = [Cut::Silent, Cut::Down, Cut::Acknowledgements];
                    cables.cut(rank, rail, how[random.below(3) as usize]);
                    cut = Some((rank, rail));
                    cuts += 1;
                }
                Some((at, rail)) if random.happens(3) => {
                    cables.mend(at, rail);
                    cut = None;
                    mended = std::time::Instant::now();
                }
                _ => (),
            },
            7 if random.happens(60) => {
                let rail = random.below(plan.rails as u64) as usize;
                let time = [0, 20_000][random.below(2) as usize];
                cables.slow(rank, rail, time);
            }
            action => pair.step(rank, action, &mut random),
        }
    }
    if let Some((at, rail)) = cut {
        cables.mend(at, rail);
    }
    for rail in 0..plan.rails {
        (0..2).for_each(|rank| cables.slow(rank, rail, 0));
    }
    pair.finish(&format!("{plan:?}"));
    assert!(cuts > 0 || plan.seed % 50 != 1, "no cable was cut");
}

fn plan_of(seed: u64) -> Plan {
    let mut random = Random(seed ^ 0x5eed);
    let rails = 2 + random.below(2) as usize;
    Plan {
        seed,
        rails,
        mixed: random.happens(3),
        rings: if random.happens(4) { 0 } else { 64 },
        policy: POLICIES[random.below(5) as usize],
        queue_pairs: match random.happens(4) {
            true => QueuePairs::Shared,
            false => QueuePairs::Separate,
        },
    }
}

#[test]
fn nothing_is_lost_while_rails_fail_and_come_back() {
    let one = std::env::var("SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let count = std::env::var("SEEDS")
        .ok()
        .and_then(|seeds| seeds.parse().ok());
    let seeds = match one {
        Some(seed) => seed..seed + 1,
        None => 0..count.unwrap_or(40),
    };
    for seed in seeds {
        let plan = plan_of(seed);
        println!("SEED={seed} {plan:?}");
        run(plan);
    }
}

#[test]
fn connections_end_although_a_rail_fails_under_the_last_packets() {
    for seed in 0..8 {
        let (mut pair, cables) = connected(&Plan {
            rails: 2,
            mixed: false,
            policy: RailPolicy::RoundRobin,
            ..plan_of(seed)
        });
        cables.cut(0, seed as usize % 2, Cut::Silent);
        (0..4).for_each(|_| pair.put(0, 8));
        let begin = std::time::Instant::now();
        let mut are_closed = [false; 2];
        while are_closed != [true; 2] {
            for (rank, is_closed) in are_closed.iter_mut().enumerate() {
                *is_closed = pair.ends[rank].close().unwrap();
            }
            assert!(begin.elapsed().as_secs() < 20, "stuck: seed {seed}");
        }
    }
}

/// Over rail 0 packets arrive without acknowledgements. They are written again behind others on
/// rail 1, which is slow, and are consumed before that.
#[test]
fn a_slot_is_kept_while_its_packet_is_written_again() {
    let (mut pair, cables) = connected(&Plan {
        // Without inline payload: a device reads a slot when it executes the write.
        seed: 3,
        rails: 2,
        mixed: false,
        rings: 64,
        policy: RailPolicy::RoundRobin,
        queue_pairs: QueuePairs::Separate,
    });
    cables.slow(0, 1, 4 * TIMEOUT);
    cables.cut(0, 0, Cut::Acknowledgements);
    (0..64).for_each(|_| pair.put(0, 1100));
    let last = pair.sent[0] + 12;
    let begin = std::time::Instant::now();
    while pair.heard[0] < last {
        // The next packets in the same slots are longer.
        pair.put(0, 2000);
        pair.poll_both();
        assert!(begin.elapsed().as_secs() < 20, "stuck");
    }
}

#[test]
fn a_link_is_drained_only_when_its_last_completions_are_taken() {
    let (mut pair, _cables) = connected(&Plan {
        rails: 2,
        ..plan_of(0)
    });
    let end = &mut pair.ends[0];
    let mut peer = end.connections.peer(1);
    failover::request_failed(&mut peer, 0, device::Status::RetryExceeded).unwrap();
    let is_drained = |end: &mut Rdma| {
        let link = &mut end.connections.endpoints.of(1).links_mut()[0];
        link.is_drained(&mut *end.connections.local.node).unwrap()
    };
    assert!(!is_drained(end), "the device has them");
    let begin = std::time::Instant::now();
    while !is_drained(end) {
        completions::poll_rail(&mut end.connections, 0).unwrap();
        assert!(begin.elapsed().as_secs() < 20, "stuck");
    }
}

/// Each end in turn answers nothing over rail 0, so that only the requests of the other one fail.
#[test]
fn a_link_that_is_dead_in_one_direction_is_not_taken_back() {
    for mute in 0..2 {
        let (mut pair, cables) = connected(&Plan {
            rails: 2,
            mixed: false,
            rings: 64,
            policy: RailPolicy::RoundRobin,
            ..plan_of(mute as u64)
        });
        cables.cut(mute, 0, Cut::Acknowledgements);
        let begin = std::time::Instant::now();
        let mut died = None;
        // Longer than the first attempts to take the link back.
        while died.is_none_or(|died: std::time::Instant| died.elapsed().as_millis() < 400) {
            (0..2).for_each(|rank| pair.put(rank, 1100));
            pair.poll_both();
            let is_live = |rank: usize| {
                let endpoint = pair.ends[rank].connections.endpoints.get(1 - rank).unwrap();
                endpoint.links()[0].life.is_live()
            };
            match is_live(0) || is_live(1) {
                false => died = died.or(Some(std::time::Instant::now())),
                true => assert!(died.is_none(), "end {mute} is mute"),
            }
            assert!(begin.elapsed().as_secs() < 20, "stuck");
        }
    }
}
