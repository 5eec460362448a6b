//! Fuzz target: the parser of the bytes that a listener of the TCP device receives from its
//! callers.

pub(crate) fn run(bytes: &[u8]) {
    tcp::fuzzing::calls(bytes);
}
