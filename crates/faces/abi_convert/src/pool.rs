//! A pool of functions for users' functions that a library of the standard ABI calls without an
//! extra state. The library gets a function of the pool instead, which finds the user's function by
//! its own number.

use crate::library::own_name;
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The address of a function of the program.
type Function = *const c_void;

/// The greatest number of different functions of each kind that a program may have.
pub const MOST: usize = 256;

/// An array of [`MOST`] instances of a generic function, whose parameters are a type and the number
/// of the instance.
#[macro_export]
macro_rules! instances {
    ($function:ident, $abi:ty) => {
        $crate::instances!(@rows $function $abi; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
    (@rows $function:ident $abi:ty; $($row:literal)*) => {
        [$(
            $function::<$abi, { 16 * $row + 0 }>, $function::<$abi, { 16 * $row + 1 }>,
            $function::<$abi, { 16 * $row + 2 }>, $function::<$abi, { 16 * $row + 3 }>,
            $function::<$abi, { 16 * $row + 4 }>, $function::<$abi, { 16 * $row + 5 }>,
            $function::<$abi, { 16 * $row + 6 }>, $function::<$abi, { 16 * $row + 7 }>,
            $function::<$abi, { 16 * $row + 8 }>, $function::<$abi, { 16 * $row + 9 }>,
            $function::<$abi, { 16 * $row + 10 }>, $function::<$abi, { 16 * $row + 11 }>,
            $function::<$abi, { 16 * $row + 12 }>, $function::<$abi, { 16 * $row + 13 }>,
            $function::<$abi, { 16 * $row + 14 }>, $function::<$abi, { 16 * $row + 15 }>,
        )*]
    };
}

/// The user's functions of one kind, indexed by the numbers of the pool's functions.
pub struct Pool {
    functions: [AtomicPtr<c_void>; MOST],
}

#[allow(clippy::new_without_default)] // a pool is a static
impl Pool {
    /// A pool without users' functions.
    pub const fn new() -> Pool {
        Pool {
            functions: [const { AtomicPtr::new(std::ptr::null_mut()) }; MOST],
        }
    }

    /// The number of a user's function, which is added if it is new. It is never removed: the
    /// library may call a function whose handle has been freed.
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

    /// The user's function with a number of the pool.
    pub fn get(&self, number: usize) -> *mut c_void {
        self.functions[number].load(Ordering::Acquire)
    }

    /// The function that the library gets instead of a user's function. If there are no more, it is
    /// NULL, which the library reports.
    pub fn stand_in<F>(&self, function: Function, all: &[F; MOST]) -> Function {
        if function.is_null() {
            return function;
        }
        match self.number(function) {
            // SAFETY: F is a function pointer type, whose values are addresses.
            Some(number) => unsafe { std::mem::transmute_copy::<F, Function>(&all[number]) },
            None => {
                eprintln!(
                    "fishplate: {}: the program has more than {MOST} different functions of one kind for reductions or error handlers",
                    own_name()
                );
                std::ptr::null()
            }
        }
    }
}
