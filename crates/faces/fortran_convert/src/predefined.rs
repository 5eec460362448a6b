//! Predefined functions of MPI for attributes and data representations. They are called like
//! functions of the program.

use crate::abi::Abi;
use crate::symbols;
use std::ffi::c_void;

/// True if a function is MPI_CONVERSION_FN_NULL, which means no conversion.
pub fn is_no_conversion<A: Abi>(function: *mut c_void) -> bool {
    let mut names = A::NO_CONVERSION.iter();
    names.any(|name| symbols::find(name) == function)
}

/// Defines a function that copies no attribute.
#[macro_export]
macro_rules! null_copy {
    ($name:literal $word:ty) => {
        const _: () = {
            #[unsafe(export_name = $name)]
            unsafe extern "C" fn null_copy(
                _object: *mut c_int,
                _keyval: *mut c_int,
                _state: *mut $word,
                _value: *mut $word,
                _copied: *mut $word,
                flag: *mut c_int,
                code: *mut c_int,
            ) {
                // SAFETY: the caller passes the addresses of a logical and of an error code.
                unsafe { (*flag, *code) = ($crate::logical::from_c(0), 0) };
            }
        };
    };
}

/// Defines a function that copies an attribute.
#[macro_export]
macro_rules! duplicate {
    ($name:literal $word:ty) => {
        const _: () = {
            #[unsafe(export_name = $name)]
            unsafe extern "C" fn duplicate(
                _object: *mut c_int,
                _keyval: *mut c_int,
                _state: *mut $word,
                value: *mut $word,
                copied: *mut $word,
                flag: *mut c_int,
                code: *mut c_int,
            ) {
                // SAFETY: the caller passes the addresses of values, a logical and an error code.
                unsafe { (*copied, *flag, *code) = (*value, $crate::logical::from_c(1), 0) };
            }
        };
    };
}

/// Defines a function that deletes nothing.
#[macro_export]
macro_rules! null_delete {
    ($name:literal $word:ty) => {
        const _: () = {
            #[unsafe(export_name = $name)]
            unsafe extern "C" fn null_delete(
                _object: *mut c_int,
                _keyval: *mut c_int,
                _value: *mut $word,
                _state: *mut $word,
                code: *mut c_int,
            ) {
                // SAFETY: the caller passes the address of an error code.
                unsafe { *code = 0 };
            }
        };
    };
}

/// Defines the function that means "no conversion". The C library gets NULL instead, and never
/// calls it.
#[macro_export]
macro_rules! no_conversion {
    ($name:literal $count:ty, $program:ty) => {
        const _: () = {
            #[unsafe(export_name = $name)]
            unsafe extern "C" fn no_conversion(
                _user_buffer: *mut c_void,
                _datatype: *mut c_int,
                _count: *mut $count,
                _file_buffer: *mut c_void,
                _position: *mut i64,
                _state: *mut isize,
                code: *mut c_int,
            ) {
                // SAFETY: the caller passes the address of an error code.
                unsafe { *code = <$program as $crate::Constants>::MPI_ERR_CONVERSION };
            }
        };
    };
}
