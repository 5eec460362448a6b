//! Absolute addresses in datatypes, which a program uses with MPI_BOTTOM: they become places in a
//! memory of the trace, so that a trace has no addresses of a process.
//!
//! Addresses that lie close together are one *region* and keep their distances. Regions have
//! places in the order of their first use, so equal programs have equal traces.

use std::collections::BTreeMap;

/// The greatest distance of an address from a region that it belongs to.
const NEAR: u64 = 1 << 20;
/// The distance between the recorded addresses of two regions, in bytes.
const APART: i64 = 1 << 24;
/// The least address that is no displacement of a program's own, if MPI_Get_address has not
/// returned an address near it.
const FAR: u64 = 1 << 40;
/// The addresses below which no program has memory.
const FIRST_PAGE: u64 = 4096;

/// The regions of memory that contain the absolute addresses of a rank, with the addresses that
/// stand for them in the trace.
#[derive(Default)]
pub(crate) struct Addresses {
    /// For the first address of each region: its last address, and the difference to the recorded
    /// addresses.
    regions: BTreeMap<u64, (u64, i64)>,
}

impl Addresses {
    /// Keeps an address that the program has got from MPI_Get_address.
    pub(crate) fn asked(&mut self, address: u64) {
        self.place(address);
    }

    /// Replaces absolute addresses among the displacements of a datatype by recorded ones. Either
    /// all displacements are absolute, or none.
    pub(crate) fn replace(&mut self, displacements: &mut [i64]) {
        let is_absolute = |at: &i64| {
            let at = u64::try_from(*at).unwrap_or(0);
            at >= FIRST_PAGE && (at >= FAR || self.near(at).is_some())
        };
        if displacements.iter().all(is_absolute) {
            for at in displacements {
                *at = self.place(*at as u64);
            }
        }
    }

    /// The first address of the region that an address belongs to.
    fn near(&self, address: u64) -> Option<u64> {
        let before = self.regions.range(..=address).next_back();
        let before = before.filter(|(_, (last, _))| address <= last.saturating_add(NEAR));
        let after = self.regions.range(address..).next();
        let after = after.filter(|(first, _)| **first <= address.saturating_add(NEAR));
        before.or(after).map(|(first, _)| *first)
    }

    fn place(&mut self, address: u64) -> i64 {
        let region = self.near(address);
        let known = region.and_then(|first| Some((first, self.regions.remove(&first)?)));
        let (first, (last, distance)) = known.unwrap_or_else(|| {
            let place = APART * self.regions.len() as i64 + APART / 2;
            (address, (address, place - address as i64))
        });
        let region = (last.max(address), distance);
        self.regions.insert(first.min(address), region);
        address as i64 + distance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_become_places_that_keep_short_distances() {
        let (heap, stack) = (0x5555_0000_1000_i64, 0x7fff_0000_0040_i64);
        let mut addresses = Addresses::default();
        let mut made = [heap + 64, stack, heap, heap + (3 << 20)];
        addresses.replace(&mut made);
        let first = APART / 2;
        let places = [first, first + APART, first - 64, first + 2 * APART];
        assert_eq!(made, places);
        let mut again = [stack - 8, heap + 8];
        addresses.replace(&mut again);
        assert_eq!(again, [first + APART - 8, first - 56]);
    }

    #[test]
    fn displacements_of_a_program_stay() {
        let mut addresses = Addresses::default();
        for own in [
            [0, 5000],
            [-8, 5000],
            [1 << 30, 0x5555_0000_0000],
            [5000, 6000],
        ] {
            let mut made = own;
            addresses.replace(&mut made);
            assert_eq!(made, own);
        }
        // An address of a program at fixed addresses.
        addresses.asked(0x404_000);
        let mut made = [0x404_008, 0x404_010];
        addresses.replace(&mut made);
        assert_eq!(made, [APART / 2 + 8, APART / 2 + 16]);
    }
}
