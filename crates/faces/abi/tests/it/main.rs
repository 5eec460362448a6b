//! The C face from outside: one test binary, a module for each subject.

/// The generator of entry points, header and coverage page, as the build script has it.
#[path = "../../generate/mod.rs"]
#[allow(dead_code, reason = "the build script uses the rest")]
mod generate;
#[macro_use]
mod running;

mod args;
mod buffers;
mod c_programs;
mod call_guard;
mod datatypes;
mod generated;
mod nonsense;
mod packing;
