//! Fuzz target: the parsers of hostfiles and of the value of `--hosts`.

pub(crate) fn run(bytes: &[u8]) {
    launch::fuzzing::hosts(bytes);
}
