//! The properties of Open MPI's ABI in which it differs from other old ABIs: handles are pointers,
//! and a status has 24 bytes.

use crate::predefined::{INTEGERS, Predefined, address};
use abi_convert::constants::standard;
use abi_convert::library;
use abi_convert::program_status::{self, Fields};
use abi_convert::{Abi, Class, Classes, Constants, Handles, Pairs};
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::ptr::without_provenance;
use std::sync::{Mutex, MutexGuard};

/// Open MPI's ABI, as an implementation of the trait [`Abi`].
pub(crate) struct Program;

/// A handle of any class except files: the address of a predefined object, the value of the
/// standard's handle, or an invalid address that contains an index. Programs never dereference it.
pub(crate) type Handle = usize;

/// The classes of Open MPI's handles, with their conversions.
pub(crate) static CLASSES: Classes<Program> = abi_convert::classes!(Program, class);

const fn class(pairs: Pairs, null: (i64, i64), returns_again: bool) -> Class<Program> {
    // The upper bits of handles that contain an index: a non-canonical address, and the number of
    // the null handle, which is different for each class.
    let prefix = FIRST_PREFIX | (null.0 as usize) << 32;
    // Operations have an index, because `ompi_op_set_cxx_callback` replaces an operation of the
    // library by another.
    let is_indexed = null.0 == Program::MPI_OP_NULL;
    let predefined = Predefined::new(pairs);
    Class::new(pairs, null, returns_again, (prefix, is_indexed), predefined)
}

#[used]
#[unsafe(link_section = ".init_array")]
static OPEN: extern "C" fn() = open;

extern "C" fn open() {
    library::set_own_name("libmpi.so.40");
    library::open();
}

const FIRST_PREFIX: usize = 0x4f4d_0000_0000_0000;

/// The values that may be handles of objects in both ABIs. Lower values are the standard's
/// predefined handles; greater ones contain an index or are no addresses.
const SHARED: std::ops::Range<usize> = 0x1000..FIRST_PREFIX;

impl Abi for Program {
    type Handle = Handle;
    type Status = Status;
    type Predefined = Predefined;

    /// The first Fortran integer of an object that is not predefined: those of predefined handles
    /// are less.
    const FIRST: u32 = 128;

    const LAST_ERROR_CLASS: c_int = Program::MPI_ERR_LASTCODE as c_int;

    #[inline(always)]
    fn classes() -> &'static Classes<Program> {
        &CLASSES
    }

    #[inline(always)]
    fn handle(number: c_int) -> Handle {
        address(number)
    }

    #[inline(always)]
    fn shared(standard: usize) -> Option<Handle> {
        if standard.wrapping_sub(SHARED.start) < SHARED.end - SHARED.start {
            Some(standard)
        } else {
            None
        }
    }

    #[inline(always)]
    fn shared_in(handle: Handle) -> Option<usize> {
        Program::shared(handle)
    }

    #[inline(always)]
    fn request_null() -> Handle {
        address(Program::MPI_REQUEST_NULL as c_int)
    }

    #[inline(always)]
    fn file_null() -> usize {
        address(Program::MPI_FILE_NULL as c_int)
    }

    fn markers() -> [Handle; 2] {
        [
            (&raw const crate::symbols::ompi_mpi_lb) as usize,
            (&raw const crate::symbols::ompi_mpi_ub) as usize,
        ]
    }

    fn weights() -> (*const c_int, *const c_int) {
        (
            without_provenance(Program::MPI_UNWEIGHTED as usize),
            without_provenance(Program::MPI_WEIGHTS_EMPTY as usize),
        )
    }

    /// The index of an object, a smaller integer for a predefined handle, and -1 for a value that
    /// is no handle.
    fn toint(class: &Class<Program>, handle: Handle) -> c_int {
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
        Program::shared_in(handle).map_or(-1, |standard| {
            let mut indices = indices();
            let index = indices
                .entry((&raw const *class as usize, standard))
                .or_insert_with(|| class.with_index(standard).1);
            *index as c_int
        })
    }

    /// The handle of a Fortran integer; NULL if there is none.
    fn fromint(class: &Class<Program>, integer: c_int) -> Handle {
        if integer < Program::FIRST as c_int {
            let mut numbers = class.numbers();
            let number = numbers.find(|number| INTEGERS[*number as usize - 1] == integer);
            return number.map_or_else(|| mark_fromint(class, integer), address);
        }
        let handle = class.handle(integer as u32);
        let standard = class.standard(handle);
        let known = indices()
            .get(&(&raw const *class as usize, standard))
            .copied();
        if known == Some(integer as u32) {
            standard
        } else {
            handle
        }
    }

    /// Converts an error code that the program or a library has added. Codes greater than the
    /// standard's MPI_ERR_LASTCODE are also greater than Open MPI's, and stay.
    fn free_error(code: c_int) -> Option<c_int> {
        (code > standard::MPI_ERR_LASTCODE as c_int).then_some(code)
    }
}

/// The Fortran integers of MPI_LB and MPI_UB.
const MARKS: [c_int; 2] = [4, 3];

/// The Fortran integer of MPI_LB or MPI_UB; `None` for other handles.
fn mark_toint(class: &Class<Program>, handle: Handle) -> Option<c_int> {
    let at = Program::markers().iter().position(|mark| *mark == handle)?;
    std::ptr::eq(class, &CLASSES.datatype).then(|| MARKS[at])
}

/// MPI_LB or MPI_UB for its Fortran integer; NULL for other integers.
fn mark_fromint(class: &Class<Program>, integer: c_int) -> Handle {
    match MARKS.iter().position(|mark| *mark == integer) {
        Some(at) if std::ptr::eq(class, &CLASSES.datatype) => Program::markers()[at],
        _ => 0,
    }
}

/// The indices of objects whose handle is the standard's value, and for which an integer was
/// requested, by class and value.
static INDICES: Mutex<BTreeMap<(usize, usize), u32>> = Mutex::new(BTreeMap::new());

fn indices() -> MutexGuard<'static, BTreeMap<(usize, usize), u32>> {
    INDICES
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// `MPI_Status`
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Status {
    fields: Fields,
    cancelled: c_int,
    /// The number of bytes that were received.
    pub(crate) bytes: usize,
}

impl program_status::Status for Status {
    #[inline(always)]
    fn fields(&mut self) -> &mut Fields {
        &mut self.fields
    }

    #[inline(always)]
    fn set_count(&mut self, bytes: i64, cancelled: bool) {
        self.bytes = bytes as usize;
        self.cancelled = c_int::from(cancelled);
    }

    fn count(&self) -> i64 {
        self.bytes as i64
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled != 0
    }
}
