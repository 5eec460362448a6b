//! The input bytes of a fuzz target as a script: the target takes numbers, choices and bytes from
//! it, and acts on them. After the script's end it yields zeros, so any input is a valid script.
//!
//! Never here: code that users run.

#![forbid(unsafe_code)]

/// The bytes of a script that have not been taken yet.
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
    /// A script of these bytes.
    pub fn new(bytes: &'a [u8]) -> Script<'a> {
        Script(bytes)
    }

    /// True if all bytes have been taken.
    pub fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the next byte; 0 after the end.
    pub fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or(0)
    }

    /// Takes a number below `limit`, which is at most 2^16.
    pub fn below(&mut self, limit: usize) -> usize {
        let number = match limit {
            ..=256 => usize::from(self.byte()),
            _ => usize::from(self.byte()) << 8 | usize::from(self.byte()),
        };
        number % limit
    }

    /// True for one of `times` values of the next number, never after the end unless `times` is 1.
    pub fn is_one_in(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }

    /// Takes a number of 64 bits, small in most cases.
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

    /// Takes the next `most` bytes, or fewer at the end of the script.
    pub fn bytes(&mut self, most: usize) -> &'a [u8] {
        let (now, later) = self.0.split_at(most.min(self.0.len()));
        self.0 = later;
        now
    }

    /// Chooses one of these values by the next number.
    pub fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}
