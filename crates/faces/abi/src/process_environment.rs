//! The environment variables of the process, read even if this library was opened with a scope of
//! its own (RTLD_DEEPBIND), as the libraries of other ABIs open it. Then a program at fixed
//! addresses that names the variable `environ` has a copy of it, which the C library keeps up to
//! date, while the code of this library is bound to the C library's own variable, which stays
//! empty.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::null;

/// The variables of the environment, as (name, value). A variable that is not UTF-8 cannot be a
/// setting of this library, and is left out.
pub(crate) fn variables() -> Vec<(String, String)> {
    let Some(words) = of_program() else {
        return Vec::new();
    };
    // SAFETY: NULL ends the array, whose elements are strings of C. The program must not change the
    // environment while MPI starts.
    let words = (0..).map_while(|at| unsafe {
        let word = *words.add(at);
        (!word.is_null()).then(|| CStr::from_ptr(word))
    });
    let variable = |word: &CStr| {
        let (name, value) = word.to_str().ok()?.split_once('=')?;
        Some((name.into(), value.into()))
    };
    words.filter_map(variable).collect()
}

/// The value of `environ` in the program's scope: an array of strings. `None` if it is NULL or
/// missing.
fn of_program() -> Option<*const *const c_char> {
    // SAFETY: NULL stands for the program, which stays loaded, and the name ends with NUL.
    let address: *mut c_void = unsafe {
        let program = libc::dlopen(null(), libc::RTLD_LAZY);
        if program.is_null() {
            return None;
        }
        let address = libc::dlsym(program, c"environ".as_ptr());
        libc::dlclose(program);
        address
    };
    if address.is_null() {
        return None;
    }
    // SAFETY: the variable of this name is the address of an array of strings.
    let words = unsafe { *address.cast::<*const *const c_char>() };
    (!words.is_null()).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_those_of_the_process() {
        let own = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        assert_eq!(variables(), own.collect::<Vec<_>>());
    }
}
