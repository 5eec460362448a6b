//! Data representations of files: users' functions with the program's handles of datatypes.

use crate::common::classes::DATATYPE;
use crate::common::convert::error_in;
use crate::common::types::Function;
use crate::program::Handle;
use std::ffi::{c_int, c_void};

type Conversion<D, N> =
    unsafe extern "C" fn(*mut c_void, D, N, *mut c_void, i64, *mut c_void) -> c_int;
type Extent<D> = unsafe extern "C" fn(D, *mut isize, *mut c_void) -> c_int;

/// The functions of a representation: the program's, or those that the library gets in their place.
pub(crate) struct Functions {
    pub(crate) read: Function,
    pub(crate) write: Function,
    pub(crate) extent: Function,
    pub(crate) extra_state: *mut c_void,
}

impl Functions {
    /// Those for the library. `N`: the type of the number of elements.
    pub(crate) fn new<N>(
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
            read: instead(read, convert::<N, false> as Function),
            write: instead(write, convert::<N, true> as Function),
            extent: instead(extent, file_extent as Function),
            // A representation is never given up, so the program's functions stay.
            extra_state: Box::into_raw(Box::new(users)).cast(),
        }
    }
}

/// Calls the program's function that converts what was read, or what is to be `WRITTEN`.
unsafe extern "C" fn convert<N, const WRITTEN: bool>(
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
        let function = std::mem::transmute::<Function, Conversion<Handle, N>>(function);
        DATATYPE.during(datatype, |datatype| {
            let state = users.extra_state;
            error_in(function(buffer, datatype, count, file, position, state))
        })
    }
}

unsafe extern "C" fn file_extent(datatype: usize, extent: *mut isize, users: *mut c_void) -> c_int {
    // SAFETY: the library passes on the address that `Functions` gave it, has no stand-in of a
    // function that is NULL, and the arguments are its own.
    unsafe {
        let users = &*users.cast::<Functions>();
        let function = std::mem::transmute::<Function, Extent<Handle>>(users.extent);
        DATATYPE.during(datatype, |datatype| {
            error_in(function(datatype, extent, users.extra_state))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::constants::{program, standard};
    use crate::program::handle;

    /// The program's functions check that they get its datatype and state, and fail with its code.
    unsafe extern "C" fn users<const CODE: i32>(
        _buffer: *mut c_void,
        datatype: Handle,
        count: i64,
        _file: *mut c_void,
        position: i64,
        state: *mut c_void,
    ) -> c_int {
        assert_eq!(datatype, handle(program::MPI_INT as c_int));
        assert_eq!((count, position, state.addr()), (3, 4, 5));
        CODE
    }

    unsafe extern "C" fn extent(
        datatype: Handle,
        extent: *mut isize,
        _state: *mut c_void,
    ) -> c_int {
        assert_eq!(datatype, handle(program::MPI_INT as c_int));
        // SAFETY: the test's own pointer.
        unsafe { *extent = 8 };
        0
    }

    #[test]
    fn functions_of_a_representation_get_the_program_s_handles() {
        const CODE: c_int = program::MPI_ERR_CONVERSION as c_int;
        let state = std::ptr::without_provenance_mut(5);
        let read = users::<0> as Function;
        let write = users::<CODE> as Function;
        let own = Functions::new::<i64>(read, write, extent as Function, state);
        let none = std::ptr::null_mut();
        let datatype = standard::MPI_INT as usize;
        // SAFETY: these are the functions of these types, and the state is theirs.
        unsafe {
            let read = std::mem::transmute::<Function, Conversion<usize, i64>>(own.read);
            let write = std::mem::transmute::<Function, Conversion<usize, i64>>(own.write);
            let extent = std::mem::transmute::<Function, Extent<usize>>(own.extent);
            assert_eq!(read(none, datatype, 3, none, 4, own.extra_state), 0);
            let code = write(none, datatype, 3, none, 4, own.extra_state);
            assert_eq!(code, standard::MPI_ERR_CONVERSION as c_int);
            let mut bytes = 0;
            assert_eq!(extent(datatype, &mut bytes, own.extra_state), 0);
            assert_eq!(bytes, 8);
        }
        let without = Functions::new::<i64>(std::ptr::null(), std::ptr::null(), read, state);
        assert!(without.read.is_null() && without.write.is_null());
    }
}
