//! Error handlers of files (MPI 5.0 §9.3.3, §14.7).

use crate::Result;
use crate::errhandler::ErrorAction;
use crate::file;
use crate::handle::ObjectKind;
use crate::rank::Rank;
use crate::state::Objects;

impl Objects {
    /// Checks that `file` is an open file or `MPI_FILE_NULL`, which also has an error handler.
    pub fn check_file(&self, file: u32) -> Result<()> {
        match file {
            file::NULL => Ok(()),
            _ => self.files.get(file).map(drop),
        }
    }

    /// `MPI_File_set_errhandler`. The handler of `MPI_FILE_NULL` is for files that are opened
    /// later.
    pub fn set_file_errhandler(&mut self, file: u32, errhandler: u32) -> Result<()> {
        self.check_file(file)?;
        self.errhandlers.check(ObjectKind::File, errhandler)?;
        self.errhandlers.add_object(errhandler);
        let place = match file {
            file::NULL => &mut self.files.errhandler,
            _ => &mut self.files.get_mut(file)?.errhandler,
        };
        let old = std::mem::replace(place, errhandler);
        self.errhandlers.remove_object(old);
        Ok(())
    }

    /// `MPI_File_get_errhandler`: a new handle that the user must free.
    pub fn file_errhandler(&mut self, file: u32) -> Result<u32> {
        let handle = match file {
            file::NULL => self.files.errhandler,
            _ => self.files.get(file)?.errhandler,
        };
        self.errhandlers.add_handle(handle);
        Ok(handle)
    }
}

impl Rank {
    /// Calls the error handler of a file. An error without an open file goes to the handler of
    /// `MPI_FILE_NULL`.
    #[cold]
    pub fn raise_on_file(&self, file: u32, code: i32) -> ErrorAction {
        let state = self.lock();
        let (handle, errhandler) = match state.objects.files.get(file) {
            Ok(open) => (file, open.errhandler),
            Err(_) => (file::NULL, state.objects.files.errhandler),
        };
        drop(state);
        self.raise_by(errhandler, handle, code)
    }
}
