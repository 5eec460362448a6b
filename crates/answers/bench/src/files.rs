//! Files: reads and writes of bytes that are there already, so that no time goes into new blocks.
//!
//! A rank goes through its part of the file, one call after another, and begins again. The patterns
//! are IOR's: *segmented*, a part of the file for each rank; *easy*, a file for each rank; *hard*,
//! blocks of the ranks in turn; *tile*, a view of records of the ranks in turn, of which a call
//! moves many. Collective accesses have tiles.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use memmap2::MmapMut;
use nix::sys::resource::{Resource, getrlimit};
use serde::{Deserialize, Serialize};

use crate::ffi::Mpi;
use crate::ffi::file::OpenFile;
use crate::file_folder::RankFolder;
use crate::plan::WorkerPlan;
use crate::procedure::{Iteration, Procedure, Repeated, buffer, paint, pattern, verify};

/// An access to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileAccess {
    call: Call,
    pub(crate) pattern: Pattern,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Call {
    /// `MPI_File_write_at`.
    Write,
    /// `MPI_File_read_at`.
    Read,
    /// `MPI_File_write_at_all`.
    Collective,
}

/// The places of the ranks' blocks.
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

    /// Bytes that a rank moves in one call, by the size of a block or record.
    pub(crate) fn bytes(self, size: usize) -> usize {
        match self.pattern {
            Pattern::Tile => size * (CALL / size.max(1)).max(1),
            _ => size,
        }
    }

    /// Calls until a rank begins its part of the file again.
    fn calls(self, size: usize) -> usize {
        (PART / self.bytes(size).max(1)).clamp(1, MOST_CALLS)
    }

    /// The offset of a call of one of `ranks` ranks, in bytes that the rank sees.
    fn offset(self, size: usize, call: usize, (rank, ranks): (usize, usize)) -> usize {
        let (bytes, calls) = (self.bytes(size), self.calls(size));
        let call = call % calls;
        match self.pattern {
            Pattern::Segmented => (rank * calls + call) * bytes,
            Pattern::Hard => (call * ranks + rank) * bytes,
            Pattern::Easy | Pattern::Tile => call * bytes,
        }
    }
}

/// Bytes of a rank in a call that moves many records, and in the file, unless a single block or
/// record is longer.
const CALL: usize = 1 << 20;
const PART: usize = 16 << 20;
/// The most calls for a rank's part of the file.
const MOST_CALLS: usize = 1024;

pub(crate) fn procedure<'a>(
    mpi: &'a Mpi,
    access: FileAccess,
    plan: &WorkerPlan,
) -> Result<Box<dyn Procedure + 'a>> {
    let folder = plan.folder.as_deref();
    let folder = RankFolder::open(folder.context("the plan names no folder for the file")?)?;
    let bytes = plan.sizes.iter().map(|&size| access.bytes(size)).max();
    Ok(Box::new(Repeated {
        mpi,
        validate: plan.validate,
        iteration: Accesses {
            mpi,
            access,
            path: folder.file(),
            _folder: folder,
            file: None,
            memory: buffer(bytes.unwrap_or(0))?,
            call: 0,
        },
    }))
}

struct Accesses<'a> {
    mpi: &'a Mpi,
    access: FileAccess,
    path: PathBuf,
    _folder: RankFolder,
    /// The file of the present size.
    file: Option<OpenFile<'a>>,
    memory: MmapMut,
    /// Calls since the file was opened.
    call: usize,
}

impl Accesses<'_> {
    fn offset(&self, size: usize, call: usize) -> usize {
        let own = (self.mpi.rank(), self.mpi.size());
        self.access.offset(size, call, own)
    }

    /// A write beyond the limit on file sizes is an error of the library, which does not name it.
    fn check_limit(&self, size: usize) -> Result<()> {
        let (access, ranks) = (self.access, self.mpi.size());
        let files = if access.pattern == Pattern::Easy {
            ranks
        } else {
            1
        };
        let bytes = (access.calls(size) * access.bytes(size) * ranks / files) as u64;
        let (limit, _) = getrlimit(Resource::RLIMIT_FSIZE)?;
        if bytes > limit {
            bail!(
                "the file gets {bytes} bytes, and the limit on file sizes (`ulimit -f`) is {limit} bytes: raise it"
            );
        }
        Ok(())
    }

    fn file(&self) -> Result<&OpenFile<'_>> {
        self.file.as_ref().context("no file is open")
    }

    fn write(&self, size: usize, call: usize) -> Result<()> {
        let from = &self.memory[..self.access.bytes(size)];
        let offset = self.offset(size, call);
        self.file()?
            .write(offset, from, self.access.is_collective())
    }
}

impl Iteration for Accesses<'_> {
    fn prepare(&mut self, size: usize) -> Result<()> {
        let (pattern, mut path) = (self.access.pattern, self.path.clone());
        let is_own = pattern == Pattern::Easy;
        if is_own {
            path.as_mut_os_string()
                .push(format!(".{}", self.mpi.rank()));
        }
        let file = self.file.insert(self.mpi.open_file(&path, is_own)?);
        if pattern == Pattern::Tile {
            file.interleave(size)?;
        }
        self.check_limit(size)?;
        self.call = 0;
        let (bytes, rank) = (self.access.bytes(size), self.mpi.rank());
        for call in 0..self.access.calls(size) {
            paint(&mut self.memory[..bytes], rank, call);
            self.write(size, call)?;
        }
        Ok(())
    }

    #[inline]
    fn step(&mut self, size: usize) -> Result<()> {
        let call = self.call;
        self.call += 1;
        if self.access.call != Call::Read {
            return self.write(size, call);
        }
        let (offset, bytes) = (self.offset(size, call), self.access.bytes(size));
        let file = self.file.as_ref().context("no file is open")?;
        file.read(offset, &mut self.memory[..bytes], false)
    }

    fn finish(&mut self) -> Result<()> {
        self.file.take().map_or(Ok(()), OpenFile::close)
    }

    fn fill(&mut self, size: usize, iteration: usize) {
        let bytes = self.access.bytes(size);
        match self.access.call {
            Call::Read => self.memory[..bytes].fill(0),
            _ => paint(&mut self.memory[..bytes], self.mpi.rank(), iteration),
        }
    }

    fn check(&self, size: usize, iteration: usize) -> Result<()> {
        let (bytes, rank, call) = (self.access.bytes(size), self.mpi.rank(), self.call - 1);
        if self.access.call == Call::Read {
            let round = call % self.access.calls(size);
            return verify(&self.memory[..bytes], |at| pattern(rank, round, at));
        }
        let mut found = vec![0; bytes];
        let is_collective = self.access.is_collective();
        let offset = self.offset(size, call);
        self.file()?.read(offset, &mut found, is_collective)?;
        verify(&found, |at| pattern(rank, iteration, at))
    }
}

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

    /// Blocks of a file that ranks see alike lie side by side, each once.
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
