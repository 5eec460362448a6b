//! Fuzz target: the parsers of frames and lines between launcher and agent.

pub(crate) fn run(bytes: &[u8]) {
    launch::fuzzing::agents(bytes);
}
