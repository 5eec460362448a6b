//! `libmpi_cxx.so.40`: the symbols of Open MPI's C++ bindings that programs import. Nearly all
//! bindings are inline functions of `mpi.h`, which the program contains; the rest is here. They
//! call `libmpi.so.40`, which every such program needs too.
//!
//! An object of the bindings consists of the address of its class's virtual function table and a
//! handle.
//!
//! Never here: anything but calls of `libmpi.so.40`.

// Without std, which would be nine tenths of it. Where panics unwind, as in tests, std is needed.
#![cfg_attr(panic = "abort", no_std)]

mod objects;

use core::ffi::{CStr, c_char, c_int, c_void};
use objects::ompi_mpi_comm_null;

/// A handle of any class.
type Handle = usize;

unsafe extern "C" {
    fn MPI_Type_free(datatype: *mut Handle) -> c_int;
    fn MPI_Win_free(win: *mut Handle) -> c_int;
}

// The crate libc has std.
unsafe extern "C" {
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dladdr(address: *const c_void, origin: *mut Origin) -> c_int;
    fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    fn write(file: c_int, from: *const c_void, bytes: usize) -> isize;
    safe fn abort() -> !;
}

/// `Dl_info` of the C library.
#[repr(C)]
struct Origin {
    file: *const c_char,
    base: *mut c_void,
    symbol: *const c_char,
    address: *mut c_void,
}

/// `RTLD_NOW | RTLD_NOLOAD` of the C library.
const LOADED: c_int = 2 | 4;

/// An object of any class of the C++ bindings, such as a communicator: the address of its virtual
/// function table, and its handle.
#[repr(C)]
pub struct Object {
    functions: *const c_void,
    handle: Handle,
}

/// The function that `MPI::Init` calls. Open MPI prepares the error handler for exceptions in it,
/// which this library does not have.
#[unsafe(export_name = "_ZN3MPI20InitializeInterceptsEv")]
pub extern "C" fn initialize() {}

/// `MPI::Comm::Comm()`: the base object constructor of the abstract class of communicators. The
/// constructors of its subclasses set the virtual function table.
///
/// # Safety
/// The address is that of memory for a communicator.
#[unsafe(export_name = "_ZN3MPI4CommC2Ev")]
pub unsafe extern "C" fn comm(this: *mut Object) {
    // SAFETY: promised; only the address of the null handle's object is used.
    unsafe { (&raw mut (*this).handle).write((&raw const ompi_mpi_comm_null) as Handle) };
}

/// `MPI::Comm::Comm()`: the complete object constructor.
///
/// # Safety
/// The address is that of memory for a communicator.
#[unsafe(export_name = "_ZN3MPI4CommC1Ev")]
pub unsafe extern "C" fn whole_comm(this: *mut Object) {
    // SAFETY: promised.
    unsafe { comm(this) }
}

/// `MPI::Datatype::Free()`. An error is passed to the error handler.
///
/// # Safety
/// The address is that of a datatype.
#[unsafe(export_name = "_ZN3MPI8Datatype4FreeEv")]
pub unsafe extern "C" fn free_datatype(this: *mut Object) {
    // SAFETY: promised.
    unsafe { MPI_Type_free(&raw mut (*this).handle) };
}

/// `MPI::Win::Free()`. An error is passed to the error handler.
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

/// Performs a reduction by a function of the bindings. `libmpi.so.40` passes that function, which
/// it got by `ompi_op_set_cxx_callback`, after the arguments of a reduction function in C.
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
        let function = core::mem::transmute::<*mut c_void, UserFunction>(function);
        function(from, to, *length, &datatype);
    }
}

/// The virtual function table of `MPI::Datatype`, which every program contains that has a function
/// for the bindings.
fn functions_of_datatypes(function: *mut c_void) -> *const c_void {
    const NAME: &CStr = c"_ZTVN3MPI8DatatypeE";
    // SAFETY: the names are C strings, and results are read only after success.
    let table = unsafe {
        let mut table = dlsym(core::ptr::null_mut(), NAME.as_ptr());
        let mut origin = core::mem::MaybeUninit::<Origin>::uninit();
        if table.is_null() && dladdr(function, origin.as_mut_ptr()) != 0 {
            // The function may belong to a library with a private symbol scope, such as a Python
            // module.
            let library = dlopen(origin.assume_init().file, LOADED);
            if !library.is_null() {
                table = dlsym(library, NAME.as_ptr());
            }
        }
        table
    };
    if table.is_null() {
        const WHY: &str = "fishplate: libmpi_cxx.so.40: the program has a reduction of the C++ bindings and exports no class \
             MPI::Datatype, as programs that were linked with Open MPI's library do; link it with -rdynamic\n";
        // SAFETY: the text has this length.
        unsafe { write(2, WHY.as_ptr().cast(), WHY.len()) };
        abort();
    }
    // Two words precede the functions: an offset and the type.
    // SAFETY: the table has them.
    unsafe { table.cast::<usize>().add(2).cast() }
}

#[cfg(panic = "abort")]
#[panic_handler]
fn panicked(_: &core::panic::PanicInfo) -> ! {
    abort()
}
