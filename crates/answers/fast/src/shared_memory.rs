//! The memory of each host, which the copies of its ranks and its HCAs share.
//!
//! A copy moves each byte several times. While the copies of a host, and the bytes that its HCAs
//! read and write, need more than the memory gives, copies take longer; transfers of HCAs do not.

use fabric::{Bytes, Costs, System};

/// The greatest length of a copy that other users of the memory do not slow down, in bytes, as on
/// the modelled machine.
const SHORT: u64 = 1 << 10;

/// The memories of all hosts.
pub(crate) struct Memories {
    costs: Costs,
    /// For each host, the time at which its memory has moved all that was begun, in picoseconds.
    free: Vec<u64>,
}

impl Memories {
    pub(crate) fn new(system: &System) -> Memories {
        Memories {
            costs: Costs::of(system, 0),
            free: vec![0; system.nodes as usize],
        }
    }

    /// The end of a copy of `bytes` bytes, which takes `time` on an idle host and begins at `at`.
    pub(crate) fn copy(&mut self, host: u32, at: u64, time: u64, bytes: u64) -> u64 {
        let traffic = self.costs.memory_of_copy(Bytes(bytes)).picos();
        let moved = self.moves(host, at, traffic);
        match bytes <= SHORT {
            true => at + time,
            false => moved.max(at + time),
        }
    }

    /// Counts bytes that an HCA of a host reads or writes from the time `at` on.
    pub(crate) fn transfer(&mut self, host: u32, at: u64, bytes: u64) {
        let traffic = self.costs.memory(Bytes(bytes)).picos();
        self.moves(host, at, traffic);
    }

    fn moves(&mut self, host: u32, at: u64, traffic: u64) -> u64 {
        match self.free.get_mut(host as usize) {
            Some(free) => {
                *free = at.max(*free) + traffic;
                *free
            }
            None => at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric::catalogue::Catalogue;

    #[test]
    fn copies_take_longer_where_many_need_the_memory() {
        let system = Catalogue::builtin().system("edr").unwrap();
        let mut memories = Memories::new(&system.with_nodes(2).unwrap());
        let bytes = 1 << 20;
        let alone = memories.costs.copy(Bytes(bytes)).picos();
        assert_eq!(memories.copy(1, 0, alone, bytes), alone);
        let ends = [0; 8].map(|at| memories.copy(0, at, alone, bytes));
        assert_eq!(ends[0], alone);
        assert!(ends[7] > alone, "{ends:?}");
        assert_eq!(memories.copy(0, 0, 7, 8), 7);
    }
}
