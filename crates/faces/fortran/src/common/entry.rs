//! The entry points, generated from the table of procedures.
//!
//! Parameters keep the names and the number that the standard gives them. Conversions are written
//! without regard to each other, so a cast may change nothing, and conditions follow each other.
#![allow(
    clippy::too_many_arguments,
    clippy::unnecessary_cast,
    clippy::collapsible_if,
    unused_unsafe
)]

use crate::common::array::Array;
use crate::common::constants::*;
use crate::common::handle::*;
use crate::common::late_types::LateTypes;
use crate::common::sections::{Descriptor, Lifetime, Object, Sections, reach};
use crate::common::types::Status;
use crate::common::{
    attributes, buffer, callbacks, handle, index, integers, logical, peers, removed, requests,
    spawn, standard, start, text,
};
use crate::program;
use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut};

/// A body, and the names that jump to it with the arguments in place.
macro_rules! entry {
    ($body:ident($($argument:ident: $ty:ty),*) -> $returns:ty { $($code:tt)* }
     [$($name:literal)*; $($profiling_name:literal)*]) => {
        /// # Safety
        /// Every address is that of the argument that the standard describes.
        #[inline(never)]
        pub(crate) unsafe extern "C" fn $body<const P: bool>($($argument: $ty),*) -> $returns {
            // SAFETY: promised.
            unsafe { $($code)* }
        }
        entry! { @names false $body [$($name)*] ($($argument: $ty),*) -> $returns }
        entry! { @names true $body [$($profiling_name)*] ($($argument: $ty),*) -> $returns }
    };
    (@names $p:literal $body:ident [$name:literal $($more:literal)*] $arguments:tt -> $returns:ty) => {
        entry! { @name $p $body $name $arguments -> $returns }
        entry! { @names $p $body [$($more)*] $arguments -> $returns }
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

/// Writes an error code, for which a program in Fortran 2008 need not have a variable.
///
/// # Safety
/// The address is that of an integer, or NULL.
#[inline(always)]
unsafe fn give_code(ierror: *mut c_int, code: c_int) {
    if !ierror.is_null() {
        // SAFETY: promised.
        unsafe { *ierror = code };
    }
}

include!(concat!(env!("OUT_DIR"), "/entry.rs"));
