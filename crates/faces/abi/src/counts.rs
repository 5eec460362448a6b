//! Counts and displacements. C passes them as int or, in the `_c` forms, as MPI_Count or MPI_Aint;
//! the procedures see i64 in both cases.

use crate::arrays::{null, slice};
use crate::constants::MPI_UNDEFINED;
use crate::error::Error;
use std::ffi::{c_int, c_void};
use std::marker::PhantomData;

type Result<T> = std::result::Result<T, Error>;

/// An array of counts or displacements that the caller passed.
#[derive(Clone, Copy)]
pub struct Counts<'a> {
    start: *const c_void,
    wide: bool,
    length: usize,
    place: PhantomData<&'a i64>,
}

impl Counts<'_> {
    /// The count at `index`.
    #[inline]
    pub fn get(&self, index: usize) -> i64 {
        assert!(index < self.length, "count {index} of {}", self.length);
        // SAFETY: within the array, which is not NULL if it has an element; `wide` is its width.
        unsafe {
            if self.wide {
                self.start.cast::<i64>().add(index).read()
            } else {
                i64::from(self.start.cast::<c_int>().add(index).read())
            }
        }
    }

    /// The number of counts.
    pub fn len(&self) -> usize {
        self.length
    }

    /// True if the array has no elements.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// All counts, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = i64> {
        (0..self.length).map(|index| self.get(index))
    }
}

/// The view of an array of `length` counts, with 64 bits each if `wide`. It may be NULL if it is
/// empty.
///
/// # Safety
/// `start` is NULL or the start of `length` integers of that width, which nothing changes during
/// the call.
#[inline(always)]
pub unsafe fn counts<'a>(
    name: &str,
    start: *const c_void,
    wide: bool,
    length: usize,
) -> Result<Counts<'a>> {
    if start.is_null() && length > 0 {
        return Err(null(name));
    }
    Ok(Counts {
        start,
        wide,
        length,
        place: PhantomData,
    })
}

/// An array of counts or displacements whose length follows from the communicator. It may be NULL
/// if the call does not read it, as at a rank that is not the root, so its first use checks it.
#[derive(Clone, Copy)]
pub struct CommCounts<'a> {
    name: &'static str,
    start: *const c_void,
    wide: bool,
    place: PhantomData<&'a i64>,
}

impl<'a> CommCounts<'a> {
    /// The view of the array, checked, after its length has been determined.
    ///
    /// # Safety
    /// `length` is the length that the standard gives to this parameter.
    pub unsafe fn with_len(&self, length: usize) -> Result<Counts<'a>> {
        // SAFETY: the maker of this value was promised the array; the caller knows its length.
        unsafe { counts(self.name, self.start, self.wide, length) }
    }
}

/// The view of an array whose length follows from the communicator, with 64 bits for each count if
/// `wide`.
///
/// # Safety
/// `start` is NULL or the start of an array of integers of that width, of the length that the
/// communicator determines.
#[inline(always)]
pub unsafe fn counts_of_comm<'a>(
    name: &'static str,
    start: *const c_void,
    wide: bool,
) -> CommCounts<'a> {
    CommCounts {
        name,
        start,
        wide,
        place: PhantomData,
    }
}

/// An array of values other than counts whose length follows from the communicator. It may be NULL
/// if the call does not read it.
#[derive(Clone, Copy)]
pub struct CommArray<'a, T> {
    name: &'static str,
    start: *const T,
    place: PhantomData<&'a T>,
}

impl<'a, T> CommArray<'a, T> {
    /// The view of an array, before its length is known.
    ///
    /// # Safety
    /// `start` is NULL or the start of an array of the length that the communicator determines.
    pub unsafe fn new(name: &'static str, start: *const T) -> Self {
        CommArray {
            name,
            start,
            place: PhantomData,
        }
    }

    /// The array, checked, after its length has been determined.
    ///
    /// # Safety
    /// `length` is the length that the standard gives to this parameter.
    pub unsafe fn with_len(&self, length: usize) -> Result<&'a [T]> {
        // SAFETY: the maker of this value was promised the array; the caller knows its length.
        unsafe { slice(self.name, self.start, length) }
    }

    /// The address of the array, for arguments that have special values, such as MPI_UNWEIGHTED.
    pub fn address(&self) -> *const T {
        self.start
    }
}

/// The address of a count in C's memory, which may contain a value when the procedure is called.
#[derive(Clone, Copy)]
pub struct OutCount<'a> {
    place: *mut c_void,
    wide: bool,
    lifetime: PhantomData<&'a mut i64>,
}

impl OutCount<'_> {
    /// Writes the value, or MPI_UNDEFINED if it does not fit the caller's int.
    #[inline]
    pub fn set(self, value: i64) {
        // SAFETY: `out_count` was promised an integer of this width, and rejects NULL.
        unsafe {
            if self.wide {
                self.place.cast::<i64>().write(value);
            } else {
                self.place
                    .cast::<c_int>()
                    .write(c_int::try_from(value).unwrap_or(MPI_UNDEFINED));
            }
        }
    }

    /// The value on entry. Only for parameters that are read and written.
    #[inline]
    pub fn get(self) -> i64 {
        // SAFETY: `out_count` was promised an integer of this width and rejects NULL; C initialises
        // parameters that are read.
        unsafe {
            if self.wide {
                self.place.cast::<i64>().read()
            } else {
                i64::from(self.place.cast::<c_int>().read())
            }
        }
    }

    /// True if the caller's integer has 64 bits.
    pub fn is_wide(self) -> bool {
        self.wide
    }
}

/// The view of a count, which has 64 bits if `wide` and must not be NULL.
///
/// # Safety
/// `place` is NULL or an integer of that width.
#[inline(always)]
pub unsafe fn out_count<'a>(name: &str, place: *mut c_void, wide: bool) -> Result<OutCount<'a>> {
    if place.is_null() {
        return Err(null(name));
    }
    Ok(OutCount {
        place,
        wide,
        lifetime: PhantomData,
    })
}

/// The view of a count, which has 64 bits if `wide`; `None` for NULL.
///
/// # Safety
/// As for [`out_count`].
#[inline(always)]
pub unsafe fn optional_out_count<'a>(
    name: &str,
    place: *mut c_void,
    wide: bool,
) -> Result<Option<OutCount<'a>>> {
    if place.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller promises NULL or an integer of that width.
    unsafe { out_count(name, place, wide) }.map(Some)
}
