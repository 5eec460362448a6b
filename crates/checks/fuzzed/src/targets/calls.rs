//! What a listener of the TCP device hears from its callers.

pub(crate) fn run(bytes: &[u8]) {
    tcp::fuzzing::calls(bytes);
}
