//! Latencies: one message at a time, by perftest's procedures.
//!
//! Writes and sends are a ping-pong, and the result is half of the round trip. Reads and atomics
//! are answered by the other side's device, and the result is the full time. The arrival of a write
//! is detected in the last byte of its target, as in perftest, on every device: a device that
//! writes bytes in any order guarantees only this byte, and the payload is not read.
//!
//! Difference from perftest: a receive is reposted after the answer has been sent, not before.

use anyhow::Result;

use crate::benchmark::Verb;
use crate::side::Side;

/// The times of all iterations except the last, in picoseconds, each from one post to the next.
pub(crate) fn rounds(side: &mut Side, size: usize, iterations: usize) -> Result<Vec<u64>> {
    let posted = match side.plan.verb() {
        Verb::Write => write(side, size, iterations),
        Verb::Send => send(side, size, iterations),
        Verb::Read | Verb::Atomic => answered(side, size, iterations),
    }?;
    Ok(posted.windows(2).map(|pair| pair[1] - pair[0]).collect())
}

/// The number of latencies that the time of an iteration contains: two in a ping-pong, otherwise
/// one.
pub(crate) fn parts(verb: Verb) -> f64 {
    match verb {
        Verb::Write | Verb::Send => 2.0,
        Verb::Read | Verb::Atomic => 1.0,
    }
}

fn write(side: &mut Side, size: usize, iterations: usize) -> Result<Vec<u64>> {
    let begins = side.target.is_client();
    let (mut sent, mut received) = (0, 0);
    let mut posted = Vec::with_capacity(iterations);
    side.clear(size);
    side.synchronise()?;
    while sent < iterations || received < iterations {
        if received < iterations && !(begins && sent == 0) {
            received += 1;
            side.await_mark(size, received as u8)?;
        }
        if sent < iterations {
            sent += 1;
            side.mark(size, sent as u8);
            posted.push(side.target.clock());
            side.post(0, size, 0, true)?;
            side.await_sent(0)?;
        }
    }
    Ok(posted)
}

fn send(side: &mut Side, size: usize, iterations: usize) -> Result<Vec<u64>> {
    let begins = side.target.is_client();
    let depth = side.plan.rx_depth(iterations);
    let (mut sent, mut received, mut ready) = (0, 0, 0);
    let mut posted = Vec::with_capacity(iterations);
    side.post_receives(depth)?;
    side.synchronise()?;
    while sent < iterations || received < iterations {
        if received < iterations && !(begins && sent == 0) {
            while ready == 0 {
                ready = side.take_received()?;
                match ready {
                    0 => side.target.idle(u64::MAX)?,
                    _ => side.target.found()?,
                }
            }
            ready -= 1;
            received += 1;
        }
        if sent < iterations {
            sent += 1;
            posted.push(side.target.clock());
            side.post(0, size, 0, true)?;
            side.post_receives(depth)?;
            side.await_sent(0)?;
        }
    }
    Ok(posted)
}

fn answered(side: &mut Side, size: usize, iterations: usize) -> Result<Vec<u64>> {
    let mut posted = Vec::with_capacity(iterations);
    side.synchronise()?;
    if side.target.is_client() {
        for _ in 0..iterations {
            posted.push(side.target.clock());
            side.post(0, size, 0, true)?;
            side.await_sent(0)?;
        }
    }
    side.synchronise()?;
    Ok(posted)
}
