//! Reader of 64-bit ELF files: the libraries that they need, the paths where these are searched,
//! and the names that they import and define.
//!
//! A file may contain anything, so all data read from it are bounded.

use std::fs::File;
use std::ops::Range;

use object::elf::{
    DF_1_NODEFLIB, DT_FLAGS_1, DT_NEEDED, DT_NULL, DT_RPATH, DT_RUNPATH, DT_SONAME, DT_STRSZ,
    DT_STRTAB, Dyn64, FileHeader64, PT_INTERP, ProgramHeader64, SHN_UNDEF, SHT_DYNSYM, SHT_SYMTAB,
    STB_LOCAL, Sym64,
};
use object::read::elf::{
    Dyn as _, FileHeader as _, ProgramHeader as _, SectionHeader as _, Sym as _,
};
use object::{NativeEndian, ReadCache, ReadRef};

/// The most names of needed libraries that are read from one file.
pub(crate) const MOST_NEEDED: usize = 512;
/// The length of the longest name or search path, in bytes.
pub(crate) const LONGEST_NAME: usize = 4096;
/// The most bytes that are read from a file at once.
const MOST_BYTES: u64 = 64 << 20;

type Head = FileHeader64<NativeEndian>;
type Segment = ProgramHeader64<NativeEndian>;

/// The bytes of a file. Reading beyond their end, or too many at once, is an error before memory is
/// allocated.
#[derive(Clone, Copy)]
struct Bounded<R>(R);

impl<'data, R: ReadRef<'data>> ReadRef<'data> for Bounded<R> {
    fn len(self) -> Result<u64, ()> {
        self.0.len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'data [u8], ()> {
        let end = offset.checked_add(size).ok_or(())?;
        if size > MOST_BYTES || end > self.len()? {
            return Err(());
        }
        self.0.read_bytes_at(offset, size)
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'data [u8], ()> {
        let longest = range.start.saturating_add(LONGEST_NAME as u64);
        let range = range.start..range.end.min(longest);
        self.0.read_bytes_at_until(range, delimiter)
    }
}

/// The parts of a program or a library that the dynamic linker reads.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Object {
    /// The processor for which the object was built, as ELF's `e_machine`.
    pub machine: u16,
    /// True if the object names a dynamic linker, as programs with shared libraries do.
    pub has_interpreter: bool,
    /// The names of the libraries that the object needs (DT_NEEDED).
    pub needed: Vec<String>,
    /// The name by which programs linked with this object need it (DT_SONAME).
    pub soname: Option<String>,
    /// The search path before LD_LIBRARY_PATH (DT_RPATH). `None` if there is a DT_RUNPATH.
    pub rpath: Option<String>,
    /// The search path after LD_LIBRARY_PATH (DT_RUNPATH).
    pub runpath: Option<String>,
    /// True if the cache and the default folders are not searched (DF_1_NODEFLIB).
    pub no_default: bool,
}

/// The names of symbols that an object imports and defines.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Symbols {
    /// The names of symbols that the object imports.
    pub imported: Vec<String>,
    /// The names of symbols that the object defines for others.
    pub defined: Vec<String>,
}

/// Reads the object in an opened file.
pub(crate) fn object_in(file: &File) -> Option<Object> {
    object(&ReadCache::new(file))
}

/// Reads a 64-bit object in this machine's byte order. `None` for any other file.
pub(crate) fn object<'data>(bytes: impl ReadRef<'data>) -> Option<Object> {
    let bytes = Bounded(bytes);
    let head = Head::parse(bytes).ok()?;
    let endian = head.endian().ok()?;
    let segments = head.program_headers(endian, bytes).ok()?;
    let mut kinds = segments.iter().map(|segment| segment.p_type(endian));
    let mut object = Object {
        machine: head.e_machine(endian),
        has_interpreter: kinds.any(|kind| kind == PT_INTERP),
        ..Object::default()
    };
    for segment in segments {
        if let Some(entries) = segment.dynamic(endian, bytes).ok()? {
            read_dynamic(bytes, endian, segments, entries, &mut object)?;
            break;
        }
    }
    Some(object)
}

fn read_dynamic<'data>(
    bytes: Bounded<impl ReadRef<'data>>,
    endian: NativeEndian,
    segments: &[Segment],
    entries: &[Dyn64<NativeEndian>],
    object: &mut Object,
) -> Option<()> {
    let entries = entries
        .iter()
        .map(|entry| (entry.d_tag(endian), entry.d_val(endian)));
    let entries = entries.take_while(|(tag, _)| *tag != u64::from(DT_NULL));
    let entries: Vec<(u64, u64)> = entries.collect();
    let values = |wanted: u32| {
        let entries = entries
            .iter()
            .filter(move |(tag, _)| *tag == u64::from(wanted));
        entries.map(|(_, value)| *value)
    };
    let value = |wanted| values(wanted).next();
    let Some(address) = value(DT_STRTAB) else {
        return Some(());
    };
    let size = value(DT_STRSZ)?;
    let mut parts = segments.iter();
    let strings = parts.find_map(|part| part.data_range(endian, bytes, address, size).ok()?)?;
    let string = |at| name_at(strings, at).map(text);
    object.needed = values(DT_NEEDED)
        .take(MOST_NEEDED)
        .filter_map(string)
        .collect();
    object.soname = value(DT_SONAME).and_then(string);
    object.runpath = value(DT_RUNPATH).and_then(string);
    object.rpath = match value(DT_RUNPATH) {
        Some(_) => None,
        None => value(DT_RPATH).and_then(string),
    };
    object.no_default =
        value(DT_FLAGS_1).is_some_and(|flags| flags & u64::from(DF_1_NODEFLIB) != 0);
    Some(())
}

/// True if an opened file has a section of this name.
pub(crate) fn has_section(file: &File, name: &[u8]) -> bool {
    fn found<'data>(bytes: impl ReadRef<'data>, name: &[u8]) -> object::Result<bool> {
        let bytes = Bounded(bytes);
        let head = Head::parse(bytes)?;
        let endian = head.endian()?;
        let sections = head.sections(endian, bytes)?;
        Ok(sections.section_by_name(endian, name).is_some())
    }
    found(&ReadCache::new(file), name).unwrap_or(false)
}

/// The names in an opened file's symbol tables for which `is_wanted` is true.
pub(crate) fn symbols_in(file: &File, is_wanted: impl Fn(&[u8]) -> bool) -> Symbols {
    symbols(&ReadCache::new(file), is_wanted)
}

/// The names in an object's symbol tables for which `is_wanted` is true, sorted. A stripped object
/// only has the names that the dynamic linker needs.
pub(crate) fn symbols<'data>(
    bytes: impl ReadRef<'data>,
    is_wanted: impl Fn(&[u8]) -> bool,
) -> Symbols {
    let mut found = Symbols::default();
    // If the file is damaged, the names before the damage are returned.
    let _ = add_symbols(Bounded(bytes), is_wanted, &mut found);
    for names in [&mut found.imported, &mut found.defined] {
        names.sort_unstable();
        names.dedup();
    }
    found
}

fn add_symbols<'data>(
    bytes: Bounded<impl ReadRef<'data>>,
    is_wanted: impl Fn(&[u8]) -> bool,
    found: &mut Symbols,
) -> object::Result<()> {
    let head = Head::parse(bytes)?;
    let endian = head.endian()?;
    let sections = head.sections(endian, bytes)?;
    let tables = sections.iter();
    let tables = tables.filter(|one| [SHT_SYMTAB, SHT_DYNSYM].contains(&one.sh_type(endian)));
    // An object has at most one table of each kind; more in a damaged file are ignored.
    for table in tables.take(2) {
        let symbols: &[Sym64<NativeEndian>] = table.data_as_array(endian, bytes)?;
        let strings = sections.section(table.link(endian))?.data(endian, bytes)?;
        for symbol in symbols
            .iter()
            .filter(|symbol| symbol.st_bind() != STB_LOCAL)
        {
            let name = name_at(strings, symbol.st_name(endian).into());
            let Some(name) = name.filter(|name| is_wanted(name)) else {
                continue;
            };
            match symbol.st_shndx(endian) {
                SHN_UNDEF => found.imported.push(text(name)),
                _ => found.defined.push(text(name)),
            }
        }
    }
    Ok(())
}

/// The name at the offset `at` of a string table. `None`: it has no end, or is too long.
fn name_at(strings: &[u8], at: u64) -> Option<&[u8]> {
    let rest = strings.get(usize::try_from(at).ok()?..)?;
    let mut longest = rest.iter().take(LONGEST_NAME);
    let end = longest.position(|byte| *byte == 0)?;
    Some(&rest[..end])
}

fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
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
        assert_eq!(object_in(&file), Some(object));
        assert_eq!(super::object(b"#!/bin/sh\n".as_slice()), None);
    }

    #[test]
    fn names_are_imported_or_defined() {
        let own = own();
        let is_wanted = |name: &[u8]| [&b"poll"[..], b"main"].contains(&name);
        let found = symbols(own.as_slice(), is_wanted);
        let expected = Symbols {
            imported: vec!["poll".into()],
            defined: vec!["main".into()],
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn a_section_is_found_by_its_name() {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        let has = |name: &[u8]| has_section(&file, name);
        assert!(has(b".text") && !has(b".go.buildinfo"));
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
