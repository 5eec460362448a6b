//! Packets of a peer.

pub(crate) fn run(bytes: &[u8]) {
    mpi::fuzzing::packets(bytes);
}
