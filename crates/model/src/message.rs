//! Messages: a work request and what has become of it so far, with its payload. Slots and their buffers are used again, so
//! that a small message allocates nothing.

use sim::Time;
use sim::memory::{Shared, Vec};

use super::NONE;
use device::{Slice, Status};

/// What a work request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Write,
    Send,
    Read,
    CompareAndSwap,
    FetchAndAdd,
}

impl Kind {
    /// It is answered with data rather than acknowledged.
    pub fn is_answered(self) -> bool {
        matches!(self, Kind::Read | Kind::CompareAndSwap | Kind::FetchAndAdd)
    }
}

pub(super) struct Message {
    pub kind: Kind,
    pub inline: bool,
    pub signaled: bool,
    /// The engine has taken it.
    pub begun: bool,
    /// Its payload is here, or needs not be read.
    pub ready: bool,
    /// Nothing more can happen to it; it completes when those before it have.
    pub done: bool,
    /// Memory has been read for the answer, and changed by an atomic.
    pub served: bool,
    pub executed: bool,
    /// It stands in its queue pair's list.
    pub listed: bool,
    pub status: Status,
    /// The one posted after it.
    pub next: u32,
    /// The next request for the same responder that waits for an answer.
    pub next_answer: u32,
    /// Queue pairs.
    pub from: u32,
    pub to: u32,
    /// Events and pieces on their way that name this message.
    pub uses: u32,
    /// Which life of the queue pair it was posted in.
    pub life: u32,
    /// Counts a queue pair's messages.
    pub sequence: u32,
    pub id: u64,
    /// Counts the messages of a run.
    pub number: u64,
    pub immediate: Option<u32>,
    pub address: u64,
    pub rkey: u32,
    pub len: u32,
    pub operands: [u64; 2],
    /// Packets that have left.
    pub sent: u32,
    /// Packets of the answer that have left, and that have arrived.
    pub answers_sent: u32,
    pub answers: u32,
    /// Through chips, cables and switches.
    pub way: Time,
    pub slices: Vec<Slice>,
    pub payload: Vec<u8>,
}

impl Message {
    /// Its payload is read from memory by the HCA.
    pub(crate) fn is_fetched(&self) -> bool {
        !self.inline && self.len > 0 && !self.kind.is_answered()
    }

    /// Packets that the request is sent in.
    pub(crate) fn packets(&self, mtu: u32) -> u32 {
        match self.kind.is_answered() {
            true => 1,
            false => self.len.div_ceil(mtu).max(1),
        }
    }

    /// Appends bytes of a rank's memory to the payload.
    ///
    /// # Safety
    /// That memory is at hand, for so many bytes.
    pub(crate) unsafe fn read(&mut self, address: u64, len: u32) {
        let (before, len) = (self.payload.len(), len as usize);
        self.payload.reserve(len);
        // SAFETY: the caller vouches for the source; the payload, which is memory of the world, has just got the room.
        unsafe {
            let end = self.payload.as_mut_ptr().add(before);
            std::ptr::copy_nonoverlapping(address as *const u8, end, len);
            self.payload.set_len(before + len);
        }
    }

    /// What a packet of `mtu` carries: from where, and how much.
    pub(crate) fn piece(&self, packet: u32, mtu: u32) -> (u32, u32) {
        let from = packet * mtu;
        (from, (self.len - from).min(mtu))
    }
}

/// Buffers beyond this are given back when their message is gone, in bytes.
const KEEP: usize = 16 << 10;

pub(super) struct Messages {
    memory: Shared,
    all: Vec<Message>,
    free: u32,
}

impl Messages {
    pub(crate) fn new(memory: Shared) -> Messages {
        Messages {
            memory,
            all: Vec::new_in(memory),
            free: NONE,
        }
    }

    /// One that only has its buffers, empty, and must be filled in.
    pub(crate) fn take(&mut self) -> u32 {
        if self.free != NONE {
            let number = self.free;
            self.free = self.all[number as usize].next;
            return number;
        }
        self.all.push(Message {
            kind: Kind::Write,
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
            uses: 0,
            life: 0,
            sequence: 0,
            id: 0,
            number: 0,
            immediate: None,
            address: 0,
            rkey: 0,
            len: 0,
            operands: [0; 2],
            sent: 0,
            answers_sent: 0,
            answers: 0,
            way: 0,
            slices: Vec::new_in(self.memory),
            payload: Vec::new_in(self.memory),
        });
        self.all.len() as u32 - 1
    }

    /// Something that named it has happened.
    #[inline]
    pub(crate) fn release(&mut self, number: u32) {
        self[number].uses -= 1;
        self.collect(number);
    }

    /// Its queue pair no longer holds it.
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
