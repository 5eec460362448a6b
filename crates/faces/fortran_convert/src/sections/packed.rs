//! A contiguous copy of a section, for the library.

use super::section::Section;
use std::ffi::c_void;

/// Memory with the alignment of every type.
type Words = Box<[u128]>;

pub(crate) struct Packed {
    section: Section,
    copy: Words,
    /// The copy before the operation, if the operation writes to it.
    before: Option<Words>,
}

// SAFETY: the address is that of an array of the program, which promises that the array exists
// until the operation is complete, whichever thread completes it.
unsafe impl Send for Packed {}

impl Packed {
    pub(crate) fn new(section: Section, is_written: bool) -> Packed {
        let words = || vec![0; section.bytes().div_ceil(size_of::<u128>())].into_boxed_slice();
        Packed {
            copy: words(),
            before: is_written.then(words),
            section,
        }
    }

    pub(crate) fn address(&mut self) -> *mut c_void {
        self.copy.as_mut_ptr().cast()
    }

    /// Copies the section, before the operation.
    ///
    /// # Safety
    /// The section exists.
    pub(crate) unsafe fn gather(&mut self) {
        // SAFETY: promised; the copy is as long as the section.
        unsafe { self.section.gather(self.copy.as_mut_ptr().cast()) };
        if let Some(before) = &mut self.before {
            before.copy_from_slice(&self.copy);
        }
    }

    /// Writes the operation's changes of the copy to the section, after the operation.
    ///
    /// # Safety
    /// The section exists.
    pub(crate) unsafe fn scatter(&mut self) {
        if let Some(before) = &self.before {
            let (copy, before) = (self.copy.as_ptr().cast(), before.as_ptr().cast());
            // SAFETY: promised; both copies are as long as the section.
            unsafe { self.section.scatter(copy, before) };
        }
    }
}
