//! The memory that a rank exposes to the ranks of its host: a table in their shared memory.
//!
//! A key holds the number of an entry and a generation. A peer that has the key finds address and
//! length in the owner's table, so it never follows a number that came in a packet. Each family of
//! operations has entries of its own; while none is free, memory cannot be exposed.
//!
//! Invariants:
//! - no two exposures of a rank have the same generation;
//! - the entries of collectives suffice for all operations that can be in progress: one in each
//!   collective buffer, with two buffers of the user.

use crate::exposed_entry::ExposedEntry;
use crate::{Exposed, Family};

/// Entries of a rank. A key holds their number in its lowest bits.
pub(super) const ENTRIES: usize = 1 << ENTRY_BITS;
const ENTRY_BITS: u32 = 10;
/// Entries for collective operations: the first ones.
pub(super) const FOR_COLLECTIVES: u16 = 128;
/// Entries for windows: those behind them. A window without an entry is accessed by messages.
const FOR_WINDOWS: u16 = 128;
const FIRST_FOR_MESSAGES: u16 = FOR_COLLECTIVES + FOR_WINDOWS;
/// Lowest bits of an entry's second word, for the access that it grants.
const KIND_BITS: u32 = 2;

/// The table of one rank in shared memory.
pub(super) type Table = [ExposedEntry; ENTRIES];

/// The state of a rank's own table.
pub(super) struct Exposures {
    /// The last generation.
    generation: u64,
    collectives: Share,
    windows: Share,
    messages: Share,
}

/// The entries of one family.
struct Share {
    /// Entries that have been used and are free. The last one is used first.
    free: Vec<u16>,
    /// Entries that have never been used.
    fresh: std::ops::Range<u16>,
}

impl Share {
    fn of(fresh: std::ops::Range<u16>) -> Share {
        Share {
            free: Vec::new(),
            fresh,
        }
    }

    fn take(&mut self) -> Option<u16> {
        self.free.pop().or_else(|| self.fresh.next())
    }
}

impl Default for Exposures {
    fn default() -> Exposures {
        Exposures {
            generation: 0,
            collectives: Share::of(0..FOR_COLLECTIVES),
            windows: Share::of(FOR_COLLECTIVES..FIRST_FOR_MESSAGES),
            messages: Share::of(FIRST_FOR_MESSAGES..ENTRIES as u16),
        }
    }
}

impl Exposures {
    /// Shows `len` bytes from `address` on in this rank's table. The answer is the number for the
    /// key. `None`: the family has no free entry.
    pub(super) fn open(
        &mut self,
        table: &Table,
        (address, len): (usize, usize),
        exposed: Exposed,
        family: Family,
    ) -> Option<u64> {
        let share = match family {
            Family::Collectives => &mut self.collectives,
            Family::Windows => &mut self.windows,
            Family::Messages => &mut self.messages,
        };
        let entry = share.take()?;
        self.generation += 1;
        let words = [address as u64, (len as u64) << KIND_BITS | exposed as u64];
        table[usize::from(entry)].open(self.generation, words);
        Some(self.generation << ENTRY_BITS | u64::from(entry))
    }

    /// Ends the exposure with this number.
    pub(super) fn close(&mut self, table: &Table, number: u64) {
        let entry = entry_of(number) as u16;
        table[usize::from(entry)].close();
        let share = match entry {
            ..FOR_COLLECTIVES => &mut self.collectives,
            FOR_COLLECTIVES..FIRST_FOR_MESSAGES => &mut self.windows,
            FIRST_FOR_MESSAGES.. => &mut self.messages,
        };
        share.free.push(entry);
    }
}

/// Memory that a peer exposes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) address: u64,
    pub(super) len: u64,
    pub(super) exposed: Exposed,
}

/// The memory that a number names in its owner's table. `None`: the owner does not expose it.
pub(super) fn find(table: &Table, number: u64) -> Option<Found> {
    let [address, extent] = table[entry_of(number)].find(number >> ENTRY_BITS)?;
    let exposed = match extent & ((1 << KIND_BITS) - 1) {
        0 => Exposed::ToRead,
        1 => Exposed::ToWrite,
        _ => Exposed::ToBoth,
    };
    Some(Found {
        address,
        len: extent >> KIND_BITS,
        exposed,
    })
}

/// The owner still exposes the memory that a number names.
pub(super) fn is_exposed(table: &Table, number: u64) -> bool {
    table[entry_of(number)].is_open(number >> ENTRY_BITS)
}

fn entry_of(number: u64) -> usize {
    number as usize % ENTRIES
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: (usize, usize) = (4096, 100);

    fn table() -> Box<Table> {
        Box::new(std::array::from_fn(|_| ExposedEntry::default()))
    }

    #[test]
    fn a_number_names_its_exposure_until_it_ends() {
        let (table, mut exposures) = (table(), Exposures::default());
        let mut open = |exposed| exposures.open(&table, AT, exposed, Family::Messages);
        let (read, write) = (open(Exposed::ToRead), open(Exposed::ToWrite));
        let (read, write) = (read.unwrap(), write.unwrap());
        let found = |exposed| Found {
            address: 4096,
            len: 100,
            exposed,
        };
        assert_eq!(find(&table, read), Some(found(Exposed::ToRead)));
        assert_eq!(find(&table, write), Some(found(Exposed::ToWrite)));
        exposures.close(&table, read);
        assert!(find(&table, read).is_none() && !is_exposed(&table, read));
        // The entry is used again, and the old number still names nothing.
        let again = exposures.open(&table, (8192, 7), Exposed::ToRead, Family::Messages);
        let again = again.unwrap();
        assert_eq!(entry_of(again), entry_of(read));
        assert_eq!(find(&table, again).map(|found| found.address), Some(8192));
        assert!(find(&table, read).is_none() && is_exposed(&table, write));
    }

    #[test]
    fn no_number_but_those_given_out_names_anything() {
        let (table, mut exposures) = (table(), Exposures::default());
        let number = exposures.open(&table, AT, Exposed::ToRead, Family::Messages);
        let number = number.unwrap();
        for wrong in [0, 1, number + 1, number - 1, u64::MAX, 4096] {
            assert_eq!(find(&table, wrong), None, "{wrong}");
        }
        for bit in 0..64 {
            assert_eq!(find(&table, number ^ 1 << bit), None, "bit {bit}");
        }
    }

    #[test]
    fn a_family_takes_no_entry_of_another() {
        let (table, mut exposures) = (table(), Exposures::default());
        let mut fill = |family| {
            let open = || exposures.open(&table, AT, Exposed::ToRead, family);
            std::iter::from_fn(open).collect::<Vec<u64>>()
        };
        let mut messages = fill(Family::Messages);
        let collectives = fill(Family::Collectives);
        let windows = fill(Family::Windows);
        assert_eq!(collectives.len(), usize::from(FOR_COLLECTIVES));
        assert_eq!(windows.len(), usize::from(FOR_WINDOWS));
        assert_eq!(messages.len(), ENTRIES - usize::from(FIRST_FOR_MESSAGES));
        assert!(fill(Family::Messages).is_empty());
        // The end of an exposure makes room for one of its family.
        exposures.close(&table, collectives[5]);
        let mut open = |family| exposures.open(&table, AT, Exposed::ToRead, family);
        assert_eq!(open(Family::Messages), None);
        let one_more = open(Family::Collectives).unwrap();
        assert_eq!(open(Family::Collectives), None);
        messages.extend(collectives.iter().filter(|it| **it != collectives[5]));
        messages.extend(windows);
        messages.push(one_more);
        messages.sort_unstable();
        messages.dedup();
        assert_eq!(messages.len(), ENTRIES);
        assert!(messages.iter().all(|number| is_exposed(&table, *number)));
    }
}
