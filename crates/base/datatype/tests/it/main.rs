//! Tests of the datatype crate through its public interface: one binary, a module for each subject.

mod external32;
mod facts;
mod properties;
mod reduce;
mod reference;
mod travel;
