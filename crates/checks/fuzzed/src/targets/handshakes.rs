//! Fuzz target: the parsers of the messages by which ranks connect over RDMA.

pub(crate) fn run(bytes: &[u8]) {
    channel::fuzzing::handshakes(bytes);
}
