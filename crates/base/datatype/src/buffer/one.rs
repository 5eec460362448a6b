//! Accesses one aligned number in the user's memory.

/// A number in a buffer, aligned and within its bounds.
#[derive(Clone, Copy)]
pub(crate) struct One<T>(pub(super) *mut T);

impl<T: Copy> One<T> {
    #[inline(always)]
    pub(crate) fn load(self) -> T {
        // SAFETY: readable by the promise of `Buffer::new`; `Buffer::one` has checked the address.
        // Every pattern of bits is a number.
        unsafe { self.0.read() }
    }

    /// The address of the number, on which an atomic operation can work.
    #[inline(always)]
    pub(crate) fn place(self) -> *mut T {
        self.0
    }

    #[inline(always)]
    pub(crate) fn store(self, value: T) {
        // SAFETY: writable by the promise of `Buffer::new`; `Buffer::one` has checked the address.
        unsafe { self.0.write(value) }
    }
}
