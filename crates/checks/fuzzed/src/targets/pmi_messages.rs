//! Fuzz target: the parsers of the messages of launchers that speak PMI-1 or PMI-2.

pub(crate) fn run(bytes: &[u8]) {
    pmi::fuzzing::messages(bytes);
}
