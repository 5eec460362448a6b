//! Open MPI's ABI where it differs from others: handles are pointers, and a status has 24 bytes.

use crate::common::constants::{program, standard};
use crate::common::handle::Class;
pub(crate) use crate::predefined::Predefined;
use crate::predefined::{INTEGERS, address};
use std::ffi::c_int;

/// The name by which programs need this library.
pub(crate) const LIBRARY: &str = "libmpi.so.40";

/// A handle of every class but files: the address of a predefined object, or one that no memory
/// has, in which an index stands. Programs never follow it.
pub(crate) type Handle = usize;

/// The first index of an object. Fortran's integers of predefined handles are smaller.
pub(crate) const FIRST: u32 = 128;

/// The upper bits of the handles of a class's objects: an address that is not canonical, and the
/// number of the null handle, which no other class has.
pub(crate) const fn prefix(null: c_int) -> Handle {
    0x4f4d_0000_0000_0000 | (null as usize) << 32
}

/// The handle that stands in the table of constants: a number, for an address.
#[inline(always)]
pub(crate) fn handle(number: c_int) -> Handle {
    address(number)
}

/// The null handle of files.
#[inline(always)]
pub(crate) fn file_null() -> usize {
    address(program::MPI_FILE_NULL as c_int)
}

/// MPI_UNWEIGHTED and MPI_WEIGHTS_EMPTY.
pub(crate) fn weights() -> (*const c_int, *const c_int) {
    (
        std::ptr::without_provenance(program::MPI_UNWEIGHTED as usize),
        std::ptr::without_provenance(program::MPI_WEIGHTS_EMPTY as usize),
    )
}

/// Fortran's integer of a handle: the index of an object, a smaller one of a predefined handle, and
/// -1 of a word that is no handle.
pub(crate) fn toint(class: &Class, handle: Handle) -> c_int {
    let known = class.index(handle).map(|index| index as c_int);
    known.unwrap_or_else(|| {
        let mut numbers = class.numbers();
        let number = numbers.find(|number| address(*number) == handle);
        number.map_or(-1, |number| INTEGERS[number as usize - 1])
    })
}

/// The handle of Fortran's integer, and NULL if there is none.
pub(crate) fn fromint(class: &Class, integer: c_int) -> Handle {
    if integer >= FIRST as c_int {
        return class.handle(integer as u32);
    }
    let mut numbers = class.numbers();
    let number = numbers.find(|number| INTEGERS[*number as usize - 1] == integer);
    number.map_or(0, address)
}

/// The largest class of errors that Open MPI defines.
pub(crate) const LAST_ERROR_CLASS: c_int = program::MPI_ERR_LASTCODE as c_int;

/// An error code that Open MPI's ABI does not define. Those behind the standard's MPI_ERR_LASTCODE
/// lie behind Open MPI's too, and stay.
pub(crate) fn free_error(code: c_int) -> Option<c_int> {
    (code > standard::MPI_ERR_LASTCODE as c_int).then_some(code)
}

/// `MPI_Status`
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Status {
    pub(crate) source: c_int,
    pub(crate) tag: c_int,
    pub(crate) error: c_int,
    pub(crate) cancelled: c_int,
    /// The number of bytes.
    pub(crate) bytes: usize,
}

impl Status {
    pub(crate) fn set_count(&mut self, bytes: i64, cancelled: bool) {
        self.bytes = bytes as usize;
        self.cancelled = c_int::from(cancelled);
    }

    pub(crate) fn count(&self) -> i64 {
        self.bytes as i64
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled != 0
    }
}
