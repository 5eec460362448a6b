//! Arguments from C: the checks that follow from a parameter's kind and need no table, and the
//! views by which safe code reads and writes C's memory.
//!
//! Invariant: a view is made only here, in `arrays` and in `counts`, after its check, and only by
//! the generated entry points. They pass on C's promise that a pointer is NULL or points to the
//! object that its parameter describes. Errors name parameters as the standard does.

use crate::constants::*;
use crate::error::Error;
use crate::status::Status;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use crate::arrays::null;
pub use crate::arrays::{slice, slice_mut, slice_out};
pub use crate::counts::{
    CommArray, CommCounts, Counts, OutCount, counts, counts_of_comm, optional_out_count, out_count,
};

type Result<T> = std::result::Result<T, Error>;

// Integers.

/// Checks a count, which must not be negative (MPI_ERR_COUNT).
#[inline(always)]
pub fn count(name: &str, value: i64) -> Result<i64> {
    if value < 0 {
        Err(negative(MPI_ERR_COUNT, name, value))
    } else {
        Ok(value)
    }
}

/// Checks the count of a buffer that may be MPI_IN_PLACE, with which the count is insignificant.
#[inline(always)]
pub fn count_beside(name: &str, buffer: *const c_void, value: i64) -> Result<i64> {
    if value < 0 && buffer == MPI_IN_PLACE.cast_const() {
        return Ok(0);
    }
    count(name, value)
}

/// Checks the number of requests or of blocks of an array (MPI_ERR_COUNT).
#[inline(always)]
pub fn n(name: &str, value: c_int) -> Result<usize> {
    usize::try_from(value).map_err(|_| negative(MPI_ERR_COUNT, name, value as i64))
}

/// Checks the length of an array of other elements than requests and blocks (MPI_ERR_ARG).
#[inline(always)]
pub fn len(name: &str, value: c_int) -> Result<usize> {
    usize::try_from(value).map_err(|_| negative(MPI_ERR_ARG, name, value as i64))
}

/// Checks a number of dimensions, which must not be negative (MPI_ERR_DIMS).
#[inline(always)]
pub fn ndims(name: &str, value: c_int) -> Result<usize> {
    usize::try_from(value).map_err(|_| negative(MPI_ERR_DIMS, name, value as i64))
}

/// Checks a size in bytes, which must not be negative (MPI_ERR_SIZE).
#[inline(always)]
pub fn size(name: &str, value: isize) -> Result<usize> {
    usize::try_from(value).map_err(|_| negative(MPI_ERR_SIZE, name, value as i64))
}

/// Checks the rank of a process; no special value is allowed.
#[inline(always)]
pub fn rank(name: &str, value: c_int) -> Result<c_int> {
    if value < 0 {
        Err(bad_rank(name, value, ""))
    } else {
        Ok(value)
    }
}

/// Checks a rank to send to; MPI_PROC_NULL is allowed.
#[inline(always)]
pub fn dest(name: &str, value: c_int) -> Result<c_int> {
    if value < 0 {
        negative_dest(name, value)
    } else {
        Ok(value)
    }
}

/// Checks a rank to receive from; MPI_ANY_SOURCE and MPI_PROC_NULL are allowed.
#[inline(always)]
pub fn source(name: &str, value: c_int) -> Result<c_int> {
    if value < 0 && value != MPI_ANY_SOURCE {
        negative_source(name, value)
    } else {
        Ok(value)
    }
}

/// Checks the root of a collective operation; the special values for intercommunicators are
/// allowed.
#[inline(always)]
pub fn root(name: &str, value: c_int) -> Result<c_int> {
    if value < 0 && value != MPI_ROOT && value != MPI_PROC_NULL {
        Err(bad_root(name, value))
    } else {
        Ok(value)
    }
}

/// Checks a tag to send with, which must not be negative (MPI_ERR_TAG).
#[inline(always)]
pub fn tag(name: &str, value: c_int) -> Result<c_int> {
    if value < 0 {
        Err(bad_tag(name, value, ""))
    } else {
        Ok(value)
    }
}

/// Checks a tag to receive; MPI_ANY_TAG is allowed.
#[inline(always)]
pub fn tag_any(name: &str, value: c_int) -> Result<c_int> {
    if value < 0 {
        negative_tag(name, value)
    } else {
        Ok(value)
    }
}

// Single values behind pointers.

/// An address in C's memory for one result.
#[derive(Clone, Copy)]
pub struct Out<'a, T>(NonNull<T>, PhantomData<&'a mut T>);

impl<T> Out<'_, T> {
    /// Writes the result to the caller's memory.
    #[inline(always)]
    pub fn set(self, value: impl Into<T>) {
        // SAFETY: `out` was promised an address that is writable for one T during the call.
        unsafe { self.0.write(value.into()) }
    }
}

impl Out<'_, Status> {
    /// Writes only the error field of the caller's status.
    pub fn set_error(self, error: c_int) {
        // SAFETY: `out` was promised an address that is writable for one status during the call.
        unsafe { (&raw mut (*self.0.as_ptr()).error).write(error) }
    }

    /// Writes all fields except the error field, which only calls that complete several operations
    /// may change (section 3.2.5 of MPI 5.0).
    #[inline(always)]
    pub fn fill(self, status: Status) {
        // SAFETY: `out` was promised an address that is writable for one status; the error field is
        // copied as memory, because C need not have initialised it.
        unsafe {
            let error = &raw mut (*self.0.as_ptr()).error;
            let kept = error.cast::<MaybeUninit<c_int>>().read();
            self.0.write(status);
            error.cast::<MaybeUninit<c_int>>().write(kept);
        }
    }
}

/// A logical value of C (0 or 1), for results of procedures.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Flag(c_int);

impl From<bool> for Flag {
    fn from(value: bool) -> Flag {
        Flag(c_int::from(value))
    }
}

/// The address of a result, which must not be NULL.
///
/// # Safety
/// `place` is NULL or writable for the length of the call.
#[inline(always)]
pub unsafe fn out<'a, T>(name: &str, place: *mut T) -> Result<Out<'a, T>> {
    match NonNull::new(place) {
        Some(place) => Ok(Out(place, PhantomData)),
        None => Err(null(name)),
    }
}

/// The address of a result; `None` for NULL.
///
/// # Safety
/// As for [`out`].
#[inline(always)]
pub unsafe fn optional_out<'a, T>(_name: &str, place: *mut T) -> Result<Option<Out<'a, T>>> {
    Ok(NonNull::new(place).map(|place| Out(place, PhantomData)))
}

/// `None` for MPI_STATUS_IGNORE.
///
/// # Safety
/// As for [`out`].
#[inline(always)]
pub unsafe fn status<'a>(place: *mut Status) -> Option<Out<'a, Status>> {
    NonNull::new(place).map(|place| Out(place, PhantomData))
}

/// The value at an address, which is read and written, and must not be NULL.
///
/// # Safety
/// `place` is NULL or holds a T that nothing else touches during the call.
#[inline(always)]
pub unsafe fn inout<'a, T>(name: &str, place: *mut T) -> Result<&'a mut T> {
    // SAFETY: the caller promises that the pointer is NULL or fits this view.
    match unsafe { place.as_mut() } {
        Some(place) => Ok(place),
        None => Err(null(name)),
    }
}

/// The value at an address, which is read and written; `None` for NULL.
///
/// # Safety
/// As for [`inout`].
#[inline(always)]
pub unsafe fn optional_inout<'a, T>(_name: &str, place: *mut T) -> Result<Option<&'a mut T>> {
    // SAFETY: the caller promises that the pointer is NULL or fits this view.
    Ok(unsafe { place.as_mut() })
}

/// The value at an address, which is read and must not be NULL.
///
/// # Safety
/// `place` is NULL or holds a T that nothing changes during the call.
#[inline(always)]
pub unsafe fn read<'a, T>(name: &str, place: *const T) -> Result<&'a T> {
    // SAFETY: the caller promises that the pointer is NULL or fits this view.
    match unsafe { place.as_ref() } {
        Some(place) => Ok(place),
        None => Err(null(name)),
    }
}

// Arrays.

/// An array whose length follows from the communicator.
///
/// # Safety
/// `start` is NULL or the start of an array of the length that the communicator determines.
#[inline(always)]
pub unsafe fn array_of_comm<'a, T>(name: &'static str, start: *const T) -> CommArray<'a, T> {
    // SAFETY: the caller promises that the pointer is NULL or fits this view.
    unsafe { CommArray::new(name, start) }
}

/// The statuses of several operations in C's memory, or MPI_STATUSES_IGNORE.
#[derive(Clone, Copy)]
pub struct Statuses<'a> {
    start: Option<NonNull<Status>>,
    length: usize,
    place: PhantomData<&'a mut Status>,
}

impl<'a> Statuses<'a> {
    /// The status at `index`, to be written; `None` for MPI_STATUSES_IGNORE.
    #[inline(always)]
    pub fn get(&self, index: usize) -> Option<Out<'a, Status>> {
        let start = self.start?;
        assert!(index < self.length, "status {index} of {}", self.length);
        // SAFETY: within the array of statuses that `statuses` was promised.
        Some(Out(unsafe { start.add(index) }, PhantomData))
    }

    /// True if the caller passed MPI_STATUSES_IGNORE for the statuses.
    pub fn ignored(&self) -> bool {
        self.start.is_none()
    }
}

/// The view of an array of statuses; NULL is MPI_STATUSES_IGNORE.
///
/// # Safety
/// `start` is NULL or the start of `length` writable statuses.
#[inline(always)]
pub unsafe fn statuses<'a>(start: *mut Status, length: usize) -> Statuses<'a> {
    Statuses {
        start: NonNull::new(start),
        length,
        place: PhantomData,
    }
}

// Texts.

/// The string at an address, which must not be NULL.
///
/// # Safety
/// `start` is NULL or a NUL-terminated string that nothing changes during the call.
#[inline(always)]
pub unsafe fn text<'a>(name: &str, start: *const c_char) -> Result<&'a CStr> {
    if start.is_null() {
        return Err(null(name));
    }
    // SAFETY: the caller promises this array or string, and the pointer is not NULL.
    Ok(unsafe { CStr::from_ptr(start) })
}

/// A buffer in C's memory for a string.
pub struct OutText<'a>(&'a mut [MaybeUninit<u8>]);

impl OutText<'_> {
    /// Writes as much of `text` as fits before the closing NUL, and returns the number of bytes
    /// written.
    pub fn set(self, text: &[u8]) -> usize {
        let length = text.len().min(self.0.len() - 1);
        for (place, byte) in self.0.iter_mut().zip(&text[..length]) {
            place.write(*byte);
        }
        self.0[length].write(0);
        length
    }
}

/// The view of a buffer for a string, which must not be NULL.
///
/// # Safety
/// `start` is NULL or the start of `size` writable bytes; `size` is at least 1.
#[inline(always)]
pub unsafe fn out_text<'a>(name: &str, start: *mut c_char, size: usize) -> Result<OutText<'a>> {
    debug_assert!(size > 0);
    // SAFETY: the caller promises that the pointer is NULL or fits this view.
    Ok(OutText(unsafe {
        slice_mut(name, start.cast::<MaybeUninit<u8>>(), size)
    }?))
}

// Errors. They are out of line, so that a successful call pays only a branch for them.

#[cold]
#[inline(never)]
fn negative(class: c_int, name: &str, value: i64) -> Error {
    Error::new(class, format!("{name} is {value}; it must not be negative"))
}

#[cold]
#[inline(never)]
fn bad_rank(name: &str, value: c_int, others: &str) -> Error {
    let detail = format!("{name} is {value}; valid is a rank, 0 or greater{others}");
    Error::new(MPI_ERR_RANK, detail)
}

#[cold]
#[inline(never)]
fn negative_dest(name: &str, value: c_int) -> Result<c_int> {
    match value {
        MPI_PROC_NULL => Ok(value),
        _ => Err(bad_rank(name, value, " or MPI_PROC_NULL")),
    }
}

#[cold]
#[inline(never)]
fn negative_source(name: &str, value: c_int) -> Result<c_int> {
    match value {
        MPI_PROC_NULL => Ok(value),
        _ => Err(bad_rank(name, value, ", MPI_ANY_SOURCE or MPI_PROC_NULL")),
    }
}

#[cold]
#[inline(never)]
fn negative_tag(name: &str, value: c_int) -> Result<c_int> {
    match value {
        MPI_ANY_TAG => Ok(value),
        _ => Err(bad_tag(name, value, " or MPI_ANY_TAG")),
    }
}

#[cold]
#[inline(never)]
fn bad_root(name: &str, value: c_int) -> Error {
    let detail = format!("{name} is {value}; valid is a rank, 0 or greater");
    Error::new(MPI_ERR_ROOT, detail)
}

/// Writes values to an array in C's memory, up to its length.
pub(crate) fn fill(places: &mut [MaybeUninit<c_int>], values: impl IntoIterator<Item = c_int>) {
    for (place, value) in places.iter_mut().zip(values) {
        place.write(value);
    }
}

#[cold]
#[inline(never)]
fn bad_tag(name: &str, value: c_int, others: &str) -> Error {
    let detail = format!("{name} is {value}; valid is a tag, 0 or greater{others}");
    Error::new(MPI_ERR_TAG, detail)
}

const _: () = assert!(
    size_of::<*mut c_void>() == 8,
    "the views take MPI_Aint for 64 bits"
);
