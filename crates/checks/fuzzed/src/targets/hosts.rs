//! Hostfiles, and the words of `--hosts`.

pub(crate) fn run(bytes: &[u8]) {
    launch::fuzzing::hosts(bytes);
}
