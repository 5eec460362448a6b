//! The plan of a two-phase collective access. All ranks make the same plan, from the numbers that
//! they have exchanged.

use std::ops::Range;

use ::file_io::Domains;

use crate::file::calls::access::FileAccess;
use crate::file::calls::round::OTHERS;
use crate::file::{Direction, Switch};

/// Bytes of a run from which on no data are exchanged, between hosts and (`LONG_RUN_ON_ONE_HOST`)
/// on one host. Two ranks on a tmpfs write interleaved runs of 1 KiB 1.5 times as fast with an
/// exchange as without (64 B: 7.8 times), and runs of 4 KiB 0.8 times as fast.
const LONG_RUN: u64 = 32 << 10;
const LONG_RUN_ON_ONE_HOST: u64 = 2 << 10;
/// The number of ranks on one host up to which each reads its data with the gaps. Two ranks read
/// runs of 64 B 2.3 times as fast by this as with an exchange, but each rank then reads the data of
/// all.
const FEW_READERS: usize = 8;
/// The number of aggregators on each host, unless a hint sets another.
const AGGREGATORS: usize = 4;
/// Bytes of the largest window: offsets within it are sent as 32 bits.
const LARGEST_WINDOW: u64 = 1 << 30;
/// Rounds are sparse if there are more than this multiple of those that the data would need without
/// gaps. An agreement on the next round costs a small part of a round with data.
const SPARSE: u64 = 4;

/// The part of the file that a rank accesses, as all ranks know it.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    /// The range of file offsets, `start..end`, that contains the rank's bytes; empty if it has
    /// none.
    pub(super) start: u64,
    pub(super) end: u64,
    /// The length of the rank's first run in bytes. [`Extent::ALONE`]: the rank must access the
    /// file on its own.
    pub(super) run: u64,
    /// The number of bytes of data that the rank accesses.
    pub(super) bytes: u64,
    /// The distance of the rank's runs in bytes, if all have one length and one distance; else 0.
    pub(super) stride: u64,
    /// The offset of the rank's runs modulo the stride, in bytes.
    pub(super) phase: u64,
}

impl Extent {
    /// The value of `run` for a rank that cannot take part in two phases.
    pub(super) const ALONE: u64 = u64::MAX;
    /// The extent of a rank that accesses no data.
    pub(super) const NOTHING: Extent = Extent {
        start: 0,
        end: 0,
        run: 0,
        bytes: 0,
        stride: 0,
        phase: 0,
    };

    /// Decodes the extent that a rank has sent.
    pub(super) fn of_words([bytes, start, end, run, stride, phase]: [u64; OTHERS]) -> Extent {
        Extent {
            start,
            end,
            run,
            bytes,
            stride,
            phase,
        }
    }

    /// Encodes the extent, to send it to the other ranks.
    pub(super) fn words(&self) -> [u64; OTHERS] {
        [
            self.bytes,
            self.start,
            self.end,
            self.run,
            self.stride,
            self.phase,
        ]
    }

    /// True if the range of a rank begins before the range of a rank with a lower number ends.
    pub(super) fn interleave(all: &[Extent]) -> bool {
        let mut ends = 0;
        let mut busy = all.iter().filter(|extent| extent.start < extent.end);
        busy.any(|extent| {
            let is_before = extent.start < ends;
            ends = ends.max(extent.end);
            is_before
        })
    }

    pub(super) fn range(&self) -> Range<u64> {
        self.start..self.end
    }
}

/// The plan of a two-phase access, on which all ranks agree.
pub(super) struct Plan {
    pub(super) extents: Vec<Extent>,
    pub(super) domains: Domains,
    /// The aggregators' ranks, in the order of their domains.
    pub(super) aggregators: Vec<usize>,
    /// True if most rounds have no data.
    pub(super) is_sparse: bool,
}

impl Plan {
    /// Plans an access. `None`: every rank accesses the file on its own.
    pub(super) fn new(extents: Vec<Extent>, access: &FileAccess, hosts: usize) -> Option<Plan> {
        let hints = &access.hints;
        let switch = match access.direction {
            Direction::Read => hints.collective_read,
            Direction::Write => hints.collective_write,
        };
        let busy = || extents.iter().filter(|extent| extent.start < extent.end);
        let is_impossible = extents.iter().any(|extent| extent.run == Extent::ALONE);
        if is_impossible || extents.len() == 1 || switch == Switch::Disabled {
            return None;
        }
        let start = busy().map(|extent| extent.start).min()?;
        let end = busy().map(|extent| extent.end).max()?;
        let size = extents.len();
        let count = match hints.aggregators {
            0 => AGGREGATORS * hosts,
            given => given as usize,
        };
        let count = count.clamp(1, size);
        let window = hints.collective_buffer.min(LARGEST_WINDOW);
        let domains = Domains::new(start..end, count, window);
        if switch == Switch::Automatic {
            let interleaves = Extent::interleave(&extents);
            let long = match hosts {
                1 => LONG_RUN_ON_ONE_HOST,
                _ => LONG_RUN,
            };
            let is_short = busy().all(|extent| extent.run < long);
            let reads_apart = access.direction == Direction::Read
                && hosts == 1
                && extents.len() <= FEW_READERS
                && hints.sieve_read != Switch::Disabled;
            // If a window has at most one run, its aggregator has nothing to join.
            let runs = busy().map(|extent| extent.bytes.div_ceil(extent.run.max(1)));
            let is_scattered = runs.fold(0, u64::saturating_add) < domains.windows();
            if !interleaves || !is_short || reads_apart || is_scattered {
                return None;
            }
        }
        let data = busy().map(|extent| extent.bytes);
        let data = data.fold(0, u64::saturating_add);
        let most = data.div_ceil(domains.window_len() * count as u64) + 1;
        Some(Plan {
            is_sparse: domains.rounds() > SPARSE * most,
            extents,
            domains,
            aggregators: (0..count).map(|at| at * size / count).collect(),
        })
    }
}

pub(super) fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start.max(other.start) < one.end.min(other.end)
}
