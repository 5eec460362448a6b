//! Open MPI's ABI for Fortran: handles are small integers in Fortran and addresses in C, and a
//! status has 24 bytes.

use crate::generated::predefined::NO_CONVERSION;
use abi_convert::Word;
use fortran_convert::handle::{CLASSES, Class, Datatype};
use fortran_convert::{Abi, Commons, library, symbols};
use std::ffi::{CStr, c_int, c_void};
use std::ptr::without_provenance_mut;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Open MPI's ABI, as an implementation of the trait `Abi` of `fortran_convert`.
pub(crate) struct Program;

/// A status: four integers and a number of bytes in C, six integers in Fortran.
pub(crate) type Status = [c_int; 6];

#[used]
#[unsafe(link_section = ".init_array")]
static OPEN: extern "C" fn() = open;

extern "C" fn open() {
    // SAFETY: the loader calls this function, once.
    unsafe { library::open::<Program>() };
}

/// Integers of predefined handles are less than this value.
const FIRST_OBJECT: usize = 128;

/// The C handles of predefined objects, which never change, indexed by Fortran's integers; 0 if the
/// C library has not been called for it yet.
struct Known([AtomicUsize; FIRST_OBJECT]);

impl Known {
    const fn new() -> Known {
        Known([const { AtomicUsize::new(0) }; FIRST_OBJECT])
    }

    /// The C handle for a Fortran integer, or 0 if it is not known yet.
    #[inline(always)]
    fn get(&self, integer: c_int) -> usize {
        let place = self.0.get(integer as usize);
        place.map_or(0, |place| place.load(Ordering::Relaxed))
    }
}

/// The known handles, indexed by the number of their class.
static KNOWN: [Known; CLASSES] = [const { Known::new() }; CLASSES];

impl Abi for Program {
    type Handle = usize;
    type Status = Status;

    const LIBRARY: &'static str = "libmpi_mpifh.so.40";
    const C_LIBRARY: &'static str = "libmpi.so.40";
    const IN_PLACE: *mut c_void = without_provenance_mut(1);
    /// Open MPI has no such constant, so its C library accepts the standard's value.
    const AUTOMATIC: *mut c_void = without_provenance_mut(2);
    const STATUS_IGNORE: usize = 0;
    const NO_CONVERSION: &'static [&'static CStr] = NO_CONVERSION;

    fn weights() -> [*mut c_int; 2] {
        [2, 3].map(without_provenance_mut)
    }

    /// Stores the addresses of Fortran's ignored statuses in the C library. The variables of
    /// `mpi_f08` are those of `mpif.h`.
    fn open() {
        let ignored = [
            (c"MPI_F_STATUS_IGNORE", Program::status_ignore()),
            (c"MPI_F_STATUSES_IGNORE", Program::statuses_ignore()),
            (c"MPI_F08_STATUS_IGNORE", Program::status_ignore()),
            (c"MPI_F08_STATUSES_IGNORE", Program::statuses_ignore()),
        ];
        for (name, address) in ignored {
            let variable = symbols::find(name).cast::<usize>();
            if !variable.is_null() {
                // SAFETY: the variable of this name is an address that Fortran's library stores.
                unsafe { *variable = address };
            }
        }
    }

    fn is_predefined(datatype: usize) -> bool {
        (0..FIRST_OBJECT as c_int).contains(&Self::to_integer::<Datatype>(datatype))
    }

    #[inline(always)]
    fn from_integer<C: Class<Program>>(integer: c_int) -> C::Handle {
        let Some(place) = KNOWN[C::NUMBER].0.get(integer as usize) else {
            return C::ask_handle(integer);
        };
        match place.load(Ordering::Relaxed) {
            0 => {
                let handle = C::ask_handle(integer);
                place.store(handle.bits(), Ordering::Relaxed);
                handle
            }
            handle => C::Handle::of_bits(handle),
        }
    }

    #[inline(always)]
    fn is_known<C: Class<Program>>(integer: c_int) -> bool {
        KNOWN[C::NUMBER].get(integer) != 0
    }

    #[inline(always)]
    fn known<C: Class<Program>>(integer: c_int) -> C::Handle {
        C::Handle::of_bits(KNOWN[C::NUMBER].get(integer))
    }

    #[inline(always)]
    fn to_integer<C: Class<Program>>(handle: C::Handle) -> c_int {
        C::ask_integer(handle)
    }
}
