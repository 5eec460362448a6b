//! Targets of the fuzzer for the parsers of this crate, which are private: crate `fuzzed` runs
//! them. A target takes any bytes, and panics where a promise is broken.

mod calls;
mod frames;

pub use calls::calls;
pub use frames::frames;

/// The bytes of the fuzzer as a script. Behind its end everything is zero.
struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or(0)
    }

    /// A number below `limit`, which is at most 2^16.
    fn below(&mut self, limit: usize) -> usize {
        let number = match limit {
            ..=256 => usize::from(self.byte()),
            _ => usize::from(self.byte()) << 8 | usize::from(self.byte()),
        };
        number % limit
    }

    /// True once in `times`.
    fn is_one_in(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }

    /// The next bytes, at most `most`.
    fn bytes(&mut self, most: usize) -> &'a [u8] {
        let (now, later) = self.0.split_at(most.min(self.0.len()));
        self.0 = later;
        now
    }

    /// One of these.
    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}
