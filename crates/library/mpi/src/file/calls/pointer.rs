//! File pointers and offsets (MPI 5.0 §14.4.2 to §14.4.4).

use std::sync::Arc;

use crate::file::calls::open::size;
use crate::file::calls::round::{Procedure, Said};
use crate::file::{FileView, SEEK_CUR, SEEK_END, SEEK_SET, SharedFile};
use crate::rank::Rank;
use crate::state::Objects;
use crate::{Class, Error, Result};

impl Objects {
    /// `MPI_File_seek`.
    pub fn file_seek(&mut self, file: u32, offset: i64, whence: i32) -> Result<()> {
        let open = self.files.get_mut(file)?;
        open.shared.check_random_access()?;
        let current = || Ok(open.position);
        open.position = moved(&open.shared, &open.view, (offset, whence), current)?;
        Ok(())
    }

    /// `MPI_File_get_position`.
    pub fn file_position(&self, file: u32) -> Result<i64> {
        let open = self.files.get(file)?;
        open.shared.check_random_access()?;
        Ok(open.position)
    }

    /// `MPI_File_get_byte_offset`.
    pub fn file_byte_offset(&self, file: u32, offset: i64) -> Result<i64> {
        let open = self.files.get(file)?;
        open.shared.check_random_access()?;
        let position = open.view.position_of(offset);
        let found = position.and_then(|position| open.view.bytes.offset_of(position));
        found.map(|found| found as i64).ok_or_else(|| {
            let detail = format!("the offset is {offset}; the view has no such etype");
            Error::new(Class::ARG, detail)
        })
    }
}

impl Rank {
    /// `MPI_File_get_position_shared`.
    pub fn file_position_shared(&self, file: u32) -> Result<i64> {
        let shared = self.lock().objects.files.get(file)?.shared.clone();
        shared.with_pointer(|pointer| pointer.get(&*shared.storage))
    }

    /// `MPI_File_seek_shared`.
    pub fn file_seek_shared(
        self: &Arc<Rank>,
        operation: &'static str,
        file: u32,
        offset: i64,
        whence: i32,
    ) -> Result<()> {
        let round = self.begin_round(file)?;
        self.in_round(operation, &round, async {
            let said = Said {
                same: [offset as u64, whence as u64, 0],
                ..Said::new(Procedure::SeekShared)
            };
            round.exchange(Ok(said)).await?;
            let sought = match round.is_first() {
                true => self.seek_shared_now(file, offset, whence),
                false => Ok(()),
            };
            round.agree(sought).await
        })
    }

    fn seek_shared_now(&self, file: u32, offset: i64, whence: i32) -> Result<()> {
        let (shared, view) = {
            let state = self.lock();
            let open = state.objects.files.get(file)?;
            (open.shared.clone(), open.view.clone())
        };
        let current = || shared.with_pointer(|pointer| pointer.get(&*shared.storage));
        let position = moved(&shared, &view, (offset, whence), current)?;
        shared.with_pointer(|pointer| pointer.set(&*shared.storage, position))
    }
}

/// The new offset of a file pointer, in etypes.
fn moved(
    file: &SharedFile,
    view: &FileView,
    (offset, whence): (i64, i32),
    current: impl FnOnce() -> Result<i64>,
) -> Result<i64> {
    let base = match whence {
        SEEK_SET => 0,
        SEEK_CUR => current()?,
        SEEK_END => view.etypes_before(size(file)?),
        _ => {
            let detail =
                format!("whence is {whence}; valid: MPI_SEEK_SET, MPI_SEEK_CUR, MPI_SEEK_END");
            return Err(Error::new(Class::ARG, detail));
        }
    };
    let to = base.checked_add(offset).filter(|to| *to >= 0);
    to.ok_or_else(|| {
        let detail = format!("{offset} etypes from {base} is no place in the view");
        Error::new(Class::ARG, detail)
    })
}
