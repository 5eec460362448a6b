//! What went wrong in a call: the library's own errors, under the names of the face.

pub use mpi::{Class as ErrorClass, Error};
