//! The rate of turns: letters that two coroutines send back and forth.
//!
//!     cargo run --release -p sim --example turns

use std::time::Instant;

use sim::coroutines::{Plan, run};
use sim::{Clock, Model};

/// For each rank, the number of letters that it has received.
struct Post([u64; 2]);

impl Model for Post {
    type Event = u32;

    fn handle(&mut self, to: u32, clock: &mut Clock<u32>) {
        self.0[to as usize] += 1;
        clock.wake(to);
    }
}

fn main() {
    const ROUNDS: u64 = 1_000_000;
    let plan = Plan {
        ranks: 2,
        seed: 1,
        stack: 64 << 10,
    };
    let start = Instant::now();
    let answer = run(
        plan,
        |_| Post([0; 2]),
        |turn| {
            let (me, peer) = (turn.rank() as usize, 1 - turn.rank());
            for round in 0..2 * ROUNDS {
                if round % 2 == u64::from(turn.rank()) {
                    turn.spend(100);
                    turn.settle().ok();
                    turn.with(|_, clock| clock.at(clock.now() + 1000, peer));
                    continue;
                }
                while turn.with(|post, _| post.0[me]) <= round / 2 {
                    turn.wait(None).ok();
                }
            }
        },
    );
    let rate = (2 * ROUNDS) as f64 / start.elapsed().as_secs_f64();
    match answer {
        Ok((_, events)) => println!("{events} letters, {:.2} million a second", rate / 1e6),
        Err(why) => eprintln!("ping_pong: {why}"),
    }
}
