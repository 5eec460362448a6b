//! Data representations of files: users' functions, which get the program's handles of datatypes.

use crate::abi::Abi;
use crate::convert::error_in;
use crate::types::Function;
use std::ffi::{c_int, c_void};

pub(crate) type Conversion<D, N> =
    unsafe extern "C" fn(*mut c_void, D, N, *mut c_void, i64, *mut c_void) -> c_int;
pub(crate) type Extent<D> = unsafe extern "C" fn(D, *mut isize, *mut c_void) -> c_int;

/// The functions of a data representation: the program's, or those that the library gets in their
/// place.
pub struct Functions {
    /// The function that converts data that were read.
    pub read: Function,
    /// The function that converts data to write.
    pub write: Function,
    /// The function that returns the extent of a datatype in files.
    pub extent: Function,
    /// The extra state that all functions of the representation get as an argument.
    pub extra_state: *mut c_void,
}

impl Functions {
    /// The functions that the library gets. `N` is the type of the number of elements.
    pub fn new<A: Abi, N>(
        read: Function,
        write: Function,
        extent: Function,
        extra_state: *mut c_void,
    ) -> Functions {
        let users = Functions {
            read,
            write,
            extent,
            extra_state,
        };
        // NULL means "no conversion" in both ABIs.
        let instead = |users: Function, own: Function| if users.is_null() { users } else { own };
        Functions {
            read: instead(read, convert::<A, N, false> as Function),
            write: instead(write, convert::<A, N, true> as Function),
            extent: instead(extent, file_extent::<A> as Function),
            // A representation is never freed, and so neither are the program's functions.
            extra_state: Box::into_raw(Box::new(users)).cast(),
        }
    }
}

/// Calls the program's function that converts data that were read, or data to write if `WRITTEN`.
unsafe extern "C" fn convert<A: Abi, N, const WRITTEN: bool>(
    buffer: *mut c_void,
    datatype: usize,
    count: N,
    file: *mut c_void,
    position: i64,
    users: *mut c_void,
) -> c_int {
    // SAFETY: the library passes on the address that `Functions` gave it, does not have this
    // function if the program's is NULL, and the arguments are its own.
    unsafe {
        let users = &*users.cast::<Functions>();
        let function = if WRITTEN { users.write } else { users.read };
        let function = std::mem::transmute::<Function, Conversion<A::Handle, N>>(function);
        A::classes().datatype.during(datatype, |datatype| {
            let state = users.extra_state;
            error_in::<A>(function(buffer, datatype, count, file, position, state))
        })
    }
}

unsafe extern "C" fn file_extent<A: Abi>(
    datatype: usize,
    extent: *mut isize,
    users: *mut c_void,
) -> c_int {
    // SAFETY: the library passes on the address that `Functions` gave it, does not have this
    // function if the program's is NULL, and the arguments are its own.
    unsafe {
        let users = &*users.cast::<Functions>();
        let function = std::mem::transmute::<Function, Extent<A::Handle>>(users.extent);
        A::classes().datatype.during(datatype, |datatype| {
            error_in::<A>(function(datatype, extent, users.extra_state))
        })
    }
}
