//! Benchmarks of sockets: latency and bandwidth of TCP connections and UDP datagrams.
//!
//! - *Latency*: a ping-pong, as for sends; TCP sends short messages at once (`TCP_NODELAY`).
//! - *Streams*: the sender writes messages one after the other, and the receiver reads all bytes
//!   that have arrived. The rate of a TCP stream is that of its reader, from the first read to the
//!   last, because a write ends when the kernel has the bytes. UDP datagrams may be lost, so sent
//!   and received ones are counted separately. With both directions, each side has a second process
//!   (on a real machine: a thread) that reads.

pub mod modelled;
pub mod real;

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::counts::Counts;
use crate::measure::{Found, Latency, Sample, Use};
use crate::plan::PerfPlan;
use crate::stream::{Stream, Tally};

/// The longest single read from a stream socket, in bytes.
const READ: usize = 1 << 20;
/// The least number of reads of a stream with at least as many messages, however late the reader
/// runs: with fewer than two reads there is no time between reads.
const LEAST_READS: usize = 16;
/// The text by which a side reports that it has reached a barrier.
const HERE: &str = "here";

/// The sockets of a process: a TCP connection or UDP datagrams, according to the plan.
pub trait Sockets {
    /// The time since a fixed moment, in picoseconds.
    fn clock(&mut self) -> u64;

    /// Sends a message.
    fn send(&mut self, message: &[u8]) -> Result<()>;

    /// Reads at least one byte that has arrived, or one datagram; returns the number of bytes. An
    /// error after a wait so long that nothing can arrive any more.
    fn receive(&mut self, into: &mut [u8]) -> Result<usize>;

    /// Reads like [`receive`](Sockets::receive). `None`: nothing has arrived for a time that is
    /// short for the user and long for a network.
    fn try_receive(&mut self, into: &mut [u8]) -> Result<Option<usize>>;
}

/// One of the two sides of a benchmark of sockets.
pub trait SocketSide: Sockets {
    /// True if this side sends first, measures, and shows the results.
    fn is_client(&self) -> bool;

    /// True if time is virtual.
    fn is_modelled(&self) -> bool;

    /// Lets the reader of this side, which runs in parallel to this process, read a stream.
    fn start_reading(&mut self, stream: Incoming) -> Result<()>;

    /// Waits until the reader has read the stream, of which the other side has sent `sent`
    /// messages.
    fn finish_reading(&mut self, sent: usize) -> Result<Received>;

    /// Sends a text to the other side over the control connection.
    fn oob_send(&mut self, words: &str) -> Result<()>;

    /// Waits for the next text of the other side.
    fn receive_oob(&mut self) -> Result<String>;

    /// The times for which resources of a modelled machine have been busy; empty on a real one.
    fn busy(&mut self) -> Vec<Busy> {
        Vec::new()
    }
}

/// The time for which a resource of a modelled machine has been busy with one kind of work.
#[derive(Clone, Copy, Debug)]
pub struct Busy {
    /// The name of the kind of resource, or of work.
    pub resource: &'static str,
    /// The number of the resource among those of its kind.
    pub number: u64,
    /// The time for which the resource was busy, in picoseconds.
    pub time: u64,
}

/// The stream of messages that a side receives: their size and number.
#[derive(Clone, Copy, Debug)]
pub struct Incoming {
    /// The length of each message, in bytes.
    pub size: usize,
    /// The number of messages of the stream.
    pub messages: usize,
    /// True if the transport delivers every message.
    pub is_reliable: bool,
}

/// The messages of a stream that have arrived, and their times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Received {
    /// The number of complete messages.
    pub messages: usize,
    /// The number of bytes of all reads except the first.
    pub timed: usize,
    /// The time from the first read to the last, in picoseconds.
    pub picos: u64,
}

impl Received {
    /// The rate of the received messages of `size` bytes, in messages per second.
    fn rate(&self, size: usize) -> f64 {
        match self.picos {
            0 => 0.0,
            picos => self.timed as f64 / size as f64 / (picos as f64 / 1e12),
        }
    }
}

/// Reads a stream. `sent` returns the number of sent messages as soon as it is known.
pub fn read_stream(
    sockets: &mut dyn Sockets,
    stream: Incoming,
    mut sent: impl FnMut() -> Option<usize>,
) -> Result<Received> {
    let longest = match stream.is_reliable {
        true => (stream.size * stream.messages / LEAST_READS)
            .min(READ)
            .max(stream.size),
        false => stream.size,
    };
    let mut buffer = vec![0; longest];
    let (mut bytes, mut first, mut found) = (0, None, Received::default());
    while bytes < stream.size * sent().unwrap_or(stream.messages) {
        let count = match stream.is_reliable {
            true => Some(sockets.receive(&mut buffer)?),
            false => sockets.try_receive(&mut buffer)?,
        };
        let Some(count) = count else {
            // If the number of sent messages is known, the missing ones are lost.
            match sent() {
                Some(_) => break,
                None => continue,
            }
        };
        if !stream.is_reliable && count != stream.size {
            bail!(
                "a datagram of {count} bytes has come instead of {}",
                stream.size
            );
        }
        let now = sockets.clock();
        bytes += count;
        match first {
            None => first = Some(now),
            Some(first) => {
                found.timed += count;
                found.picos = now - first;
            }
        }
    }
    found.messages = bytes / stream.size;
    Ok(found)
}

/// Runs this side of a plan. `step` is called after each size. Both sides return the same figures
/// of streams; the latencies of the client are the valid ones.
pub fn measure(
    side: &mut dyn SocketSide,
    plan: &PerfPlan,
    step: &mut dyn FnMut(),
) -> Result<Vec<Sample>> {
    plan.check()?;
    let mut samples = Vec::new();
    for size in plan.sizes(0)? {
        let iterations = plan.iterations(size, side.is_modelled());
        synchronise(side)?;
        let (busy, start) = (side.busy(), side.clock());
        let found = match plan.benchmark.is_latency() {
            true => Found::Latency(latency(side, size, iterations)?),
            false => Found::Stream(stream(side, plan, size, iterations)?),
        };
        let time = side.clock() - start;
        samples.push(Sample {
            size,
            iterations,
            found,
            counts: Counts::default(),
            uses: uses(&busy, &side.busy(), time),
        });
        step();
    }
    synchronise(side)?;
    Ok(samples)
}

fn synchronise(side: &mut dyn SocketSide) -> Result<()> {
    side.oob_send(HERE)?;
    match side.receive_oob()? {
        words if words == HERE => Ok(()),
        words => bail!("the other side is at another point of the benchmark: it sent {words:?}"),
    }
}

fn latency(side: &mut dyn SocketSide, size: usize, iterations: usize) -> Result<Latency> {
    let message = vec![1; size];
    let mut posted = Vec::with_capacity(iterations);
    for _ in 0..iterations {
        if side.is_client() {
            posted.push(side.clock());
            side.send(&message)?;
        }
        receive_whole(side, size)?;
        if !side.is_client() {
            posted.push(side.clock());
            side.send(&message)?;
        }
    }
    let rounds: Vec<u64> = posted.windows(2).map(|pair| pair[1] - pair[0]).collect();
    Ok(Latency::of(&rounds, 2.0))
}

fn receive_whole(side: &mut dyn SocketSide, size: usize) -> Result<()> {
    let mut buffer = vec![0; size];
    let mut count = 0;
    while count < size {
        count += side.receive(&mut buffer[count..])?;
    }
    Ok(())
}

fn stream(
    side: &mut dyn SocketSide,
    plan: &PerfPlan,
    size: usize,
    iterations: usize,
) -> Result<Stream> {
    let sends = side.is_client() || plan.bidirectional;
    let receives = !side.is_client() || plan.bidirectional;
    if receives {
        side.start_reading(Incoming {
            size,
            messages: iterations,
            is_reliable: plan.transport.is_reliable(),
        })?;
    }
    // Sending begins only when the other side's reader is ready.
    synchronise(side)?;
    let mut own = Tally::default();
    if sends {
        let message = vec![1; size];
        let start = side.clock();
        for _ in 0..iterations {
            side.send(&message)?;
        }
        own = Tally {
            messages: iterations,
            timed: iterations,
            picos: side.clock() - start,
        };
    }
    let theirs: Tally = swap(side, &own)?;
    let read = match receives {
        true => side.finish_reading(theirs.messages)?,
        false => Received::default(),
    };
    let there: Received = swap(side, &read)?;
    let received = read.rate(size) + there.rate(size);
    if plan.transport.is_reliable() && received == 0.0 {
        bail!(
            "--iterations {iterations}: all bytes came in one read, so there is no time between reads; send more"
        );
    }
    Ok(Stream {
        sent: own.messages + theirs.messages,
        sent_rate: match plan.transport.is_reliable() {
            true => received,
            false => own.rate() + theirs.rate(),
        },
        received: Some((read.messages + there.messages, received)),
    })
}

fn swap<T: Serialize + DeserializeOwned>(side: &mut dyn SocketSide, own: &T) -> Result<T> {
    side.oob_send(&serde_json::to_string(own)?)?;
    let words = side.receive_oob()?;
    serde_json::from_str(&words).context("cannot read the counts of the other side")
}

/// The use of each kind of resource during `time` picoseconds, the busiest first. A processor
/// belongs to the kind of work that took most of its time.
fn uses(before: &[Busy], after: &[Busy], time: u64) -> Vec<Use> {
    // For each resource: its busy time, and the time and kind of its longest work.
    let mut busy: BTreeMap<u64, (u64, u64, &'static str)> = BTreeMap::new();
    for one in after {
        let same = |known: &&Busy| (known.number, known.resource) == (one.number, one.resource);
        let earlier: u64 = before.iter().filter(same).map(|known| known.time).sum();
        let all = after
            .iter()
            .filter(same)
            .map(|known| known.time)
            .sum::<u64>();
        let own = busy.entry(one.number).or_default();
        own.0 += one.time;
        if all - earlier > own.1 {
            (own.1, own.2) = (all - earlier, one.resource);
        }
    }
    for one in before {
        busy.entry(one.number).or_default().0 -= one.time;
    }
    let mut uses: Vec<Use> = Vec::new();
    for (busy, _, resource) in busy.into_values().filter(|(_, longest, _)| *longest > 0) {
        let share = busy as f64 / time.max(1) as f64;
        match uses.iter_mut().find(|one| one.resource == resource) {
            Some(one) => one.share = one.share.max(share),
            None => uses.push(Use { resource, share }),
        }
    }
    uses.sort_by(|one, other| other.share.total_cmp(&one.share));
    uses
}
