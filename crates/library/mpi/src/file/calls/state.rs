//! Queries and settings of an open file: size, preallocated space, hints, atomic mode, and the
//! transfer of its data to the storage device (MPI 5.0 §14.2, §14.6).

use std::sync::Arc;

use crate::file::calls::open::size;
use crate::file::calls::round::{FileRound, Procedure, Said, heard, told};
use crate::file::system_error;
use crate::rank::Rank;
use crate::request::Waiting;
use crate::state::Objects;
use crate::{Class, Error, Result};

impl Objects {
    /// `MPI_File_get_size`.
    pub fn file_size(&self, file: u32) -> Result<i64> {
        Ok(size(&self.files.get(file)?.shared)? as i64)
    }

    /// `MPI_File_get_amode`.
    pub fn file_mode(&self, file: u32) -> Result<i32> {
        Ok(self.files.get(file)?.shared.mode.value())
    }

    /// `MPI_File_get_group`.
    pub fn file_group(&mut self, file: u32) -> Result<u32> {
        self.groups
            .of_object(&self.files.get(file)?.shared.core.members)
    }

    /// `MPI_File_get_info`: the hints that are in use.
    pub fn file_info(&self, file: u32) -> Result<Vec<(String, String)>> {
        Ok(self.files.get(file)?.hints.info())
    }

    /// `MPI_File_get_atomicity`.
    pub fn file_atomicity(&self, file: u32) -> Result<bool> {
        Ok(self.files.get(file)?.is_atomic)
    }
}

impl Rank {
    /// `MPI_File_set_size`.
    pub fn file_set_size(
        self: &Arc<Rank>,
        operation: &'static str,
        file: u32,
        size: i64,
    ) -> Result<()> {
        self.resize(operation, file, size, Procedure::SetSize)
    }

    /// `MPI_File_preallocate`.
    pub fn file_preallocate(
        self: &Arc<Rank>,
        operation: &'static str,
        file: u32,
        size: i64,
    ) -> Result<()> {
        self.resize(operation, file, size, Procedure::Preallocate)
    }

    /// Changes the size of a file, or preallocates its space, on the first rank.
    fn resize(
        self: &Arc<Rank>,
        operation: &'static str,
        file: u32,
        size: i64,
        procedure: Procedure,
    ) -> Result<()> {
        let round = self.begin_round(file)?;
        self.in_round(operation, &round, async {
            let mine = checked_size(&round, size).map(|size| Said {
                same: [size, 0, 0],
                ..Said::new(procedure)
            });
            round.exchange(mine).await?;
            let backing = &round.file.backing;
            let changed = match (round.is_first(), procedure) {
                (false, _) => Ok(()),
                (true, Procedure::Preallocate) => backing.allocate(size as u64),
                (true, _) => backing.set_size(size as u64),
            };
            let what = "cannot have another size";
            let failed = |error| system_error(&round.file.path, what, &error);
            round.agree(changed.map_err(failed)).await
        })
    }

    /// `MPI_File_sync`. One rank of each host transfers the data that all ranks of the host have
    /// written.
    pub fn file_sync(self: &Arc<Rank>, operation: &'static str, file: u32) -> Result<()> {
        let round = self.begin_round(file)?;
        self.in_round(operation, &round, async {
            let shared = &round.file;
            round.exchange(Ok(Said::new(Procedure::Sync))).await?;
            let synced = match shared.is_first_of_host && shared.mode.can_write() {
                true => shared.backing.sync(),
                false => Ok(()),
            };
            let what = "cannot be transferred to its device";
            let failed = |error| system_error(&shared.path, what, &error);
            round.agree(synced.map_err(failed)).await
        })
    }

    /// `MPI_File_set_atomicity`.
    pub fn file_set_atomicity(
        self: &Arc<Rank>,
        operation: &'static str,
        file: u32,
        is_atomic: bool,
    ) -> Result<()> {
        let round = self.begin_round(file)?;
        self.in_round(operation, &round, async {
            let said = Said {
                same: [is_atomic.into(), 0, 0],
                ..Said::new(Procedure::SetAtomicity)
            };
            round.exchange(Ok(said)).await?;
            let possible = match is_atomic {
                true => can_lock(&round),
                false => Ok(()),
            };
            round.agree(possible).await
        })?;
        self.lock().objects.files.get_mut(file)?.is_atomic = is_atomic;
        Ok(())
    }

    /// `MPI_File_set_info`. `info` is an error if the argument is wrong.
    pub fn file_set_info(
        self: &Arc<Rank>,
        operation: &'static str,
        file: u32,
        info: Result<Vec<(String, String)>>,
    ) -> Result<()> {
        let round = self.begin_round(file)?;
        let mut hints = self.lock().objects.files.get(file)?.hints.clone();
        let mine = info.map(|info| {
            hints.update(&info);
            Said {
                others: told(&hints.words()),
                ..Said::new(Procedure::SetInfo)
            }
        });
        let all = self.in_round(operation, &round, round.exchange(mine))?;
        hints.agree(&heard(&all));
        self.lock().objects.files.get_mut(file)?.hints = hints;
        Ok(())
    }

    /// Drives the steps of a collective call on a file until they end.
    pub(super) fn in_round<T>(
        &self,
        operation: &'static str,
        round: &FileRound,
        steps: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let done = self.block_on(&Waiting::in_call(operation), Some(round.context()), steps)?;
        self.pass_storage_time(operation)?;
        Ok(done)
    }
}

fn checked_size(round: &FileRound, size: i64) -> Result<u64> {
    if !round.file.mode.can_write() {
        let path = round.file.path.display();
        let detail = format!("{path} was opened with MPI_MODE_RDONLY and keeps its size");
        return Err(Error::new(Class::READ_ONLY, detail));
    }
    round.file.check_random_access()?;
    u64::try_from(size).map_err(|_| {
        let detail = format!("the size is {size}; it must not be negative");
        Error::new(Class::ARG, detail)
    })
}

/// An error if the file system has no locks, which atomic mode needs.
fn can_lock(round: &FileRound) -> Result<()> {
    let file = &round.file;
    let lock = match file.mode.can_write() {
        true => ::file_io::Lock::Exclusive,
        false => ::file_io::Lock::Shared,
    };
    let _turn = file.turn.lock();
    // The range of a byte that no file has.
    let range = i64::MAX as u64 - 1..i64::MAX as u64;
    let locked = file.backing.lock(range.clone(), lock);
    locked
        .and_then(|()| file.backing.unlock(range))
        .map_err(|error| {
            let text = ::file_io::described(&error);
            let path = file.path.display();
            let detail = format!("{path} cannot be locked, which atomic mode needs: {text}");
            Error::new(Class::UNSUPPORTED_OPERATION, detail)
        })
}
