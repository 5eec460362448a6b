//! Streams: as many messages under way as the send queue holds, by perftest's procedure.
//!
//! Each queue pair posts until it has `tx-depth` requests that are not complete; of every hundred messages one asks for a
//! completion, of long ones each does. The time is from the first post to the last completion. With two directions each end
//! measures what it sends, and the sum is told. What a transport without acknowledgement loses shows only at the receiver,
//! which measures for itself, from its first message to its last.

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::end::{End, HERE};
use crate::plan::{Transport, Verb};

/// What one end has seen of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tally {
    pub messages: usize,
    /// Those that came within `picos`: of received ones all but those that the first look found.
    pub timed: usize,
    /// Of sent messages from the first post to the last completion, of received ones from the first look to the last.
    pub picos: u64,
}

/// What both ends have seen, both directions added up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stream {
    pub sent: usize,
    /// Messages a second.
    pub sent_rate: f64,
    /// Only of sends: nobody counts the arrival of a write.
    pub received: Option<(usize, f64)>,
}

pub fn stream(end: &mut End, size: usize, iterations: usize) -> Result<Stream> {
    let client = end.place.is_client();
    let both = end.plan.bidirectional;
    let sends = client || both;
    let receives = end.plan.verb() == Verb::Send && (!client || both);
    let depth = end.plan.rx_depth(iterations);
    if receives {
        end.post_receives(depth)?;
    }
    end.place.oob_send(HERE)?;
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
    flow.run(end, receives)?;
    let own_sent = flow.sent.context("all that was posted is complete")?;
    let their_sent = match flow.theirs {
        Some(tally) => tally,
        None => tally(&end.place.hear()?)?,
    };
    let their_received = tally(&end.place.swap(&serde_json::to_string(&flow.received)?)?)?;
    let received = (end.plan.verb() == Verb::Send).then(|| {
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
    /// Messages a second.
    fn rate(self) -> f64 {
        match self.picos {
            0 => 0.0,
            picos => self.timed as f64 / picos as f64 * 1e12,
        }
    }
}

fn tally(words: &str) -> Result<Tally> {
    serde_json::from_str(words).context("what the other end has counted makes no sense")
}

struct Flow {
    size: usize,
    /// Messages of each queue pair.
    iterations: usize,
    depth: usize,
    /// When the other end was heard to be there, from when on messages may be sent.
    start: Option<u64>,
    /// When all that was posted is complete.
    sent: Option<Tally>,
    received: Tally,
    first: u64,
    /// What the other end has sent, once it says so.
    theirs: Option<Tally>,
}

impl Flow {
    fn run(&mut self, end: &mut End, receives: bool) -> Result<()> {
        let before: Vec<usize> = end.lanes.iter().map(|lane| lane.posted).collect();
        let mut silence = None;
        loop {
            let mut found = 0;
            if let (Some(start), None) = (self.start, self.sent) {
                found += self.send(end, &before, start)?;
            }
            if receives {
                found += self.receive(end)?;
            }
            if self.sent.is_some() && (!receives || self.all_here()) {
                return Ok(());
            }
            // Words come by a slow way, which is asked only while nothing else comes.
            if found == 0 && (self.start.is_none() || receives && self.theirs.is_none()) {
                found += self.listen(end)?;
            }
            if found > 0 {
                end.place.found()?;
                silence = None;
                continue;
            }
            let lossy = end.plan.transport != Transport::Rc;
            if self.sent.is_none() || self.theirs.is_none() || !lossy {
                end.place.idle(u64::MAX)?;
                continue;
            }
            // The rest may be lost: how long has nothing come?
            let (now, quiet) = (end.place.clock(), end.place.quiet());
            let since = *silence.get_or_insert(now);
            if now - since >= quiet * 1000 {
                return Ok(());
            }
            end.place.idle(quiet)?;
        }
    }

    /// First the other end says that it is there, then what it has sent.
    fn listen(&mut self, end: &mut End) -> Result<usize> {
        let Some(words) = end.place.oob_recv()? else {
            return Ok(0);
        };
        match (self.start, words == HERE) {
            (None, true) => self.start = Some(end.place.clock()),
            (None, false) => {
                bail!("the other end is somewhere else in the benchmark: it says {words:?}")
            }
            (Some(_), _) => self.theirs = Some(tally(&words)?),
        }
        Ok(1)
    }

    fn all_here(&self) -> bool {
        self.theirs
            .is_some_and(|theirs| theirs.messages == self.received.messages)
    }

    /// Posts what fits and takes completions; what it has moved.
    fn send(&mut self, end: &mut End, before: &[usize], start: u64) -> Result<usize> {
        let (depth, every) = (end.plan.tx_depth(), end.plan.signal_every(self.size));
        let mut moved = 0;
        let mut left = 0;
        for (lane, before) in before.iter().enumerate() {
            loop {
                let own = &end.lanes[lane];
                let message = own.posted - before;
                if message == self.iterations || own.under_way() == depth {
                    break;
                }
                let last = message + 1 == self.iterations;
                let offset = End::cycle(self.size, message);
                end.post(
                    lane,
                    self.size,
                    offset,
                    last || (message + 1).is_multiple_of(every),
                )?;
                moved += 1;
            }
            left += end.lanes[lane].under_way();
        }
        if left > 0 {
            let done = end.take_sent()?;
            moved += done;
            left -= done;
        }
        if left == 0
            && end
                .lanes
                .iter()
                .zip(before)
                .all(|(lane, before)| lane.posted - before == self.iterations)
        {
            let messages = self.iterations * end.lanes.len();
            let own = Tally {
                messages,
                timed: messages,
                picos: end.place.clock() - start,
            };
            self.sent = Some(own);
            end.place.oob_send(&serde_json::to_string(&own)?)?;
        }
        Ok(moved)
    }

    fn receive(&mut self, end: &mut End) -> Result<usize> {
        let count = end.take_received()?;
        if count > 0 {
            let now = end.place.clock();
            match self.received.messages {
                0 => self.first = now,
                _ => self.received.timed += count,
            }
            self.received.messages += count;
            self.received.picos = now - self.first;
            end.post_receives(self.depth)?;
        }
        Ok(count)
    }
}
