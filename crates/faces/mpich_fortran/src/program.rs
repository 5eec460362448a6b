//! MPICH's ABI for Fortran: a handle is the same integer as in C, except that of a file, and a
//! status has 20 bytes.

use crate::generated::predefined::NO_CONVERSION;
use abi_convert::Word;
use fortran_convert::handle::{Class, FILE};
use fortran_convert::{Abi, Commons, library, symbols};
use std::ffi::{CStr, c_int, c_void};
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::atomic::{AtomicPtr, Ordering};

/// MPICH's ABI, as an implementation of the trait [`Abi`].
pub(crate) struct Program;

/// A status: five integers in C and in Fortran, in the same order.
pub(crate) type Status = [c_int; 5];

#[used]
#[unsafe(link_section = ".init_array")]
static OPEN: extern "C" fn() = open;

extern "C" fn open() {
    // SAFETY: the loader calls this function, once.
    unsafe { library::open::<Program>() };
}

/// The values of MPI_UNWEIGHTED and MPI_WEIGHTS_EMPTY, which are variables of the C library.
static WEIGHTS: [AtomicPtr<c_int>; 2] = [const { AtomicPtr::new(null_mut()) }; 2];

impl Abi for Program {
    type Handle = c_int;
    type Status = Status;

    const LIBRARY: &'static str = "libmpifort.so.12";
    const C_LIBRARY: &'static str = "libmpi.so.12";
    const IN_PLACE: *mut c_void = without_provenance_mut(usize::MAX);
    const AUTOMATIC: *mut c_void = without_provenance_mut(usize::MAX - 1);
    const STATUS_IGNORE: usize = 1;
    const NO_CONVERSION: &'static [&'static CStr] = NO_CONVERSION;

    fn weights() -> [*mut c_int; 2] {
        WEIGHTS
            .each_ref()
            .map(|place| place.load(Ordering::Relaxed))
    }

    /// A predefined key has two numbers: C's, which is odd and requests an address, and Fortran's,
    /// which is one greater and requests a value.
    #[inline(always)]
    fn keyval(keyval: c_int) -> c_int {
        let is_predefined = matches!(keyval >> 8, 0x64_4000 | 0x66_0000);
        if is_predefined && keyval & 1 == 0 {
            keyval - 1
        } else {
            keyval
        }
    }

    /// Reads the variables of the C library, and stores the addresses of Fortran's ignored statuses
    /// in it.
    fn open() {
        for (place, name) in WEIGHTS
            .iter()
            .zip([c"MPI_UNWEIGHTED", c"MPI_WEIGHTS_EMPTY"])
        {
            let variable = symbols::find(name).cast::<*mut c_int>();
            if !variable.is_null() {
                // SAFETY: the variable of this name is an address.
                place.store(unsafe { *variable }, Ordering::Relaxed);
            }
        }
        let ignored = [
            (c"MPI_F_STATUS_IGNORE", Program::status_ignore()),
            (c"MPI_F_STATUSES_IGNORE", Program::statuses_ignore()),
        ];
        for (name, address) in ignored {
            let variable = symbols::find(name).cast::<usize>();
            if !variable.is_null() {
                // SAFETY: the variable of this name is an address that Fortran's library stores.
                unsafe { *variable = address };
            }
        }
    }

    /// True if the upper bits of the datatype show that it is predefined.
    fn is_predefined(datatype: c_int) -> bool {
        datatype as u32 >> 30 == 1
    }

    #[inline(always)]
    fn from_integer<C: Class<Program>>(integer: c_int) -> C::Handle {
        match C::NUMBER {
            FILE => C::ask_handle(integer),
            _ => C::Handle::of_bits(integer as usize),
        }
    }

    #[inline(always)]
    fn is_known<C: Class<Program>>(_integer: c_int) -> bool {
        C::NUMBER != FILE
    }

    #[inline(always)]
    fn known<C: Class<Program>>(integer: c_int) -> C::Handle {
        Self::from_integer::<C>(integer)
    }

    #[inline(always)]
    fn to_integer<C: Class<Program>>(handle: C::Handle) -> c_int {
        match C::NUMBER {
            FILE => C::ask_integer(handle),
            _ => handle.bits() as c_int,
        }
    }
}
