//! One side of a benchmark: its queue pairs, which are connected to those of the other side, and
//! the work requests that it posts.

mod connect;

use anyhow::{Context, Result, bail};
use device::{Address, Completion, Cq, Error, Operation, Qp, ReceiveQueue, Remote, Srq, Status};

use crate::benchmark::{TransportService, Verb};
use crate::counts::Requests;
use crate::memory::{Memory, Request};
use crate::plan::PerfPlan;
use crate::target::Target;
use connect::{Card, connect, create_qps, queues};

/// The most completions that one poll returns, as in perftest.
const BATCH: usize = 16;
/// The bytes of memory over which the messages of a stream rotate, so that they do not all use one
/// cache line.
const CYCLE: usize = 4096;
/// The size of a cache line of the processor, in bytes.
const LINE: usize = 64;

/// The text by which a side reports that it has reached a barrier.
pub(crate) const HERE: &str = "here";

/// One side of a benchmark of devices: its queue pairs, its memory, and its progress.
pub(crate) struct Side<'a> {
    pub(crate) target: &'a mut dyn Target,
    pub(crate) plan: &'a PerfPlan,
    memory: Memory,
    /// The size in bytes of one half of a queue pair's memory: one half is for outgoing messages,
    /// one for incoming.
    half: usize,
    send_cq: Cq,
    receive_cq: Cq,
    srq: Option<Srq>,
    pub(crate) qps: Vec<QpState>,
    theirs: Remote,
    inline: usize,
    sizes: Vec<usize>,
    pub(crate) requests: Requests,
}

/// A queue pair, with counts of its work requests.
pub(crate) struct QpState {
    qp: Qp,
    peer: Address,
    /// The number of work requests that have been posted to the send queue.
    pub(crate) posted: usize,
    /// The number of work requests that are known to be complete.
    pub(crate) complete: usize,
    /// The number of work requests posted after the last signaled one.
    unsignaled: usize,
    /// The number of receives that have been posted.
    receives: usize,
}

impl QpState {
    /// The number of work requests that are posted and not complete.
    pub(crate) fn under_way(&self) -> usize {
        self.posted - self.complete
    }
}

impl<'a> Side<'a> {
    /// Creates queue pairs and memory for `plan`, connects the queue pairs to the other side's, and
    /// waits until the other side is connected too.
    pub(crate) fn open(target: &'a mut dyn Target, plan: &'a PerfPlan) -> Result<Side<'a>> {
        let modelled = target.is_modelled();
        let device = target.device();
        let mtu = device.attributes().mtu;
        let inline = plan.inline(device.attributes().inline)?;
        let sizes = plan.sizes(mtu)?;
        let largest = *sizes.last().context("there is no size to measure")?;
        let longest = device.attributes().longest;
        if largest as u64 > longest {
            bail!("--size {largest}: this device sends at most {longest} bytes in one message");
        }
        let iterations = sizes
            .iter()
            .map(|size| plan.iterations(*size, modelled))
            .max();
        let rx_depth = match plan.verb() {
            Verb::Send => plan.rx_depth(iterations.unwrap_or(1)),
            _ => 1,
        };
        let half = largest.next_multiple_of(CYCLE);
        let memory = Memory::new(device, 2 * half * plan.qps).context("cannot register memory")?;
        let wanted = queues(device, plan, rx_depth, inline)?;
        let (mut qps, card) = create_qps(device, plan, &wanted, memory.region(), mtu)?;
        let theirs = target.swap(&serde_json::to_string(&card)?)?;
        let theirs: Card =
            serde_json::from_str(&theirs).context("cannot read the addresses of the other side")?;
        card.check(&theirs)?;
        connect(target.device(), plan, &mut qps, &theirs)?;
        let mut side = Side {
            target,
            plan,
            memory,
            half,
            send_cq: wanted.send_cq,
            receive_cq: wanted.receive_cq,
            srq: wanted.srq,
            qps,
            theirs: Remote {
                address: theirs.address,
                rkey: theirs.rkey,
            },
            inline,
            sizes,
            requests: Requests::default(),
        };
        side.synchronise()?;
        Ok(side)
    }

    pub(crate) fn sizes(&self) -> Vec<usize> {
        self.sizes.clone()
    }

    /// Waits at a barrier until the other side has reached the same point.
    pub(crate) fn synchronise(&mut self) -> Result<()> {
        match self.target.swap(HERE)?.as_str() {
            HERE => Ok(()),
            other => {
                bail!("the other side is at another point of the benchmark: it sent {other:?}")
            }
        }
    }

    /// The offset in memory of a queue pair's message, in its incoming or outgoing half.
    fn at(&self, qp: usize, coming: bool, offset: usize) -> usize {
        (2 * qp + usize::from(coming)) * self.half + offset
    }

    /// Posts a message on queue pair `qp`. `offset` is the message's offset in its half, on both
    /// sides.
    pub(crate) fn post(
        &mut self,
        qp: usize,
        size: usize,
        offset: usize,
        signaled: bool,
    ) -> Result<()> {
        let verb = self.plan.verb();
        let answered = matches!(verb, Verb::Read | Verb::Atomic);
        let at = self.at(qp, answered, offset);
        let there = Remote {
            address: self.theirs.address + self.at(qp, !answered, offset) as u64,
            rkey: self.theirs.rkey,
        };
        let own = &mut self.qps[qp];
        own.posted += 1;
        self.requests.work_requests += 1;
        own.unsignaled += 1;
        let request = Request {
            // The id has the queue pair in its upper half, and the number of completed work
            // requests in its lower half.
            id: (qp as u64) << 32 | own.unsignaled as u64,
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
            to: (self.plan.transport == TransportService::Ud).then_some(&own.peer),
        };
        if signaled {
            own.unsignaled = 0;
        }
        self.memory
            .post(self.target.device(), own.qp, &request)
            .with_context(|| format!("cannot post a {}", verb.name()))
    }

    /// The offset of a stream's message in its half: each message has its own cache lines, until
    /// [`CYCLE`] bytes are used.
    pub(crate) fn cycle(size: usize, message: usize) -> usize {
        let stride = size.next_multiple_of(LINE);
        message % (CYCLE / stride).max(1) * stride
    }

    /// Polls for completions of sends and returns the number of messages that they complete.
    pub(crate) fn take_sent(&mut self) -> Result<usize> {
        let mut some = [NONE; BATCH];
        let count = self.target.device().poll(self.send_cq, &mut some)?;
        self.requests.completions += count as u64;
        let mut done = 0;
        for one in &some[..count] {
            self.succeeded(one)?;
            let messages = one.id as u32 as usize;
            self.qps[(one.id >> 32) as usize].complete += messages;
            done += messages;
        }
        Ok(done)
    }

    /// Waits until all work requests of a queue pair are complete.
    pub(crate) fn await_sent(&mut self, qp: usize) -> Result<()> {
        while self.qps[qp].under_way() > 0 {
            match self.take_sent()? {
                0 => self.target.idle(u64::MAX)?,
                _ => self.target.found()?,
            }
        }
        Ok(())
    }

    /// Polls for completions of receives and returns their number.
    pub(crate) fn take_received(&mut self) -> Result<usize> {
        let mut some = [NONE; BATCH];
        let count = self.target.device().poll(self.receive_cq, &mut some)?;
        self.requests.completions += count as u64;
        for one in &some[..count] {
            self.succeeded(one)?;
            let qp = match self.srq {
                Some(_) => Some(0),
                None => self.qps.iter().position(|own| own.qp == one.qp),
            };
            if let Some(qp) = qp {
                self.qps[qp].receives -= 1;
            }
        }
        Ok(count)
    }

    /// Posts receives until each queue pair has `depth` of them.
    pub(crate) fn post_receives(&mut self, depth: usize) -> Result<()> {
        // Receives of a shared receive queue are counted at the first queue pair.
        let (queues, depth) = match self.srq {
            Some(_) => (1, depth * self.qps.len()),
            None => (self.qps.len(), depth),
        };
        for qp in 0..queues {
            let queue = match self.srq {
                Some(srq) => ReceiveQueue::Shared(srq),
                None => ReceiveQueue::Own(self.qps[qp].qp),
            };
            let at = self.at(qp, true, 0);
            while self.qps[qp].receives < depth {
                self.memory
                    .post_receive(self.target.device(), queue, at, self.half)
                    .context("cannot post a receive")?;
                self.qps[qp].receives += 1;
                self.requests.receives += 1;
            }
        }
        Ok(())
    }

    /// Sets the last byte of the outgoing message, for which the receiver polls.
    pub(crate) fn mark(&mut self, size: usize, value: u8) {
        let at = self.at(0, false, size - 1);
        self.memory.set_byte(at, value);
    }

    /// Clears the last byte of the incoming message, for which this side polls.
    pub(crate) fn clear(&mut self, size: usize) {
        let at = self.at(0, true, size - 1);
        self.memory.set_byte(at, 0);
    }

    /// Waits until the other side has written `value` to the last byte of the incoming message.
    pub(crate) fn await_mark(&mut self, size: usize, value: u8) -> Result<()> {
        let at = self.at(0, true, size - 1);
        loop {
            self.target.sync_memory();
            if self.memory.byte(at) == value {
                self.target.found()?;
                return Ok(());
            }
            self.target.idle(u64::MAX)?;
        }
    }

    fn succeeded(&mut self, one: &Completion) -> Result<()> {
        if one.status == Status::Success {
            return Ok(());
        }
        let name = self.target.device().attributes().name.clone();
        let advice = match one.status {
            Status::RetryExceeded => "; the other side has ended, or the path to it is broken",
            Status::RnrRetryExceeded => {
                "; the other side posts receives too slowly: post more with --rx-depth"
            }
            Status::Flushed => "; the queue pair had failed before",
            _ => "",
        };
        bail!(
            "{name}, queue pair {}: {}{advice}",
            one.qp.0,
            one.status.words()
        )
    }

    /// Destroys the queue pairs and deregisters the memory. If it fails, the device may still
    /// access the memory.
    fn close(&mut self) -> std::result::Result<(), Error> {
        let device = self.target.device();
        for own in &self.qps {
            device.destroy_qp(own.qp)?;
        }
        self.memory.deregister(device)
    }
}

impl Drop for Side<'_> {
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
