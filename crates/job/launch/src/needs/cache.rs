//! The dynamic linker's cache, `/etc/ld.so.cache`, which maps names of libraries to files.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The file of the dynamic linker's cache.
const FILE: &str = "/etc/ld.so.cache";
/// The first bytes of a linker cache in the format of glibc 2.2 and later.
const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
/// The first bytes of a linker cache in the older format, which may precede the newer one in the
/// same file.
const OLD_MAGIC: &[u8] = b"ld.so-1.7.0";
/// The most bytes that are read of the dynamic linker's cache.
const MOST_BYTES: u64 = 16 << 20;

/// The contents of the dynamic linker's cache; empty if the system has none.
#[derive(Default)]
pub(crate) struct Cache {
    bytes: Vec<u8>,
    /// The offset of the cache in the newer format, to which the offsets of its strings refer.
    start: usize,
}

impl Cache {
    pub(crate) fn of_this_system() -> Cache {
        let is_file = Path::new(FILE).is_file();
        let file = is_file.then(|| File::open(FILE).ok()).flatten();
        let mut bytes = Vec::new();
        let read = file.map(|file| file.take(MOST_BYTES).read_to_end(&mut bytes));
        match read {
            Some(Ok(_)) => Cache::parse(bytes),
            _ => Cache::default(),
        }
    }

    /// Parses the contents of a linker cache, which may be any bytes.
    pub(crate) fn parse(bytes: Vec<u8>) -> Cache {
        const OLD_HEAD: usize = 16;
        const OLD_ENTRY: usize = 12;
        let start = match bytes.starts_with(OLD_MAGIC) {
            false => 0,
            true => {
                let count = word(&bytes, 12).unwrap_or(0);
                let entries = count.saturating_mul(OLD_ENTRY);
                OLD_HEAD.saturating_add(entries).next_multiple_of(8)
            }
        };
        Cache { bytes, start }
    }

    /// The files that the linker cache has for the library `name`, in the order of the cache. Some
    /// may be for other processors.
    pub(crate) fn files<'a>(&'a self, name: &'a str) -> impl Iterator<Item = PathBuf> + 'a {
        const HEAD: usize = 48;
        const ENTRY: usize = 24;
        let cache = self.bytes.get(self.start..).unwrap_or_default();
        let count = match cache.starts_with(MAGIC) {
            true => word(cache, MAGIC.len()).unwrap_or(0),
            false => 0,
        };
        let entries = cache.get(HEAD..).unwrap_or_default();
        let entries = entries.chunks_exact(ENTRY).take(count);
        let strings = move |at: usize| {
            let text = cache.get(at..)?;
            let end = text.iter().position(|&byte| byte == 0)?;
            std::str::from_utf8(&text[..end]).ok()
        };
        let named = entries.filter(move |entry| {
            let key = word(entry, 4).and_then(|at| cache.get(at..));
            key.and_then(|text| text.strip_prefix(name.as_bytes()))
                .is_some_and(|rest| rest.first() == Some(&0))
        });
        named.filter_map(move |entry| strings(word(entry, 8)?).map(PathBuf::from))
    }
}

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    let word = u32::from_ne_bytes(bytes.try_into().ok()?);
    usize::try_from(word).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of a cache with these names and files.
    fn cache(rows: &[(&str, &str)]) -> Vec<u8> {
        let mut head = MAGIC.to_vec();
        head.extend((rows.len() as u32).to_ne_bytes());
        head.resize(48, 0);
        let mut strings = Vec::new();
        for (name, file) in rows {
            let mut place = |text: &str| {
                let at = 48 + rows.len() * 24 + strings.len();
                strings.extend(text.as_bytes());
                strings.push(0);
                at as u32
            };
            let (name, file) = (place(name), place(file));
            for number in [0x303, name, file, 0, 0, 0] {
                head.extend(number.to_ne_bytes());
            }
        }
        [head, strings].concat()
    }

    const ROWS: [(&str, &str); 3] = [
        ("libm.so", "/lib/libm.so"),
        ("libm.so.6", "/lib/libm.so.6"),
        ("libm.so.6", "/lib32/libm.so.6"),
    ];

    #[test]
    fn a_name_has_its_files_in_order() {
        let new = cache(&ROWS);
        let old = [OLD_MAGIC, &[0; 5], &[0; 0]].concat();
        for bytes in [new.clone(), [old, new].concat()] {
            let cache = Cache::parse(bytes);
            let files: Vec<PathBuf> = cache.files("libm.so.6").collect();
            assert_eq!(files, [ROWS[1].1, ROWS[2].1].map(PathBuf::from));
            assert_eq!(cache.files("libm").count(), 0);
        }
    }

    #[test]
    fn a_cut_or_damaged_cache_has_fewer_entries() {
        let bytes = cache(&ROWS);
        for length in 0..bytes.len() {
            assert!(
                Cache::parse(bytes[..length].to_vec())
                    .files("libm.so.6")
                    .count()
                    < 2
            );
        }
        for at in 20..bytes.len() - 4 {
            let mut damaged = bytes.clone();
            damaged[at..at + 4].fill(0xff);
            assert!(Cache::parse(damaged).files("libm.so").count() <= 1);
        }
    }

    #[test]
    fn the_cache_of_this_system_has_the_c_library_if_there_is_one() {
        if cfg!(target_env = "gnu") && Path::new(FILE).is_file() {
            let files: Vec<_> = Cache::of_this_system().files("libc.so.6").collect();
            assert!(files.iter().any(|file| file.is_file()), "{files:?}");
        }
    }
}
