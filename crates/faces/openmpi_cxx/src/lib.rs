//! `libmpi_cxx.so.40`: what programs import of Open MPI's C++ bindings. Nearly all of them are
//! inline functions of `mpi.h`, which the program has; the rest are these. They call
//! `libmpi.so.40`, which every such program needs too.
//!
//! An object of the bindings is the address of its class's table of functions, and a handle.
//!
//! Never here: anything but calls of `libmpi.so.40`.

mod objects;

use objects::ompi_mpi_comm_null;
use std::ffi::{CStr, c_int, c_void};

/// A handle of any class.
type Handle = usize;

unsafe extern "C" {
    fn MPI_Type_free(datatype: *mut Handle) -> c_int;
    fn MPI_Win_free(win: *mut Handle) -> c_int;
}

/// An object of the bindings.
#[repr(C)]
pub struct Object {
    functions: *const c_void,
    handle: Handle,
}

/// The function that `MPI::Init` calls. Open MPI prepares the error handler of exceptions here,
/// which is not there.
#[unsafe(export_name = "_ZN3MPI20InitializeInterceptsEv")]
pub extern "C" fn initialize() {}

/// `MPI::Comm::Comm()`: the part of a communicator's constructor that belongs to the abstract
/// class. The constructors of its subclasses set the table of functions.
///
/// # Safety
/// The address is that of memory for a communicator.
#[unsafe(export_name = "_ZN3MPI4CommC2Ev")]
pub unsafe extern "C" fn comm(this: *mut Object) {
    // SAFETY: promised; the object of the null handle is only named.
    unsafe { (&raw mut (*this).handle).write((&raw const ompi_mpi_comm_null) as Handle) };
}

/// `MPI::Comm::Comm()` of a whole object.
///
/// # Safety
/// The address is that of memory for a communicator.
#[unsafe(export_name = "_ZN3MPI4CommC1Ev")]
pub unsafe extern "C" fn whole_comm(this: *mut Object) {
    // SAFETY: promised.
    unsafe { comm(this) }
}

/// `MPI::Datatype::Free()`. An error goes to the error handler.
///
/// # Safety
/// The address is that of a datatype.
#[unsafe(export_name = "_ZN3MPI8Datatype4FreeEv")]
pub unsafe extern "C" fn free_datatype(this: *mut Object) {
    // SAFETY: promised.
    unsafe { MPI_Type_free(&raw mut (*this).handle) };
}

/// `MPI::Win::Free()`. An error goes to the error handler.
///
/// # Safety
/// The address is that of a window.
#[unsafe(export_name = "_ZN3MPI3Win4FreeEv")]
pub unsafe extern "C" fn free_win(this: *mut Object) {
    // SAFETY: promised.
    unsafe { MPI_Win_free(&raw mut (*this).handle) };
}

/// `MPI::User_function`
type UserFunction = unsafe extern "C" fn(*const c_void, *mut c_void, c_int, *const Object);

/// Reduces by a function of the bindings, which `libmpi.so.40` passes behind the arguments of a
/// function in C; it knows the function from `ompi_op_set_cxx_callback`.
///
/// # Safety
/// The arguments are those of a reduction and a function of the bindings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompi_mpi_cxx_op_intercept(
    from: *mut c_void,
    to: *mut c_void,
    length: *mut c_int,
    datatype: *mut Handle,
    function: *mut c_void,
) {
    // SAFETY: promised.
    unsafe {
        let datatype = Object {
            functions: functions_of_datatypes(function),
            handle: *datatype,
        };
        let function = std::mem::transmute::<*mut c_void, UserFunction>(function);
        function(from, to, *length, &datatype);
    }
}

/// The table of functions of `MPI::Datatype`, which every program has that knows a function of the
/// bindings.
fn functions_of_datatypes(function: *mut c_void) -> *const c_void {
    const NAME: &CStr = c"_ZTVN3MPI8DatatypeE";
    // SAFETY: the names are C strings, and an answer is read after success alone.
    let table = unsafe {
        let mut table = libc::dlsym(libc::RTLD_DEFAULT, NAME.as_ptr());
        let mut origin = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
        if table.is_null() && libc::dladdr(function, origin.as_mut_ptr()) != 0 {
            // A library that was opened for itself alone, such as a module of Python.
            let flags = libc::RTLD_NOW | libc::RTLD_NOLOAD;
            let library = libc::dlopen(origin.assume_init().dli_fname, flags);
            if !library.is_null() {
                table = libc::dlsym(library, NAME.as_ptr());
            }
        }
        table
    };
    if table.is_null() {
        eprintln!(
            "fishplate: libmpi_cxx.so.40: the program has a reduction of the C++ bindings and exports no class MPI::Datatype, as \
             programs that were linked with Open MPI's library do; link it with -rdynamic"
        );
        std::process::abort();
    }
    // Two words lie before the functions: an offset and the type.
    // SAFETY: the table has them.
    unsafe { table.cast::<usize>().add(2).cast() }
}
