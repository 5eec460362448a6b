//! A file that ranks have open through the library.
//!
//! Invariant: accesses block, so they end before their buffers do.

use std::ffi::{CString, c_char, c_int, c_void};
use std::path::Path;

use anyhow::{Context, Result};

use super::{AbiHandle, Address, BYTE, COMM_WORLD, INFO_NULL, Mpi, STATUS_IGNORE};

const COMM_SELF: AbiHandle = 0x102;
const FILE_NULL: AbiHandle = 0x118;
const DATATYPE_NULL: AbiHandle = 0x200;
const CREATE: c_int = 2;
const DELETE_ON_CLOSE: c_int = 4;
const READ_WRITE: c_int = 32;

type Open =
    unsafe extern "C" fn(AbiHandle, *const c_char, c_int, AbiHandle, *mut AbiHandle) -> c_int;
type OfHandle = unsafe extern "C" fn(*mut AbiHandle) -> c_int;
type Contiguous = unsafe extern "C" fn(c_int, AbiHandle, *mut AbiHandle) -> c_int;
type Resized = unsafe extern "C" fn(AbiHandle, isize, isize, *mut AbiHandle) -> c_int;
type SetView =
    unsafe extern "C" fn(AbiHandle, i64, AbiHandle, AbiHandle, *const c_char, AbiHandle) -> c_int;
/// The prototype of reads and writes at explicit offsets.
type Access<P> = unsafe extern "C" fn(AbiHandle, i64, P, c_int, AbiHandle, *mut c_void) -> c_int;

/// A file that the library has open, and deletes when it is closed.
pub(crate) struct OpenFile<'a> {
    mpi: &'a Mpi,
    handle: AbiHandle,
    read: Access<*mut u8>,
    write: Access<*const u8>,
    read_all: Access<*mut u8>,
    write_all: Access<*const u8>,
}

impl Mpi {
    /// Opens a file on all ranks; if `is_own`, a file of this rank alone.
    pub(crate) fn open_file(&self, path: &Path, is_own: bool) -> Result<OpenFile<'_>> {
        let open = prototype!(self.procedure("MPI_File_open")?, Open);
        let name = CString::new(path.as_os_str().as_encoded_bytes());
        let name = name.context("the name of a file has a zero byte")?;
        let (mode, mut handle) = (CREATE | READ_WRITE | DELETE_ON_CLOSE, FILE_NULL);
        let comm = if is_own { COMM_SELF } else { COMM_WORLD };
        // SAFETY: constants of the ABI, a string, and memory for the result.
        let code = unsafe { open(comm, name.as_ptr(), mode, INFO_NULL, &mut handle) };
        self.check("MPI_File_open", code)
            .with_context(|| format!("{} (TMPDIR names another folder)", path.display()))?;
        Ok(OpenFile {
            mpi: self,
            handle,
            read: prototype!(self.procedure("MPI_File_read_at")?, Access<*mut u8>),
            write: prototype!(self.procedure("MPI_File_write_at")?, Access<*const u8>),
            read_all: prototype!(self.procedure("MPI_File_read_at_all")?, Access<*mut u8>),
            write_all: prototype!(self.procedure("MPI_File_write_at_all")?, Access<*const u8>),
        })
    }
}

impl OpenFile<'_> {
    /// Sets the view of this rank: every `size`-th record of `bytes` bytes, beginning with the
    /// record of its own rank, where `size` is the number of ranks.
    pub(crate) fn interleave(&self, bytes: usize) -> Result<()> {
        let mpi = self.mpi;
        let contiguous = prototype!(mpi.procedure("MPI_Type_contiguous")?, Contiguous);
        let resized = prototype!(mpi.procedure("MPI_Type_create_resized")?, Resized);
        let commit = prototype!(mpi.procedure("MPI_Type_commit")?, OfHandle);
        let free = prototype!(mpi.procedure("MPI_Type_free")?, OfHandle);
        let set_view = prototype!(mpi.procedure("MPI_File_set_view")?, SetView);
        let extent = (bytes * mpi.size()) as isize;
        let displacement = (bytes * mpi.rank()) as i64;
        let (mut record, mut records) = (DATATYPE_NULL, DATATYPE_NULL);
        // SAFETY: handles of the library, a string, and memory for the results.
        unsafe {
            let code = contiguous(bytes as c_int, BYTE, &mut record);
            mpi.check("MPI_Type_contiguous", code)?;
            let code = resized(record, 0, extent, &mut records);
            mpi.check("MPI_Type_create_resized", code)?;
            mpi.check("MPI_Type_commit", commit(&mut records))?;
            let native = c"native".as_ptr();
            let code = set_view(self.handle, displacement, BYTE, records, native, INFO_NULL);
            mpi.check("MPI_File_set_view", code)?;
            mpi.check("MPI_Type_free", free(&mut record))?;
            mpi.check("MPI_Type_free", free(&mut records))
        }
    }

    /// Calls `MPI_File_read_at`, or `MPI_File_read_at_all` if `collective`.
    #[inline]
    pub(crate) fn read(&self, offset: usize, into: &mut [u8], collective: bool) -> Result<()> {
        let (procedure, call) = match collective {
            false => ("MPI_File_read_at", self.read),
            true => ("MPI_File_read_at_all", self.read_all),
        };
        let (count, at) = (into.len() as c_int, into.as_mut_ptr());
        // SAFETY: a blocking call that writes at most the slice.
        let code = unsafe { call(self.handle, offset as i64, at, count, BYTE, STATUS_IGNORE) };
        self.mpi.check(procedure, code)
    }

    /// Calls `MPI_File_write_at`, or `MPI_File_write_at_all` if `collective`.
    #[inline]
    pub(crate) fn write(&self, offset: usize, from: &[u8], collective: bool) -> Result<()> {
        let (procedure, call) = match collective {
            false => ("MPI_File_write_at", self.write),
            true => ("MPI_File_write_at_all", self.write_all),
        };
        let (count, at) = (from.len() as c_int, from.as_ptr());
        // SAFETY: a blocking call that reads the slice.
        let code = unsafe { call(self.handle, offset as i64, at, count, BYTE, STATUS_IGNORE) };
        self.mpi.check(procedure, code)
    }

    /// Closes the file on all ranks, and deletes it.
    pub(crate) fn close(mut self) -> Result<()> {
        let close = prototype!(self.mpi.procedure("MPI_File_close")?, OfHandle);
        // SAFETY: a file of the library, which is not used again.
        let code = unsafe { close(&mut self.handle) };
        self.mpi.check("MPI_File_close", code)
    }
}
