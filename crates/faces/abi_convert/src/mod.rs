//! The sources that all libraries of older ABIs share. Each library compiles them with a module
//! `program` of its own, which has what differs: the handles, the status, the values that are no
//! constants, and the library's name.

pub(crate) mod array;
pub(crate) mod attributes;
pub(crate) mod buffers;
pub(crate) mod callbacks;
pub(crate) mod classes;
pub(crate) mod constants;
pub(crate) mod contents;
pub(crate) mod convert;
pub(crate) mod datarep;
pub(crate) mod entry;
pub(crate) mod fortran;
pub(crate) mod handle;
pub(crate) mod late_arrays;
pub(crate) mod library;
pub(crate) mod markers;
pub(crate) mod objects;
pub(crate) mod peers;
pub(crate) mod pool;
pub(crate) mod removed;
pub(crate) mod requests;
pub(crate) mod standard;
pub(crate) mod status;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod types;
#[cfg(test)]
mod wild;
