//! The fuzz target for the parsers of object files, of the linker's cache and of scripts.

use super::cache::Cache;
use super::elf::{LONGEST_NAME, MOST_NEEDED, object, symbols};
use super::script::of_line;

/// Parses bytes as the kind of file that the first byte selects.
pub(crate) fn read_anything(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else {
        return;
    };
    // Bytes that are not UTF-8 become longer as text.
    let longest = bytes.len().min(LONGEST_NAME) * 3;
    let is_bounded = |name: &str| name.len() <= longest;
    match kind % 3 {
        0 => {
            if let Some(object) = object(bytes) {
                assert!(object.needed.len() <= MOST_NEEDED);
                let paths = [&object.soname, &object.rpath, &object.runpath];
                let names = object.needed.iter().chain(paths.into_iter().flatten());
                names.for_each(|name| assert!(is_bounded(name)));
                assert!(object.rpath.is_none() || object.runpath.is_none());
            }
            let found = symbols(bytes, |_| true);
            for names in [&found.imported, &found.defined] {
                assert!(names.iter().all(|name| is_bounded(name)));
                assert!(names.len() <= bytes.len() / 12 && names.is_sorted());
            }
        }
        1 => {
            let (name, bytes) = bytes.split_at(bytes.len().min(9));
            let name = String::from_utf8_lossy(name);
            let cache = Cache::parse(bytes.to_vec());
            let files = cache.files(&name);
            let longest = files.map(|file| file.as_os_str().len()).max();
            assert!(longest.is_none_or(|longest| longest < bytes.len()));
        }
        _ => {
            if let Some(program) = of_line(bytes) {
                let is_word = |byte: &u8| !matches!(byte, b' ' | b'\t' | b'\n');
                assert!(!program.is_empty() && program.iter().all(is_word));
            }
        }
    }
}
