//! Type signatures: which basic types a buffer has, in order, and how two of them differ.
//!
//! A signature is a list of runs (consecutive elements of one basic type) and the number of its
//! repetitions, so that a buffer of one basic type is one run whatever its length. Two signatures
//! are compared run by run, for at most [`MOST_STEPS`] runs; of a datatype the first [`MOST_RUNS`]
//! are known. What lies behind is compared by size alone.

use datatype::{Class, Predefined};
use std::fmt;
use std::sync::Arc;

use crate::event::Run;

/// The most runs of one datatype that ranks note.
pub const MOST_RUNS: usize = 4096;

/// The most runs by which two signatures are compared.
const MOST_STEPS: usize = 1 << 16;

/// The most runs of a datatype that a report shows.
const SHOWN: usize = 4;

/// The signature of a buffer.
#[derive(Clone, Debug)]
pub(crate) struct Signature {
    /// The runs of one repetition.
    runs: Arc<[Run]>,
    /// The number of repetitions.
    count: u64,
    /// True if the runs are not all of the datatype's.
    is_cut: bool,
}

/// The result of a comparison of two signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Difference {
    /// The signatures are equal.
    None,
    /// The first signature is the beginning of the second.
    Shorter,
    /// The second signature is the beginning of the first.
    Longer,
    /// The basic types of an element differ.
    Types {
        /// The number of equal elements before that one.
        at: u64,
        /// The basic types of the element in the two signatures.
        types: [Predefined; 2],
    },
}

impl Signature {
    pub(crate) fn new(runs: Arc<[Run]>, count: u64, is_cut: bool) -> Signature {
        Signature {
            runs,
            count,
            is_cut,
        }
    }

    /// `count` elements of a predefined type.
    pub(crate) fn basic(ty: Predefined, count: u64) -> Signature {
        let run = |ty: Predefined, count| Run {
            basic: ty.handle() as u16,
            count,
        };
        match pair_of(ty) {
            Some((value, index)) if value != index => {
                Signature::new([run(value, 1), run(index, 1)].into(), count, false)
            }
            Some((value, _)) => Signature::new([run(value, 2)].into(), count, false),
            None => Signature::new([run(ty, count)].into(), count.min(1), false),
        }
    }

    /// The number of bytes of all elements.
    pub(crate) fn bytes(&self) -> u64 {
        let bytes = self.runs.iter().map(|run| {
            let size = basic(run.basic).and_then(Predefined::size).unwrap_or(0);
            run.count.saturating_mul(size as u64)
        });
        bytes
            .fold(0, u64::saturating_add)
            .saturating_mul(self.count)
    }

    /// True if the signature has elements that match every type.
    fn is_untyped(&self) -> bool {
        let untyped = [Predefined::PACKED, Predefined::BYTE].map(|one| one.handle() as u16);
        self.runs.iter().any(|run| untyped.contains(&run.basic))
    }

    /// Compares two signatures. Messages with MPI_PACKED (MPI 5.0 §3.3.1) or MPI_BYTE are compared
    /// by size. In the letter of §3.3.1 MPI_BYTE matches only itself. But programs that move their
    /// data as bytes at one side are common, and they are right wherever all ranks represent their
    /// data alike.
    pub(crate) fn compare(&self, other: &Signature) -> Difference {
        let is_same = Arc::ptr_eq(&self.runs, &other.runs) || self.runs == other.runs;
        if self.is_untyped() || other.is_untyped() {
            return by_size(self.bytes(), other.bytes());
        }
        if is_same && self.runs.len() > 1 {
            return by_size(self.count, other.count);
        }
        let (mut one, mut two) = (Cursor::new(self), Cursor::new(other));
        let mut at = 0;
        for _ in 0..MOST_STEPS {
            let (first, second) = match (one.next(), two.next()) {
                (None, None) => return Difference::None,
                (None, Some(_)) => return Difference::Shorter,
                (Some(_), None) => return Difference::Longer,
                (Some(first), Some(second)) => (first, second),
            };
            match (basic(first.basic), basic(second.basic)) {
                (Some(mine), Some(theirs)) if !are_alike(mine, theirs) => {
                    return Difference::Types {
                        at,
                        types: [mine, theirs],
                    };
                }
                _ => {}
            }
            let common = first.count.min(second.count);
            at += common;
            one.pass(common);
            two.pass(common);
            if one.is_lost() || two.is_lost() {
                break;
            }
        }
        by_size(self.bytes(), other.bytes())
    }
}

fn by_size(one: u64, other: u64) -> Difference {
    match one.cmp(&other) {
        std::cmp::Ordering::Less => Difference::Shorter,
        std::cmp::Ordering::Equal => Difference::None,
        std::cmp::Ordering::Greater => Difference::Longer,
    }
}

/// A position in a signature.
struct Cursor<'a> {
    of: &'a Signature,
    /// The number of the present repetition, and that of its run.
    repetition: u64,
    run: usize,
    /// The number of elements of the run that have been passed.
    passed: u64,
}

impl<'a> Cursor<'a> {
    fn new(of: &'a Signature) -> Cursor<'a> {
        Cursor {
            of,
            repetition: 0,
            run: 0,
            passed: 0,
        }
    }

    /// The rest of the present run; `None` at the end.
    fn next(&mut self) -> Option<Run> {
        let (runs, count) = (&self.of.runs, self.of.count);
        if let [run] = &runs[..] {
            let all = run.count.saturating_mul(count);
            let left = all - self.passed.min(all);
            let rest = Run {
                basic: run.basic,
                count: left,
            };
            return (left > 0).then_some(rest);
        }
        while self.repetition < count && !runs.is_empty() {
            match runs.get(self.run) {
                Some(run) if self.passed < run.count => {
                    return Some(Run {
                        basic: run.basic,
                        count: run.count - self.passed,
                    });
                }
                Some(_) => (self.run, self.passed) = (self.run + 1, 0),
                None => (self.repetition, self.run) = (self.repetition + 1, 0),
            }
        }
        None
    }

    fn pass(&mut self, count: u64) {
        self.passed += count;
    }

    /// True if the known runs of one repetition are passed, and there are others.
    fn is_lost(&self) -> bool {
        let last = self.of.runs.len().saturating_sub(1);
        self.of.is_cut && self.run >= last
    }
}

fn basic(handle: u16) -> Option<Predefined> {
    Predefined::from_handle(handle.into())
}

/// Value and index of a pair, which are its signature (MPI 5.0 §6.9.4).
fn pair_of(ty: Predefined) -> Option<(Predefined, Predefined)> {
    (ty.class() == Class::Pair).then_some(())?;
    let elements = || Predefined::all().filter(|one| one.class() != Class::Pair);
    let is_it = |value, index| Predefined::value_index(value, index) == Some(ty);
    elements().find_map(|value| {
        let index = elements().find(|index| is_it(value, *index))?;
        Some((value, index))
    })
}

/// True if two basic types match. Types of one size and kind count as one, such as `MPI_INT`,
/// `MPI_INT32_T` and `MPI_INTEGER`.
fn are_alike(one: Predefined, other: Predefined) -> bool {
    let kind = |ty: Predefined| match ty.class() {
        Class::FortranInteger | Class::MultiLanguage => Class::CInteger,
        class => class,
    };
    let is_integer = kind(one) == Class::CInteger;
    one == other
        || kind(one) == kind(other)
            && one.size() == other.size()
            && (!is_integer || one.is_signed() == other.is_signed())
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let bytes = self.bytes();
        let name = |run: &Run| basic(run.basic).map_or("elements", Predefined::name);
        match &self.runs[..] {
            [] => write!(f, "no elements"),
            [run] => {
                let count = run.count.saturating_mul(self.count);
                write!(f, "{count} {} ({bytes} B)", name(run))
            }
            runs => {
                let shown = runs.iter().take(SHOWN);
                let shown: Vec<String> = shown
                    .map(|run| format!("{} {}", run.count, name(run)))
                    .collect();
                let more = if runs.len() > SHOWN { ", ..." } else { "" };
                let inside = shown.join(", ");
                write!(f, "{} x ({inside}{more}) ({bytes} B)", self.count)
            }
        }
    }
}
