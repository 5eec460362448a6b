//! Object files, the cache of the dynamic linker, and first lines of scripts.

pub(crate) fn run(bytes: &[u8]) {
    launch::fuzzing::objects(bytes);
}
