//! A queue pair to one peer, and the account of its send queue.
//!
//! Only some requests ask for a completion; one that comes says that all before it are done too. What must always
//! hold: no more requests are posted than the queue holds, and the last of any `SIGNAL` in a row asks for a completion,
//! so that room is never lost.

use std::collections::VecDeque;

use device::{
    Address, Cq, Node, Operation, Qp, QpWanted, ReceiveQueue, Slice, Srq, Transport, Work,
};

use crate::Result;

/// Requests from one completion to the next.
pub const SIGNAL: u32 = 8;
/// Requests that are posted and not known to be done, at most.
pub const DEPTH: u32 = 128;

/// The longest request that takes its payload along, where the device can.
pub const INLINE: usize = 256;

/// What a queue pair is for. In the number of each of its requests, so that completions find their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QpRole {
    Control = 0,
    Bulk = 1,
}

/// What a completion is about.
pub fn id(peer: usize, lane: QpRole) -> u64 {
    (peer as u64) << 1 | lane as u64
}

pub fn of_id(id: u64) -> (usize, QpRole) {
    let lane = if id & 1 == 0 {
        QpRole::Control
    } else {
        QpRole::Bulk
    };
    ((id >> 1) as usize, lane)
}

pub struct Link {
    pub rail: usize,
    pub qp: Qp,
    id: u64,
    inline: usize,
    held: u32,
    since_signal: u32,
    /// For each completion to come: how many requests are done with it, and what the last of them was.
    signals: VecDeque<(u32, u64)>,
}

/// Where the completions of a queue pair come from.
#[derive(Clone, Copy)]
pub struct Queues {
    pub cq: Cq,
    pub srq: Option<Srq>,
    /// Receives of its own.
    pub receives: usize,
}

/// What is written where.
pub struct Write<'a> {
    pub from: &'a [Slice],
    pub to: device::Remote,
    pub immediate: Option<u32>,
    /// Ask for a completion.
    pub signaled: bool,
    /// What the completion says is done.
    pub note: u64,
}

impl Link {
    pub fn open(
        node: &mut dyn Node,
        rail: usize,
        peer: usize,
        lane: QpRole,
        queues: Queues,
    ) -> Result<Link> {
        let device = node.rail(rail);
        let inline = device.attributes().inline.min(INLINE);
        let wanted = QpWanted {
            transport: Transport::Rc,
            send_cq: queues.cq,
            receive_cq: queues.cq,
            srq: queues.srq,
            sends: DEPTH as usize,
            receives: queues.receives,
            inline,
        };
        Ok(Link {
            rail,
            qp: device.create_qp(&wanted)?,
            id: id(peer, lane),
            inline,
            held: 0,
            since_signal: 0,
            signals: VecDeque::new(),
        })
    }

    pub fn takes_inline(&self, len: usize) -> bool {
        len <= self.inline
    }

    pub fn address(&self, node: &mut dyn Node) -> Result<Address> {
        Ok(node.rail(self.rail).address(self.qp)?)
    }

    /// Requests that are posted and not known to be done.
    #[inline(always)]
    pub fn held(&self) -> u32 {
        self.held
    }

    #[inline(always)]
    pub fn has_room(&self) -> bool {
        self.held < DEPTH
    }

    /// A completion is to come, or an error instead.
    pub fn awaits(&self) -> bool {
        !self.signals.is_empty()
    }

    /// Requests of which no completion will tell.
    pub fn untold(&self) -> bool {
        self.since_signal > 0
    }

    /// Posts a write. The memory is the ring's own, which stays as long as the queue pair.
    #[inline]
    pub fn write(&mut self, node: &mut dyn Node, write: &Write) -> Result<()> {
        let len: usize = write.from.iter().map(|slice| slice.len as usize).sum();
        let operation = Operation::Write {
            to: write.to,
            immediate: write.immediate,
        };
        self.post(
            node,
            operation,
            write.from,
            len <= self.inline,
            write.signaled,
            write.note,
        )
    }

    /// Posts a request. Its local memory must be registered, and stay so until it is complete.
    pub fn post(
        &mut self,
        node: &mut dyn Node,
        operation: Operation,
        local: &[Slice],
        inline: bool,
        signaled: bool,
        note: u64,
    ) -> Result<()> {
        assert!(self.has_room());
        let signaled = signaled || self.since_signal + 1 >= SIGNAL;
        let work = Work {
            id: self.id,
            operation,
            local,
            inline,
            signaled,
            to: None,
        };
        // SAFETY: the slices lie in the ring's own memory, or in memory that the layer above has exposed and keeps until
        // it hears that the request is done.
        unsafe { node.rail(self.rail).post(self.qp, &work)? };
        self.held += 1;
        self.since_signal += 1;
        if signaled {
            self.signals.push_back((self.since_signal, note));
            self.since_signal = 0;
        }
        Ok(())
    }

    /// A completion has come: what is done with it.
    pub fn completed(&mut self) -> Option<u64> {
        let (requests, note) = self.signals.pop_front()?;
        self.held -= requests;
        Some(note)
    }

    /// Lets one more message come, into this memory.
    pub fn post_buffer(&self, node: &mut dyn Node, id: u64, into: Slice) -> Result<()> {
        let queue = ReceiveQueue::Own(self.qp);
        // SAFETY: the memory stays until the queue pair is gone, and is looked at only between a completion and the next
        // post.
        unsafe { node.rail(self.rail).post_receive(queue, id, &[into])? };
        Ok(())
    }

    /// Lets one more write with immediate come, or one more message.
    pub fn post_receive(&self, node: &mut dyn Node) -> Result<()> {
        // SAFETY: there is no memory in it.
        unsafe {
            node.rail(self.rail)
                .post_receive(ReceiveQueue::Own(self.qp), self.id, &[])?
        };
        Ok(())
    }
}
