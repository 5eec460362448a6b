//! The interface to a status in the layout of the program's ABI.

use std::ffi::c_int;
use std::fmt::Debug;

/// The fields of a status that a program may access.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)] // the names say all
pub struct Fields {
    pub source: c_int,
    pub tag: c_int,
    pub error: c_int,
}

/// A status of the program's ABI.
pub trait Status: Copy + Default + Eq + Debug {
    /// The fields that the program may access.
    fn fields(&mut self) -> &mut Fields;

    /// Sets the number of bytes, and the flag for a cancelled request.
    fn set_count(&mut self, bytes: i64, cancelled: bool);

    /// The number of bytes received.
    fn count(&self) -> i64;

    /// True if the request was cancelled.
    fn is_cancelled(&self) -> bool;
}
