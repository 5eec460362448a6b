//! Arrays of converted arguments, which lie on the stack if they are short.

use std::mem::MaybeUninit;

/// The length of the longest array that is converted without an allocation.
const SHORT: usize = 16;

/// An array of values that the library reads or writes. Until it is filled, it is the argument
/// NULL.
pub struct Array<T: Copy> {
    short: [MaybeUninit<T>; SHORT],
    long: Vec<T>,
    /// The number of values in the array; `None` for the argument NULL.
    length: Option<usize>,
}

impl<T: Copy> Array<T> {
    /// The argument NULL.
    #[inline(always)]
    pub const fn null() -> Self {
        Array {
            short: [const { MaybeUninit::uninit() }; SHORT],
            long: Vec::new(),
            length: None,
        }
    }

    /// Fills the array with `length` values, each computed from its index. A negative length is an
    /// error of the caller, which the library reports. If there is no memory, the library gets
    /// NULL, and reports that.
    #[inline(always)]
    pub fn fill(&mut self, length: i64, value: impl Fn(usize) -> T) {
        let length = length.max(0) as usize;
        let is_possible = length <= SHORT || self.allocate(length);
        if is_possible {
            self.length = Some(length);
            let place = self.as_mut_ptr();
            for at in 0..length {
                // SAFETY: there is room for `length` values.
                unsafe { place.add(at).write(value(at)) };
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn allocate(&mut self, length: usize) -> bool {
        self.long.try_reserve_exact(length).is_ok()
    }

    /// The address of the values, or NULL if the array is not filled.
    #[inline(always)]
    pub fn as_ptr(&self) -> *const T {
        match self.length {
            None => std::ptr::null(),
            Some(0..=SHORT) => self.short.as_ptr().cast(),
            Some(_) => self.long.as_ptr(),
        }
    }

    /// The address of the values, which the library may write, or NULL if the array is not filled.
    #[inline(always)]
    pub fn as_mut_ptr(&mut self) -> *mut T {
        match self.length {
            None => std::ptr::null_mut(),
            Some(0..=SHORT) => self.short.as_mut_ptr().cast(),
            Some(_) => self.long.as_mut_ptr(),
        }
    }

    /// The values of the array; empty for the argument NULL.
    #[inline(always)]
    pub fn as_slice(&self) -> &[T] {
        let length = self.length.unwrap_or(0);
        if length == 0 {
            return &[];
        }
        // SAFETY: `fill` has written this number of values to the address that `as_ptr` returns.
        unsafe { std::slice::from_raw_parts(self.as_ptr(), length) }
    }
}
