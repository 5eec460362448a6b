//! Attributes: users' copy and delete functions, which get the program's handles, and values of
//! predefined attributes.

use crate::abi::Abi;
use crate::classes::Named;
use crate::constants::standard::*;
use crate::convert::{error_in, error_out, flavor_out, keyval_out, memory_model_out, rank_out};
use crate::types::Function;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicI32, Ordering};

type Copy<H> =
    unsafe extern "C" fn(H, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> c_int;
type Delete<H> = unsafe extern "C" fn(H, c_int, *mut c_void, *mut c_void) -> c_int;

/// The functions of an attribute key that the library gets instead of the program's.
pub struct Functions {
    /// The function that copies an attribute of the key.
    pub copy: Function,
    /// The function that deletes an attribute of the key.
    pub delete: Function,
    /// The extra state that both functions get as an argument.
    pub extra_state: *mut c_void,
}

/// The program's functions of a key. They are never freed, because attributes may outlive the key.
struct Users<H> {
    copy: Option<Copy<H>>,
    delete: Option<Delete<H>>,
    extra_state: *mut c_void,
}

impl Functions {
    /// Makes the functions of a key for objects of class `C`, for the library.
    ///
    /// # Safety
    /// The functions are NULL or those that the standard describes.
    pub unsafe fn new<A: Abi, C: Named>(
        copy: Function,
        delete: Function,
        extra_state: *mut c_void,
    ) -> Functions {
        // SAFETY: promised; NULL is None.
        let users = unsafe {
            Users {
                copy: std::mem::transmute::<Function, Option<Copy<A::Handle>>>(copy),
                delete: std::mem::transmute::<Function, Option<Delete<A::Handle>>>(delete),
                extra_state,
            }
        };
        // The predefined functions without an effect are NULL in both ABIs.
        let instead = |users: Function, own: Function| if users.is_null() { users } else { own };
        Functions {
            copy: instead(copy, copy_attribute::<A, C> as Function),
            delete: instead(delete, delete_attribute::<A, C> as Function),
            extra_state: Box::into_raw(Box::new(users)).cast(),
        }
    }
}

unsafe extern "C" fn copy_attribute<A: Abi, C: Named>(
    object: usize,
    keyval: c_int,
    users: *mut c_void,
    value: *mut c_void,
    copy: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the library passes on the address that `Functions` gave it.
    let users = unsafe { &*users.cast::<Users<A::Handle>>() };
    let Some(function) = users.copy else { return 0 };
    C::class::<A>().during(object, |object| {
        // SAFETY: the arguments are those of the library, converted to the program's ABI.
        error_in::<A>(unsafe {
            function(
                object,
                keyval_out::<A>(keyval),
                users.extra_state,
                value,
                copy,
                flag,
            )
        })
    })
}

unsafe extern "C" fn delete_attribute<A: Abi, C: Named>(
    object: usize,
    keyval: c_int,
    value: *mut c_void,
    users: *mut c_void,
) -> c_int {
    // SAFETY: the library passes on the address that `Functions` gave it.
    let users = unsafe { &*users.cast::<Users<A::Handle>>() };
    let Some(function) = users.delete else {
        return 0;
    };
    C::class::<A>().during(object, |object| {
        // SAFETY: the arguments are those of the library, converted to the program's ABI.
        error_in::<A>(unsafe {
            function(object, keyval_out::<A>(keyval), value, users.extra_state)
        })
    })
}

/// The program's values of predefined attributes that differ between the ABIs. The program gets
/// pointers to them.
static CONVERTED: [AtomicI32; 5] = [const { AtomicI32::new(0) }; 5];

/// Replaces the value of a predefined attribute by the program's, if the two differ.
///
/// # Safety
/// The value is a pointer that the library has just written for this key.
pub unsafe fn convert<A: Abi>(keyval: c_int, value: *mut *mut c_void) {
    let (place, convert): (usize, fn(c_int) -> c_int) = match i64::from(keyval) {
        MPI_HOST => (0, rank_out::<A>),
        MPI_IO => (1, rank_out::<A>),
        MPI_LASTUSEDCODE => (2, error_out::<A>),
        MPI_WIN_CREATE_FLAVOR => (3, flavor_out::<A>),
        MPI_WIN_MODEL => (4, memory_model_out::<A>),
        _ => return,
    };
    let place = &CONVERTED[place];
    // SAFETY: a predefined value of these keys is the address of an integer.
    unsafe {
        place.store(convert(*(*value).cast::<c_int>()), Ordering::Relaxed);
        *value = place.as_ptr().cast();
    }
}
