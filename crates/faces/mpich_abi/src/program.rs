//! The properties of MPICH's ABI in which it differs from other old ABIs: handles are integers,
//! whose upper bits identify the class, and a status has 20 bytes.

use crate::symbols::{MPI_UNWEIGHTED, MPI_WEIGHTS_EMPTY};
use abi_convert::constants::standard;
use abi_convert::library;
use abi_convert::program_status::{self, Fields};
use abi_convert::{Abi, Class, Classes, Constants, Pairs};
use std::ffi::c_int;

/// MPICH's ABI, as an implementation of the trait [`Abi`].
pub(crate) struct Program;

/// A handle of any class except files.
type Handle = c_int;

/// The classes of MPICH's handles, with their conversions.
pub(crate) static CLASSES: Classes<Program> = abi_convert::classes!(Program, class);

const fn class(pairs: Pairs, null: (i64, i64), returns_again: bool) -> Class<Program> {
    // The upper bits of the handles of objects. In no class does every object have an index.
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

/// The values that may be handles of objects in both ABIs. Lower values are the standard's
/// predefined handles; greater ones are negative integers, which contain an index of a table.
const SHARED: std::ops::Range<usize> = 0x1000..1 << 31;

impl Abi for Program {
    type Handle = Handle;
    type Status = Status;
    type Predefined = Predefined;

    /// The first index of an object's handle: MPICH's predefined datatypes have lower ones.
    const FIRST: u32 = 16;

    /// The last error class, including those of MPICH's extensions.
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

    /// Converts an error code that the program or a library has added. Such codes are greater than
    /// MPI_ERR_LASTCODE, whose value differs. A range behind the standard's MPI_ERR_LASTCODE and
    /// the last range of integers are exchanged, so the opposite conversion restores every code.
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

/// The first error code that the standard ABI leaves to libraries and programs.
const FIRST_FREE: c_int = standard::MPI_ERR_LASTCODE as c_int + 1;

/// The number of the program's own codes that are converted, and the first of the codes that
/// represent them in MPICH's ABI. Libraries derived from MPICH have their codes behind MPICH's
/// MPI_ERR_LASTCODE in both ABIs, and these stay.
const OWN_CODES: c_int = 1 << 20;
const PROGRAM_OWN_CODES: c_int = c_int::MAX - (OWN_CODES - 1);

/// A predefined handle of the program, and the standard's.
#[derive(Clone, Copy)]
struct Row {
    program: c_int,
    standard: u32,
}

/// The predefined handles of a class, indexed by [`place`].
pub(crate) struct Predefined {
    rows: [Row; 256],
}

/// The index of a predefined handle: its lower bits plus the upper ones, which distinguish the null
/// handle and the two ranges of datatypes.
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
        // Zero is no handle, but would match an unused row at this index. 1 never does: its index
        // is another.
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
            // If a handle has two names, the first one is used.
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
    /// The lower 32 bits of the number of received bytes.
    count_lo: c_int,
    /// Bit 0 is the flag for a cancelled request; the other bits are the upper bits of the number
    /// of bytes.
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
