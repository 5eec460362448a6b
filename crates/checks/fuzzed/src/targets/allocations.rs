//! Allocations of batch systems: variables, files, and the output of commands.

pub(crate) fn run(bytes: &[u8]) {
    launch::fuzzing::allocations(bytes);
}
