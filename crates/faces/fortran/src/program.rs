//! The standard ABI for Fortran: handles of predefined objects are the same integers as in C, and a
//! status has 32 bytes.

use crate::generated::predefined::NO_CONVERSION;
use abi_convert::Word;
use fortran_convert::handle::Class;
use fortran_convert::{Abi, library};
use std::ffi::{CStr, c_int, c_void};
use std::ptr::without_provenance_mut;

/// The standard ABI, as an implementation of the trait `Abi` of `fortran_convert`.
pub(crate) struct Program;

/// A status: eight integers in C and in Fortran, in the same order.
pub(crate) type Status = [c_int; 8];

#[used]
#[unsafe(link_section = ".init_array")]
static OPEN: extern "C" fn() = open;

extern "C" fn open() {
    // SAFETY: the loader calls this function, once.
    unsafe { library::open::<Program>() };
}

/// Handles of predefined objects, null handles included, are less than this value.
const PREDEFINED_END: usize = 4096;

impl Abi for Program {
    type Handle = usize;
    type Status = Status;

    const LIBRARY: &'static str = "libmpifort_abi.so.1";
    const C_LIBRARY: &'static str = "libmpi_abi.so.1";
    const IN_PLACE: *mut c_void = without_provenance_mut(1);
    const AUTOMATIC: *mut c_void = without_provenance_mut(2);
    const STATUS_IGNORE: usize = 0;
    const NO_CONVERSION: &'static [&'static CStr] = NO_CONVERSION;

    fn weights() -> [*mut c_int; 2] {
        [0xa, 0xb].map(without_provenance_mut)
    }

    /// Does nothing: the standard ABI has no function that accepts the addresses of Fortran's
    /// variables.
    fn open() {}

    fn is_predefined(datatype: usize) -> bool {
        datatype < PREDEFINED_END
    }

    #[inline(always)]
    fn from_integer<C: Class<Program>>(integer: c_int) -> C::Handle {
        if Self::is_known::<C>(integer) {
            return Self::known::<C>(integer);
        }
        C::ask_handle(integer)
    }

    #[inline(always)]
    fn is_known<C: Class<Program>>(integer: c_int) -> bool {
        (0..PREDEFINED_END as c_int).contains(&integer)
    }

    #[inline(always)]
    fn known<C: Class<Program>>(integer: c_int) -> C::Handle {
        C::Handle::of_bits(integer as usize)
    }

    #[inline(always)]
    fn to_integer<C: Class<Program>>(handle: C::Handle) -> c_int {
        if handle.bits() < PREDEFINED_END {
            return handle.bits() as c_int;
        }
        C::ask_integer(handle)
    }
}
