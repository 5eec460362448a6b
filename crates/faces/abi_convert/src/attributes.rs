//! Attributes: users' copy and delete functions with the program's handles, and values that MPI
//! predefines.

use crate::common::classes::Named;
use crate::common::constants::standard::*;
use crate::common::convert::{
    error_in, error_out, flavor_out, keyval_out, memory_model_out, rank_out,
};
use crate::common::types::Function;
use crate::program::Handle;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicI32, Ordering};

type Copy =
    unsafe extern "C" fn(Handle, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> c_int;
type Delete = unsafe extern "C" fn(Handle, c_int, *mut c_void, *mut c_void) -> c_int;

/// The functions of a key, and what the library gets in their place.
pub(crate) struct Functions {
    pub(crate) copy: Function,
    pub(crate) delete: Function,
    pub(crate) extra_state: *mut c_void,
}

/// The program's functions of a key. Attributes may outlive the key, so these stay.
struct Users {
    copy: Option<Copy>,
    delete: Option<Delete>,
    extra_state: *mut c_void,
}

impl Functions {
    /// # Safety
    /// The functions are NULL or those that the standard describes.
    pub(crate) unsafe fn new<C: Named>(
        copy: Function,
        delete: Function,
        extra_state: *mut c_void,
    ) -> Functions {
        // SAFETY: promised; NULL is None.
        let users = unsafe {
            Users {
                copy: std::mem::transmute::<Function, Option<Copy>>(copy),
                delete: std::mem::transmute::<Function, Option<Delete>>(delete),
                extra_state,
            }
        };
        // The predefined functions that do nothing are NULL in both ABIs.
        let instead = |users: Function, own: Function| if users.is_null() { users } else { own };
        Functions {
            copy: instead(copy, copy_attribute::<C> as Function),
            delete: instead(delete, delete_attribute::<C> as Function),
            extra_state: Box::into_raw(Box::new(users)).cast(),
        }
    }
}

unsafe extern "C" fn copy_attribute<C: Named>(
    object: usize,
    keyval: c_int,
    users: *mut c_void,
    value: *mut c_void,
    copy: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the library passes on the address that `Functions` gave it.
    let users = unsafe { &*users.cast::<Users>() };
    let Some(function) = users.copy else { return 0 };
    C::class().during(object, |object| {
        // SAFETY: the arguments are those of the library, by the program's names.
        error_in(unsafe {
            function(
                object,
                keyval_out(keyval),
                users.extra_state,
                value,
                copy,
                flag,
            )
        })
    })
}

unsafe extern "C" fn delete_attribute<C: Named>(
    object: usize,
    keyval: c_int,
    value: *mut c_void,
    users: *mut c_void,
) -> c_int {
    // SAFETY: the library passes on the address that `Functions` gave it.
    let users = unsafe { &*users.cast::<Users>() };
    let Some(function) = users.delete else {
        return 0;
    };
    C::class().during(object, |object| {
        // SAFETY: the arguments are those of the library, by the program's names.
        error_in(unsafe { function(object, keyval_out(keyval), value, users.extra_state) })
    })
}

type Converted = (i64, fn(c_int) -> c_int, AtomicI32);

/// Predefined attributes whose values differ: the key, the conversion, and the value for the
/// program, to which it gets a pointer.
static CONVERTED: [Converted; 5] = [
    (MPI_HOST, rank_out, AtomicI32::new(0)),
    (MPI_IO, rank_out, AtomicI32::new(0)),
    (MPI_LASTUSEDCODE, error_out, AtomicI32::new(0)),
    (MPI_WIN_CREATE_FLAVOR, flavor_out, AtomicI32::new(0)),
    (MPI_WIN_MODEL, memory_model_out, AtomicI32::new(0)),
];

/// Converts the value of a predefined attribute.
///
/// # Safety
/// The value is a pointer that the library has just written for this key.
pub(crate) unsafe fn convert(keyval: c_int, value: *mut *mut c_void) {
    let mut rows = CONVERTED.iter();
    let Some((_, convert, place)) = rows.find(|(key, ..)| *key == i64::from(keyval)) else {
        return;
    };
    // SAFETY: a predefined value of these keys is the address of an integer.
    unsafe {
        place.store(convert(*(*value).cast::<c_int>()), Ordering::Relaxed);
        *value = place.as_ptr().cast();
    }
}
