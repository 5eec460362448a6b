//! What went wrong in a call: the standard's class, and a sentence for the person who reads it.

use crate::constants::error_class_name;
use std::ffi::c_int;
use std::fmt;

/// One of the standard's error classes, by its value in the ABI. A predefined class is its own code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ErrorClass(pub c_int);

/// An error on its way to an error handler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    pub class: ErrorClass,
    /// What, where, why and what to do; without the name of the procedure.
    pub detail: String,
}

impl Error {
    #[cold]
    pub fn new(class: c_int, detail: impl Into<String>) -> Error {
        Error {
            class: ErrorClass(class),
            detail: detail.into(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match error_class_name(self.class.0) {
            Some(name) => write!(out, "{} ({name})", self.detail),
            None => write!(out, "{} (error class {})", self.detail, self.class.0),
        }
    }
}

impl std::error::Error for Error {}
