//! Messages, and their pieces on the way.

use std::ops::{Index, IndexMut};

use crossing::Train;
use mpi::coll::carried::Key;

use crate::resources::Left;
use crate::slab::Slab;

/// A number that names no entry.
pub(super) const NONE: u32 = u32::MAX;

/// The state of a message. It fills a line of a cache: with many ranks nothing of it is in a cache
/// when its next event comes.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Message {
    pub key: Key,
    pub from: u32,
    pub to: u32,
    pub bytes: u64,
    /// The send of a message that its sender waits for.
    pub send: u32,
    /// The receive that takes the message, once it is known.
    pub receive: u32,
    /// The time at which it is visible, or complete, if nothing that follows makes it wait.
    pub visible: u64,
    /// The number of the fields that only a long message needs; [`NONE`]: it has none.
    pub long: u32,
    /// True if the sender waits for the match, however short the message is.
    pub waits: bool,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A message that is sent at once.
    Eager,
    /// The announcement of a long message.
    Announced,
    /// The body of a long message.
    Body,
}

/// The fields that only a long message needs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Long {
    /// The bytes that have left.
    pub gone: u64,
    /// The time at which the next piece would leave if nothing had waited.
    pub due: u64,
    /// The number of pieces in transit.
    pub in_transit: u32,
    /// The time by which the end is later than if nothing had waited.
    pub late: u64,
    /// The time from its end to the end of the send.
    pub release: u64,
    /// True if the receiver has registered its buffer when it met the message.
    pub is_registered_there: bool,
}

/// A piece of a message on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub message: u32,
    pub bytes: u64,
    pub left: Left,
    /// The time from the end of the piece to that of its message where nothing waits.
    pub rest: u64,
    /// The piece's train between switches. `None`: it meets no link there.
    pub train: Option<Train>,
}

impl Message {
    /// The bytes that move: none of an announcement.
    pub(super) fn moved(&self) -> u64 {
        match self.kind {
            Kind::Announced => 0,
            _ => self.bytes,
        }
    }
}

/// All messages by number.
#[derive(Debug, Default)]
pub(super) struct Messages {
    all: Slab<Message>,
    longs: Slab<Long>,
}

impl Messages {
    /// Adds a message; returns its number.
    pub(super) fn insert(&mut self, message: Message) -> u32 {
        self.all.insert(message)
    }

    /// The fields that only a long message needs.
    pub(super) fn long(&mut self, message: u32) -> &mut Long {
        let own = &mut self.all[message];
        if own.long == NONE {
            own.long = self.longs.insert(Long::default());
        }
        &mut self.longs[own.long]
    }

    /// The time from the end of a long message to the end of its send.
    pub(super) fn release(&self, message: u32) -> u64 {
        match self.all[message].long {
            NONE => 0,
            long => self.longs[long].release,
        }
    }

    /// Forgets a message.
    pub(super) fn remove(&mut self, message: u32) {
        let long = self.all[message].long;
        if long != NONE {
            self.longs.remove(long);
        }
        self.all.remove(message);
    }
}

impl Index<u32> for Messages {
    type Output = Message;

    fn index(&self, number: u32) -> &Message {
        &self.all[number]
    }
}

impl IndexMut<u32> for Messages {
    fn index_mut(&mut self, number: u32) -> &mut Message {
        &mut self.all[number]
    }
}
