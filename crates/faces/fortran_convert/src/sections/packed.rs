//! A copy of a section for the library.

use super::section::Section;
use std::ffi::c_void;

/// Memory with the alignment of every type.
type Words = Box<[u128]>;

pub(crate) struct Packed {
    section: Section,
    copy: Words,
    /// The copy as it was before the operation, if that writes into it.
    before: Option<Words>,
}

// SAFETY: the address is that of an array of the program's, which promises that it stays until the
// operation is complete, whichever thread completes it.
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

    /// Before the operation.
    ///
    /// # Safety
    /// The section is there.
    pub(crate) unsafe fn gather(&mut self) {
        // SAFETY: promised; the copy is as long as the section.
        unsafe { self.section.gather(self.copy.as_mut_ptr().cast()) };
        if let Some(before) = &mut self.before {
            before.copy_from_slice(&self.copy);
        }
    }

    /// After the operation: writes what it has changed into the section.
    ///
    /// # Safety
    /// The section is there.
    pub(crate) unsafe fn scatter(&mut self) {
        if let Some(before) = &self.before {
            let (copy, before) = (self.copy.as_ptr().cast(), before.as_ptr().cast());
            // SAFETY: promised; both copies are as long as the section.
            unsafe { self.section.scatter(copy, before) };
        }
    }
}
