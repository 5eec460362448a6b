//! Tests of an agent's session, by hand and under a seeded simulation.

use super::*;
use crate::agent::frame::WINDOW;
use crate::exchange::Up;
use crate::output::OutputTarget;
use crate::process_exit::ProcessExit;

const PATIENCE: Duration = Duration::from_secs(30);

fn session(now: Instant) -> Session {
    Session::new(4..8, WINDOW, PATIENCE, now)
}

fn started() -> FromAgent {
    FromAgent::Started(vec![100, 101, 102, 103])
}

fn output(rank: usize, bytes: usize) -> FromAgent {
    FromAgent::Output(rank, OutputTarget::Stdout, vec![b'x'; bytes])
}

/// Passes these frames to a session. Returns the first error.
fn judged(frames: &[FromAgent]) -> Result<(), String> {
    let now = Instant::now();
    let mut session = session(now);
    session.sent_input(100);
    frames
        .iter()
        .try_for_each(|frame| session.accept(frame, now))
}

#[test]
fn a_whole_life_is_accepted() {
    let end = ProcessExit::Code(0);
    let mut life = vec![
        started(),
        FromAgent::Packet(4, "init 7\n".into()),
        output(7, PIECE),
    ];
    life.extend([
        FromAgent::InputTaken(60),
        FromAgent::InputTaken(40),
        FromAgent::Beat,
    ]);
    life.extend((4..8).map(|rank| FromAgent::Ended(rank, end, 0)));
    life.extend((4..8).map(|rank| FromAgent::EndOfOutput(rank, OutputTarget::Stdout)));
    life.extend([FromAgent::Counted(0, vec![0; 64 << 10]), FromAgent::Done]);
    assert_eq!(judged(&life), Ok(()));
    let refusal = FromAgent::Refused {
        why: "no such program".into(),
        code: 127,
    };
    // Ranks that were started before the failure are reported as ended after it.
    let rest = [refusal, FromAgent::Ended(4, end, 0), FromAgent::Done];
    assert_eq!(judged(&rest), Ok(()));
}

#[test]
fn everything_else_is_a_breach() {
    let end = FromAgent::Ended(5, ProcessExit::Code(0), 0);
    let long = "x".repeat(PACKET + 1);
    for (frames, expected) in [
        (vec![started(), started()], "to start once"),
        (vec![FromAgent::Started(vec![1])], "1 started ranks"),
        (
            vec![FromAgent::Packet(4, "init 1".into())],
            "before the start",
        ),
        (vec![started(), output(3, 1)], "rank 3, which is elsewhere"),
        (vec![started(), output(8, 1)], "rank 8, which is elsewhere"),
        (vec![started(), output(4, PIECE + 1)], "16384 are the most"),
        (
            vec![started(), FromAgent::Packet(4, long)],
            "49152 are the most",
        ),
        (
            vec![FromAgent::Leaving("x".repeat(TEXT + 1))],
            "32768 are the most",
        ),
        (
            vec![started(), FromAgent::Ended(5, ProcessExit::Code(0), 0), end],
            "rank 5 twice",
        ),
        (vec![FromAgent::Up(Up::default())], "before the start"),
        (
            vec![started(), FromAgent::Misused(4, "x".repeat(TEXT + 1))],
            "32768 are the most",
        ),
        (
            vec![started(), FromAgent::Misused(8, "a lie".into())],
            "rank 8, which is elsewhere",
        ),
        (vec![FromAgent::InputTaken(101)], "more input than it got"),
        (vec![FromAgent::Done, FromAgent::Beat], "after its last one"),
    ] {
        let why = judged(&frames).unwrap_err();
        assert!(why.contains(expected), "{why}");
    }
}

#[test]
fn output_beyond_the_window_is_a_breach_and_a_confirmation_opens_it() {
    let now = Instant::now();
    let mut session = session(now);
    session.accept(&started(), now).unwrap();
    for _ in 0..3 {
        for _ in 0..WINDOW / PIECE {
            session.accept(&output(4, PIECE), now).unwrap();
        }
        assert_eq!(session.confirm(0), WINDOW);
    }
    let frames = (0..).take_while(|_| session.accept(&output(5, PIECE), now).is_ok());
    assert_eq!(frames.count(), WINDOW / PIECE + 1);
}

#[test]
fn a_start_that_never_ends_is_noticed() {
    let begin = Instant::now();
    let mut session = session(begin);
    let mut now;
    let why = loop {
        now = session.next().unwrap();
        let (beat, why) = session.check(now);
        assert!(!beat, "the agent would not read it");
        if let Some(why) = why {
            break why;
        }
        session.heard(now);
    };
    assert_eq!(now - begin, START);
    assert!(why.contains("not started its ranks for 300 s"), "{why}");
}

#[test]
fn silence_amid_the_start_is_noticed() {
    let begin = Instant::now();
    let mut session = session(begin);
    // A login may take long, which must not shorten the time for the start.
    let answered = begin + Duration::from_secs(50);
    session.begin(answered);
    let mut now;
    let why = loop {
        now = session.next().unwrap();
        if let (_, Some(why)) = session.check(now) {
            break why;
        }
    };
    assert_eq!(now - answered, session.liveness.patience());
    assert!(why.contains("has been silent for"), "{why}");
}

/// The behaviours of simulated agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Character {
    Honest,
    /// Sends nothing from a random time on.
    Stalls,
    /// Sends one of its frames twice, which violates the protocol.
    Repeats,
    /// Sends frames about ranks of other hosts, or more output than its window allows.
    Lies,
}

/// A generator of pseudo-random numbers from a seed (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// Simulates one agent and its session over simulated time. Returns the reason of the session's
/// end, and the simulated seconds from the agent's first fault until then.
fn life(character: Character, seed: u64) -> (Option<String>, f64) {
    let mut numbers = Numbers(seed | 1);
    let start = Instant::now();
    let mut now = start;
    let mut session = session(now);
    session.accept(&started(), now).unwrap();
    let fault = 5 + numbers.below(100);
    let mut faulty_since = None;
    for step in 0..4000u64 {
        // An honest agent sends at least every 7.5 s; a busy launcher reads late now and then.
        now += Duration::from_millis(10 + numbers.below(7000));
        let is_faulty = step >= fault && character != Character::Honest;
        if is_faulty {
            faulty_since.get_or_insert(now);
        }
        let mut frames = match numbers.below(4) {
            0 => vec![FromAgent::Beat],
            1 => vec![FromAgent::Packet(
                4 + numbers.below(4) as usize,
                "fence\n".into(),
            )],
            2 => vec![
                output(4, numbers.below(PIECE as u64) as usize),
                FromAgent::Beat,
            ],
            _ => vec![FromAgent::ProgramGone(7)],
        };
        match character {
            Character::Stalls if is_faulty => frames.clear(),
            Character::Repeats if is_faulty => frames.push(started()),
            Character::Lies if is_faulty && numbers.below(2) == 0 => frames.push(output(9, 1)),
            Character::Lies if is_faulty => {
                frames.extend((0..=WINDOW / PIECE + 1).map(|_| output(6, PIECE)))
            }
            _ => {}
        }
        let late = |since: Option<Instant>| since.map_or(0.0, |since| (now - since).as_secs_f64());
        if !frames.is_empty() {
            session.heard(now);
        }
        for frame in &frames {
            if let Err(why) = session.accept(frame, now) {
                return (Some(why), late(faulty_since));
            }
        }
        if let (_, Some(why)) = session.check(now) {
            return (Some(why), late(faulty_since));
        }
        session.confirm(0);
    }
    (None, 0.0)
}

#[test]
fn honest_agents_live_and_others_are_found_out_in_time() {
    for seed in 1..=400u64 {
        let seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for character in [
            Character::Honest,
            Character::Stalls,
            Character::Repeats,
            Character::Lies,
        ] {
            let (why, seconds) = life(character, seed);
            let is_found = why.is_some();
            assert_eq!(
                is_found,
                character != Character::Honest,
                "seed {seed} {character:?}: {why:?}"
            );
            // The patience, plus the interval between two checks.
            assert!(seconds <= 38.0, "seed {seed} {character:?}: {seconds} s");
        }
    }
}
