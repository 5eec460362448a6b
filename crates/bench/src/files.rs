//! Files: reads and writes of bytes that are there already, so that no time goes into new blocks.
//!
//! *Segmented* accesses are each rank's own: it goes through its part of the file, one block after
//! another, and begins again. *Interleaved* ones are collective: a call moves many records of each
//! rank, and a record of each follows one of the rank before.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use memmap2::MmapMut;
use serde::{Deserialize, Serialize};

use crate::ffi::Mpi;
use crate::ffi::file::OpenFile;
use crate::procedure::{Iteration, Procedure, Repeated, buffer, paint, pattern, verify};

/// An access to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FileAccess {
    /// Segmented `MPI_File_write_at`.
    Write,
    /// Segmented `MPI_File_read_at`.
    Read,
    /// Interleaved `MPI_File_write_at_all`.
    Collective,
}

impl FileAccess {
    pub(crate) const ALL: [FileAccess; 3] =
        [FileAccess::Write, FileAccess::Read, FileAccess::Collective];

    pub(crate) fn name(self) -> &'static str {
        match self {
            FileAccess::Write => "file-write",
            FileAccess::Read => "file-read",
            FileAccess::Collective => "file-collective",
        }
    }

    fn is_collective(self) -> bool {
        self == FileAccess::Collective
    }

    /// Bytes that a rank moves in one call, by the size of a block or record.
    pub(crate) fn bytes(self, size: usize) -> usize {
        match self {
            FileAccess::Write | FileAccess::Read => size,
            FileAccess::Collective => size * (CALL / size.max(1)).max(1),
        }
    }

    /// Calls until a rank begins its part of the file again.
    fn calls(self, size: usize) -> usize {
        (PART / self.bytes(size).max(1)).clamp(1, MOST_CALLS)
    }
}

/// Bytes of a rank in a collective call, and in the file, unless a single block or record is
/// longer.
const CALL: usize = 1 << 20;
const PART: usize = 16 << 20;
/// The most calls for a rank's part of the file.
const MOST_CALLS: usize = 1024;
/// Bytes of a file's name in a message between ranks.
const LONGEST_NAME: usize = 1024;
const TAG_NAME: i32 = 94;

pub(crate) fn procedure<'a>(
    mpi: &'a Mpi,
    access: FileAccess,
    validate: bool,
    sizes: &[usize],
) -> Result<Box<dyn Procedure + 'a>> {
    let bytes = sizes.iter().map(|&size| access.bytes(size)).max();
    Ok(Box::new(Repeated {
        mpi,
        validate,
        iteration: Accesses {
            mpi,
            access,
            path: common_path(mpi)?,
            file: None,
            memory: buffer(bytes.unwrap_or(0))?,
            call: 0,
        },
    }))
}

/// The name of rank 0's file, on all ranks.
fn common_path(mpi: &Mpi) -> Result<PathBuf> {
    let mut name = [0; LONGEST_NAME];
    if mpi.rank() == 0 {
        let number = std::process::id();
        let path = std::env::temp_dir().join(format!("fishplate-bench-{number}"));
        let bytes = path.as_os_str().as_encoded_bytes();
        let place = name.get_mut(..bytes.len());
        place
            .with_context(|| format!("the name of {} is too long", path.display()))?
            .copy_from_slice(bytes);
        for rank in 1..mpi.size() {
            mpi.send(&name, rank, TAG_NAME)?;
        }
    } else {
        mpi.recv(&mut name, 0, TAG_NAME)?;
    }
    let text = std::str::from_utf8(&name).context("the name of the file is no UTF-8")?;
    Ok(Path::new(text.trim_end_matches('\0')).to_owned())
}

struct Accesses<'a> {
    mpi: &'a Mpi,
    access: FileAccess,
    path: PathBuf,
    /// The file of the present size.
    file: Option<OpenFile<'a>>,
    memory: MmapMut,
    /// Calls since the file was opened.
    call: usize,
}

impl Accesses<'_> {
    /// The offset of a call, in bytes that this rank sees.
    fn offset(&self, size: usize, call: usize) -> usize {
        let (bytes, calls) = (self.access.bytes(size), self.access.calls(size));
        let own = match self.access.is_collective() {
            true => 0,
            false => self.mpi.rank() * calls * bytes,
        };
        own + call % calls * bytes
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
        let file = self.file.insert(self.mpi.open_file(&self.path)?);
        if self.access.is_collective() {
            file.interleave(size)?;
        }
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
        if self.access != FileAccess::Read {
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
        match self.access {
            FileAccess::Read => self.memory[..bytes].fill(0),
            _ => paint(&mut self.memory[..bytes], self.mpi.rank(), iteration),
        }
    }

    fn check(&self, size: usize, iteration: usize) -> Result<()> {
        let (bytes, rank, call) = (self.access.bytes(size), self.mpi.rank(), self.call - 1);
        if self.access == FileAccess::Read {
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

    #[test]
    fn parts_of_a_file_have_a_bounded_size_and_number_of_calls() {
        for access in FileAccess::ALL {
            for size in [1, 64, 4096, 1 << 20, 64 << 20] {
                let (bytes, calls) = (access.bytes(size), access.calls(size));
                assert!(bytes >= size && bytes.is_multiple_of(size));
                assert!((1..=MOST_CALLS).contains(&calls));
                assert!(calls == 1 || bytes * calls <= PART);
            }
        }
        assert_eq!(FileAccess::Collective.bytes(64), CALL);
        assert_eq!(FileAccess::Write.bytes(64), 64);
    }
}
