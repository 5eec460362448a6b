//! The memory of each host, which the copies of its ranks and its HCAs share.
//!
//! A copy moves each byte several times. A piece of it takes as long as the memory needs for the
//! piece itself and for all that others begin to move meanwhile, as on the modelled machine; the
//! transfers of HCAs do not wait.

use fabric::{Bytes, Costs, System};

/// The greatest length of a copy that other users of the memory do not slow down, in bytes, as on
/// the modelled machine.
pub(crate) const SHORT: u64 = 1 << 10;
/// The length of the pieces of a long copy, in bytes, as on the modelled machine.
pub(crate) const PIECE: u64 = 16 << 10;
/// The bytes of a packet beside its body.
pub(crate) const TRAILER: u64 = 40;

/// A length by whose time the rate of copies is known, in bytes.
const MANY: u64 = 1 << 20;

/// The memories of all hosts.
pub(crate) struct Memories {
    costs: Costs,
    /// For each host, the time that its memory needs for all that was ever begun, in picoseconds.
    moved: Vec<u64>,
    /// For each host, true if several ranks copy there.
    is_shared: Vec<bool>,
}

impl Memories {
    /// The memories of the hosts of ranks.
    pub(crate) fn new(system: &System, hosts: &[u32]) -> Memories {
        let count = system.nodes as usize;
        let mut ranks = vec![0; count];
        for host in hosts {
            if let Some(ranks) = ranks.get_mut(*host as usize) {
                *ranks += 1;
            }
        }
        Memories {
            costs: Costs::of(system, 0),
            moved: vec![0; count],
            is_shared: ranks.into_iter().map(|ranks: u32| ranks > 1).collect(),
        }
    }

    /// True if several ranks copy in the memory of a host.
    pub(crate) fn is_shared(&self, host: u32) -> bool {
        self.is_shared.get(host as usize).copied().unwrap_or(false)
    }

    /// The time that the memory of a host needs for all that was ever begun, in picoseconds.
    pub(crate) fn moved(&self, host: u32) -> u64 {
        self.moved.get(host as usize).copied().unwrap_or(0)
    }

    /// The bytes that a processor copies in a time on an idle host.
    pub(crate) fn copied_in(&self, time: u64) -> u64 {
        let each = self.costs.copy(Bytes(MANY)).picos();
        (u128::from(time) * u128::from(MANY) / u128::from(each.max(1))) as u64
    }

    /// Counts bytes that a processor of a host begins to copy.
    pub(crate) fn copies(&mut self, host: u32, bytes: u64) {
        let traffic = self.costs.memory_of_copy(Bytes(bytes)).picos();
        self.begin(host, traffic);
    }

    /// Counts bytes that an HCA of a host begins to read or to write.
    pub(crate) fn transfers(&mut self, host: u32, bytes: u64) {
        let traffic = self.costs.memory(Bytes(bytes)).picos();
        self.begin(host, traffic);
    }

    fn begin(&mut self, host: u32, traffic: u64) {
        if let Some(moved) = self.moved.get_mut(host as usize) {
            *moved += traffic;
        }
    }
}
