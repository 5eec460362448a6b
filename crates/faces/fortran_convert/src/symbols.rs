//! Symbols of the program and its libraries, as the loader finds them.

use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;

/// The address of a symbol in the program and its libraries. NULL if there is none.
pub fn find(name: &CStr) -> *mut c_void {
    // SAFETY: the name is a C string.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

/// The base address of the program or library to which an address belongs; `None` if there is none.
pub fn object(address: usize) -> Option<usize> {
    let mut info = MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: any address is allowed; if the result is not 0, the structure is filled.
    unsafe {
        let found = libc::dladdr(std::ptr::without_provenance(address), info.as_mut_ptr());
        (found != 0).then(|| info.assume_init().dli_fbase.addr())
    }
}
