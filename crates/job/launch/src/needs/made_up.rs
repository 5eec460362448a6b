//! Object files that tests generate.

/// A library that a test generates, described by the entries of its dynamic section.
#[derive(Default)]
pub(crate) struct MadeUp<'a> {
    pub needed: &'a [&'a str],
    pub soname: Option<&'a str>,
    pub rpath: Option<&'a str>,
    pub runpath: Option<&'a str>,
}

/// The `e_machine` of generated libraries (x86-64).
pub(crate) const MACHINE: u16 = 62;

impl MadeUp<'_> {
    /// The bytes of a shared object that has this dynamic section and nothing else.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut strings = vec![0];
        let mut entries: Vec<(u64, u64)> = Vec::new();
        let needed = self.needed.iter().map(|name| (1, *name));
        let others = [(14, self.soname), (15, self.rpath), (29, self.runpath)];
        let others = others
            .iter()
            .filter_map(|(tag, text)| text.map(|text| (*tag, text)));
        for (tag, text) in needed.chain(others) {
            entries.push((tag, strings.len() as u64));
            strings.extend(text.as_bytes());
            strings.push(0);
        }
        let dynamic = 64 + 2 * 56;
        let size = (entries.len() as u64 + 3) * 16;
        let start = dynamic + size;
        entries.extend([(5, start), (10, strings.len() as u64), (0, 0)]);
        let end = start + strings.len() as u64;

        let mut bytes = vec![0; 64];
        bytes[..7].copy_from_slice(&[
            0x7f,
            b'E',
            b'L',
            b'F',
            2,
            if cfg!(target_endian = "little") { 1 } else { 2 },
            1,
        ]);
        for (at, short) in [(16, 3), (18, MACHINE), (54, 56), (56, 2)] {
            bytes[at..at + 2].copy_from_slice(&u16::to_ne_bytes(short));
        }
        bytes[32..40].copy_from_slice(&u64::to_ne_bytes(64));
        for (kind, offset, size) in [(1u64, 0, end), (2, dynamic, size)] {
            // The 32-bit flags follow the 32-bit type, and are zero.
            let kind = if cfg!(target_endian = "little") {
                kind
            } else {
                kind << 32
            };
            for number in [kind, offset, offset, offset, size, size, 8] {
                bytes.extend(number.to_ne_bytes());
            }
        }
        for number in entries.iter().flat_map(|(tag, value)| [tag, value]) {
            bytes.extend(number.to_ne_bytes());
        }
        bytes.extend(strings);
        bytes
    }
}
