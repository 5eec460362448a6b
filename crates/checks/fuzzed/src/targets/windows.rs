//! Fuzz target: the parsers of active messages of one-sided communication.

pub(crate) fn run(bytes: &[u8]) {
    mpi::fuzzing::windows(bytes);
}
