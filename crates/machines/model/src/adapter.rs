//! The resources of a host, each of which serves first come, first served: its memory, the slot of
//! a card with the card's chip, and a port.

use sim::Time;

use super::fifo::Fifo;

#[derive(Default)]
pub(crate) struct Host {
    pub memory: Fifo,
    /// The total time for which the memory of this host has been busy with copies.
    pub moved: Time,
}

/// A slot and the chip of its card: the resources that all ports of the card share.
#[derive(Default)]
pub(crate) struct Slot {
    /// The bus from memory to the card. A half-duplex bus is `down` in both directions.
    pub down: Fifo,
    /// The bus from the HCA (card) to memory.
    pub up: Fifo,
    pub internal: Fifo,
    /// The part of the HCA's chip that takes work requests.
    pub requests: Fifo,
    /// The part of the chip that answers reads and atomics.
    pub answers: Fifo,
    /// The part of the HCA's chip that executes atomics.
    pub atomics: Fifo,
    pub half_duplex: bool,
}

/// A port of an HCA with its links, or the memory of a host in the place of an HCA.
pub(crate) struct Adapter {
    pub host: u32,
    pub rail: u32,
    /// True if the adapter represents the host's memory, not an HCA.
    pub within: bool,
    /// The index of the adapter's costs among all timings.
    pub timing: u32,
    /// The index of the adapter's slot among all slots.
    pub slot: u32,
    /// The number of the adapter's network: that of its rail in the system's list.
    pub network: u32,
    /// The first rail of the adapter's card. Regions belong to it, because the ports of a card
    /// share a protection domain.
    pub domain: u32,
    /// The link from the adapter to its switch.
    pub link: Fifo,
    /// The link from the switch to the adapter, which every arriving packet takes last.
    pub port: Fifo,
}

impl Adapter {
    /// The port of rail `rail` on a host, in the first network. The other arguments are the fields
    /// of these names.
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
