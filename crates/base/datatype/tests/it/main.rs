//! The datatype crate from outside: one test binary, a module for each subject.

mod external32;
mod facts;
mod properties;
mod reduce;
mod reference;
mod travel;
