//! Datagrams that arrive at a rank.

pub(crate) fn run(bytes: &[u8]) {
    host::fuzzing::datagrams(bytes);
}
