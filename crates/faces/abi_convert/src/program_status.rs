//! Statuses of the program.

use std::ffi::c_int;
use std::fmt::Debug;

/// The fields that a program may read.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)] // the names say all
pub struct Fields {
    pub source: c_int,
    pub tag: c_int,
    pub error: c_int,
}

/// A status of the program.
pub trait Status: Copy + Default + Eq + Debug {
    /// The fields that the program may read.
    fn fields(&mut self) -> &mut Fields;

    /// Takes a number of bytes, and whether the request was cancelled.
    fn set_count(&mut self, bytes: i64, cancelled: bool);

    /// The number of bytes.
    fn count(&self) -> i64;

    /// The request was cancelled.
    fn is_cancelled(&self) -> bool;
}
