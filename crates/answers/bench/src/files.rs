//! File benchmarks: reads and writes of bytes that exist already, so that no time is spent on the
//! allocation of new blocks.
//!
//! A rank makes one call after another through its part of the file, and then begins again. The
//! patterns are IOR's: *segmented*, a part of the file for each rank; *easy*, a file for each rank;
//! *hard*, blocks that alternate between the ranks; *tile*, a view of records that alternate
//! between the ranks, of which a call moves many. Collective accesses use tiles.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use memmap2::MmapMut;
use nix::sys::resource::{Resource, getrlimit};

use crate::ffi::Mpi;
use crate::ffi::file::OpenFile;
use crate::file_access::{Call, FileAccess, Pattern};
use crate::file_folder::RankFolder;
use crate::plan::WorkerPlan;
use crate::procedure::{Iteration, Procedure, Repeated, buffer, paint, pattern, verify};

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
    /// The open file, which is used for the present block size only. `None` between two sizes.
    file: Option<OpenFile<'a>>,
    memory: MmapMut,
    /// The number of accesses since the file was opened.
    call: usize,
}

impl Accesses<'_> {
    fn offset(&self, size: usize, call: usize) -> usize {
        let own = (self.mpi.rank(), self.mpi.size());
        self.access.offset(size, call, own)
    }

    /// An error if the file would exceed the limit on file sizes: the library reports a failed
    /// write, but not this reason.
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
