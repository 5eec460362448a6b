//! Fuzz target: the parsers of a batch system's allocation, which is in variables, files, or the
//! output of commands.

pub(crate) fn run(bytes: &[u8]) {
    launch::fuzzing::allocations(bytes);
}
