//! Reductions of the C++ bindings. `MPI::Op::Init` makes an operation with a function of
//! `libmpi_cxx.so.40`, and then passes the program's function, which the former calls with objects
//! of the bindings.

use crate::program::{CLASSES, Handle, Program};
use abi_convert::pool::{MOST, Pool};
use abi_convert::types::Function;
use abi_convert::{Abi, Handles, instances, standard};
use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

const LIBRARY: &CStr = c"libmpi_cxx.so.40";
const NAME: &CStr = c"ompi_mpi_cxx_op_intercept";

/// The function of the bindings' library. It gets the program's function after the arguments of a
/// reduction function in C.
type Intercept<H> = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int, *mut H, *mut c_void);

static INTERCEPT: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// The program's functions for reductions.
static USER: Pool = Pool::new();

/// Assigns the program's function to an operation: replaces the operation that `MPI::Op::Init` has
/// made by an operation of the library with a function that calls the program's.
///
/// # Safety
/// The function is a reduction function of the bindings.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ompi_op_set_cxx_callback(op: Handle, function: Function) {
    type Reduce = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int, *mut usize);
    static ALL: [Reduce; MOST] = instances!(reduce, Program);

    INTERCEPT.store(intercept(), Ordering::Release);
    let stand_in = USER.stand_in(function, &ALL);
    let (mut commutes, mut made) = (0, 0);
    // SAFETY: the arguments are an operation of the library, a function, and integers.
    unsafe {
        let failed = stand_in.is_null()
            || standard::op_commutative(CLASSES.op.standard(op), &mut commutes) != 0
            || standard::op_create(stand_in, commutes, &mut made) != 0;
        if failed {
            return;
        }
        match CLASSES.op.replace(op, made) {
            Some(mut old) => standard::op_free(&mut old),
            None => standard::op_free(&mut made),
        };
    }
}

/// The function of the bindings' library, which the program has loaded; null if there is none.
fn intercept() -> *mut c_void {
    // SAFETY: the names are C strings.
    unsafe {
        let library = libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD);
        match library.is_null() {
            true => libc::dlsym(libc::RTLD_DEFAULT, NAME.as_ptr()),
            false => libc::dlsym(library, NAME.as_ptr()),
        }
    }
}

unsafe extern "C" fn reduce<A: Abi, const N: usize>(
    from: *mut c_void,
    to: *mut c_void,
    length: *mut c_int,
    datatype: *mut usize,
) {
    let intercept = INTERCEPT.load(Ordering::Acquire);
    if intercept.is_null() {
        eprintln!(
            "fishplate: libmpi.so.40: a reduction of the C++ bindings needs libmpi_cxx.so.40, which is not loaded"
        );
        std::process::abort();
    }
    // SAFETY: the address is that of the bindings' function, the pool has the program's function
    // with this number, and the other pointers are the library's.
    unsafe {
        let intercept = std::mem::transmute::<*mut c_void, Intercept<A::Handle>>(intercept);
        A::classes().datatype.during(*datatype, |mut datatype| {
            intercept(from, to, length, &mut datatype, USER.get(N))
        });
    }
}
