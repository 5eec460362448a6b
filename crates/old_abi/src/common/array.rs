//! Arrays of converted arguments: on the stack while they are short.

use std::mem::MaybeUninit;

/// The longest array that needs no allocation.
const SHORT: usize = 16;

/// Values that the library reads or writes.
pub(crate) struct Array<T: Copy> {
    short: [MaybeUninit<T>; SHORT],
    long: Vec<T>,
    /// None: the argument is NULL or stands for an ignored one.
    length: Option<usize>,
}

impl<T: Copy> Array<T> {
    /// An array whose values come from their positions. A length below zero is the caller's
    /// mistake, which the library reports.
    pub(crate) fn new(length: i64, value: impl Fn(usize) -> T) -> Self {
        let length = usize::try_from(length).unwrap_or(0);
        let mut array = Array {
            short: [const { MaybeUninit::uninit() }; SHORT],
            long: Vec::new(),
            length: Some(length),
        };
        if length <= SHORT {
            for (at, place) in array.short.iter_mut().enumerate().take(length) {
                place.write(value(at));
            }
        } else {
            array.long = (0..length).map(value).collect();
        }
        array
    }

    pub(crate) fn filled(length: i64, value: T) -> Self {
        Array::new(length, |_| value)
    }

    /// The argument NULL.
    pub(crate) fn null() -> Self {
        Array {
            short: [const { MaybeUninit::uninit() }; SHORT],
            long: Vec::new(),
            length: None,
        }
    }

    pub(crate) fn as_ptr(&self) -> *const T {
        match self.length {
            None => std::ptr::null(),
            Some(0..=SHORT) => self.short.as_ptr().cast(),
            Some(_) => self.long.as_ptr(),
        }
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut T {
        match self.length {
            None => std::ptr::null_mut(),
            Some(0..=SHORT) => self.short.as_mut_ptr().cast(),
            Some(_) => self.long.as_mut_ptr(),
        }
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        let length = self.length.unwrap_or(0);
        if length == 0 {
            return &[];
        }
        // SAFETY: `new` has written this number of values to where `as_ptr` points.
        unsafe { std::slice::from_raw_parts(self.as_ptr(), length) }
    }
}
