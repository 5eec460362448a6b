//! Windows of one-sided communication, in which rank 1 is the target.
//!
//! Invariant: an access is complete when its method returns, or when the [`OpenWindow::stream`]
//! that begins it returns, so its buffer outlives it.

use std::ffi::{c_int, c_void};
use std::ptr;

use anyhow::{Result, bail};

use super::{AbiHandle, Address, COMM_WORLD, INFO_NULL, Mpi, SUM};
use crate::window_access::WORD;

const BYTE: AbiHandle = super::BYTE;
const INT64: AbiHandle = 0x258;
const WIN_NULL: AbiHandle = 0x110;
const TARGET: c_int = 1;

type Create = unsafe extern "C" fn(
    isize,
    c_int,
    AbiHandle,
    AbiHandle,
    *mut *mut c_void,
    *mut AbiHandle,
) -> c_int;
type Free = unsafe extern "C" fn(*mut AbiHandle) -> c_int;
type LockAll = unsafe extern "C" fn(c_int, AbiHandle) -> c_int;
type OfWindow = unsafe extern "C" fn(AbiHandle) -> c_int;
type Flush = unsafe extern "C" fn(c_int, AbiHandle) -> c_int;
/// The prototype of `MPI_Put` and `MPI_Get`.
type Move<P> =
    unsafe extern "C" fn(P, c_int, AbiHandle, c_int, isize, c_int, AbiHandle, AbiHandle) -> c_int;
type Accumulate = unsafe extern "C" fn(
    *const u8,
    c_int,
    AbiHandle,
    c_int,
    isize,
    c_int,
    AbiHandle,
    AbiHandle,
    AbiHandle,
) -> c_int;
type GetAccumulate = unsafe extern "C" fn(
    *const u8,
    c_int,
    AbiHandle,
    *mut u8,
    c_int,
    AbiHandle,
    c_int,
    isize,
    c_int,
    AbiHandle,
    AbiHandle,
    AbiHandle,
) -> c_int;
type FetchAndOp = unsafe extern "C" fn(
    *const u8,
    *mut u8,
    AbiHandle,
    c_int,
    isize,
    AbiHandle,
    AbiHandle,
) -> c_int;
type CompareAndSwap = unsafe extern "C" fn(
    *const u8,
    *const u8,
    *mut u8,
    AbiHandle,
    c_int,
    isize,
    AbiHandle,
) -> c_int;

/// Proves that an access has begun. The buffer is in use until the flush at the end of
/// [`OpenWindow::stream`].
pub(crate) struct Begun;

/// A window whose memory the library has allocated at each rank.
pub(crate) struct OpenWindow<'a> {
    mpi: &'a Mpi,
    handle: AbiHandle,
    /// The number of bytes at each rank.
    bytes: usize,
    flush: Flush,
    put: Move<*const u8>,
    get: Move<*mut u8>,
    accumulate: Accumulate,
    get_accumulate: GetAccumulate,
    fetch_and_op: FetchAndOp,
    compare_and_swap: CompareAndSwap,
}

impl Mpi {
    /// Allocates a window of all ranks, with `bytes` bytes at each.
    pub(crate) fn window_of(&self, bytes: usize) -> Result<OpenWindow<'_>> {
        let create = prototype!(self.procedure("MPI_Win_allocate")?, Create);
        let (mut base, mut handle) = (ptr::null_mut(), WIN_NULL);
        // SAFETY: constants of the ABI, and memory for two results.
        let code = unsafe {
            create(
                bytes as isize,
                1,
                INFO_NULL,
                COMM_WORLD,
                &mut base,
                &mut handle,
            )
        };
        self.check("MPI_Win_allocate", code)?;
        Ok(OpenWindow {
            mpi: self,
            handle,
            bytes,
            flush: prototype!(self.procedure("MPI_Win_flush")?, Flush),
            put: prototype!(self.procedure("MPI_Put")?, Move<*const u8>),
            get: prototype!(self.procedure("MPI_Get")?, Move<*mut u8>),
            accumulate: prototype!(self.procedure("MPI_Accumulate")?, Accumulate),
            get_accumulate: prototype!(self.procedure("MPI_Get_accumulate")?, GetAccumulate),
            fetch_and_op: prototype!(self.procedure("MPI_Fetch_and_op")?, FetchAndOp),
            compare_and_swap: prototype!(self.procedure("MPI_Compare_and_swap")?, CompareAndSwap),
        })
    }
}

impl OpenWindow<'_> {
    /// Begins an epoch in which this rank accesses all others.
    pub(crate) fn lock_all(&self) -> Result<()> {
        let lock_all = prototype!(self.mpi.procedure("MPI_Win_lock_all")?, LockAll);
        // SAFETY: an integer and a window of the library.
        let code = unsafe { lock_all(0, self.handle) };
        self.mpi.check("MPI_Win_lock_all", code)
    }

    /// Ends the epoch that [`lock_all`](OpenWindow::lock_all) began.
    pub(crate) fn unlock_all(&self) -> Result<()> {
        let unlock_all = prototype!(self.mpi.procedure("MPI_Win_unlock_all")?, OfWindow);
        // SAFETY: a window of the library.
        let code = unsafe { unlock_all(self.handle) };
        self.mpi.check("MPI_Win_unlock_all", code)
    }

    /// Frees the window at all ranks.
    pub(crate) fn free(mut self) -> Result<()> {
        let free = prototype!(self.mpi.procedure("MPI_Win_free")?, Free);
        // SAFETY: a window of the library, which is not used again.
        let code = unsafe { free(&mut self.handle) };
        self.mpi.check("MPI_Win_free", code)
    }

    /// Calls `MPI_Put` and flushes.
    #[inline]
    pub(crate) fn put(&self, from: &[u8]) -> Result<()> {
        self.stream(1, |_| self.begin_put(from, 0))
    }

    /// Calls `MPI_Get` and flushes.
    #[inline]
    pub(crate) fn get(&self, to: &mut [u8]) -> Result<()> {
        self.stream(1, |_| self.begin_get(to, 0))
    }

    /// Begins `count` accesses, each with its number, and completes them with one flush.
    #[inline]
    pub(crate) fn stream(
        &self,
        count: usize,
        mut begin: impl FnMut(usize) -> Result<Begun>,
    ) -> Result<()> {
        for number in 0..count {
            begin(number)?;
        }
        self.flush()
    }

    /// Calls `MPI_Put` at a displacement in bytes; to be completed by
    /// [`stream`](OpenWindow::stream).
    #[inline]
    pub(crate) fn begin_put(&self, from: &[u8], at: usize) -> Result<Begun> {
        let (count, win) = (self.count(at, from.len(), 1)?, self.handle);
        let (from, at) = (from.as_ptr(), at as isize);
        // SAFETY: the slice and the window have as many bytes; the flush follows.
        let code = unsafe { (self.put)(from, count, BYTE, TARGET, at, count, BYTE, win) };
        self.mpi.check("MPI_Put", code).map(|()| Begun)
    }

    /// Calls `MPI_Get` at a displacement in bytes; to be completed by
    /// [`stream`](OpenWindow::stream).
    #[inline]
    pub(crate) fn begin_get(&self, to: &mut [u8], at: usize) -> Result<Begun> {
        let (count, win) = (self.count(at, to.len(), 1)?, self.handle);
        let (to, at) = (to.as_mut_ptr(), at as isize);
        // SAFETY: the slice and the window have as many bytes; the flush follows.
        let code = unsafe { (self.get)(to, count, BYTE, TARGET, at, count, BYTE, win) };
        self.mpi.check("MPI_Get", code).map(|()| Begun)
    }

    /// Calls `MPI_Accumulate`, which sums 8-byte integers, and flushes.
    #[inline]
    pub(crate) fn accumulate(&self, from: &[u8]) -> Result<()> {
        let (count, win, ty) = (self.count(0, from.len(), WORD)?, self.handle, INT64);
        let at = from.as_ptr();
        // SAFETY: the slice and the window have as many integers; the flush follows.
        let code = unsafe { (self.accumulate)(at, count, ty, TARGET, 0, count, ty, SUM, win) };
        self.completed("MPI_Accumulate", code)
    }

    /// Calls `MPI_Get_accumulate`, which sums 8-byte integers, and flushes.
    #[inline]
    pub(crate) fn get_accumulate(&self, from: &[u8], old: &mut [u8]) -> Result<()> {
        assert_eq!(from.len(), old.len());
        let (count, win, ty) = (self.count(0, from.len(), WORD)?, self.handle, INT64);
        let (at, old) = (from.as_ptr(), old.as_mut_ptr());
        // SAFETY: both slices and the window have as many integers; the flush follows.
        let code = unsafe {
            (self.get_accumulate)(
                at, count, ty, old, count, ty, TARGET, 0, count, ty, SUM, win,
            )
        };
        self.completed("MPI_Get_accumulate", code)
    }

    /// Calls `MPI_Fetch_and_op`, which sums 8-byte integers, and flushes.
    #[inline]
    pub(crate) fn fetch_and_op(&self, from: &[u8], old: &mut [u8]) -> Result<()> {
        assert!(from.len() == WORD && old.len() == WORD && self.bytes >= WORD);
        let (at, old) = (from.as_ptr(), old.as_mut_ptr());
        // SAFETY: both slices and the window have one integer; the flush follows.
        let code = unsafe { (self.fetch_and_op)(at, old, INT64, TARGET, 0, SUM, self.handle) };
        self.completed("MPI_Fetch_and_op", code)
    }

    /// Calls `MPI_Compare_and_swap` of a value with itself, and flushes.
    #[inline]
    pub(crate) fn compare_and_swap(&self, value: &[u8], old: &mut [u8]) -> Result<()> {
        assert!(value.len() == WORD && old.len() == WORD && self.bytes >= WORD);
        let (at, old) = (value.as_ptr(), old.as_mut_ptr());
        // SAFETY: both slices and the window have one integer; the flush follows.
        let code = unsafe { (self.compare_and_swap)(at, at, old, INT64, TARGET, 0, self.handle) };
        self.completed("MPI_Compare_and_swap", code)
    }

    /// The number of elements in an access of `bytes` bytes at a displacement. An error if it
    /// exceeds the window.
    #[inline]
    fn count(&self, at: usize, bytes: usize, element: usize) -> Result<c_int> {
        if at > self.bytes || bytes > self.bytes - at || !bytes.is_multiple_of(element) {
            bail!("an access of {bytes} bytes to a window of {}", self.bytes);
        }
        Ok((bytes / element) as c_int)
    }

    /// Flushes the access that has just begun, so that it is complete.
    #[inline]
    fn completed(&self, procedure: &str, code: c_int) -> Result<()> {
        self.mpi.check(procedure, code)?;
        self.flush()
    }

    #[inline]
    fn flush(&self) -> Result<()> {
        // SAFETY: an integer and a window of the library.
        let code = unsafe { (self.flush)(TARGET, self.handle) };
        self.mpi.check("MPI_Win_flush", code)
    }
}
