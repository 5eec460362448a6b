//! Fuzz target: the parsers of the placement of ranks on hosts, and of values of key-value spaces,
//! from launchers that speak PMI.

pub(crate) fn run(bytes: &[u8]) {
    pmi::fuzzing::values(bytes);
}
