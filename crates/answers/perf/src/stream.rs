//! Streams: as many outstanding messages as the send queue can have, by perftest's procedure.
//!
//! Each queue pair posts until it has `tx-depth` outstanding work requests. One of a hundred short
//! messages is signaled, and each long one. The time is measured from the first post to the last
//! completion.
//!
//! With two directions, each side measures the messages that it sends, and the result is the sum.
//! On a transport service without acknowledgements only the receiver notices losses; it measures
//! from its first message to its last.

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::benchmark::Verb;
use crate::side::{HERE, Side};

/// The number of messages of one side in one direction, and their time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tally {
    /// The number of messages that were sent or received.
    pub messages: usize,
    /// The number of messages within `picos`: of received ones, all except those of the first poll.
    pub timed: usize,
    /// The time in picoseconds: for sent messages from the first post to the last completion, for
    /// received ones from the first successful poll to the last.
    pub picos: u64,
}

/// The result of a stream of messages, summed over both directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stream {
    /// The number of sent messages.
    pub sent: usize,
    /// The number of sent messages per second.
    pub sent_rate: f64,
    /// The number of received messages, and their number per second; only for sends, because the
    /// arrival of a write is not counted.
    pub received: Option<(usize, f64)>,
}

/// Runs this side of a stream of `iterations` messages of `size` bytes on each queue pair.
pub(crate) fn stream(side: &mut Side, size: usize, iterations: usize) -> Result<Stream> {
    let client = side.target.is_client();
    let both = side.plan.bidirectional;
    let sends = client || both;
    let receives = side.plan.verb() == Verb::Send && (!client || both);
    let depth = side.plan.rx_depth(iterations);
    if receives {
        side.post_receives(depth)?;
    }
    side.target.oob_send(HERE)?;
    let mut flow = Flow {
        size,
        iterations: if sends { iterations } else { 0 },
        depth,
        start: None,
        sent: None,
        received: Tally::default(),
        first: 0,
        theirs: None,
    };
    flow.run(side, receives)?;
    let own_sent = flow
        .sent
        .context("the stream ended before all its messages were sent")?;
    let their_sent = match flow.theirs {
        Some(tally) => tally,
        None => tally(&side.target.receive_oob()?)?,
    };
    let their_received = tally(&side.target.swap(&serde_json::to_string(&flow.received)?)?)?;
    let received = (side.plan.verb() == Verb::Send).then(|| {
        let (own, theirs) = (flow.received, their_received);
        (own.messages + theirs.messages, own.rate() + theirs.rate())
    });
    Ok(Stream {
        sent: own_sent.messages + their_sent.messages,
        sent_rate: own_sent.rate() + their_sent.rate(),
        received,
    })
}

impl Tally {
    /// The rate of the counted messages, in messages per second.
    pub(crate) fn rate(self) -> f64 {
        match self.picos {
            0 => 0.0,
            picos => self.timed as f64 / picos as f64 * 1e12,
        }
    }
}

fn tally(words: &str) -> Result<Tally> {
    serde_json::from_str(words).context("cannot read the counts of the other side")
}

/// The state of the benchmark's stream of messages on this side.
struct Flow {
    size: usize,
    /// The number of messages to send on each queue pair.
    iterations: usize,
    depth: usize,
    /// The time when the other side was ready, in picoseconds; messages are sent from then on.
    /// `None`: it is not ready yet.
    start: Option<u64>,
    /// This side's count of sent messages; `None` until all are complete.
    sent: Option<Tally>,
    received: Tally,
    first: u64,
    /// The other side's count of sent messages; `None` until it has arrived.
    theirs: Option<Tally>,
}

impl Flow {
    fn run(&mut self, side: &mut Side, receives: bool) -> Result<()> {
        let before: Vec<usize> = side.qps.iter().map(|own| own.posted).collect();
        let mut silence = None;
        loop {
            let mut found = 0;
            if let (Some(start), None) = (self.start, self.sent) {
                found += self.send(side, &before, start)?;
            }
            if receives {
                found += self.receive(side)?;
            }
            if self.sent.is_some() && (!receives || self.all_received()) {
                return Ok(());
            }
            // The control connection is slow, so it is polled only while nothing else arrives.
            if found == 0 && (self.start.is_none() || receives && self.theirs.is_none()) {
                found += self.listen(side)?;
            }
            if found > 0 {
                side.target.found()?;
                silence = None;
                continue;
            }
            let lossy = !side.plan.transport.is_reliable();
            if self.sent.is_none() || self.theirs.is_none() || !lossy {
                side.target.idle(u64::MAX)?;
                continue;
            }
            // The missing messages may be lost, so stop after a time without arrivals.
            let (now, quiet) = (side.target.clock(), side.target.quiet());
            let since = *silence.get_or_insert(now);
            if now - since >= quiet * 1000 {
                return Ok(());
            }
            side.target.idle(quiet)?;
        }
    }

    /// Polls for the texts of the other side: first that it is ready, then its count.
    fn listen(&mut self, side: &mut Side) -> Result<usize> {
        let Some(words) = side.target.oob_recv()? else {
            return Ok(0);
        };
        match (self.start, words == HERE) {
            (None, true) => self.start = Some(side.target.clock()),
            (None, false) => {
                bail!("the other side is at another point of the benchmark: it sent {words:?}")
            }
            (Some(_), _) => self.theirs = Some(tally(&words)?),
        }
        Ok(1)
    }

    fn all_received(&self) -> bool {
        self.theirs
            .is_some_and(|theirs| theirs.messages == self.received.messages)
    }

    /// Posts messages while the send queues have room, and polls for completions. Returns the
    /// number of posts and completions.
    fn send(&mut self, side: &mut Side, before: &[usize], start: u64) -> Result<usize> {
        let (depth, every) = (side.plan.tx_depth(), side.plan.signal_every(self.size));
        let mut moved = 0;
        let mut left = 0;
        for (qp, before) in before.iter().enumerate() {
            loop {
                let own = &side.qps[qp];
                let message = own.posted - before;
                if message == self.iterations || own.under_way() == depth {
                    break;
                }
                let last = message + 1 == self.iterations;
                let offset = Side::cycle(self.size, message);
                side.post(
                    qp,
                    self.size,
                    offset,
                    last || (message + 1).is_multiple_of(every),
                )?;
                moved += 1;
            }
            left += side.qps[qp].under_way();
        }
        if left > 0 {
            let done = side.take_sent()?;
            moved += done;
            left -= done;
        }
        if left == 0
            && side
                .qps
                .iter()
                .zip(before)
                .all(|(own, before)| own.posted - before == self.iterations)
        {
            let messages = self.iterations * side.qps.len();
            let own = Tally {
                messages,
                timed: messages,
                picos: side.target.clock() - start,
            };
            self.sent = Some(own);
            side.target.oob_send(&serde_json::to_string(&own)?)?;
        }
        Ok(moved)
    }

    fn receive(&mut self, side: &mut Side) -> Result<usize> {
        let count = side.take_received()?;
        if count > 0 {
            let now = side.target.clock();
            match self.received.messages {
                0 => self.first = now,
                _ => self.received.timed += count,
            }
            self.received.messages += count;
            self.received.picos = now - self.first;
            side.post_receives(self.depth)?;
        }
        Ok(count)
    }
}
