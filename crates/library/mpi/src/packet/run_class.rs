//! The classes of messages by the runs of their send buffers.

use channel::LEAST_RUN;
use datatype::Buffer;

/// The class of a message by the mean length of the runs of its send buffer: a read of it costs
/// time for each run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunClass(u8);

impl RunClass {
    /// The message is one run.
    pub(crate) const ONE: RunClass = RunClass(0);
    /// The runs are too short, or too many, to be read where they lie.
    pub(crate) const SHORT: RunClass = RunClass(1);
    /// Number of classes of messages whose runs are long enough to be read.
    pub(crate) const LONG: usize = 4;
    /// Number of bits of an encoded class.
    pub(crate) const BITS: u32 = 3;

    /// The class of the message in this buffer.
    pub(crate) fn of(buffer: &Buffer) -> RunClass {
        if buffer.as_dense().is_some() {
            return RunClass::ONE;
        }
        match buffer.runs(buffer.len() / LEAST_RUN) {
            None | Some(0) => RunClass::SHORT,
            Some(runs) => {
                let doublings = (buffer.len() / runs / LEAST_RUN).max(1).ilog2() as usize;
                RunClass(RunClass::SHORT.0 + 1 + doublings.min(RunClass::LONG - 1) as u8)
            }
        }
    }

    /// True if the message is one run.
    pub(crate) fn is_one(self) -> bool {
        self == RunClass::ONE
    }

    /// The index among the classes of several long runs, by increasing length. `None`: the message
    /// is one run, or its runs are short.
    pub(crate) fn long(self) -> Option<usize> {
        usize::from(self.0).checked_sub(2)
    }

    /// The number that encodes the class.
    pub(crate) fn code(self) -> u64 {
        self.0.into()
    }

    /// The class with this code; of higher bits nothing is used.
    pub(crate) fn from_code(code: u64) -> RunClass {
        const LAST: u64 = 1 + RunClass::LONG as u64;
        let code = code & ((1 << RunClass::BITS) - 1);
        RunClass(code.min(LAST) as u8)
    }

    /// All classes of runs.
    #[cfg(test)]
    pub(crate) fn all() -> impl Iterator<Item = RunClass> {
        (0..2 + RunClass::LONG as u8).map(RunClass)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datatype::{Pool, Predefined, Type};

    fn of(runs: i64, run: i64) -> RunClass {
        let ty = Type::vector(runs, run, run + 1, &Predefined::BYTE.into()).unwrap();
        RunClass::of(&Pool::default().elements(1, &ty).unwrap().buffer())
    }

    #[test]
    fn the_mean_run_is_the_class() {
        let least = LEAST_RUN as i64;
        assert_eq!((of(1, 10), of(1, 1 << 20)), (RunClass::ONE, RunClass::ONE));
        assert_eq!(
            (of(9, 8), of(9, least - 1)),
            (RunClass::SHORT, RunClass::SHORT)
        );
        for (run, long) in [(1, 0), (2, 1), (3, 1), (4, 2), (8, 3), (100, 3)] {
            assert_eq!(of(5, run * least).long(), Some(long), "{run}");
        }
        for class in RunClass::all() {
            assert_eq!(
                RunClass::from_code(class.code() | 1 << RunClass::BITS),
                class
            );
        }
        assert_eq!(RunClass::from_code(7).long(), Some(RunClass::LONG - 1));
        assert_eq!((RunClass::ONE.long(), RunClass::SHORT.long()), (None, None));
    }
}
