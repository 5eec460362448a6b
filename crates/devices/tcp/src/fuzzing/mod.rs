//! Targets of the fuzzer for the parsers of this crate, which are private: crate `fuzzed` runs
//! them. A target takes any bytes, and panics where a promise is broken.

mod calls;
mod frames;

pub use calls::calls;
pub use frames::frames;
