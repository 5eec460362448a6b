//! Fuzz target: the parsers of object files, of the cache of the dynamic linker (`ld.so.cache`),
//! and of the first lines of scripts.

pub(crate) fn run(bytes: &[u8]) {
    launch::fuzzing::objects(bytes);
}
