//! Parts of the generated entry points that are the same for all: the definition under several
//! names, and the result in IERROR.

use std::ffi::c_int;

/// Defines the body of an entry point, and functions with the given names that jump to it with
/// their arguments unchanged.
#[macro_export]
macro_rules! entry {
    ($body:ident($($argument:ident: $ty:ty),*) -> $returns:ty { $($code:tt)* }
     [$($name:literal)*; $($profiling_name:literal)*]) => {
        /// The body of the entry point. `P`: true for the profiling names.
        ///
        /// # Safety
        /// Every address is that of the argument that the standard describes.
        #[inline(never)]
        pub unsafe extern "C" fn $body<const P: bool>($($argument: $ty),*) -> $returns {
            // SAFETY: promised.
            unsafe { $($code)* }
        }
        $crate::entry! { @names false $body [$($name)*] ($($argument: $ty),*) -> $returns }
        $crate::entry! { @names true $body [$($profiling_name)*] ($($argument: $ty),*) -> $returns }
    };
    (@names $p:literal $body:ident [$name:literal $($more:literal)*] $arguments:tt -> $returns:ty) => {
        $crate::entry! { @name $p $body $name $arguments -> $returns }
        $crate::entry! { @names $p $body [$($more)*] $arguments -> $returns }
    };
    (@names $p:literal $body:ident [] $arguments:tt -> $returns:ty) => {};
    (@name $p:literal $body:ident $name:literal ($($argument:ident: $ty:ty),*) -> $returns:ty) => {
        const _: () = {
            #[unsafe(export_name = $name)]
            unsafe extern "C" fn entry($($argument: $ty),*) -> $returns {
                // SAFETY: the program's promises about the arguments are passed on unchanged.
                unsafe { $body::<$p>($($argument),*) }
            }
        };
    };
}

/// Writes an error code, unless the program omitted the variable, as it may in Fortran 2008.
///
/// # Safety
/// The address is that of an integer, or NULL.
#[inline(always)]
pub unsafe fn give_code(ierror: *mut c_int, code: c_int) {
    if !ierror.is_null() {
        // SAFETY: promised.
        unsafe { *ierror = code };
    }
}
