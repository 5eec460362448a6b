//! The resources of a host, each first come, first served: its memory, the slot of a card with the
//! card's chip, and a port.

use sim::Time;

use super::fifo::Fifo;

#[derive(Default)]
pub(crate) struct Host {
    pub memory: Fifo,
    /// The total time for which its memory has been busy.
    pub moved: Time,
}

/// A slot and the chip of its card: the resources that all ports of a card share.
#[derive(Default)]
pub(crate) struct Slot {
    /// The bus from memory, and the bus to it. A half-duplex bus is `down` in both directions.
    pub down: Fifo,
    pub up: Fifo,
    pub internal: Fifo,
    /// The part of the chip that takes work requests, that answers reads and atomics, and that
    /// executes atomics.
    pub requests: Fifo,
    pub answers: Fifo,
    pub atomics: Fifo,
    pub half_duplex: bool,
}

/// A port of an HCA, with the engines that serve it.
pub(crate) struct Adapter {
    pub host: u32,
    pub rail: u32,
    /// It models the host's memory, not an HCA.
    pub within: bool,
    /// The numbers of its timing and of its slot.
    pub timing: u32,
    pub slot: u32,
    /// The number of its network: that of its rail in the system's list.
    pub network: u32,
    /// The first rail of its card. Regions belong to it: the ports of a card share a protection
    /// domain.
    pub domain: u32,
    /// The link out.
    pub link: Fifo,
    /// The link in: the last hop of every arriving packet.
    pub port: Fifo,
}

impl Adapter {
    /// The port of a rail, with the timing and the slot of these numbers, in the first network.
    pub(crate) fn new(host: u32, rail: u32, timing: u32, slot: u32, domain: u32) -> Adapter {
        Adapter {
            host,
            rail,
            within: false,
            timing,
            slot,
            network: 0,
            domain,
            link: Fifo::default(),
            port: Fifo::default(),
        }
    }
}
