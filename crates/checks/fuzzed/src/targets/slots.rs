//! Fuzz target: the readers of packets in a ring that a device writes, and in messages.

pub(crate) fn run(bytes: &[u8]) {
    channel::fuzzing::slots(bytes);
}
