//! Fuzz target: the parser of the frames of the TCP device.

pub(crate) fn run(bytes: &[u8]) {
    tcp::fuzzing::frames(bytes);
}
