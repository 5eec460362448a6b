//! Accesses to files, and the offsets of their blocks.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// A kind of access to a file: a procedure and a pattern of offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileAccess {
    pub(crate) call: Call,
    pub(crate) pattern: Pattern,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Call {
    /// `MPI_File_write_at`.
    Write,
    /// `MPI_File_read_at`.
    Read,
    /// `MPI_File_write_at_all`.
    Collective,
}

/// The arrangement of the ranks' blocks in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Pattern {
    /// A part of the file for each rank
    #[default]
    Segmented,
    /// A file for each rank
    Easy,
    /// Blocks of the ranks in turn, at explicit offsets
    Hard,
    /// Blocks of the ranks in turn, by a view; a call moves 1 MiB of them
    Tile,
}

impl FileAccess {
    pub(crate) const WRITE: FileAccess = FileAccess::new(Call::Write, Pattern::Segmented);
    pub(crate) const READ: FileAccess = FileAccess::new(Call::Read, Pattern::Segmented);
    pub(crate) const COLLECTIVE: FileAccess = FileAccess::new(Call::Collective, Pattern::Tile);
    pub(crate) const ALL: [FileAccess; 3] =
        [FileAccess::WRITE, FileAccess::READ, FileAccess::COLLECTIVE];

    const fn new(call: Call, pattern: Pattern) -> FileAccess {
        FileAccess { call, pattern }
    }

    pub(crate) fn with_pattern(self, pattern: Pattern) -> FileAccess {
        FileAccess { pattern, ..self }
    }

    pub(crate) fn name(self) -> &'static str {
        match self.call {
            Call::Write => "file-write",
            Call::Read => "file-read",
            Call::Collective => "file-collective",
        }
    }

    pub(crate) fn is_collective(self) -> bool {
        self.call == Call::Collective
    }

    /// The number of bytes that a rank moves in one call, for a size of blocks or records in bytes.
    pub(crate) fn bytes(self, size: usize) -> usize {
        match self.pattern {
            Pattern::Tile => size * (CALL / size.max(1)).max(1),
            _ => size,
        }
    }

    /// The number of calls after which a rank returns to the beginning of its part of the file.
    pub(crate) fn calls(self, size: usize) -> usize {
        (PART / self.bytes(size).max(1)).clamp(1, MOST_CALLS)
    }

    /// The offset of a call by one of `ranks` ranks, in bytes of the rank's view.
    pub(crate) fn offset(self, size: usize, call: usize, (rank, ranks): (usize, usize)) -> usize {
        let (bytes, calls) = (self.bytes(size), self.calls(size));
        let call = call % calls;
        match self.pattern {
            Pattern::Segmented => (rank * calls + call) * bytes,
            Pattern::Hard => (call * ranks + rank) * bytes,
            Pattern::Easy | Pattern::Tile => call * bytes,
        }
    }
}

/// The bytes that a rank moves in a call with many records, unless a single record is longer.
const CALL: usize = 1 << 20;
/// The bytes of a rank's part of the file, unless a single block or record is longer.
const PART: usize = 16 << 20;
/// The most calls that access a rank's part of the file one after the other.
const MOST_CALLS: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    /// All accesses with all patterns.
    fn accesses() -> impl Iterator<Item = FileAccess> {
        FileAccess::ALL.into_iter().flat_map(|access| {
            let patterns = Pattern::value_variants().iter();
            patterns.map(move |&pattern| FileAccess { pattern, ..access })
        })
    }

    #[test]
    fn parts_of_a_file_have_a_bounded_size_and_number_of_calls() {
        for access in accesses() {
            for size in [1, 64, 4096, 1 << 20, 64 << 20] {
                let (bytes, calls) = (access.bytes(size), access.calls(size));
                assert!(bytes >= size && bytes.is_multiple_of(size));
                assert!((1..=MOST_CALLS).contains(&calls));
                assert!(calls == 1 || bytes * calls <= PART);
            }
        }
        assert_eq!(FileAccess::COLLECTIVE.bytes(64), CALL);
        assert_eq!(FileAccess::WRITE.bytes(64), 64);
    }

    /// In a file that ranks see alike, the blocks of all ranks lie side by side, each once.
    #[test]
    fn blocks_of_all_ranks_fill_the_file() {
        for access in accesses() {
            let (size, ranks) = (1 << 20, 3);
            let calls = access.calls(size);
            let offsets =
                |rank| (0..calls).map(move |call| access.offset(size, call, (rank, ranks)));
            let mut all: Vec<usize> = match access.pattern {
                Pattern::Segmented | Pattern::Hard => (0..ranks).flat_map(offsets).collect(),
                Pattern::Easy | Pattern::Tile => offsets(1).collect(),
            };
            all.sort_unstable();
            let wanted = (0..all.len()).map(|at| at * access.bytes(size));
            assert!(all.into_iter().eq(wanted), "{access:?}");
        }
    }
}
