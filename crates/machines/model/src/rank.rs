//! The state of a rank in the machine: its host and processor, and the data that it sees.

use sim::memory::{Vec, WorldMemory};

use super::inbox::{Datagrams, Inbox};
use super::library_messages::LibraryMessages;
use super::pinned::Pinned;
use super::written_regions::WrittenRegions;
use device::PortChange;

pub(crate) struct Rank {
    pub host: u32,
    pub gone: bool,
    /// The time of work on the rank's processor, as a percentage of that on a normal one.
    pub slowness: u32,
    /// True if the host has no core beside those of its ranks, so that the rank's progress thread
    /// takes the rank's own core.
    pub shares_core: bool,
    /// True while the rank's work and messages cost nothing, because it makes or frees an object
    /// whose cost the machine omits.
    pub is_free: bool,
    /// The MPI library of the rank, if it has one.
    pub library: LibraryMessages,
    pub inbox: Inbox,
    /// True if data has become visible since the rank last polled its memory.
    pub written: bool,
    /// True if data has become visible since the rank last waited.
    pub fresh: bool,
    pub written_regions: WrittenRegions,
    /// The numbers of the queue pairs of the rank.
    pub qps: Vec<u32>,
    /// The rail to which the rank posted last.
    pub rail: u32,
    pub pinned: Pinned,
    /// The rails whose ports are down, one bit each.
    pub down: u32,
    /// The port events that the rank has not read.
    pub changes: Vec<(u32, PortChange)>,
    pub datagrams: Datagrams,
}

impl Rank {
    pub(crate) fn new(memory: WorldMemory, host: u32, slowness: u32) -> Rank {
        Rank {
            host,
            gone: false,
            slowness,
            shares_core: false,
            is_free: false,
            library: LibraryMessages::default(),
            inbox: Inbox::new(memory),
            written: false,
            fresh: false,
            written_regions: WrittenRegions::new(memory),
            qps: Vec::new_in(memory),
            rail: 0,
            pinned: Pinned::new(memory),
            down: 0,
            changes: Vec::new_in(memory),
            datagrams: Datagrams::new(memory),
        }
    }

    /// Records that a fault has taken the port of a rail down, or that its end has brought the port
    /// up. True: the port's state has changed.
    pub(crate) fn change_port(&mut self, rail: u32, is_down: bool) -> bool {
        let bit = 1 << rail;
        if is_down == (self.down & bit != 0) {
            return false;
        }
        self.down ^= bit;
        let change = match is_down {
            true => PortChange::Down,
            false => PortChange::Up,
        };
        // A rank that takes no events for long needs only the last two of a rail.
        let pending = self.changes.iter().filter(|(other, _)| *other == rail);
        if pending.count() >= 2 {
            self.changes.retain(|(other, _)| *other != rail);
        }
        self.changes.push((rail, change));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_a_port_that_nobody_takes_do_not_pile_up() {
        let memory = sim::memory::Memory::private().unwrap();
        let mut rank = Rank::new(memory.shared(), 0, 100);
        assert!(!rank.change_port(1, false), "it is up");
        for turn in 0..5 {
            assert!(rank.change_port(1, turn % 2 == 0));
            assert!(!rank.change_port(1, turn % 2 == 0));
        }
        assert_eq!(rank.changes.as_slice(), [(1, PortChange::Down)]);
    }
}
