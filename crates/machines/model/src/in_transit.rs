//! Packets in transit between switches, link by link.

use crossing::Train;
use sim::Time;
use sim::memory::{Vec, WorldMemory};

use super::event::Event;
use super::message::NONE;
use super::span::Doing;

/// A packet that has left its port.
pub(crate) enum Flight {
    /// It meets no link between switches, and arrives at this time.
    Arrives(Time),
    /// It crosses links between switches.
    Crosses(Crossing),
}

/// A packet that crosses links between switches.
#[derive(Clone, Copy)]
pub(crate) struct Crossing {
    /// The adapters from which and to which it goes.
    pub ends: (u32, u32),
    /// The time at which its first bit has left.
    pub begins: Time,
    /// The time at which its last bit has left.
    pub gone: Time,
    /// The latency of chips, cables and switches.
    pub latency: Time,
    pub doing: Doing,
}

/// A packet in transit, with what happens at its end.
#[derive(Clone, Copy)]
pub(crate) struct InTransit {
    pub crossing: Crossing,
    pub train: Train,
    /// The queue pairs from which and to which it goes.
    pub pair: (u32, u32),
    pub is_answer: bool,
    /// The event of its arrival. `None`: it only occupies links.
    pub event: Option<Event>,
    /// The time by which it leaves after the reservation of its link.
    pub late: Time,
    /// The time at which it was sent.
    pub sent: Time,
    /// The number of the next free entry.
    pub next: u32,
}

/// All packets in transit between switches.
pub(crate) struct Transits {
    all: Vec<InTransit>,
    free: u32,
}

impl Transits {
    pub(crate) fn new(memory: WorldMemory) -> Transits {
        Transits {
            all: Vec::new_in(memory),
            free: NONE,
        }
    }

    /// Adds a packet; returns its number.
    pub(crate) fn insert(&mut self, packet: InTransit) -> u32 {
        if self.free == NONE {
            self.all.push(packet);
            return self.all.len() as u32 - 1;
        }
        let number = self.free;
        let entry = &mut self.all[number as usize];
        self.free = entry.next;
        *entry = packet;
        number
    }

    /// Forgets a packet.
    pub(crate) fn remove(&mut self, number: u32) {
        self.all[number as usize].next = self.free;
        self.free = number;
    }
}

impl std::ops::Index<u32> for Transits {
    type Output = InTransit;
    #[inline]
    fn index(&self, number: u32) -> &InTransit {
        &self.all[number as usize]
    }
}

impl std::ops::IndexMut<u32> for Transits {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut InTransit {
        &mut self.all[number as usize]
    }
}
