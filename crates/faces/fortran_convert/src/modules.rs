//! Macros that define symbols of the Fortran modules of an older ABI's library, as its compiler has
//! built them.

/// Defines a function that compares two handles. All handles are integers, some inside a derived
/// type.
#[macro_export]
macro_rules! comparison {
    ($symbol:literal $is_equality:literal) => {
        const _: () = {
            #[unsafe(export_name = $symbol)]
            unsafe extern "C" fn comparison(one: *const c_int, other: *const c_int) -> c_int {
                // SAFETY: the caller passes the addresses of two handles.
                $crate::logical::from_c(c_int::from(unsafe { *one == *other } == $is_equality))
            }
        };
    };
}

/// Defines a predefined handle.
#[macro_export]
macro_rules! constant {
    ($symbol:literal $value:literal) => {
        const _: () = {
            #[unsafe(export_name = $symbol)]
            static CONSTANT: c_int = $value as i64 as c_int;
        };
    };
}

/// Defines a procedure that returns the size of a variable.
#[macro_export]
macro_rules! size {
    ($symbol:literal $bytes:literal) => {
        const _: () = {
            #[unsafe(export_name = $symbol)]
            unsafe extern "C" fn size(
                _variable: *const c_void,
                size: *mut c_int,
                code: *mut c_int,
            ) {
                // SAFETY: the caller passes the addresses of integers; IERROR is optional.
                unsafe {
                    *size = $bytes;
                    if !code.is_null() {
                        *code = 0;
                    }
                }
            }
        };
    };
}

/// Defines a procedure that copies a status.
#[macro_export]
macro_rules! copy {
    ($symbol:literal $status:ty) => {
        const _: () = {
            #[unsafe(export_name = $symbol)]
            unsafe extern "C" fn copy(from: *const $status, to: *mut $status, code: *mut c_int) {
                // SAFETY: the caller passes the addresses of two statuses; IERROR is optional.
                unsafe {
                    *to = *from;
                    if !code.is_null() {
                        *code = 0;
                    }
                }
            }
        };
    };
}

/// Defines the procedure that assigns a status to another one.
#[macro_export]
macro_rules! assignment {
    ($symbol:literal $status:ty) => {
        const _: () = {
            #[unsafe(export_name = $symbol)]
            unsafe extern "C" fn assign(to: *mut $status, from: *const $status) {
                // SAFETY: the caller passes the addresses of two statuses.
                unsafe { *to = *from };
            }
        };
    };
}

/// Defines a function that converts a handle, which is the same integer in both languages. A
/// derived type of one integer is passed like that integer.
#[macro_export]
macro_rules! conversion {
    ($symbol:literal) => {
        const _: () = {
            #[unsafe(export_name = $symbol)]
            extern "C" fn convert(handle: c_int) -> c_int {
                handle
            }
        };
    };
}
