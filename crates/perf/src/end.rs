//! One end of a benchmark: its queue pairs, tied to the other end's, and what is posted to them.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use device::{
    Address, Completion, Cq, Error, Operation, Qp, QpWanted, ReceiveQueue, Remote, Srq, State,
    Status,
};
use serde::{Deserialize, Serialize};

use crate::counts::Asked;
use crate::memory::{Memory, Request};
use crate::plan::{Plan, Transport, Verb};
use crate::target::Place;

/// Completions taken at once, as perftest does.
const BATCH: usize = 16;
/// Messages of a stream go through so many bytes of memory in turn, lest they all use one cache line.
const CYCLE: usize = 4096;
const LINE: usize = 64;
/// How long the other end may take to connect.
const PATIENCE: Duration = Duration::from_secs(10);

/// What an end says when it is as far as the other has to be.
pub const HERE: &str = "here";

pub struct End<'a> {
    pub place: &'a mut dyn Place,
    pub plan: &'a Plan,
    memory: Memory,
    /// Bytes of one half of a queue pair's memory: what it sends, and what comes.
    half: usize,
    send_cq: Cq,
    receive_cq: Cq,
    srq: Option<Srq>,
    pub lanes: Vec<QpState>,
    theirs: Remote,
    inline: usize,
    sizes: Vec<usize>,
    pub asked: Asked,
}

/// A queue pair, and what is under way on it.
pub struct QpState {
    qp: Qp,
    peer: Address,
    /// Work requests posted, and those known to be complete.
    pub posted: usize,
    pub complete: usize,
    /// Of the requests posted since, none had a completion.
    silent: usize,
    /// Receives that wait for a message.
    waiting: usize,
}

impl QpState {
    pub fn under_way(&self) -> usize {
        self.posted - self.complete
    }
}

/// What an end tells the other before the first message.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Card {
    /// Ports and numbers of its queue pairs, in hexadecimal, lest a number be too long for JSON.
    ports: Vec<String>,
    qps: Vec<u32>,
    address: u64,
    rkey: u32,
    mtu: usize,
}

impl<'a> End<'a> {
    pub fn open(place: &'a mut dyn Place, plan: &'a Plan) -> Result<End<'a>> {
        let transport: device::Transport = plan.transport.into();
        let modelled = place.is_modelled();
        let device = place.device();
        let (mtu, limit) = (device.attributes().mtu, device.attributes().inline);
        let longest = device.attributes().longest;
        let inline = plan.inline(limit)?;
        let sizes = plan.sizes(mtu)?;
        let largest = *sizes.last().context("there is no size to measure")?;
        if largest as u64 > longest {
            bail!("--size {largest}: this device sends at most {longest} bytes in one message");
        }
        let iterations = sizes
            .iter()
            .map(|size| plan.iterations(*size, modelled))
            .max();
        let tx_depth = plan.tx_depth();
        let rx_depth = match plan.verb() {
            Verb::Send => plan.rx_depth(iterations.unwrap_or(1)),
            _ => 1,
        };
        let half = largest.next_multiple_of(CYCLE);
        let memory = Memory::new(device, 2 * half * plan.qps).context("cannot register memory")?;
        let send_cq = device.create_cq(tx_depth * plan.qps)?;
        let receive_cq = device.create_cq(rx_depth * plan.qps)?;
        let srq = match plan.srq {
            true => Some(device.create_srq(rx_depth * plan.qps)?),
            false => None,
        };
        let wanted = QpWanted {
            transport,
            send_cq,
            receive_cq,
            srq,
            sends: tx_depth,
            receives: rx_depth,
            inline,
        };
        let mut lanes = Vec::new();
        let mut card = Card {
            ports: Vec::new(),
            qps: Vec::new(),
            address: memory.region().address,
            rkey: memory.region().rkey,
            mtu,
        };
        for _ in 0..plan.qps {
            let qp = device
                .create_qp(&wanted)
                .context("cannot create a queue pair")?;
            let own = device.address(qp)?;
            card.ports.push(format!("{:x}", own.port));
            card.qps.push(own.qp);
            lanes.push(QpState {
                qp,
                peer: own,
                posted: 0,
                complete: 0,
                silent: 0,
                waiting: 0,
            });
        }
        let theirs = place.swap(&serde_json::to_string(&card)?)?;
        let theirs: Card =
            serde_json::from_str(&theirs).context("the other end's address makes no sense")?;
        if theirs.qps.len() != plan.qps || theirs.ports.len() != plan.qps {
            bail!(
                "the other end has {} queue pairs, this one {}",
                theirs.qps.len(),
                plan.qps
            );
        }
        if theirs.mtu != mtu {
            bail!(
                "the other end's MTU is {}, this one's {mtu}: name one with --mtu",
                theirs.mtu
            );
        }
        let device = place.device();
        for ((lane, port), &qp) in lanes.iter_mut().zip(&theirs.ports).zip(&theirs.qps) {
            let port =
                u128::from_str_radix(port, 16).context("the other end's port makes no sense")?;
            lane.peer = Address { port, qp };
            let tied = (plan.transport != Transport::Ud).then_some(lane.peer);
            device
                .connect(lane.qp, tied)
                .context("cannot connect a queue pair")?;
        }
        let until = Instant::now() + PATIENCE;
        for lane in &lanes {
            while device
                .state(lane.qp)
                .context("cannot connect a queue pair")?
                == State::Connecting
            {
                if Instant::now() > until {
                    let seconds = PATIENCE.as_secs();
                    bail!("cannot connect a queue pair: the other end has not in {seconds} s");
                }
                std::thread::sleep(Duration::from_micros(100));
            }
        }
        let mut end = End {
            place,
            plan,
            memory,
            half,
            send_cq,
            receive_cq,
            srq,
            lanes,
            theirs: Remote {
                address: theirs.address,
                rkey: theirs.rkey,
            },
            inline,
            sizes,
            asked: Asked::default(),
        };
        end.meet()?;
        Ok(end)
    }

    pub fn sizes(&self) -> Vec<usize> {
        self.sizes.clone()
    }

    /// Goes on when the other end is as far.
    pub fn meet(&mut self) -> Result<()> {
        match self.place.swap(HERE)?.as_str() {
            HERE => Ok(()),
            other => bail!("the other end is somewhere else in the benchmark: it says {other:?}"),
        }
    }

    /// Where a lane's message lies: in the half that goes out, or in the one that comes in.
    fn at(&self, lane: usize, coming: bool, offset: usize) -> usize {
        (2 * lane + usize::from(coming)) * self.half + offset
    }

    /// Posts a message of a lane's. `offset` is in its half, here and at the other end.
    pub fn post(&mut self, lane: usize, size: usize, offset: usize, signaled: bool) -> Result<()> {
        let verb = self.plan.verb();
        let answered = matches!(verb, Verb::Read | Verb::Atomic);
        let at = self.at(lane, answered, offset);
        let there = Remote {
            address: self.theirs.address + self.at(lane, !answered, offset) as u64,
            rkey: self.theirs.rkey,
        };
        let own = &mut self.lanes[lane];
        own.posted += 1;
        self.asked.work_requests += 1;
        own.silent += 1;
        let request = Request {
            // What its completion tells: whose it is, and how many are done with it.
            id: (lane as u64) << 32 | own.silent as u64,
            operation: match verb {
                Verb::Write => Operation::Write {
                    to: there,
                    immediate: None,
                },
                Verb::Read => Operation::Read { from: there },
                Verb::Send => Operation::Send { immediate: None },
                Verb::Atomic => Operation::FetchAndAdd { at: there, add: 1 },
            },
            at,
            len: size,
            inline: !answered && size <= self.inline,
            signaled,
            to: (self.plan.transport == Transport::Ud).then_some(&own.peer),
        };
        if signaled {
            own.silent = 0;
        }
        self.memory
            .post(self.place.device(), own.qp, &request)
            .with_context(|| format!("cannot post a {}", verb.name()))
    }

    /// Where a stream's message lies in its half: each on lines of its own, as many as fit in some 4 KiB.
    pub fn cycle(size: usize, message: usize) -> usize {
        let stride = size.next_multiple_of(LINE);
        message % (CYCLE / stride).max(1) * stride
    }

    /// Takes completions of what was posted; how many messages are done.
    pub fn take_sent(&mut self) -> Result<usize> {
        let mut some = [NONE; BATCH];
        let count = self.place.device().poll(self.send_cq, &mut some)?;
        self.asked.completions += count as u64;
        let mut done = 0;
        for one in &some[..count] {
            self.succeeded(one)?;
            let messages = one.id as u32 as usize;
            self.lanes[(one.id >> 32) as usize].complete += messages;
            done += messages;
        }
        Ok(done)
    }

    /// Waits until all that a lane has posted is complete.
    pub fn await_sent(&mut self, lane: usize) -> Result<()> {
        while self.lanes[lane].under_way() > 0 {
            match self.take_sent()? {
                0 => self.place.idle(u64::MAX)?,
                _ => self.place.found()?,
            }
        }
        Ok(())
    }

    /// Takes completions of receives; how many.
    pub fn take_received(&mut self) -> Result<usize> {
        let mut some = [NONE; BATCH];
        let count = self.place.device().poll(self.receive_cq, &mut some)?;
        self.asked.completions += count as u64;
        for one in &some[..count] {
            self.succeeded(one)?;
            let lane = match self.srq {
                Some(_) => Some(0),
                None => self.lanes.iter().position(|lane| lane.qp == one.qp),
            };
            if let Some(lane) = lane {
                self.lanes[lane].waiting -= 1;
            }
        }
        Ok(count)
    }

    /// Posts receives until as many wait as there shall, one queue pair after the other.
    pub fn post_receives(&mut self, depth: usize) -> Result<()> {
        // A shared queue is the first lane's, for all of them.
        let (queues, depth) = match self.srq {
            Some(_) => (1, depth * self.lanes.len()),
            None => (self.lanes.len(), depth),
        };
        for lane in 0..queues {
            let queue = match self.srq {
                Some(srq) => ReceiveQueue::Shared(srq),
                None => ReceiveQueue::Own(self.lanes[lane].qp),
            };
            let at = self.at(lane, true, 0);
            while self.lanes[lane].waiting < depth {
                self.memory
                    .post_receive(self.place.device(), queue, at, self.half)
                    .context("cannot post a receive")?;
                self.lanes[lane].waiting += 1;
                self.asked.receives += 1;
            }
        }
        Ok(())
    }

    /// The last byte of a message as it goes out.
    pub fn mark(&mut self, size: usize, value: u8) {
        let at = self.at(0, false, size - 1);
        self.memory.set_byte(at, value);
    }

    /// The last byte of where messages come in.
    pub fn clear(&mut self, size: usize) {
        let at = self.at(0, true, size - 1);
        self.memory.set_byte(at, 0);
    }

    /// Waits until the other end has written this into the last byte.
    pub fn await_mark(&mut self, size: usize, value: u8) -> Result<()> {
        let at = self.at(0, true, size - 1);
        loop {
            self.place.sync_memory();
            if self.memory.byte(at) == value {
                self.place.found()?;
                return Ok(());
            }
            self.place.idle(u64::MAX)?;
        }
    }

    fn succeeded(&mut self, one: &Completion) -> Result<()> {
        if one.status == Status::Success {
            return Ok(());
        }
        let name = self.place.device().attributes().name.clone();
        let advice = match one.status {
            Status::RetryExceeded => "; the other end has gone, or the way to it is broken",
            Status::RnrRetryExceeded => {
                "; the other end posts receives too slowly: more with --rx-depth"
            }
            Status::Flushed => "; the queue pair was broken before",
            _ => "",
        };
        bail!(
            "{name}, queue pair {}: {}{advice}",
            one.qp.0,
            one.status.words()
        )
    }

    /// Gives everything back. An error where the device refuses; then the memory stays with it.
    fn close(&mut self) -> std::result::Result<(), Error> {
        let device = self.place.device();
        for lane in &self.lanes {
            device.destroy_qp(lane.qp)?;
        }
        self.memory.deregister(device)
    }
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        if self.close().is_err() {
            self.memory.keep();
        }
    }
}

const NONE: Completion = Completion {
    id: 0,
    qp: Qp(0),
    status: Status::Success,
    of: device::Completed::Send,
    bytes: 0,
    immediate: None,
};
