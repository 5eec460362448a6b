//! The verbs of a device over TCP.

use device::check;
use device::{
    Access, Address, Attributes, Completed, Completion, Cq, Device, Ending, Error, Operation, Qp,
    QpWanted, ReceiveQueue, Region, Result, Slice, Srq, State, Transport, Work,
};

use super::device::{Split, TcpDevice};
use super::frame::{Break, Done, Host, MOST_REQUESTS, RECEIVE_SLICES, Receive, Right};
use super::pair::{Line, Pair};
use super::queues::{self, CompletionQueue};

/// The most queue pairs of a device: their numbers have half of an address's 32 bits, the other
/// half is the port of the listener.
const PAIRS: usize = 1 << 16;
/// The most slices of memory that a work request may have.
const SEND_SLICES: usize = 8;
/// The most entries that a queue may have.
const DEEPEST: usize = 1 << 20;

impl Device for TcpDevice {
    fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    unsafe fn register(&mut self, address: *mut u8, len: usize, access: Access) -> Result<Region> {
        let address = address as u64;
        check::register(address, len, access).or_else(|why| self.invalid(why))?;
        match self.regions.add(address, len as u64, access) {
            Some(region) => Ok(region),
            None => self.invalid("it holds no more regions".into()),
        }
    }

    fn deregister(&mut self, region: Region) -> Result<()> {
        match self.regions.remove(region.lkey) {
            true => Ok(()),
            false => self.invalid(format!("key {:#x} is of no region of it", region.lkey)),
        }
    }

    fn create_cq(&mut self, depth: usize) -> Result<Cq> {
        if depth > DEEPEST {
            return self.invalid(format!("{depth} completions; it holds at most {DEEPEST}"));
        }
        self.cqs.push(CompletionQueue::default());
        Ok(Cq(self.cqs.len() as u32 - 1))
    }

    fn create_srq(&mut self, depth: usize) -> Result<Srq> {
        if depth > DEEPEST {
            return self.invalid(format!("{depth} receives; it holds at most {DEEPEST}"));
        }
        self.srqs.push(queues::ReceiveQueue::new(depth));
        Ok(Srq(self.srqs.len() as u32 - 1))
    }

    fn create_qp(&mut self, wanted: &QpWanted) -> Result<Qp> {
        check::shares(wanted.transport, wanted.srq.is_some()).or_else(|why| self.invalid(why))?;
        if wanted.transport != Transport::Rc {
            return self.invalid("it has reliable connections only".into());
        }
        let most = self.attributes.inline;
        if wanted.inline > most {
            let inline = wanted.inline;
            return self.invalid(format!("{inline} bytes inline; it takes at most {most}"));
        }
        if wanted.sends > MOST_REQUESTS || wanted.receives > DEEPEST {
            let (sends, receives) = (wanted.sends, wanted.receives);
            return self.invalid(format!(
                "{sends} sends and {receives} receives; it holds at most {MOST_REQUESTS} and {DEEPEST}"
            ));
        }
        let has = |number: Cq| (number.0 as usize) < self.cqs.len();
        if !has(wanted.send_cq) || !has(wanted.receive_cq) {
            return self.invalid("a completion queue that is not of this device".into());
        }
        if wanted
            .srq
            .is_some_and(|srq| srq.0 as usize >= self.srqs.len())
        {
            return self.invalid("a shared receive queue that is not of this device".into());
        }
        if self.pairs.len() == PAIRS {
            return self.invalid(format!("it has had {PAIRS} queue pairs"));
        }
        let qp = Qp(self.pairs.len() as u32);
        self.pairs.push(Some(Box::new(Pair::new(qp, wanted))));
        self.await_call(qp.0);
        Ok(qp)
    }

    fn destroy_qp(&mut self, qp: Qp) -> Result<()> {
        self.pair(qp)?;
        self.end_line(qp.0);
        self.owing.retain(|owing| *owing != qp.0);
        self.calls.forget(qp.0);
        if let Some(Some(pair)) = self.pairs.get_mut(qp.0 as usize) {
            pair.state = State::Error;
        }
        self.update_listener(qp.0);
        self.pairs[qp.0 as usize] = None;
        self.cqs.iter_mut().for_each(|cq| cq.forget(qp));
        Ok(())
    }

    fn address(&self, qp: Qp) -> Result<Address> {
        self.pair(qp)?;
        Ok(self.own_address(qp.0))
    }

    fn connect(&mut self, qp: Qp, peer: Option<Address>) -> Result<()> {
        let state = self.pair(qp)?.state;
        let own = self.own_address(qp.0);
        let number = qp.0;
        let connected = check::connect(Transport::Rc, state, peer);
        connected.or_else(|why| self.invalid(format!("queue pair {number}: {why}")))?;
        let Some(peer) = peer else { return Ok(()) };
        if peer == own {
            return self.invalid(format!("queue pair {number} cannot be connected to itself"));
        }
        let now = self.now();
        if let Some(Some(pair)) = self.pairs.get_mut(number as usize) {
            pair.peer = Some(peer);
            pair.state = State::Rts;
            pair.line = Line::Waiting {
                until: Some(now + super::connecting::SILENCE_NS),
            };
            // The peer makes the same comparison.
            pair.is_caller = (own.port, own.qp) < (peer.port, peer.qp);
        }
        match (own.port, own.qp) < (peer.port, peer.qp) {
            true => self.call(number, 0),
            false => self.take_parked(number),
        }
        self.update_listener(number);
        Ok(())
    }

    fn state(&self, qp: Qp) -> Result<State> {
        Ok(self.pair(qp)?.state)
    }

    fn modify(&mut self, qp: Qp, to: Ending) -> Result<()> {
        self.pair(qp)?;
        match to {
            Ending::Error => self.fail(qp.0, Break::Ended),
            Ending::Reset => {
                self.end_line(qp.0);
                self.cqs.iter_mut().for_each(|cq| cq.forget(qp));
                if let Some(Some(pair)) = self.pairs.get_mut(qp.0 as usize) {
                    pair.state = State::Reset;
                    pair.begin_anew();
                }
                self.await_call(qp.0);
            }
        }
        Ok(())
    }

    unsafe fn post(&mut self, qp: Qp, work: &Work) -> Result<()> {
        let pair = self.pair(qp)?;
        let limits = check::Limits {
            transport: Transport::Rc,
            state: pair.state,
            inline: pair.wanted.inline as u64,
            mtu: 0,
            longest: self.attributes.longest,
            immediates: true,
        };
        let len = match check::work(work, &limits) {
            Ok(len) if work.local.len() <= SEND_SLICES => len,
            Ok(_) => {
                return self.invalid(format!("a request names at most {SEND_SLICES} slices"));
            }
            Err(why) => return self.invalid(format!("queue pair {}: {why}", qp.0)),
        };
        if pair.held >= pair.wanted.sends {
            return Err(Error::Full);
        }
        let vain = match (pair.state, &pair.line) {
            (State::Error, _) => Some(Vain::Flushed),
            _ if !self.check_memory(work) => Some(Vain::BadMemory),
            (_, Line::Gone) => Some(Vain::Gone),
            _ => None,
        };
        if let Some(Some(pair)) = self.pairs.get_mut(qp.0 as usize) {
            pair.held += 1;
        }
        match vain {
            None => self.execute(qp.0, work, len),
            Some(why) => self.post_in_vain(qp.0, work, why),
        }
        Ok(())
    }

    fn cork(&mut self) {
        self.corks = true;
    }

    fn uncork(&mut self) {
        self.corks = false;
        if !self.corked.is_empty() {
            self.send_corked();
        }
    }

    #[inline]
    fn is_corked(&self, qp: Qp) -> bool {
        self.pair(qp).is_ok_and(|pair| pair.cork.is_in())
    }

    unsafe fn post_receive(&mut self, queue: ReceiveQueue, id: u64, into: &[Slice]) -> Result<()> {
        if into.len() > RECEIVE_SLICES {
            return self.invalid(format!("a receive names at most {RECEIVE_SLICES} slices"));
        }
        let none = Slice {
            address: 0,
            len: 0,
            lkey: 0,
        };
        let mut slices = [none; RECEIVE_SLICES];
        slices[..into.len()].copy_from_slice(into);
        let receive = Receive {
            id,
            into: slices,
            slices: into.len(),
            is_shared: matches!(queue, ReceiveQueue::Shared(_)),
        };
        let taken = match queue {
            ReceiveQueue::Shared(srq) => match self.srqs.get_mut(srq.0 as usize) {
                Some(own) => own.add(receive),
                None => {
                    return self
                        .invalid("a shared receive queue that is not of this device".into());
                }
            },
            ReceiveQueue::Own(qp) => {
                let (state, srq) = {
                    let pair = self.pair(qp)?;
                    (pair.state, pair.wanted.srq)
                };
                if srq.is_some() {
                    let number = qp.0;
                    return self.invalid(format!(
                        "queue pair {number}: it takes its receives from a shared queue"
                    ));
                }
                let Some(mut split) = self.split(qp.0) else {
                    return Ok(());
                };
                let taken = split.place.receives.add(receive);
                if state == State::Error {
                    split.place.flush_receives();
                }
                taken
            }
        };
        match taken {
            true => Ok(()),
            false => Err(Error::Full),
        }
    }

    #[inline]
    fn poll(&mut self, cq: Cq, into: &mut [Completion]) -> Result<usize> {
        if cq.0 as usize >= self.cqs.len() {
            return self.invalid(format!("completion queue {} is not of this device", cq.0));
        }
        if self.cqs[cq.0 as usize].is_empty() && !std::mem::take(&mut self.is_fresh) {
            self.progress();
            self.memory_is_fresh = self.has_read;
        }
        let mut count = 0;
        while count < into.len()
            && let Some((completion, retires)) = self.cqs[cq.0 as usize].take()
        {
            into[count] = completion;
            count += 1;
            if retires > 0
                && let Some(Some(pair)) = self.pairs.get_mut(completion.qp.0 as usize)
            {
                pair.held -= retires as usize;
            }
        }
        Ok(count)
    }

    #[inline]
    fn sync_memory(&mut self) {
        if !std::mem::take(&mut self.memory_is_fresh) {
            self.progress();
            self.is_fresh = true;
        }
    }
}

impl Drop for TcpDevice {
    fn drop(&mut self) {
        self.leave();
    }
}

impl TcpDevice {
    /// True if the local memory of a request is registered for its access.
    #[inline]
    fn check_memory(&self, work: &Work) -> bool {
        if work.inline {
            return true;
        }
        let right = match work.operation {
            Operation::Write { .. } | Operation::Send { .. } => Right::LocalRead,
            _ => Right::LocalWrite,
        };
        let mut slices = work.local.iter().filter(|slice| slice.len > 0);
        slices.all(|slice| {
            let Slice { address, len, lkey } = *slice;
            self.regions.allows(lkey, address, len.into(), right)
        })
    }

    /// Adds a request that completes with an error, behind the earlier requests.
    #[cold]
    fn post_in_vain(&mut self, at: u32, work: &Work, why: Vain) {
        let of = completed(&work.operation);
        let Some(Split {
            machine, mut place, ..
        }) = self.split(at)
        else {
            return;
        };
        let end = match why {
            Vain::Flushed => {
                let done = Done {
                    id: work.id,
                    of,
                    status: device::Status::Flushed,
                    bytes: 0,
                    immediate: None,
                    retires: 1,
                };
                place.complete(done, false);
                return;
            }
            Vain::BadMemory => {
                let status = device::Status::LocalProtection;
                machine.fail_locally(work, of, status, &mut place)
            }
            Vain::Gone => {
                machine.begin(work, 0);
                Err(Break::Lost)
            }
        };
        if let Err(why) = end {
            self.fail(at, why);
        }
    }
}

/// The reason why a posted request is not executed.
enum Vain {
    /// The queue pair is in the state ERROR.
    Flushed,
    /// A local key does not allow the access.
    BadMemory,
    /// The connection of the queue pair has ended.
    Gone,
}

fn completed(operation: &Operation) -> Completed {
    match operation {
        Operation::Write { .. } => Completed::Write,
        Operation::Send { .. } => Completed::Send,
        Operation::Read { .. } => Completed::Read,
        Operation::CompareAndSwap { .. } | Operation::FetchAndAdd { .. } => Completed::Atomic,
    }
}
