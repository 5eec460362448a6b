//! The generated Fortran sources compared with facts of the standard.

mod constants;
mod f08;
mod interfaces;
mod sizeof;

use fortran_tables::Tables;

/// The text of a generated source.
fn source(name: &str) -> String {
    let mut sources = fortran_tables::sources(&Tables::standard()).into_iter();
    sources.find(|(other, _)| *other == name).unwrap().1
}

/// The FNV-1a digest of lines, each ended by a newline.
fn digest(lines: &[String]) -> u64 {
    let bytes = lines.iter().flat_map(|line| line.bytes().chain([b'\n']));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
