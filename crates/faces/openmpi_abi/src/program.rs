//! Open MPI's ABI where it differs from others: handles are pointers, and a status has 24 bytes.

use crate::common::classes::DATATYPE;
use crate::common::constants::{program, standard};
use crate::common::handle::{Class, Handles};
pub(crate) use crate::predefined::Predefined;
use crate::predefined::{INTEGERS, address};
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard};

/// The name by which programs need this library.
pub(crate) const LIBRARY: &str = "libmpi.so.40";

/// A handle of every class but files: the address of a predefined object, the standard's own word,
/// or an address that no memory has, in which an index stands. Programs never follow it.
pub(crate) type Handle = usize;

/// The first index of an object. Fortran's integers of predefined handles are smaller.
pub(crate) const FIRST: u32 = 128;

/// The upper bits of handles in which an index stands: an address that is not canonical, and the
/// number of the null handle, which no other class has.
pub(crate) const fn prefix(null: c_int) -> Handle {
    FIRST_PREFIX | (null as usize) << 32
}

const FIRST_PREFIX: usize = 0x4f4d_0000_0000_0000;

/// The words that are handles of objects in both ABIs. Those below are the standard's predefined
/// handles, and those above have an index or are no addresses.
const SHARED: std::ops::Range<usize> = 0x1000..FIRST_PREFIX;

/// The program's handle that is the standard's own word.
#[inline(always)]
pub(crate) const fn shared(standard: usize) -> Option<Handle> {
    if standard.wrapping_sub(SHARED.start) < SHARED.end - SHARED.start {
        Some(standard)
    } else {
        None
    }
}

/// The standard's handle that is the program's own word.
#[inline(always)]
pub(crate) const fn shared_in(handle: Handle) -> Option<usize> {
    shared(handle)
}

/// Operations have an index, because `ompi_op_set_cxx_callback` puts another one of the library in
/// the place of one.
pub(crate) const fn is_indexed(null: i64) -> bool {
    null == program::MPI_OP_NULL
}

/// The null handle of requests.
#[inline(always)]
pub(crate) fn request_null() -> Handle {
    address(program::MPI_REQUEST_NULL as c_int)
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

/// Fortran's integers of MPI_LB and MPI_UB.
const MARKS: [c_int; 2] = [4, 3];

/// MPI_LB and MPI_UB.
pub(crate) fn markers() -> [Handle; 2] {
    [
        (&raw const crate::symbols::ompi_mpi_lb) as usize,
        (&raw const crate::symbols::ompi_mpi_ub) as usize,
    ]
}

/// Fortran's integer of a mark.
fn mark_toint(class: &Class, handle: Handle) -> Option<c_int> {
    let at = markers().iter().position(|mark| *mark == handle)?;
    std::ptr::eq(class, &DATATYPE).then(|| MARKS[at])
}

/// The mark of Fortran's integer, and NULL if there is none.
fn mark_fromint(class: &Class, integer: c_int) -> Handle {
    match MARKS.iter().position(|mark| *mark == integer) {
        Some(at) if std::ptr::eq(class, &DATATYPE) => markers()[at],
        _ => 0,
    }
}

/// The indices of objects that have the standard's word as handle, and were given an integer, by
/// class and word.
static INDICES: Mutex<BTreeMap<(usize, usize), u32>> = Mutex::new(BTreeMap::new());

/// Fortran's integer of a handle: the index of an object, a smaller one of a predefined handle, and
/// -1 of a word that is no handle.
pub(crate) fn toint(class: &Class, handle: Handle) -> c_int {
    if let Some(index) = class.index(handle) {
        return index as c_int;
    }
    let number = class.numbers().find(|number| address(*number) == handle);
    if let Some(number) = number {
        return INTEGERS[number as usize - 1];
    }
    if let Some(integer) = mark_toint(class, handle) {
        return integer;
    }
    shared_in(handle).map_or(-1, |standard| {
        let mut indices = indices();
        let index = indices
            .entry((class as *const Class as usize, standard))
            .or_insert_with(|| class.with_index(standard).1);
        *index as c_int
    })
}

/// The handle of Fortran's integer, and NULL if there is none.
pub(crate) fn fromint(class: &Class, integer: c_int) -> Handle {
    if integer < FIRST as c_int {
        let mut numbers = class.numbers();
        let number = numbers.find(|number| INTEGERS[*number as usize - 1] == integer);
        return number.map_or_else(|| mark_fromint(class, integer), address);
    }
    let handle = class.handle(integer as u32);
    let standard = class.standard(handle);
    let known = indices()
        .get(&(class as *const Class as usize, standard))
        .copied();
    if known == Some(integer as u32) {
        standard
    } else {
        handle
    }
}

fn indices() -> MutexGuard<'static, BTreeMap<(usize, usize), u32>> {
    INDICES
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
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
    #[inline(always)]
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
