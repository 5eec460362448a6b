//! Users' functions that a library of the standard ABI calls without a word of the program's. Each
//! has a function of a pool in its place, which knows by its number whom to call.

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The address of a function.
type Function = *const c_void;

include!(concat!(env!("OUT_DIR"), "/pool.rs"));

/// A user's functions of one kind, at the numbers of the functions in their places.
pub(crate) struct Pool {
    functions: [AtomicPtr<c_void>; MOST],
    /// The name of this library, for a message.
    library: &'static str,
}

impl Pool {
    pub(crate) const fn new(library: &'static str) -> Pool {
        Pool {
            functions: [const { AtomicPtr::new(std::ptr::null_mut()) }; MOST],
            library,
        }
    }

    /// The number of a function. It stays: the library may call one whose handle is freed.
    fn number(&self, function: Function) -> Option<usize> {
        let function = function.cast_mut();
        self.functions.iter().position(|slot| {
            let null = std::ptr::null_mut();
            match slot.compare_exchange(null, function, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => true,
                Err(other) => other == function,
            }
        })
    }

    pub(crate) fn get(&self, number: usize) -> *mut c_void {
        self.functions[number].load(Ordering::Acquire)
    }

    /// The function in the place of a user's. NULL, which the library reports, if there are no
    /// more.
    pub(crate) fn stand_in<F>(&self, function: Function, all: &[F; MOST]) -> Function {
        if function.is_null() {
            return function;
        }
        match self.number(function) {
            // SAFETY: F is a type of functions, which are addresses.
            Some(number) => unsafe { std::mem::transmute_copy::<F, Function>(&all[number]) },
            None => {
                eprintln!(
                    "fishplate: {}: the program has more than {MOST} different functions of one kind for reductions or error handlers",
                    self.library
                );
                std::ptr::null()
            }
        }
    }
}
