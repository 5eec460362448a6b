//! Fuzz target: the parser of the cards with the addresses by which ranks find each other.

pub(crate) fn run(bytes: &[u8]) {
    host_node::fuzzing::cards(bytes);
}
