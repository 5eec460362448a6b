//! MPICH's ABI where it differs from others: handles are integers, of which the upper bits name the
//! class, and a status has 20 bytes.

use crate::common::constants::{program, standard};
use crate::common::handle::Class;
use crate::symbols::{MPI_UNWEIGHTED, MPI_WEIGHTS_EMPTY};
use std::ffi::c_int;

/// The name by which programs need this library.
pub(crate) const LIBRARY: &str = "libmpi.so.12";

/// A handle of every class but files.
pub(crate) type Handle = c_int;

/// The first index of an object. MPICH has predefined datatypes below.
pub(crate) const FIRST: u32 = 16;

/// The upper bits of the handles of a class's objects.
pub(crate) const fn prefix(null: c_int) -> Handle {
    (0x8000_0000 | null as u32) as c_int
}

/// The handle that stands in the table of constants.
#[inline(always)]
pub(crate) fn handle(constant: c_int) -> Handle {
    constant
}

/// The null handle of requests.
#[inline(always)]
pub(crate) fn request_null() -> Handle {
    program::MPI_REQUEST_NULL as Handle
}

/// No class needs an index for every object.
pub(crate) const fn is_indexed(_null: i64) -> bool {
    false
}

/// The words that are handles of objects in both ABIs. Those below are the standard's predefined
/// handles, and those above are negative integers, which name objects of a table.
const SHARED: std::ops::Range<usize> = 0x1000..1 << 31;

/// The program's handle that is the standard's own word. A predefined handle of the program may
/// have this value too.
#[inline(always)]
pub(crate) const fn shared(standard: usize) -> Option<Handle> {
    if standard.wrapping_sub(SHARED.start) < SHARED.end - SHARED.start {
        Some(standard as Handle)
    } else {
        None
    }
}

/// The standard's handle that is the program's own word.
#[inline(always)]
pub(crate) const fn shared_in(handle: Handle) -> Option<usize> {
    if (handle as u32).wrapping_sub(SHARED.start as u32) < (SHARED.end - SHARED.start) as u32 {
        Some(handle as usize)
    } else {
        None
    }
}

/// A predefined handle and the standard's.
#[derive(Clone, Copy)]
struct Row {
    program: c_int,
    standard: u32,
}

/// The predefined handles of a class, each at its place.
pub(crate) struct Predefined {
    rows: [Row; 256],
}

/// The place of a predefined handle: its lower bits, moved by the upper ones, which tell the null
/// handle and the two ranges of datatypes apart.
#[inline(always)]
const fn place(handle: c_int) -> usize {
    (handle as u32).wrapping_add(handle as u32 >> 26) as u8 as usize
}

impl Predefined {
    pub(crate) const fn new(pairs: &[(i64, i64)], null: (i64, i64)) -> Predefined {
        const NONE: Row = Row {
            program: 0,
            standard: 0,
        };
        let mut rows = [NONE; 256];
        // Zero is no handle, and would be found at this place; one is not.
        rows[place(0)].program = 1;
        let mut at = 0;
        while at <= pairs.len() {
            let pair = if at == pairs.len() { null } else { pairs[at] };
            let row = Row {
                program: pair.0 as c_int,
                standard: pair.1 as u32,
            };
            at += 1;
            let slot = &mut rows[place(row.program)];
            assert!(
                slot.program == 0 || slot.program == 1 || slot.program == row.program,
                "two handles at one place"
            );
            // Of two names for one handle the first counts.
            if slot.program != row.program {
                *slot = row;
            }
        }
        Predefined { rows }
    }

    /// The standard's handle for a predefined one.
    #[inline(always)]
    pub(crate) fn standard(&self, handle: Handle) -> Option<usize> {
        let row = &self.rows[place(handle)];
        (row.program == handle).then_some(row.standard as usize)
    }
}

/// The null handle of files.
#[inline(always)]
pub(crate) fn file_null() -> usize {
    program::MPI_FILE_NULL as usize
}

/// MPI_LB and MPI_UB.
pub(crate) const fn markers() -> [Handle; 2] {
    [0x4c00_0010, 0x4c00_0011]
}

/// MPI_UNWEIGHTED and MPI_WEIGHTS_EMPTY.
pub(crate) fn weights() -> (*const c_int, *const c_int) {
    (MPI_UNWEIGHTED.0, MPI_WEIGHTS_EMPTY.0)
}

/// The integer of a handle, which is the handle.
pub(crate) fn toint(_class: &Class, handle: Handle) -> c_int {
    handle
}

/// The handle of an integer, which is the integer.
pub(crate) fn fromint(_class: &Class, handle: c_int) -> Handle {
    handle
}

/// The first code that the standard ABI leaves to libraries and programs.
const FIRST_FREE: c_int = standard::MPI_ERR_LASTCODE as c_int + 1;

/// The largest class of errors that MPICH defines, with those of its extensions.
pub(crate) const LAST_ERROR_CLASS: c_int = 107;

/// The program's own codes that convert, and the last of MPICH's that stand for them. Libraries
/// made of MPICH have their codes behind MPICH's MPI_ERR_LASTCODE in both ABIs, and these stay.
const OWN_CODES: c_int = 1 << 20;
const PROGRAM_OWN_CODES: c_int = c_int::MAX - (OWN_CODES - 1);

/// An error code that MPICH's ABI does not define. Codes of the program lie above
/// MPI_ERR_LASTCODE, which differs: a range behind the standard's and the last one of integers
/// change places, so every code comes back.
pub(crate) fn free_error(code: c_int) -> Option<c_int> {
    const SHIFT: c_int = PROGRAM_OWN_CODES - FIRST_FREE;
    const LAST: c_int = FIRST_FREE + (OWN_CODES - 1);
    match code {
        FIRST_FREE..=LAST => Some(code + SHIFT),
        PROGRAM_OWN_CODES.. => Some(code - SHIFT),
        _ if code > LAST => Some(code),
        _ => None,
    }
}

/// `MPI_Status`
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Status {
    /// The lower half of the number of bytes.
    pub(crate) count_lo: c_int,
    /// The upper bits of the number of bytes above bit 0, which says that the request was
    /// cancelled.
    pub(crate) count_hi_and_cancelled: c_int,
    pub(crate) source: c_int,
    pub(crate) tag: c_int,
    pub(crate) error: c_int,
}

impl Status {
    #[inline(always)]
    pub(crate) fn set_count(&mut self, bytes: i64, cancelled: bool) {
        self.count_lo = bytes as c_int;
        self.count_hi_and_cancelled = (((bytes >> 32) as c_int) << 1) | c_int::from(cancelled);
    }

    pub(crate) fn count(&self) -> i64 {
        i64::from(self.count_hi_and_cancelled >> 1) << 32 | i64::from(self.count_lo as u32)
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.count_hi_and_cancelled & 1 != 0
    }
}
