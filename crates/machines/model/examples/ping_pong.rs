//! The rate at which messages are modelled: 8 bytes back and forth between two coroutines, and long
//! writes.
//!
//!     cargo run --release -p model --example ping_pong [SYSTEM]

use std::time::Instant;

#[path = "../tests/it/common.rs"]
mod common;

use common::*;
use device::Node;
use model::Faults;

fn main() {
    const ROUNDS: u64 = 500_000;
    let name = std::env::args().nth(1).unwrap_or("qdr".into());
    let system = system(&name);
    let start = Instant::now();
    let times = play(&system, &[0, 1], Faults::default(), 1, |mut node, rank| {
        let mut end = connect(&mut node, 1 - rank as usize, &Wish::default());
        let inline = node.rail(0).attributes().inline >= 8;
        for round in 0..2 * ROUNDS {
            let value = (round / 2 + 1) as u8;
            if round % 2 == u64::from(rank) {
                end.fill(8 * rank as usize, &[value; 8]);
                // One in a hundred writes is signaled, which frees the send queue.
                end.write_signaled(&mut node, 8 * rank as usize, 8, inline, round % 100 < 2);
                if round % 100 < 2 {
                    end.completion(&mut node);
                }
            } else {
                end.await_byte(&mut node, 15 - 8 * rank as usize, value);
            }
        }
        let end = node.turn().now();
        // The end of a rank drops its posted requests.
        settle_down(&mut node);
        end
    });
    let wall = start.elapsed().as_secs_f64();
    let messages = (2 * ROUNDS) as f64;
    println!(
        "{name}: {:.2} million messages of 8 bytes a second; one takes {:.0} ns of virtual time",
        messages / wall / 1e6,
        times[0] as f64 / messages / 1e3
    );

    const LEN: usize = 4 << 20;
    const COUNT: usize = 200;
    let start = Instant::now();
    play(&system, &[0, 1], Faults::default(), 1, |mut node, rank| {
        let wish = Wish {
            bytes: LEN,
            ..Wish::default()
        };
        let end = connect(&mut node, 1 - rank as usize, &wish);
        if rank == 0 {
            for _ in 0..COUNT {
                end.write_signaled(&mut node, 0, LEN, false, true);
                end.completion(&mut node);
            }
            node.oob_send(1, &[]).unwrap();
        } else {
            receive_oob(&mut node);
        }
    });
    let wall = start.elapsed().as_secs_f64();
    let packets = COUNT * LEN / system.hca.mtu.0 as usize;
    println!(
        "{name}: {:.2} million packets of {} bytes a second, {:.1} GB a second of writes of 4 MiB",
        packets as f64 / wall / 1e6,
        system.hca.mtu.0,
        (COUNT * LEN) as f64 / wall / 1e9
    );
}
