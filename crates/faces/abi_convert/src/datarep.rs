//! Data representations of files: users' functions with the program's handles of datatypes.

use crate::abi::Abi;
use crate::convert::error_in;
use crate::types::Function;
use std::ffi::{c_int, c_void};

pub(crate) type Conversion<D, N> =
    unsafe extern "C" fn(*mut c_void, D, N, *mut c_void, i64, *mut c_void) -> c_int;
pub(crate) type Extent<D> = unsafe extern "C" fn(D, *mut isize, *mut c_void) -> c_int;

/// The functions of a representation: the program's, or those that the library gets in their place.
pub struct Functions {
    /// The function that converts what is read.
    pub read: Function,
    /// The function that converts what is written.
    pub write: Function,
    /// The function that knows the extent of a datatype in files.
    pub extent: Function,
    /// The word that all of them get.
    pub extra_state: *mut c_void,
}

impl Functions {
    /// Those for the library. `N`: the type of the number of elements.
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
        // No conversion is NULL in both ABIs.
        let instead = |users: Function, own: Function| if users.is_null() { users } else { own };
        Functions {
            read: instead(read, convert::<A, N, false> as Function),
            write: instead(write, convert::<A, N, true> as Function),
            extent: instead(extent, file_extent::<A> as Function),
            // A representation is never given up, so the program's functions stay.
            extra_state: Box::into_raw(Box::new(users)).cast(),
        }
    }
}

/// Calls the program's function that converts what was read, or what is to be `WRITTEN`.
unsafe extern "C" fn convert<A: Abi, N, const WRITTEN: bool>(
    buffer: *mut c_void,
    datatype: usize,
    count: N,
    file: *mut c_void,
    position: i64,
    users: *mut c_void,
) -> c_int {
    // SAFETY: the library passes on the address that `Functions` gave it, has no stand-in of a
    // function that is NULL, and the arguments are its own.
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
    // SAFETY: the library passes on the address that `Functions` gave it, has no stand-in of a
    // function that is NULL, and the arguments are its own.
    unsafe {
        let users = &*users.cast::<Functions>();
        let function = std::mem::transmute::<Function, Extent<A::Handle>>(users.extent);
        A::classes().datatype.during(datatype, |datatype| {
            error_in::<A>(function(datatype, extent, users.extra_state))
        })
    }
}
