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
    /// Its number among the packets of its queue pair.
    pub number: u32,
    /// The time at which it has landed, for a packet that waits for those before it.
    pub there: Time,
    /// The number of the next entry that is free, or that waits as this one does.
    pub next: u32,
}

/// The order of a queue pair's packets, which may take different routes. The receiver's HCA keeps
/// back a packet that has overtaken others, so they arrive in the order in which they were sent.
#[derive(Clone, Copy)]
pub(crate) struct Order {
    /// The number of packets that have been sent.
    sent: u32,
    /// The number of packets that have arrived.
    arrived: u32,
    /// The first of the packets that have landed and wait for those before them.
    waiting: u32,
}

impl Default for Order {
    fn default() -> Order {
        Order {
            sent: 0,
            arrived: 0,
            waiting: NONE,
        }
    }
}

impl Order {
    /// The number of the next packet to be sent.
    pub(crate) fn send(&mut self) -> u32 {
        let number = self.sent;
        self.sent = number.wrapping_add(1);
        number
    }
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

    /// Notes that a packet has landed at `there`.
    #[inline]
    pub(crate) fn land(&mut self, order: &mut Order, number: u32, there: Time) {
        let entry = &mut self.all[number as usize];
        entry.there = there;
        entry.next = order.waiting;
        order.waiting = number;
    }

    /// Takes the next packet of a queue pair, if it has landed.
    #[inline]
    pub(crate) fn next(&mut self, order: &mut Order) -> Option<InTransit> {
        let (mut before, mut at) = (NONE, order.waiting);
        while at != NONE && self.all[at as usize].number != order.arrived {
            (before, at) = (at, self.all[at as usize].next);
        }
        let packet = *self.all.get(at as usize)?;
        match before {
            NONE => order.waiting = packet.next,
            _ => self.all[before as usize].next = packet.next,
        }
        order.arrived = order.arrived.wrapping_add(1);
        self.remove(at);
        Some(packet)
    }

    /// Forgets a packet.
    fn remove(&mut self, number: u32) {
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
