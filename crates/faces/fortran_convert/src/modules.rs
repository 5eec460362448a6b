//! Symbols of modules that a compiler built once, for a library of an older ABI.

/// A function that compares handles. All are integers, alone in a derived type or not.
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

/// A predefined handle.
#[macro_export]
macro_rules! constant {
    ($symbol:literal $value:literal) => {
        const _: () = {
            #[unsafe(export_name = $symbol)]
            static CONSTANT: c_int = $value as i64 as c_int;
        };
    };
}

/// A procedure that tells the size of a variable.
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

/// A procedure that copies a status.
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

/// The assignment of a status.
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

/// A function that converts a handle, which is the same integer in both languages. It gets and
/// returns a derived type of one integer, as it would that integer.
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
