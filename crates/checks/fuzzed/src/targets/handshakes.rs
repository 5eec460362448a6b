//! Messages by which ranks connect over RDMA.

pub(crate) fn run(bytes: &[u8]) {
    channel::fuzzing::handshakes(bytes);
}
