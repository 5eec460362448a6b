//! Character strings: padded with blanks in Fortran, terminated by NUL in C.

use std::ffi::{c_char, c_int};

/// A string that C reads.
pub struct Input(Vec<u8>);

/// A string of the program without the blanks at its end.
///
/// # Safety
/// The address is that of a string of this length.
pub unsafe fn input(text: *const u8, length: usize) -> Input {
    // SAFETY: promised.
    Input::closed(unsafe { bytes(text, length) }.trim_end_blanks())
}

/// A string of the program without the blanks at both ends, for keys and values of info objects.
///
/// # Safety
/// The address is that of a string of this length.
pub unsafe fn trimmed(text: *const u8, length: usize) -> Input {
    // SAFETY: promised.
    let text = unsafe { bytes(text, length) }.trim_end_blanks();
    let start = text.iter().take_while(|byte| **byte == b' ').count();
    Input::closed(&text[start..])
}

impl Input {
    fn closed(text: &[u8]) -> Input {
        let mut closed = Vec::with_capacity(text.len() + 1);
        closed.extend_from_slice(text);
        closed.push(0);
        Input(closed)
    }

    /// The address of the string, as C's argument.
    pub fn as_ptr(&self) -> *const c_char {
        self.0.as_ptr().cast()
    }

    /// True if the string has no characters.
    pub fn is_empty(&self) -> bool {
        self.0.len() == 1
    }
}

/// Memory to which the library writes a string.
pub struct Output(Vec<u8>);

impl Output {
    /// Memory for `room` characters, including NUL.
    pub fn new(room: usize) -> Output {
        Output(vec![0; room])
    }

    /// The address of the memory, as C's argument.
    pub fn as_mut_ptr(&mut self) -> *mut c_char {
        self.0.as_mut_ptr().cast()
    }

    /// Writes the string to the program's string, cut to its length or padded with blanks. If there
    /// was no room, the program's string stays unchanged: the program queried only the length.
    ///
    /// # Safety
    /// The address is that of a string of this length.
    pub unsafe fn write(&self, to: *mut u8, length: usize) {
        if self.0.len() <= 1 {
            return;
        }
        let text = self.0.split(|byte| *byte == 0).next().unwrap_or(&[]);
        let used = text.len().min(length);
        // SAFETY: promised; the library's text is memory of its own.
        unsafe {
            to.copy_from_nonoverlapping(text.as_ptr(), used);
            to.add(used).write_bytes(b' ', length - used);
        }
    }
}

/// The room for a string of `length` characters and NUL.
pub fn room(length: c_int) -> usize {
    length.max(0) as usize + 1
}

/// C's size of a buffer, which includes NUL, for Fortran's size. 0: no string is requested.
pub fn length_to_c(length: c_int) -> c_int {
    if length > 0 {
        length.saturating_add(1)
    } else {
        0
    }
}

/// Writes Fortran's length of a string, for C's length, which includes NUL.
///
/// # Safety
/// The address is that of a length.
pub unsafe fn length_from_c(code: c_int, place: *mut c_int, length: c_int) {
    if code == 0 {
        // SAFETY: promised.
        unsafe { *place = (length - 1).max(0) };
    }
}

/// The characters of a string of the program.
///
/// # Safety
/// The address is that of a string of this length, or the length is 0.
pub unsafe fn bytes<'a>(text: *const u8, length: usize) -> &'a [u8] {
    if length == 0 {
        return &[];
    }
    // SAFETY: promised.
    unsafe { std::slice::from_raw_parts(text, length) }
}

trait TrimEnd {
    fn trim_end_blanks(&self) -> &[u8];
}

impl TrimEnd for [u8] {
    fn trim_end_blanks(&self) -> &[u8] {
        let end = self.iter().rposition(|byte| *byte != b' ');
        &self[..end.map_or(0, |last| last + 1)]
    }
}
