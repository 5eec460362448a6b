//! Loading of libraries at run time: libibverbs here, librdmacm in `rdmacm`.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::io;
use std::sync::OnceLock;

use super::sys::*;
use device::{Error, Result};

const NAME: &CStr = c"libibverbs.so.1";

/// libibverbs, opened once for the whole process.
pub(crate) fn library() -> Result<&'static Library> {
    static LIBRARY: OnceLock<std::result::Result<Library, String>> = OnceLock::new();
    let library = LIBRARY.get_or_init(Library::open);
    library.as_ref().map_err(|why| Error::System(why.clone()))
}

macro_rules! functions {
    ($library:ident, $file:literal: $($name:ident = $symbol:literal: fn($($argument:ty),*) -> $answer:ty;)*) => {
        /// The functions of the library that are used, named without the library's prefix.
        pub(crate) struct $library {
            $(pub $name: unsafe extern "C" fn($($argument),*) -> $answer,)*
        }

        impl $library {
            pub(crate) fn find(handle: *mut std::ffi::c_void) -> std::result::Result<$library, String> {
                Ok($library {
                    $($name: {
                        let found = $crate::library::symbol(handle, $symbol, $file)?;
                        // SAFETY: the declaration is that of this symbol in the library's header.
                        unsafe {
                            std::mem::transmute::<*mut std::ffi::c_void, unsafe extern "C" fn($($argument),*) -> $answer>(found)
                        }
                    },)*
                })
            }
        }
    };
}
pub(super) use functions;

functions! {
    Library, "libibverbs":
    fork_init = c"ibv_fork_init": fn() -> c_int;
    get_device_list = c"ibv_get_device_list": fn(*mut c_int) -> *mut *mut ibv_device;
    free_device_list = c"ibv_free_device_list": fn(*mut *mut ibv_device) -> ();
    open_device = c"ibv_open_device": fn(*mut ibv_device) -> *mut ibv_context;
    close_device = c"ibv_close_device": fn(*mut ibv_context) -> c_int;
    query_device = c"ibv_query_device": fn(*mut ibv_context, *mut ibv_device_attr) -> c_int;
    query_port = c"ibv_query_port": fn(*mut ibv_context, u8, *mut ibv_port_attr) -> c_int;
    query_gid_table = c"_ibv_query_gid_table": fn(*mut ibv_context, *mut ibv_gid_entry, usize, u32, usize) -> isize;
    alloc_pd = c"ibv_alloc_pd": fn(*mut ibv_context) -> *mut ibv_pd;
    dealloc_pd = c"ibv_dealloc_pd": fn(*mut ibv_pd) -> c_int;
    reg_mr = c"ibv_reg_mr": fn(*mut ibv_pd, *mut c_void, usize, c_int) -> *mut ibv_mr;
    dereg_mr = c"ibv_dereg_mr": fn(*mut ibv_mr) -> c_int;
    create_comp_channel = c"ibv_create_comp_channel": fn(*mut ibv_context) -> *mut ibv_comp_channel;
    destroy_comp_channel = c"ibv_destroy_comp_channel": fn(*mut ibv_comp_channel) -> c_int;
    create_cq = c"ibv_create_cq": fn(*mut ibv_context, c_int, *mut c_void, *mut ibv_comp_channel, c_int) -> *mut ibv_cq;
    destroy_cq = c"ibv_destroy_cq": fn(*mut ibv_cq) -> c_int;
    get_cq_event = c"ibv_get_cq_event": fn(*mut ibv_comp_channel, *mut *mut ibv_cq, *mut *mut c_void) -> c_int;
    ack_cq_events = c"ibv_ack_cq_events": fn(*mut ibv_cq, u32) -> ();
    create_srq = c"ibv_create_srq": fn(*mut ibv_pd, *mut ibv_srq_init_attr) -> *mut ibv_srq;
    destroy_srq = c"ibv_destroy_srq": fn(*mut ibv_srq) -> c_int;
    create_qp = c"ibv_create_qp": fn(*mut ibv_pd, *mut ibv_qp_init_attr) -> *mut ibv_qp;
    modify_qp = c"ibv_modify_qp": fn(*mut ibv_qp, *mut ibv_qp_attr, c_int) -> c_int;
    query_qp = c"ibv_query_qp": fn(*mut ibv_qp, *mut ibv_qp_attr, c_int, *mut ibv_qp_init_attr) -> c_int;
    destroy_qp = c"ibv_destroy_qp": fn(*mut ibv_qp) -> c_int;
    create_ah = c"ibv_create_ah": fn(*mut ibv_pd, *mut ibv_ah_attr) -> *mut ibv_ah;
    destroy_ah = c"ibv_destroy_ah": fn(*mut ibv_ah) -> c_int;
    get_async_event = c"ibv_get_async_event": fn(*mut ibv_context, *mut ibv_async_event) -> c_int;
    ack_async_event = c"ibv_ack_async_event": fn(*mut ibv_async_event) -> ();
    event_type_str = c"ibv_event_type_str": fn(ibv_event_type) -> *const c_char;
}

impl Library {
    fn open() -> std::result::Result<Library, String> {
        let advice =
            "Install rdma-core (Debian: libibverbs1 ibverbs-providers), or do without RDMA";
        let library = Library::find(open(NAME, advice)?)?;
        // Called before the first registration: otherwise a program that forks may separate the
        // device from registered pages. Since Linux 5.12 the kernel copies such pages, and this
        // call has no effect.
        // SAFETY: the function has no arguments.
        unsafe { (library.fork_init)() };
        Ok(library)
    }
}

/// Opens a library of rdma-core.
pub(crate) fn open(name: &CStr, advice: &str) -> std::result::Result<*mut c_void, String> {
    // SAFETY: the name ends with a zero; the library's initialisers are those of rdma-core.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    match handle.is_null() {
        true => {
            let why = loader_words();
            Err(format!("no RDMA devices can be used: {why}. {advice}"))
        }
        false => Ok(handle),
    }
}

pub(crate) fn symbol(
    handle: *mut c_void,
    name: &CStr,
    library: &str,
) -> std::result::Result<*mut c_void, String> {
    // SAFETY: the library is open, and the name ends with a zero.
    let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
    match found.is_null() {
        true => Err(format!(
            "{library} is too old: {}. Install rdma-core 32 or later",
            loader_words()
        )),
        false => Ok(found),
    }
}

fn loader_words() -> String {
    // SAFETY: the result is a string or null, and is valid until the next call of this thread.
    let words = unsafe { libc::dlerror() };
    match words.is_null() {
        true => "the loader gives no reason".into(),
        // SAFETY: as above.
        false => unsafe { CStr::from_ptr(words) }
            .to_string_lossy()
            .into_owned(),
    }
}

/// The error of the last system call. `what`: the attempted action.
pub(crate) fn refused(device: &str, what: &str) -> Error {
    refused_with(device, what, io::Error::last_os_error())
}

/// The result of a function that returns 0, an error number, or −1 with the number in `errno`.
pub(crate) fn check(device: &str, what: &str, answer: c_int) -> Result<()> {
    match answer {
        0 => Ok(()),
        -1 => Err(refused(device, what)),
        number => Err(refused_with(
            device,
            what,
            io::Error::from_raw_os_error(number.abs()),
        )),
    }
}

fn refused_with(device: &str, what: &str, error: io::Error) -> Error {
    Error::System(format!("{device}: {what}: {error}"))
}
