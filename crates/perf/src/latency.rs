//! One message at a time, by perftest's procedures.
//!
//! Writes and sends go there and back, and half of the round is told; reads and atomics are answered by the other end's
//! device, and the whole is told. A write's arrival is seen in the last byte of the memory that it goes to, as perftest does
//! it, on any device: on one that may place bytes in any order it says that this byte is there, and the payload is not read.
//!
//! Where this differs from perftest: a receive is posted again after the answer has left, not before.

use anyhow::Result;

use crate::end::End;
use crate::plan::Verb;

/// Picoseconds from one post to the next, as whole rounds: one fewer than there were.
pub fn rounds(end: &mut End, size: usize, iterations: usize) -> Result<Vec<u64>> {
    let posted = match end.plan.verb() {
        Verb::Write => write(end, size, iterations),
        Verb::Send => send(end, size, iterations),
        Verb::Read | Verb::Atomic => answered(end, size, iterations),
    }?;
    Ok(posted.windows(2).map(|pair| pair[1] - pair[0]).collect())
}

/// How many parts of a round are told as the latency.
pub fn parts(verb: Verb) -> f64 {
    match verb {
        Verb::Write | Verb::Send => 2.0,
        Verb::Read | Verb::Atomic => 1.0,
    }
}

fn write(end: &mut End, size: usize, iterations: usize) -> Result<Vec<u64>> {
    let begins = end.place.is_client();
    let (mut sent, mut heard) = (0, 0);
    let mut posted = Vec::with_capacity(iterations);
    end.clear(size);
    end.meet()?;
    while sent < iterations || heard < iterations {
        if heard < iterations && !(begins && sent == 0) {
            heard += 1;
            end.await_mark(size, heard as u8)?;
        }
        if sent < iterations {
            sent += 1;
            end.mark(size, sent as u8);
            posted.push(end.place.clock());
            end.post(0, size, 0, true)?;
            end.await_sent(0)?;
        }
    }
    Ok(posted)
}

fn send(end: &mut End, size: usize, iterations: usize) -> Result<Vec<u64>> {
    let begins = end.place.is_client();
    let depth = end.plan.rx_depth(iterations);
    let (mut sent, mut heard, mut ready) = (0, 0, 0);
    let mut posted = Vec::with_capacity(iterations);
    end.post_receives(depth)?;
    end.meet()?;
    while sent < iterations || heard < iterations {
        if heard < iterations && !(begins && sent == 0) {
            while ready == 0 {
                ready = end.take_received()?;
                match ready {
                    0 => end.place.idle(u64::MAX)?,
                    _ => end.place.found()?,
                }
            }
            ready -= 1;
            heard += 1;
        }
        if sent < iterations {
            sent += 1;
            posted.push(end.place.clock());
            end.post(0, size, 0, true)?;
            end.post_receives(depth)?;
            end.await_sent(0)?;
        }
    }
    Ok(posted)
}

fn answered(end: &mut End, size: usize, iterations: usize) -> Result<Vec<u64>> {
    let mut posted = Vec::with_capacity(iterations);
    end.meet()?;
    if end.place.is_client() {
        for _ in 0..iterations {
            posted.push(end.place.clock());
            end.post(0, size, 0, true)?;
            end.await_sent(0)?;
        }
    }
    end.meet()?;
    Ok(posted)
}
