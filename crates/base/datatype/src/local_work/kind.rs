//! Kinds of local work, with their codes for records and their names for files.

use crate::op::Op;
use crate::predefined::Predefined;

/// A kind of work. Its amount is a number of bytes, or of elements for a
/// [`Function`](LocalWork::Function).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalWork {
    /// A copy of one run of memory.
    Copy,
    /// A copy to or from runs of `run` bytes, `stride` bytes apart: packing and unpacking.
    Strided {
        /// The length in bytes of each run.
        run: u32,
        /// Bytes from the start of a run to the start of the next one.
        stride: u32,
    },
    /// A predefined reduction operation on elements of a predefined type.
    Combine(Op, Predefined),
    /// A conversion of elements to or from the representation external32.
    Convert,
    /// The user-defined operation with this number; operations are numbered in the order of
    /// `MPI_Op_create`.
    Function(u32),
}

/// The number of bits of a number within the code of a kind.
const BITS: u32 = 30;
/// The greatest number within the code of a kind of work; it also represents greater ones.
const MOST: u32 = (1 << BITS) - 1;

impl LocalWork {
    /// The number that encodes the kind of work.
    pub fn encode(self) -> u64 {
        let (kind, first, second) = match self {
            LocalWork::Copy => (0, 0, 0),
            LocalWork::Strided { run, stride } => (1, run, stride),
            LocalWork::Combine(op, ty) => (2, op.handle() as u32, ty.handle() as u32),
            LocalWork::Convert => (3, 0, 0),
            LocalWork::Function(number) => (4, number, 0),
        };
        let word = |number: u32| u64::from(number.min(MOST));
        kind << (2 * BITS) | word(first) << BITS | word(second)
    }

    /// The kind with this code. `None`: no kind has it.
    pub fn decode(code: u64) -> Option<LocalWork> {
        let word = |shift: u32| (code >> shift) as u32 & MOST;
        let (first, second) = (word(BITS), word(0));
        Some(match code >> (2 * BITS) {
            0 => LocalWork::Copy,
            1 => LocalWork::Strided {
                run: first,
                stride: second,
            },
            2 => {
                let op = Op::from_handle(first as usize)?;
                let ty = Predefined::from_handle(second as usize)?;
                op.permits(ty).then_some(LocalWork::Combine(op, ty))?
            }
            3 => LocalWork::Convert,
            4 => LocalWork::Function(first),
            _ => return None,
        })
    }

    /// The kind with this name, as [`Display`](std::fmt::Display) writes it; `None` for other text.
    pub fn parse(word: &str) -> Option<LocalWork> {
        match word {
            "copy" => return Some(LocalWork::Copy),
            "external32" => return Some(LocalWork::Convert),
            _ => {}
        }
        let (first, rest) = word.split_once(':')?;
        let number = |word: &str| word.parse::<u32>().ok().filter(|number| *number <= MOST);
        match first {
            "strided" => {
                let (run, stride) = rest.split_once(':')?;
                Some(LocalWork::Strided {
                    run: number(run)?,
                    stride: number(stride)?,
                })
            }
            "function" => Some(LocalWork::Function(number(rest)?)),
            name => {
                let op = Op::ALL.into_iter().find(|op| op.name() == name)?;
                let ty = Predefined::all().find(|ty| ty.name() == rest)?;
                op.permits(ty).then_some(LocalWork::Combine(op, ty))
            }
        }
    }
}

impl std::fmt::Display for LocalWork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LocalWork::Copy => f.write_str("copy"),
            LocalWork::Strided { run, stride } => write!(f, "strided:{run}:{stride}"),
            LocalWork::Combine(op, ty) => write!(f, "{}:{}", op.name(), ty.name()),
            LocalWork::Convert => f.write_str("external32"),
            LocalWork::Function(number) => write!(f, "function:{number}"),
        }
    }
}

/// The class of a length: the lengths from one power of two up to the next are one class, and have
/// one rate.
pub fn class(length: usize) -> u32 {
    length.max(1).ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_comes_back_from_its_number_and_its_word() {
        for work in [
            LocalWork::Copy,
            LocalWork::Strided {
                run: 8,
                stride: 8192,
            },
            LocalWork::Combine(Op::Sum, Predefined::DOUBLE),
            LocalWork::Combine(Op::Minloc, Predefined::TWO_INT),
            LocalWork::Convert,
            LocalWork::Function(7),
        ] {
            assert_eq!(LocalWork::decode(work.encode()), Some(work));
            assert_eq!(LocalWork::parse(&work.to_string()), Some(work), "{work}");
        }
        for wrong in ["", "copies", "strided:8", "MPI_SUM:MPI_BYTE", "function:x"] {
            assert_eq!(LocalWork::parse(wrong), None, "{wrong}");
        }
        assert_eq!(LocalWork::decode(u64::MAX), None);
    }
}
