//! Fuzz target: the reader of packets in a ring of shared memory.

pub(crate) fn run(bytes: &[u8]) {
    channel::fuzzing::rings(bytes);
}
