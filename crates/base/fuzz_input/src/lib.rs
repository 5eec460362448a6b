//! The bytes of a fuzzer as a script: a target takes numbers, choices and bytes from it, and acts
//! on them. Behind the script's end everything is zero, so any bytes are a script.
//!
//! Never here: anything that a user runs.

#![forbid(unsafe_code)]

/// The rest of a script.
///
/// ```
/// use fuzz_input::Script;
///
/// let mut script = Script::new(&[7, 1, 2]);
/// assert_eq!(script.below(4), 3);
/// assert_eq!(script.bytes(5), [1, 2]);
/// assert!(script.is_over() && script.byte() == 0);
/// ```
#[derive(Clone, Debug)]
pub struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    /// The script of these bytes.
    pub fn new(bytes: &'a [u8]) -> Script<'a> {
        Script(bytes)
    }

    /// All bytes have been taken.
    pub fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or(0)
    }

    /// A number below `limit`, which is at most 2^16.
    pub fn below(&mut self, limit: usize) -> usize {
        let number = match limit {
            ..=256 => usize::from(self.byte()),
            _ => usize::from(self.byte()) << 8 | usize::from(self.byte()),
        };
        number % limit
    }

    /// True once in `times`.
    pub fn is_one_in(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }

    /// A number of 64 bits, small in most cases.
    pub fn number(&mut self) -> u64 {
        let wide = |bytes: &[u8]| {
            bytes
                .iter()
                .fold(0, |all, byte| all << 8 | u64::from(*byte))
        };
        match self.byte() {
            255 => wide(self.bytes(8)),
            254 => wide(self.bytes(4)),
            253 => !u64::from(self.byte()),
            small => small.into(),
        }
    }

    /// The next bytes, at most `most`.
    pub fn bytes(&mut self, most: usize) -> &'a [u8] {
        let (now, later) = self.0.split_at(most.min(self.0.len()));
        self.0 = later;
        now
    }

    /// One of these.
    pub fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}
