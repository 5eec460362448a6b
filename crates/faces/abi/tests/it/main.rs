//! Tests of the C interface from outside: one test binary, a module for each subject.

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
