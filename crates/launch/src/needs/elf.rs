//! ELF files of 64 bits: the libraries that they need, where they search them, and the names that
//! they import and define.
//!
//! A file may be anything. Each number of it is checked against the length of the file before
//! memory is taken, and everything that is read has a bound.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Limits on what is read of one file.
const MOST_HEADERS: usize = 256;
const MOST_SECTIONS: usize = 1 << 16;
const MOST_ENTRIES: u64 = 1 << 14;
pub(crate) const MOST_NEEDED: usize = 512;
pub(crate) const LONGEST_NAME: u64 = 4096;
const MOST_BYTES: u64 = 64 << 20;

// Tags of entries, and types of segments and sections, in ELF's own numbers.
const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const SHT_SYMTAB: u32 = 2;
const SHT_DYNSYM: u32 = 11;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
const DT_STRSZ: u64 = 10;
const DT_SONAME: u64 = 14;
const DT_RPATH: u64 = 15;
const DT_RUNPATH: u64 = 29;
const DT_FLAGS_1: u64 = 0x6fff_fffb;
const DF_1_NODEFLIB: u64 = 0x800;

/// Bytes that can be read at any offset.
pub(crate) trait Bytes {
    /// The number of bytes.
    fn length(&self) -> u64;

    /// Fills `into` from `offset` on. False: there are not as many bytes.
    fn read_into(&self, offset: u64, into: &mut [u8]) -> bool;

    /// `size` bytes from `offset` on. None: there are fewer, or more than the limit.
    fn read(&self, offset: u64, size: u64) -> Option<Vec<u8>> {
        let left = self.length().checked_sub(offset)?;
        if size > left.min(MOST_BYTES) {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(size).ok()?];
        self.read_into(offset, &mut bytes).then_some(bytes)
    }

    /// The string that begins at `offset` and ends with a zero byte.
    fn string(&self, offset: u64) -> Option<String> {
        let mut size = 128;
        loop {
            let left = self.length().checked_sub(offset)?.min(LONGEST_NAME);
            let bytes = self.read(offset, left.min(size))?;
            if let Some(end) = bytes.iter().position(|&byte| byte == 0) {
                return Some(String::from_utf8_lossy(&bytes[..end]).into_owned());
            }
            if size >= left {
                return None;
            }
            size = LONGEST_NAME;
        }
    }
}

impl Bytes for File {
    fn length(&self) -> u64 {
        self.metadata().map_or(0, |file| file.len())
    }

    fn read_into(&self, offset: u64, into: &mut [u8]) -> bool {
        self.read_exact_at(into, offset).is_ok()
    }
}

impl Bytes for [u8] {
    fn length(&self) -> u64 {
        self.len() as u64
    }

    fn read_into(&self, offset: u64, into: &mut [u8]) -> bool {
        let from = usize::try_from(offset).ok();
        let rest = from.and_then(|from| self.get(from..));
        let part = rest.and_then(|rest| rest.get(..into.len()));
        part.map(|part| into.copy_from_slice(part)).is_some()
    }
}

/// A program or a library, by what the dynamic linker reads of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Object {
    /// The processor that it was built for, in ELF's numbers.
    pub machine: u16,
    /// Whether it names a dynamic linker, as programs with shared libraries do.
    pub has_interpreter: bool,
    /// The names of the libraries that it needs (DT_NEEDED).
    pub needed: Vec<String>,
    /// Its own name for programs that are linked with it (DT_SONAME).
    pub soname: Option<String>,
    /// The folders that are searched before LD_LIBRARY_PATH (DT_RPATH without DT_RUNPATH).
    pub rpath: Option<String>,
    /// The folders that are searched after LD_LIBRARY_PATH (DT_RUNPATH).
    pub runpath: Option<String>,
    /// Whether the cache and the default folders are not searched (DF_1_NODEFLIB).
    pub no_default: bool,
}

/// Names of an object's symbol tables.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Symbols {
    /// The names that other objects define.
    pub imported: Vec<String>,
    /// The names that it defines for others.
    pub defined: Vec<String>,
}

/// A segment of an object.
struct Segment {
    kind: u32,
    offset: u64,
    address: u64,
    size: u64,
}

/// A section of an object.
struct Section {
    kind: u32,
    offset: u64,
    size: u64,
    link: u32,
}

/// Reads an object of 64 bits in this machine's byte order. None for any other file.
pub(crate) fn object(bytes: &(impl Bytes + ?Sized)) -> Option<Object> {
    let head = head(bytes)?;
    let segments = segments(bytes, &head)?;
    let mut object = Object {
        machine: short(&head, 18),
        has_interpreter: segments.iter().any(|segment| segment.kind == PT_INTERP),
        ..Object::default()
    };
    let dynamic = segments.iter().find(|segment| segment.kind == PT_DYNAMIC);
    if let Some(dynamic) = dynamic {
        read_dynamic(bytes, &segments, dynamic, &mut object)?;
    }
    Some(object)
}

fn read_dynamic(
    bytes: &(impl Bytes + ?Sized),
    segments: &[Segment],
    dynamic: &Segment,
    object: &mut Object,
) -> Option<()> {
    let words = bytes.read(dynamic.offset, dynamic.size.min(MOST_ENTRIES * 16))?;
    let (words, _) = words.as_chunks::<16>();
    let entries = words.iter().map(|word| (number(word, 0), number(word, 8)));
    let entries: Vec<(u64, u64)> = entries.take_while(|(tag, _)| *tag != 0).collect();
    let value = |wanted| {
        let entry = entries.iter().find(|(tag, _)| *tag == wanted);
        entry.map(|(_, value)| *value)
    };
    let Some(address) = value(DT_STRTAB) else {
        return Some(());
    };
    let loaded = segments.iter().find(|segment| {
        let within = address.checked_sub(segment.address);
        segment.kind == PT_LOAD && within.is_some_and(|within| within < segment.size)
    })?;
    let start = loaded.offset.checked_add(address - loaded.address)?;
    let size = value(DT_STRSZ)?;
    let string = |at: u64| {
        let is_inside = at < size;
        is_inside.then(|| bytes.string(start.checked_add(at)?))?
    };
    let needed = entries.iter().filter(|(tag, _)| *tag == DT_NEEDED);
    let needed = needed.take(MOST_NEEDED);
    object.needed = needed.filter_map(|(_, at)| string(*at)).collect();
    object.soname = value(DT_SONAME).and_then(string);
    object.runpath = value(DT_RUNPATH).and_then(string);
    object.rpath = match value(DT_RUNPATH) {
        Some(_) => None,
        None => value(DT_RPATH).and_then(string),
    };
    object.no_default = value(DT_FLAGS_1).is_some_and(|flags| flags & DF_1_NODEFLIB != 0);
    Some(())
}

/// The names of an object's symbol tables that `is_wanted` takes, sorted. A stripped object has
/// those that the dynamic linker needs.
pub(crate) fn symbols(bytes: &(impl Bytes + ?Sized), is_wanted: impl Fn(&[u8]) -> bool) -> Symbols {
    let mut found = Symbols::default();
    let sections = head(bytes).and_then(|head| sections(bytes, &head));
    let sections = sections.unwrap_or_default();
    let tables = sections
        .iter()
        .filter(|section| [SHT_SYMTAB, SHT_DYNSYM].contains(&section.kind));
    // One of each kind at most; a file that has more is not one to read.
    for table in tables.take(2) {
        let _ = add_symbols(bytes, &sections, table, &is_wanted, &mut found);
    }
    for names in [&mut found.imported, &mut found.defined] {
        names.sort_unstable();
        names.dedup();
    }
    found
}

fn add_symbols(
    bytes: &(impl Bytes + ?Sized),
    sections: &[Section],
    table: &Section,
    is_wanted: impl Fn(&[u8]) -> bool,
    found: &mut Symbols,
) -> Option<()> {
    const LOCAL: u8 = 0;
    let strings = sections.get(usize::try_from(table.link).ok()?)?;
    let strings = bytes.read(strings.offset, strings.size)?;
    let symbols = bytes.read(table.offset, table.size)?;
    let (symbols, _) = symbols.as_chunks::<24>();
    for symbol in symbols {
        let at = u32::from_ne_bytes([symbol[0], symbol[1], symbol[2], symbol[3]]);
        let Some(rest) = strings.get(usize::try_from(at).ok()?..) else {
            continue;
        };
        if symbol[4] >> 4 == LOCAL || !is_wanted(rest) {
            continue;
        }
        let end = rest.iter().take(LONGEST_NAME as usize);
        let end = end.take_while(|byte| **byte != 0).count();
        let name = String::from_utf8_lossy(&rest[..end]).into_owned();
        match short(symbol, 6) {
            0 => found.imported.push(name),
            _ => found.defined.push(name),
        }
    }
    Some(())
}

/// The head of an object of 64 bits in this machine's byte order.
fn head(bytes: &(impl Bytes + ?Sized)) -> Option<[u8; 64]> {
    const BITS_64: u8 = 2;
    const ORDER: u8 = if cfg!(target_endian = "little") { 1 } else { 2 };
    let mut head = [0; 64];
    let is_object =
        bytes.read_into(0, &mut head) && head[..6] == [0x7f, b'E', b'L', b'F', BITS_64, ORDER];
    is_object.then_some(head)
}

fn segments(bytes: &(impl Bytes + ?Sized), head: &[u8; 64]) -> Option<Vec<Segment>> {
    let count = usize::from(short(head, 56)).min(MOST_HEADERS);
    let headers = table(bytes, number(head, 32), short(head, 54), count, 56)?;
    let segments = headers.into_iter().map(|header| Segment {
        kind: word(&header, 0),
        offset: number(&header, 8),
        address: number(&header, 16),
        size: number(&header, 32),
    });
    Some(segments.collect())
}

fn sections(bytes: &(impl Bytes + ?Sized), head: &[u8; 64]) -> Option<Vec<Section>> {
    let count = usize::from(short(head, 60)).min(MOST_SECTIONS);
    let headers = table(bytes, number(head, 40), short(head, 58), count, 64)?;
    let sections = headers.into_iter().map(|header| Section {
        kind: word(&header, 4),
        offset: number(&header, 24),
        size: number(&header, 32),
        link: word(&header, 40),
    });
    Some(sections.collect())
}

/// The rows of a table of the head, each of `size` bytes, of which there must be `least`.
fn table(
    bytes: &(impl Bytes + ?Sized),
    offset: u64,
    size: u16,
    count: usize,
    least: usize,
) -> Option<Vec<Vec<u8>>> {
    let size = usize::from(size);
    let rows = bytes.read(offset, (size * count) as u64)?;
    let is_long_enough = size >= least;
    is_long_enough.then(|| rows.chunks_exact(size).map(<[u8]>::to_vec).collect())
}

fn short(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]])
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
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

    fn own() -> Vec<u8> {
        std::fs::read(std::env::current_exe().unwrap()).unwrap()
    }

    #[test]
    fn the_libraries_of_this_test_are_read() {
        let own = own();
        let object = object(own.as_slice()).unwrap();
        let has_libc = |name: &String| name.starts_with("libc.so");
        assert!(object.has_interpreter && object.needed.iter().any(has_libc));
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(super::object(&file), Some(object));
        assert_eq!(super::object(b"#!/bin/sh\n".as_slice()), None);
    }

    #[test]
    fn names_are_imported_or_defined() {
        let own = own();
        let is_wanted = |name: &[u8]| name.starts_with(b"poll\0") || name.starts_with(b"main\0");
        let found = symbols(own.as_slice(), is_wanted);
        let expected = Symbols {
            imported: vec!["poll".into()],
            defined: vec!["main".into()],
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn a_cut_or_damaged_file_is_read_within_its_bounds() {
        let own = own();
        for length in (0..4096.min(own.len())).step_by(7) {
            let _ = object(&own[..length]);
            let _ = symbols(&own[..length], |_| true);
        }
        // The counts and offsets of the head, all as large as they can be.
        for at in 16..64 {
            let mut damaged = own[..own.len().min(1 << 16)].to_vec();
            damaged[at..(at + 8).min(64)].fill(0xff);
            let _ = object(damaged.as_slice());
            let _ = symbols(damaged.as_slice(), |_| true);
        }
    }
}
