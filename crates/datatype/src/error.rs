//! What can be wrong with the arguments of a constructor or of an operation.

use crate::{Op, Predefined};
use std::fmt;

/// Each variant stands for one error class of MPI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// MPI_ERR_COUNT: a count is negative.
    Count { argument: &'static str, value: i64 },
    /// MPI_ERR_ARG: an argument is out of its range.
    Argument {
        argument: &'static str,
        index: usize,
        value: i64,
        valid: String,
    },
    /// MPI_ERR_ARG: arrays that belong together differ in length.
    Lengths {
        argument: &'static str,
        length: usize,
        expected: usize,
    },
    /// MPI_ERR_TYPE: an optional predefined type that is not supported here.
    Unsupported(Predefined),
    /// MPI_ERR_VALUE_TOO_LARGE: a size, bound or extent does not fit 63 bits.
    TooLarge { what: &'static str },
    /// MPI_ERR_TYPE: types are nested beyond any use.
    Nesting { limit: u32 },
    /// MPI_ERR_OP: the operation is not defined for the type.
    Operation { op: Op, ty: Predefined },
    /// MPI_ERR_OP: predefined operations are for predefined types.
    Derived { op: Op },
    /// MPI_ERR_VALUE_TOO_LARGE: a value does not fit the external representation.
    Conversion { ty: Predefined },
    /// MPI_ERR_TRUNCATE: the output has no room, or the input ends too early.
    Room { needed: usize, given: usize },
}

pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Count { argument, value } => {
                write!(f, "{argument} is {value}; it must be 0 or more")
            }
            Error::Argument {
                argument,
                index,
                value,
                valid,
            } => write!(f, "{argument}[{index}] is {value}; valid: {valid}"),
            Error::Lengths {
                argument,
                length,
                expected,
            } => write!(f, "{argument} has {length} entries; expected {expected}"),
            Error::Unsupported(ty) => write!(
                f,
                "{} is an optional datatype that is not supported on this machine",
                ty.name()
            ),
            Error::TooLarge { what } => {
                write!(f, "the {what} of the new datatype does not fit in 63 bits")
            }
            Error::Nesting { limit } => write!(
                f,
                "datatypes are nested more than {limit} deep; build the type from fewer steps"
            ),
            Error::Operation { op, ty } => write!(
                f,
                "{} is not defined for {} (MPI 5.0, section 6.9.2)",
                op.name(),
                ty.name()
            ),
            Error::Derived { op } => write!(
                f,
                "{} is not defined for derived datatypes; they need an operation of your own (MPI_Op_create)",
                op.name()
            ),
            Error::Conversion { ty } => write!(
                f,
                "a value of type {} does not fit its external32 representation",
                ty.name()
            ),
            Error::Room { needed, given } => {
                write!(f, "{needed} bytes are needed, but the buffer has {given}")
            }
        }
    }
}

impl std::error::Error for Error {}
