//! MPICH's ABI where it differs from others: handles are integers, of which the upper bits name the
//! class, and a status has 20 bytes.

use crate::symbols::{MPI_UNWEIGHTED, MPI_WEIGHTS_EMPTY};
use abi_convert::constants::standard;
use abi_convert::library;
use abi_convert::program_status::{self, Fields};
use abi_convert::{Abi, Class, Classes, Constants, Pairs};
use std::ffi::c_int;

/// MPICH's ABI.
pub(crate) struct Program;

/// A handle of every class but files.
type Handle = c_int;

/// The classes of handles.
pub(crate) static CLASSES: Classes<Program> = abi_convert::classes!(Program, class);

const fn class(pairs: Pairs, null: (i64, i64), returns_again: bool) -> Class<Program> {
    // The upper bits of the handles of objects. No class needs an index for every object.
    let prefix = (0x8000_0000 | null.0 as u32) as c_int;
    let predefined = Predefined::new(pairs, null);
    Class::new(pairs, null, returns_again, (prefix, false), predefined)
}

#[used]
#[unsafe(link_section = ".init_array")]
static OPEN: extern "C" fn() = open;

extern "C" fn open() {
    library::set_own_name("libmpi.so.12");
    library::open();
}

/// The words that are handles of objects in both ABIs. Those below are the standard's predefined
/// handles, and those above are negative integers, which name objects of a table.
const SHARED: std::ops::Range<usize> = 0x1000..1 << 31;

impl Abi for Program {
    type Handle = Handle;
    type Status = Status;
    type Predefined = Predefined;

    /// MPICH has predefined datatypes below.
    const FIRST: u32 = 16;

    /// Classes of errors of MPICH's extensions included.
    const LAST_ERROR_CLASS: c_int = 107;

    #[inline(always)]
    fn classes() -> &'static Classes<Program> {
        &CLASSES
    }

    #[inline(always)]
    fn handle(constant: c_int) -> Handle {
        constant
    }

    #[inline(always)]
    fn shared(standard: usize) -> Option<Handle> {
        if standard.wrapping_sub(SHARED.start) < SHARED.end - SHARED.start {
            Some(standard as Handle)
        } else {
            None
        }
    }

    #[inline(always)]
    fn shared_in(handle: Handle) -> Option<usize> {
        if (handle as u32).wrapping_sub(SHARED.start as u32) < (SHARED.end - SHARED.start) as u32 {
            Some(handle as usize)
        } else {
            None
        }
    }

    #[inline(always)]
    fn request_null() -> Handle {
        Program::MPI_REQUEST_NULL as Handle
    }

    #[inline(always)]
    fn file_null() -> usize {
        Program::MPI_FILE_NULL as usize
    }

    fn markers() -> [Handle; 2] {
        [0x4c00_0010, 0x4c00_0011]
    }

    fn weights() -> (*const c_int, *const c_int) {
        (MPI_UNWEIGHTED.0, MPI_WEIGHTS_EMPTY.0)
    }

    /// The integer of a handle, which is the handle.
    fn toint(_class: &Class<Program>, handle: Handle) -> c_int {
        handle
    }

    /// The handle of an integer, which is the integer.
    fn fromint(_class: &Class<Program>, handle: c_int) -> Handle {
        handle
    }

    /// Codes of the program lie above MPI_ERR_LASTCODE, which differs: a range behind the
    /// standard's and the last one of integers change places, so every code comes back.
    fn free_error(code: c_int) -> Option<c_int> {
        const SHIFT: c_int = PROGRAM_OWN_CODES - FIRST_FREE;
        const LAST: c_int = FIRST_FREE + (OWN_CODES - 1);
        match code {
            FIRST_FREE..=LAST => Some(code + SHIFT),
            PROGRAM_OWN_CODES.. => Some(code - SHIFT),
            _ if code > LAST => Some(code),
            _ => None,
        }
    }
}

/// The first code that the standard ABI leaves to libraries and programs.
const FIRST_FREE: c_int = standard::MPI_ERR_LASTCODE as c_int + 1;

/// The program's own codes that convert, and the last of MPICH's that stand for them. Libraries
/// made of MPICH have their codes behind MPICH's MPI_ERR_LASTCODE in both ABIs, and these stay.
const OWN_CODES: c_int = 1 << 20;
const PROGRAM_OWN_CODES: c_int = c_int::MAX - (OWN_CODES - 1);

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
    const fn new(pairs: Pairs, null: (i64, i64)) -> Predefined {
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
}

impl abi_convert::Predefined<Program> for Predefined {
    #[inline(always)]
    fn standard(&self, handle: Handle) -> Option<usize> {
        let row = &self.rows[place(handle)];
        (row.program == handle).then_some(row.standard as usize)
    }
}

/// `MPI_Status`
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Status {
    /// The lower half of the number of bytes.
    count_lo: c_int,
    /// The upper bits of the number of bytes above bit 0, which says that the request was
    /// cancelled.
    count_hi_and_cancelled: c_int,
    fields: Fields,
}

impl program_status::Status for Status {
    #[inline(always)]
    fn fields(&mut self) -> &mut Fields {
        &mut self.fields
    }

    #[inline(always)]
    fn set_count(&mut self, bytes: i64, cancelled: bool) {
        self.count_lo = bytes as c_int;
        self.count_hi_and_cancelled = (((bytes >> 32) as c_int) << 1) | c_int::from(cancelled);
    }

    fn count(&self) -> i64 {
        i64::from(self.count_hi_and_cancelled >> 1) << 32 | i64::from(self.count_lo as u32)
    }

    fn is_cancelled(&self) -> bool {
        self.count_hi_and_cancelled & 1 != 0
    }
}
