//! Fuzz target: the parser of datagrams that arrive at a rank.

pub(crate) fn run(bytes: &[u8]) {
    host_node::fuzzing::datagrams(bytes);
}
