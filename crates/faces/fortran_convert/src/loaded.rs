//! Values that are set while the loader opens this library, and never again. Reading one is a plain
//! load, which the compiler may put into the instruction that uses it.

use std::cell::UnsafeCell;

/// A value that `library::open` sets once.
#[repr(transparent)]
pub struct Loaded<T>(UnsafeCell<T>);

// SAFETY: the loader runs `library::open` before other code can call this library, and nothing
// writes afterwards.
unsafe impl<T: Copy> Sync for Loaded<T> {}

impl<T: Copy> Loaded<T> {
    /// A variable with an initial value.
    pub const fn new(value: T) -> Loaded<T> {
        Loaded(UnsafeCell::new(value))
    }

    /// Reads the value.
    #[inline(always)]
    pub fn get(&self) -> T {
        // SAFETY: nothing writes at the same time.
        unsafe { *self.0.get() }
    }

    /// Sets the value.
    ///
    /// # Safety
    /// The caller is `library::open`, which runs alone.
    pub unsafe fn set(&self, value: T) {
        // SAFETY: promised.
        unsafe { *self.0.get() = value };
    }
}
