//! Placements, and values of key-value spaces, of launchers that speak PMI.

pub(crate) fn run(bytes: &[u8]) {
    pmi::fuzzing::values(bytes);
}
