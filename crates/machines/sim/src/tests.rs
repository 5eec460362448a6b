use std::os::fd::OwnedFd;

use crate::coroutines::{Plan, run};
use crate::memory::{Memory, Vec, WorldMemory};
use crate::{Clock, Deadlock, Model, Time, Turn};

/// A model of letters that take 1,000 ps, with a log of their arrivals.
struct Post {
    boxes: Vec<Vec<u64>>,
    log: Vec<(Time, u32, u64)>,
    /// True if ranks run ahead of each other: a letter that is not written yet takes 1,000 ps.
    ahead: bool,
}

#[derive(Clone, Copy)]
struct Letter {
    to: u32,
    text: u64,
}

impl Model for Post {
    type Event = Letter;

    fn handle(&mut self, letter: Letter, clock: &mut Clock<Letter>) {
        self.boxes[letter.to as usize].push(letter.text);
        self.log.push((clock.now(), letter.to, letter.text));
        clock.wake(letter.to);
    }

    fn runs_ahead(&self) -> bool {
        self.ahead
    }

    fn horizon(&self, _: u32, event: Time, other: Time) -> Time {
        event.min(other.saturating_add(1000))
    }
}

fn post(ranks: u32) -> impl FnOnce(WorldMemory) -> Post {
    post_office(ranks, false)
}

fn post_office(ranks: u32, ahead: bool) -> impl FnOnce(WorldMemory) -> Post {
    move |memory| {
        let mut boxes = Vec::new_in(memory);
        boxes.extend((0..ranks).map(|_| Vec::new_in(memory)));
        Post {
            boxes,
            log: Vec::new_in(memory),
            ahead,
        }
    }
}

fn send(turn: &Turn<Post>, to: u32, text: u64) {
    turn.spend(100);
    turn.settle().unwrap();
    turn.with(|_, clock| clock.at(clock.now() + 1000, Letter { to, text }));
}

fn receive(turn: &Turn<Post>) -> Result<u64, Deadlock> {
    loop {
        turn.settle()?;
        let mine = turn.rank() as usize;
        if let Some(text) =
            turn.with(|post, _| (!post.boxes[mine].is_empty()).then(|| post.boxes[mine].remove(0)))
        {
            return Ok(text);
        }
        turn.wait(None)?;
    }
}

const PLAN: Plan = Plan {
    ranks: 2,
    seed: 1,
    stack: 64 << 10,
};

/// Sends a letter back and forth `rounds` times; returns the time at the end.
fn ping_pong(turn: &Turn<Post>, rounds: u64) -> Time {
    let peer = 1 - turn.rank();
    for round in 0..rounds {
        if turn.rank() == 0 {
            send(turn, peer, round);
        }
        assert_eq!(receive(turn), Ok(round));
        if turn.rank() == 1 {
            send(turn, peer, round);
        }
    }
    turn.now()
}

#[test]
fn a_ping_pong_takes_what_its_steps_take() {
    let (times, events) = run(PLAN, post(2), |turn| ping_pong(&turn, 10)).unwrap();
    // 100 ps to send and 1,000 ps in flight, in each direction.
    assert_eq!(times, [22_000, 21_000]);
    assert_eq!(events, 20);
}

#[test]
fn the_same_seed_gives_the_same_log_and_order_is_the_order_of_time() {
    let once = |seed| {
        let plan = Plan {
            ranks: 50,
            seed,
            stack: 64 << 10,
        };
        let (logs, _) = run(plan, post(50), |turn| {
            for _ in 0..20 {
                let (to, pause) =
                    turn.with(|_, clock| (clock.random.below(50), clock.random.below(5000)));
                turn.spend(pause);
                send(&turn, to as u32, u64::from(turn.rank()));
            }
            turn.spend(10_000_000);
            turn.settle().unwrap();
            turn.with(|post, _| post.log.to_vec())
        })
        .unwrap();
        logs
    };
    let (first, again, other) = (once(7), once(7), once(8));
    assert_eq!(first, again);
    assert_ne!(first, other);
    assert_eq!(first[0].len(), 1000);
    assert!(first[0].is_sorted_by_key(|&(time, ..)| time));
}

/// Ranks send letters and take those that have arrived, each at its own pace. Returns for each rank
/// the letters that it took, with the times, and the time at its end.
fn correspondence(ahead: bool) -> std::vec::Vec<(std::vec::Vec<(Time, u64)>, Time)> {
    let plan = Plan {
        ranks: 5,
        seed: 1,
        stack: 64 << 10,
    };
    let body = |turn: Turn<Post>| {
        let mut random = crate::Random::new(turn.rank().into());
        let mut taken = std::vec::Vec::new();
        for _ in 0..200 {
            // Multiples of 100, so that many things happen at one time.
            turn.spend(100 * random.below(8));
            turn.stay().unwrap();
            let (to, text) = (random.below(5) as u32, random.below(1 << 40));
            turn.with(|_, clock| clock.at(clock.now() + 1000, Letter { to, text }));
            turn.spend(100 * random.below(3));
            turn.observe().unwrap();
            let mine = turn.rank() as usize;
            let letters =
                turn.with(|post, _| post.boxes[mine].drain(..).collect::<std::vec::Vec<_>>());
            taken.extend(letters.into_iter().map(|text| (turn.now(), text)));
        }
        (taken, turn.now())
    };
    run(plan, post_office(5, ahead), body).unwrap().0
}

#[test]
fn ranks_that_run_ahead_see_what_those_in_lockstep_see() {
    assert_eq!(correspondence(true), correspondence(false));
}

#[test]
fn a_rank_runs_ahead_to_its_horizon_and_catches_up_where_it_stood() {
    let (logs, _) = run(PLAN, post_office(2, true), |turn| {
        let note = || {
            let (now, rank) = (turn.now(), turn.rank());
            turn.with(|post, _| post.log.push((now, rank, 0)));
        };
        if turn.rank() == 0 {
            // Rank 1, at 0 ps, may yet send something that is visible at 1,000 ps.
            turn.spend(999);
            turn.observe().unwrap();
            note();
            // Actions before 999 ps go first; those from 999 to 1,499 ps do not.
            turn.spend(500);
            turn.catch_up().unwrap();
            note();
        } else {
            for _ in 0..3 {
                turn.spend(400);
                turn.settle().unwrap();
                note();
            }
        }
        turn.spend(10_000);
        turn.settle().unwrap();
        turn.with(|post, _| post.log.to_vec())
    })
    .unwrap();
    let order = [(999, 0), (400, 1), (800, 1), (1499, 0), (1200, 1)];
    assert_eq!(logs[0], order.map(|(time, rank)| (time, rank, 0)));
}

#[test]
fn all_who_wait_for_nothing_are_told() {
    let (answers, _) = run(PLAN, post(2), |turn| match turn.rank() {
        0 => receive(&turn),
        _ => {
            send(&turn, 0, 5);
            let letter = receive(&turn);
            assert_eq!(turn.settle(), Ok(()));
            letter
        }
    })
    .unwrap();
    assert_eq!(answers, [Ok(5), Err(Deadlock)]);
}

#[test]
fn a_deadline_ends_a_wait() {
    let (times, _) = run(PLAN, post(2), |turn| {
        turn.wait(Some(500 * u64::from(turn.rank() + 1))).unwrap();
        turn.now()
    })
    .unwrap();
    assert_eq!(times, [500, 1000]);
}

#[test]
fn idle_waits_and_idle_events_are_no_progress() {
    // Rank 1 sends idle letters to itself for ever; that alone does not keep the world running.
    let ring = |turn: &Turn<Post>, idle: bool| {
        turn.with(|_, clock| {
            let (at, to) = (clock.of(turn.rank()) + 700, turn.rank());
            match idle {
                true => clock.at_idle(at, Letter { to, text: 1 }),
                false => clock.at(at, Letter { to, text: 1 }),
            }
        });
    };
    let (ends, _) = run(PLAN, post(2), move |turn| {
        if turn.rank() == 1 {
            loop {
                ring(&turn, true);
                if turn.wait_idle(turn.now() + 1000).is_err() {
                    return turn.now();
                }
            }
        }
        // As long as rank 0 waits for a time, rank 1 continues to send idle letters.
        turn.wait(Some(5_000)).unwrap();
        ring(&turn, false);
        turn.wait(None).unwrap();
        assert_eq!(turn.wait(None), Err(Deadlock));
        turn.now()
    })
    .unwrap();
    // The last letter arrives at 5,700 ps, which is no later than the deadline.
    assert_eq!(ends, [5_700, 5_700]);
}

#[test]
fn an_idle_event_that_is_left_does_not_keep_the_world() {
    let (_, events) = run(PLAN, post(2), |turn| {
        turn.with(|_, clock| clock.at_idle(1 << 40, Letter { to: 0, text: 0 }));
    })
    .unwrap();
    assert_eq!(events, 0);
}

#[test]
fn processes_see_what_coroutines_see() {
    let file: OwnedFd = memory_file::of_length("test", Memory::BYTES).unwrap();
    let place = |rank| crate::process::Participant {
        rank,
        ranks: 2,
        seed: 1,
        stuck: |_| {},
    };
    // SAFETY: the child runs the ping-pong only, and exits without the parent's destructors.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let turn = crate::process::join(&file, place(1), post(2)).unwrap();
        let time = ping_pong(&turn, 100);
        drop(turn);
        // SAFETY: ends this process at once.
        unsafe { libc::_exit(if time == 219_000 { 0 } else { 1 }) };
    }
    let turn = crate::process::join(&file, place(0), post(2)).unwrap();
    assert_eq!(ping_pong(&turn, 100), 220_000);
    drop(turn);
    let mut status = 0;
    // SAFETY: waits for the child made above.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(status, 0);
}
