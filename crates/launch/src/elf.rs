//! The dynamic section of a program: the libraries that it needs, and where it searches them.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// The libraries that a program needs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct DynamicSection {
    /// The names of the libraries (DT_NEEDED).
    pub needed: Vec<String>,
    /// The folders that are searched before LD_LIBRARY_PATH (DT_RPATH without DT_RUNPATH).
    pub rpath: Option<String>,
}

/// Limits on what is read of a file that may be anything.
const MOST_HEADERS: usize = 256;
const MOST_BYTES: u64 = 16 << 20;

// Tags of entries, and types of segments, in ELF's own numbers.
const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
const DT_STRSZ: u64 = 10;
const DT_RPATH: u64 = 15;
const DT_RUNPATH: u64 = 29;

/// A segment of a program.
struct Segment {
    kind: u32,
    offset: u64,
    address: u64,
    size: u64,
}

/// Reads the dynamic section of a program of 64 bits in this machine's byte order. None for any
/// other file, and for a program without such a section.
pub(crate) fn dynamic_section(file: &File) -> Option<DynamicSection> {
    let segments = segments(file)?;
    let dynamic = segments.iter().find(|segment| segment.kind == PT_DYNAMIC)?;
    let bytes = read(file, dynamic.offset, dynamic.size)?;
    let (words, _) = bytes.as_chunks::<16>();
    let entries = words.iter().map(|word| (number(word, 0), number(word, 8)));
    let entries: Vec<(u64, u64)> = entries.take_while(|(tag, _)| *tag != 0).collect();
    let value = |wanted| {
        let entry = entries.iter().find(|(tag, _)| *tag == wanted);
        entry.map(|(_, value)| *value)
    };
    let address = value(DT_STRTAB)?;
    let loaded = segments.iter().find(|segment| {
        let within = address.checked_sub(segment.address);
        segment.kind == PT_LOAD && within.is_some_and(|within| within < segment.size)
    })?;
    let place = loaded.offset.checked_add(address - loaded.address)?;
    let strings = read(file, place, value(DT_STRSZ)?)?;
    let string = |at: u64| {
        let text = strings.get(usize::try_from(at).ok()?..)?;
        let end = text.iter().position(|&byte| byte == 0)?;
        Some(String::from_utf8_lossy(&text[..end]).into_owned())
    };
    let needed = entries.iter().filter(|(tag, _)| *tag == DT_NEEDED);
    Some(DynamicSection {
        needed: needed.filter_map(|(_, at)| string(*at)).collect(),
        rpath: match value(DT_RUNPATH) {
            Some(_) => None,
            None => value(DT_RPATH).and_then(string),
        },
    })
}

fn segments(file: &File) -> Option<Vec<Segment>> {
    const BITS_64: u8 = 2;
    const ORDER: u8 = if cfg!(target_endian = "little") { 1 } else { 2 };
    let head = read(file, 0, 64)?;
    if head[..6] != [0x7f, b'E', b'L', b'F', BITS_64, ORDER] {
        return None;
    }
    let short = |at: usize| usize::from(u16::from_ne_bytes([head[at], head[at + 1]]));
    let (size, count) = (short(54), short(56).min(MOST_HEADERS));
    let headers = read(file, number(&head, 32), (size * count) as u64)?;
    let whole = headers
        .chunks_exact(size.max(1))
        .filter(|header| header.len() >= 56);
    let segments = whole.map(|header| Segment {
        kind: u32::from_ne_bytes([header[0], header[1], header[2], header[3]]),
        offset: number(header, 8),
        address: number(header, 16),
        size: number(header, 32),
    });
    Some(segments.collect())
}

fn read(file: &File, offset: u64, size: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(size.min(MOST_BYTES)).ok()?];
    file.read_exact_at(&mut bytes, offset).ok()?;
    Some(bytes)
}

/// The number of eight bytes at this place.
fn number(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_ne_bytes(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_libraries_of_this_test_are_read() {
        let own = File::open(std::env::current_exe().unwrap()).unwrap();
        let section = dynamic_section(&own).unwrap();
        let has_libc = |name: &String| name.starts_with("libc.so");
        assert!(section.needed.iter().any(has_libc), "{section:?}");
        let script = File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).unwrap();
        assert_eq!(dynamic_section(&script), None);
    }
}
