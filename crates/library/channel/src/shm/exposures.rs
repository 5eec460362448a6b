//! The memory that a rank exposes to the ranks of its host, as a table in their shared memory.
//!
//! A remote key contains the index of an entry and a generation. A peer that has the key reads
//! address and length from the owner's table, so it never follows an address from a packet. Each
//! family of operations has entries of its own; while all of them are in use, the family cannot
//! expose memory.
//!
//! Memory of several runs has a list of them. A short list lies beside the entry; the address of a
//! longer one is in the entry.
//!
//! Invariants:
//! - no two exposures of a rank have the same generation;
//! - the entries for collectives suffice for all operations that can be in progress: one in each
//!   collective buffer, each with two buffers of the user.

use crate::exposed_entry::ExposedEntry;
use crate::run_list::RunList;
use crate::sync::{AtomicU64, Ordering};
use crate::{Exposed, Family};

/// Number of entries of a rank's table. The lowest bits of a key hold the index of an entry.
pub(super) const ENTRIES: usize = 1 << ENTRY_BITS;
const ENTRY_BITS: u32 = 10;
/// Number of entries for collective operations: the first ones of the table.
pub(super) const FOR_COLLECTIVES: u16 = 128;
/// Number of entries for windows, which follow those for collective operations. A window without an
/// entry is accessed by messages.
const FOR_WINDOWS: u16 = 128;
const FIRST_FOR_MESSAGES: u16 = FOR_COLLECTIVES + FOR_WINDOWS;
/// Number of the lowest bits of an entry's second word that hold the granted access.
const KIND_BITS: u32 = 2;

/// The number of runs of the longest list that is stored beside its entry. Reading such a list
/// saves a kernel call, an eighth of the time of such a message.
const SHORT_LIST: usize = 16;

/// The table of one rank's exposed memory, in shared memory.
#[repr(C)]
pub(super) struct Table {
    entries: [ExposedEntry; ENTRIES],
    /// The short list of runs of each entry.
    lists: [[[AtomicU64; 2]; SHORT_LIST]; ENTRIES],
}

/// Memory of this rank that is to be exposed.
#[derive(Clone, Copy)]
pub(super) enum Memory<'a> {
    /// The run of `len` bytes that begins at this address.
    Run(usize),
    /// The runs of this list.
    Runs(&'a RunList),
}

/// The allocation of entries in the table of this rank's exposed memory.
pub(super) struct Exposures {
    /// The generation of the exposure that was made last.
    generation: u64,
    collectives: Share,
    windows: Share,
    messages: Share,
}

/// The free table entries of one family of operations.
struct Share {
    /// Entries that have been used and are free again. The entry freed last is reused first.
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
    /// Exposes memory of `len` bytes in this rank's table, and returns the number that goes into
    /// the key. A list must stay in place as long as the exposure. `None`: the family has no free
    /// entry.
    pub(super) fn open(
        &mut self,
        table: &Table,
        (memory, len): (Memory, usize),
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
        let (address, runs) = match memory {
            Memory::Run(address) => (address, 0),
            Memory::Runs(list) => list.place(),
        };
        if let Memory::Runs(list) = memory
            && runs <= SHORT_LIST
        {
            let beside = table.lists[usize::from(entry)].iter().zip(list.runs());
            for (to, run) in beside {
                // Release, as for the words of the entry: see `ExposedEntry::open`.
                to[0].store(run[0], Ordering::Release);
                to[1].store(run[1], Ordering::Release);
            }
        }
        let extent = (len as u64) << KIND_BITS | exposed as u64;
        let words = [address as u64, extent, runs as u64];
        table.entries[usize::from(entry)].open(self.generation, words);
        Some(self.generation << ENTRY_BITS | u64::from(entry))
    }

    /// Exposes what these words describe, for messages.
    #[cfg(test)]
    pub(super) fn forge(&mut self, table: &Table, words: [u64; 3]) -> u64 {
        let entry = self.messages.take().unwrap();
        self.generation += 1;
        table.entries[usize::from(entry)].open(self.generation, words);
        self.generation << ENTRY_BITS | u64::from(entry)
    }

    /// Records that the first `copied` bytes of the exposure with this number lie in the owner's
    /// copy, which begins at `copy`. False: a reader has claimed them.
    pub(super) fn advance(table: &Table, number: u64, copy: usize, copied: usize) -> bool {
        let entry = &table.entries[entry_of(number)];
        entry.copy_to(copy as u64);
        entry.advance(copied as u32)
    }

    /// True if a reader has claimed the exposure with this number.
    pub(super) fn is_claimed(table: &Table, number: u64) -> bool {
        table.entries[entry_of(number)].is_claimed()
    }

    /// Ends the exposure with this number: keys with it are refused from now on.
    pub(super) fn close(&mut self, table: &Table, number: u64) {
        let entry = entry_of(number) as u16;
        table.entries[usize::from(entry)].close();
        let share = match entry {
            ..FOR_COLLECTIVES => &mut self.collectives,
            FOR_COLLECTIVES..FIRST_FOR_MESSAGES => &mut self.windows,
            FIRST_FOR_MESSAGES.. => &mut self.messages,
        };
        share.free.push(entry);
    }
}

/// Memory that a peer exposes, as its table of exposures describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// The address of the memory, or of the list of its runs.
    pub(super) address: u64,
    pub(super) len: u64,
    /// Number of runs in the list, as the owner claims. Zero: the memory is one run.
    pub(super) runs: u64,
    pub(super) exposed: Exposed,
    /// The address of the owner's copy, and the number of bytes to be read from it: the first ones.
    pub(super) copy: (u64, u64),
}

/// The memory that the number of a key names in its owner's table. `None`: it is not exposed.
pub(super) fn find(table: &Table, number: u64) -> Option<Found> {
    let [address, extent, runs] = table.entries[entry_of(number)].find(number >> ENTRY_BITS)?;
    let exposed = match extent & ((1 << KIND_BITS) - 1) {
        0 => Exposed::ToRead,
        1 => Exposed::ToWrite,
        _ => Exposed::ToBoth,
    };
    let (copy, copied) = table.entries[entry_of(number)].copied(number >> ENTRY_BITS);
    Some(Found {
        address,
        len: extent >> KIND_BITS,
        runs,
        exposed,
        copy: (copy, copied.into()),
    })
}

/// Claims the bytes that the owner of the memory which the number of a key names has not copied
/// yet. False: the memory is not exposed any more, or is claimed.
pub(super) fn claim(table: &Table, number: u64) -> bool {
    table.entries[entry_of(number)].claim(number >> ENTRY_BITS)
}

/// True if the owner still exposes the memory that the number of a key names.
pub(super) fn is_exposed(table: &Table, number: u64) -> bool {
    table.entries[entry_of(number)].is_open(number >> ENTRY_BITS)
}

/// The list of `runs` runs beside the entry that the number of a key names, as addresses and
/// lengths. It belongs to the exposure if this is open afterwards. `None`: it is too long to lie
/// there.
pub(super) fn short_list(
    table: &Table,
    number: u64,
    runs: u64,
) -> Option<impl Iterator<Item = [u64; 2]>> {
    let list = table.lists[entry_of(number)].get(..usize::try_from(runs).ok()?)?;
    let load = |word: &AtomicU64| word.load(Ordering::Acquire);
    Some(list.iter().map(move |run| run.each_ref().map(load)))
}

fn entry_of(number: u64) -> usize {
    number as usize % ENTRIES
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: (Memory, usize) = (Memory::Run(4096), 100);

    fn table() -> Box<Table> {
        Box::new(Table {
            entries: std::array::from_fn(|_| ExposedEntry::default()),
            lists: std::array::from_fn(|_| Default::default()),
        })
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
            runs: 0,
            exposed,
            copy: (0, 0),
        };
        assert_eq!(find(&table, read), Some(found(Exposed::ToRead)));
        assert_eq!(find(&table, write), Some(found(Exposed::ToWrite)));
        exposures.close(&table, read);
        assert!(find(&table, read).is_none() && !is_exposed(&table, read));
        // The entry is reused, and the old number still names nothing.
        let other = (Memory::Run(8192), 7);
        let again = exposures.open(&table, other, Exposed::ToRead, Family::Messages);
        let again = again.unwrap();
        assert_eq!(entry_of(again), entry_of(read));
        let found = find(&table, again).map(|found| (found.address, found.runs));
        assert_eq!(found, Some((8192, 0)));
        assert!(find(&table, read).is_none() && is_exposed(&table, write));
    }

    #[test]
    fn a_claim_divides_the_memory_between_the_copy_and_the_rest() {
        let (table, mut exposures) = (table(), Exposures::default());
        let number = exposures.open(&table, AT, Exposed::ToRead, Family::Messages);
        let number = number.unwrap();
        assert!(Exposures::advance(&table, number, 8192, 60));
        let copy = |number| find(&table, number).map(|found| found.copy.1);
        assert_eq!(
            (copy(number), Exposures::is_claimed(&table, number)),
            (Some(0), false)
        );
        assert!(claim(&table, number) && !claim(&table, number));
        assert!(!Exposures::advance(&table, number, 8192, 100));
        assert_eq!(find(&table, number).unwrap().copy, (8192, 60));
        exposures.close(&table, number);
        let next = exposures.open(&table, AT, Exposed::ToRead, Family::Messages);
        assert!(!claim(&table, number) && claim(&table, next.unwrap()));
        assert_eq!(copy(next.unwrap()), Some(0));
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
        // The end of an exposure frees an entry for its own family only.
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
