//! String moves or vectors for bodies of some KiB that another core reads next: which of the two
//! takes the sender less time, as it has measured.
//!
//! A string move obtains the lines of another core without reading them, but some processors start
//! it slowly, and some run it slowly in virtual machines. The reader's time is about the same after
//! both. So the sender compares its own time of some bodies by each, for each class of lengths, and
//! again after pauses that double.

use datatype::{HANDED_OVER_BY_VECTORS, string_moves_start_fast};

/// Number of classes: one for each power of two beyond the lengths that vectors always write.
const CLASSES: usize = 5;
/// Number of bodies by each kind in a comparison, and in one that ends early because one kind takes
/// more than `CLEAR` times as long: its bodies are not to cost much.
const EACH: u32 = 6;
const AT_LEAST: u32 = 2;
const CLEAR: u64 = 3;
/// Number of bodies of a class until its first comparison: the memory of the first ones is new.
/// Learners of paths take the costs of the chosen kind for granted, so it is chosen before theirs.
const FIRST: u32 = 16;
/// Number of bodies of a class from one comparison to the next: at first, and at last.
const PAUSE: u32 = 256;
const PAUSE_AT_MOST: u32 = 8192;
/// A kind replaces the chosen one if it takes less than 2 / 3 of the other's time: the loss of the
/// reader is not seen here. (On threads of one core of an AMD EPYC, bodies of 16 KiB by vectors
/// took their sender a tenth less time, and the pair 1.1 to 1.2 times as long.)
const FASTER: (u64, u64) = (3, 2);

/// The choice between string moves and vectors for long bodies to a peer, by length.
pub(crate) struct StringMoves([Class; CLASSES]);

struct Class {
    chosen: Kind,
    /// The number of bodies until the next comparison of the two kinds of copies.
    until: u32,
    pause: u32,
    /// The times of the present comparison, by [`Kind`].
    times: [Times; 2],
    /// The number of bodies that the present comparison has timed.
    compared: u32,
}

/// The kind of copies that moves the next body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// The kind of copy that was faster in the last comparison.
    Chosen {
        /// True if string moves are to copy the body.
        by_strings: bool,
    },
    /// The kind that is next in a comparison, which needs the body's time.
    Compared {
        /// True if string moves are to copy the body.
        by_strings: bool,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Vectors,
    Strings,
}

/// The copying times of some bodies, in picoseconds per byte.
#[derive(Clone, Copy, Default)]
struct Times {
    sum: u64,
    greatest: u64,
}

impl Times {
    fn add(&mut self, time: u64) {
        self.sum += time;
        self.greatest = self.greatest.max(time);
    }

    /// The sum of the times without the greatest one, whose body may have been interrupted.
    fn usual(self) -> u64 {
        self.sum - self.greatest
    }
}

impl StringMoves {
    pub(crate) fn new() -> StringMoves {
        let class = || Class {
            chosen: Kind::Strings,
            until: FIRST,
            pause: PAUSE,
            times: Default::default(),
            compared: 0,
        };
        StringMoves(std::array::from_fn(|_| class()))
    }

    /// The kind of copies for the next body of `len` bytes. Short bodies have one only.
    #[inline]
    pub(crate) fn next(&mut self, len: usize) -> Next {
        if len <= HANDED_OVER_BY_VECTORS {
            return Next::Chosen { by_strings: false };
        }
        self.0[class(len)].next()
    }

    /// Takes the nanoseconds in which a body of `len` bytes was written for a comparison.
    #[cold]
    pub(crate) fn compared(&mut self, len: usize, ns: u64) {
        self.0[class(len)].compared(ns, len);
    }
}

/// The class of bodies of `len` bytes, for bodies longer than those that vectors always write.
#[inline]
fn class(len: usize) -> usize {
    let first = HANDED_OVER_BY_VECTORS.ilog2();
    (((len - 1) | HANDED_OVER_BY_VECTORS).ilog2() - first).min(CLASSES as u32 - 1) as usize
}

impl Class {
    fn next(&mut self) -> Next {
        if self.until > 0 {
            self.until -= 1;
            let by_strings = self.chosen == Kind::Strings;
            return Next::Chosen { by_strings };
        }
        let by_strings = self.contender() == Kind::Strings;
        Next::Compared { by_strings }
    }

    /// The kind of the next body of a comparison, in which the two kinds alternate.
    fn contender(&self) -> Kind {
        match self.compared.is_multiple_of(2) {
            true => Kind::Vectors,
            false => Kind::Strings,
        }
    }

    fn compared(&mut self, ns: u64, len: usize) {
        let kind = self.contender();
        self.times[kind as usize].add(ns.saturating_mul(1000) / len as u64);
        self.compared += 1;
        if !self.compared.is_multiple_of(2) || self.compared < 2 * AT_LEAST {
            return;
        }
        let [vectors, strings] = self.times.map(Times::usual);
        let (other, mine, its) = match self.chosen {
            Kind::Vectors => (Kind::Strings, vectors, strings),
            Kind::Strings => (Kind::Vectors, strings, vectors),
        };
        let is_clear = mine.max(its) > mine.min(its).saturating_mul(CLEAR);
        if self.compared < 2 * EACH && !is_clear {
            return;
        }
        let (times, of) = FASTER;
        if its.saturating_mul(times) < mine.saturating_mul(of) {
            (self.chosen, self.pause) = (other, PAUSE);
        }
        self.rest();
    }

    fn rest(&mut self) {
        self.until = match string_moves_start_fast() {
            true => self.pause,
            // Nothing is to be compared.
            false => u32::MAX,
        };
        self.pause = (2 * self.pause).min(PAUSE_AT_MOST);
        (self.times, self.compared) = (Default::default(), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passes `bodies` bodies whose kinds take these nanoseconds. Returns the number of those that
    /// string moves wrote.
    fn pass(class: &mut Class, bodies: u32, [vectors, strings]: [u64; 2]) -> u32 {
        let mut all_by_strings = 0;
        for _ in 0..bodies {
            let by_strings = match class.next() {
                Next::Chosen { by_strings } => by_strings,
                Next::Compared { by_strings } => {
                    class.compared(if by_strings { strings } else { vectors }, 1000);
                    by_strings
                }
            };
            all_by_strings += u32::from(by_strings);
        }
        all_by_strings
    }

    #[test]
    fn the_faster_kind_writes_almost_all_bodies() {
        if !string_moves_start_fast() {
            return;
        }
        let mut moves = StringMoves::new();
        let class = &mut moves.0[0];
        pass(class, FIRST + 2 * EACH, [50, 200]);
        // Five comparisons: the pauses double. They end early.
        assert_eq!(pass(class, 10_000, [50, 200]), 5 * AT_LEAST);
        // The other kind has become faster: within the longest pause it is found.
        pass(class, PAUSE_AT_MOST + 2 * EACH, [200, 50]);
        assert_eq!(class.chosen, Kind::Strings);
        // Nearly equal kinds stay as they are.
        pass(class, 3 * PAUSE_AT_MOST, [75, 100]);
        assert_eq!(class.chosen, Kind::Strings);
    }

    #[test]
    fn one_interruption_does_not_count() {
        if !string_moves_start_fast() {
            return;
        }
        let mut moves = StringMoves::new();
        let class = &mut moves.0[0];
        pass(class, FIRST, [100, 100]);
        pass(class, 1, [90, 50]);
        class.compared(1_000_000, 1000);
        pass(class, 2 * EACH - 2, [90, 50]);
        assert_eq!(class.chosen, Kind::Strings);
    }

    #[test]
    fn each_power_of_two_has_its_class() {
        let of = |kib: usize| class((kib << 10) + 1);
        assert_eq!([2, 3, 4, 8, 16, 32, 64].map(of), [0, 0, 1, 2, 3, 4, 4]);
        assert_eq!([4, 8].map(|kib| class(kib << 10)), [0, 1]);
    }

    #[test]
    fn short_bodies_are_not_measured() {
        let mut moves = StringMoves::new();
        for _ in 0..1000 {
            let next = moves.next(HANDED_OVER_BY_VECTORS);
            assert_eq!(next, Next::Chosen { by_strings: false });
        }
        assert_eq!(moves.0[0].until, FIRST);
    }
}
