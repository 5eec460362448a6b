//! Messages: work requests in progress, with their payloads. Slots and buffers are reused, so that
//! a small message allocates nothing.

use sim::Time;
use sim::memory::{Vec, WorldMemory};

use device::{Operation, Slice, Status};

/// The number that means no message, no queue pair, and the like.
pub(crate) const NONE: u32 = u32::MAX;

/// The operation of a work request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// An RDMA write.
    Write,
    /// A send.
    Send,
    /// An RDMA read.
    Read,
    /// An atomic compare and swap.
    CompareAndSwap,
    /// An atomic fetch and add.
    FetchAndAdd,
}

impl RequestKind {
    /// True if the response is data, not an acknowledgement.
    pub fn is_answered(self) -> bool {
        matches!(
            self,
            RequestKind::Read | RequestKind::CompareAndSwap | RequestKind::FetchAndAdd
        )
    }
}

pub(crate) struct Message {
    pub kind: RequestKind,
    pub inline: bool,
    pub signaled: bool,
    /// True if the engine has begun to process the request.
    pub begun: bool,
    /// True if the payload has arrived in the HCA, or need not be read.
    pub ready: bool,
    /// True if the request is finished. It completes once all earlier ones have.
    pub done: bool,
    /// True if memory has been read for the response.
    pub served: bool,
    /// True if an atomic has changed memory.
    pub executed: bool,
    /// True if the message is in the list of its queue pair's requests.
    pub listed: bool,
    pub status: Status,
    /// The number of the message posted after this one on the same queue pair.
    pub next: u32,
    /// The number of the next request that waits for a response of the same responder.
    pub next_answer: u32,
    /// The queue pair that sends the message.
    pub from: u32,
    /// The queue pair that receives the message; `NONE` if there is no receiver.
    pub to: u32,
    /// The rank that sends the message.
    pub from_rank: u32,
    /// The rank that receives the message; `NONE` if there is no receiver.
    pub to_rank: u32,
    /// The number of pending events and pieces of payload that refer to the message.
    pub uses: u32,
    /// The epoch of the queue pair in which the message was posted.
    pub life: u32,
    /// The sequence number of the message among those of its queue pair.
    pub sequence: u32,
    pub id: u64,
    /// The number of the message among all messages of the run.
    pub number: u64,
    pub immediate: Option<u32>,
    pub address: u64,
    pub rkey: u32,
    pub len: u32,
    /// The largest payload of the message's packets, in bytes.
    pub mtu: u32,
    pub operands: [u64; 2],
    /// The number of the message's packets that have left the sender.
    pub sent: u32,
    /// The number of packets of the response that have left.
    pub answers_sent: u32,
    /// The number of packets of the response that have arrived.
    pub answers: u32,
    /// The latency of chips, cables and switches between the two queue pairs.
    pub latency: Time,
    /// The additional time until its bytes are visible.
    pub delay: Time,
    /// The least time until the engine of its queue pair takes the next request.
    pub interval: Time,
    /// True if the message occupies no resource, because its rank makes or frees an object whose
    /// cost the machine leaves out.
    pub is_free: bool,
    pub slices: Vec<Slice>,
    pub payload: Vec<u8>,
}

impl Message {
    /// Sets the fields that depend on the operation of the work request.
    pub(crate) fn set_operation(&mut self, operation: &Operation) {
        match *operation {
            Operation::Write { to, immediate } => {
                self.kind = RequestKind::Write;
                self.immediate = immediate;
                (self.address, self.rkey) = (to.address, to.rkey);
            }
            Operation::Send { immediate } => {
                self.kind = RequestKind::Send;
                self.immediate = immediate;
            }
            Operation::Read { from } => {
                self.kind = RequestKind::Read;
                (self.address, self.rkey) = (from.address, from.rkey);
            }
            Operation::CompareAndSwap { at, compare, swap } => {
                self.kind = RequestKind::CompareAndSwap;
                self.operands = [compare, swap];
                (self.address, self.rkey) = (at.address, at.rkey);
            }
            Operation::FetchAndAdd { at, add } => {
                self.kind = RequestKind::FetchAndAdd;
                self.operands = [add, 0];
                (self.address, self.rkey) = (at.address, at.rkey);
            }
        }
    }

    /// True if the HCA reads the message's payload from memory.
    pub(crate) fn is_fetched(&self) -> bool {
        !self.inline && self.len > 0 && !self.kind.is_answered()
    }

    /// The number of packets in which the request travels.
    pub(crate) fn packets(&self) -> u32 {
        match self.kind.is_answered() {
            true => 1,
            false => self.len.div_ceil(self.mtu).max(1),
        }
    }

    /// The number of packets in which the response travels.
    pub(crate) fn response_packets(&self) -> u32 {
        self.len.div_ceil(self.mtu).max(1)
    }

    /// Appends `len` bytes of a rank's memory at `address` to the payload.
    ///
    /// # Safety
    /// The memory must be accessible in this process, for `len` bytes.
    pub(crate) unsafe fn read(&mut self, address: u64, len: u32) {
        let (before, len) = (self.payload.len(), len as usize);
        self.payload.reserve(len);
        // SAFETY: the caller's promise for the source; the payload, which is memory of the world,
        // has just been given the room.
        unsafe {
            let end = self.payload.as_mut_ptr().add(before);
            std::ptr::copy_nonoverlapping(address as *const u8, end, len);
            self.payload.set_len(before + len);
        }
    }

    /// The offset and the length of the payload in packet `packet`.
    pub(crate) fn piece(&self, packet: u32) -> (u32, u32) {
        let from = packet * self.mtu;
        (from, (self.len - from).min(self.mtu))
    }
}

/// The capacity of the longest buffer that is kept for reuse when its message ends, in bytes.
const KEEP: usize = 16 << 10;

pub(crate) struct Messages {
    memory: WorldMemory,
    all: Vec<Message>,
    free: u32,
}

impl Messages {
    pub(crate) fn new(memory: WorldMemory) -> Messages {
        Messages {
            memory,
            all: Vec::new_in(memory),
            free: NONE,
        }
    }

    /// Takes a free message, whose buffers are empty. The caller must set all its fields.
    pub(crate) fn take(&mut self) -> u32 {
        if self.free != NONE {
            let number = self.free;
            self.free = self.all[number as usize].next;
            return number;
        }
        self.all.push(Message {
            kind: RequestKind::Write,
            inline: false,
            signaled: false,
            begun: false,
            ready: false,
            done: false,
            served: false,
            executed: false,
            listed: false,
            status: Status::Success,
            next: NONE,
            next_answer: NONE,
            from: NONE,
            to: NONE,
            from_rank: NONE,
            to_rank: NONE,
            uses: 0,
            life: 0,
            sequence: 0,
            id: 0,
            number: 0,
            immediate: None,
            address: 0,
            rkey: 0,
            len: 0,
            mtu: 0,
            operands: [0; 2],
            sent: 0,
            answers_sent: 0,
            answers: 0,
            latency: 0,
            delay: 0,
            interval: 0,
            is_free: false,
            slices: Vec::new_in(self.memory),
            payload: Vec::new_in(self.memory),
        });
        self.all.len() as u32 - 1
    }

    /// Ends one use of a message. An unused and unlisted message is free again.
    #[inline]
    pub(crate) fn release(&mut self, number: u32) {
        self[number].uses -= 1;
        self.collect(number);
    }

    /// Records that a message is no longer in the list of its queue pair.
    #[inline]
    pub(crate) fn unlist(&mut self, number: u32) {
        self[number].listed = false;
        self.collect(number);
    }

    fn collect(&mut self, number: u32) {
        let (memory, free) = (self.memory, self.free);
        let message = &mut self[number];
        if message.uses > 0 || message.listed {
            return;
        }
        message.slices.clear();
        message.payload.clear();
        if message.payload.capacity() > KEEP {
            message.payload = Vec::new_in(memory);
        }
        message.next = free;
        self.free = number;
    }
}

impl std::ops::Index<u32> for Messages {
    type Output = Message;
    #[inline]
    fn index(&self, number: u32) -> &Message {
        &self.all[number as usize]
    }
}

impl std::ops::IndexMut<u32> for Messages {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut Message {
        &mut self.all[number as usize]
    }
}
