//! Fuzz target: the parsers of the packets of a peer.

pub(crate) fn run(bytes: &[u8]) {
    mpi::fuzzing::packets(bytes);
}
