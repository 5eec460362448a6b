//! Errors in the arguments of a constructor or of an operation.

use crate::{Kind, Op, Predefined};
use std::fmt;

/// An error of a constructor or of an operation; each variant belongs to one error class of MPI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// MPI_ERR_COUNT: a count is negative.
    Count {
        /// The name of the parameter in the standard.
        argument: &'static str,
        /// The value that the caller gave.
        value: i64,
    },
    /// MPI_ERR_ARG: an element of an argument is out of its range.
    Argument {
        /// The name of the parameter in the standard.
        argument: &'static str,
        /// The index of the element.
        index: usize,
        /// The value that the caller gave.
        value: i64,
        /// A description of the valid values for the message.
        valid: String,
    },
    /// MPI_ERR_ARG: an argument is out of its range.
    Value {
        /// The name of the parameter in the standard.
        argument: &'static str,
        /// The value that the caller gave.
        value: i64,
        /// A description of the valid values for the message.
        valid: String,
    },
    /// MPI_ERR_ARG: no datatype has the precision and range of a Fortran kind.
    NoKind {
        /// The Fortran kind that no datatype has.
        kind: Kind,
    },
    /// MPI_ERR_ARG: arrays that belong together differ in length.
    Lengths {
        /// The name of the parameter in the standard.
        argument: &'static str,
        /// The number of elements that the caller gave.
        length: usize,
        /// The number of elements of the other array.
        expected: usize,
    },
    /// MPI_ERR_TYPE: an optional predefined type that is not supported here.
    Unsupported(Predefined),
    /// MPI_ERR_VALUE_TOO_LARGE: a size, bound or extent does not fit 63 bits.
    TooLarge {
        /// The quantity that does not fit: size, extent, displacement.
        what: &'static str,
    },
    /// MPI_ERR_TYPE: types are nested too deeply.
    Nesting {
        /// The greatest depth of nesting that is allowed.
        limit: u32,
    },
    /// MPI_ERR_OP: the operation is not defined for the type.
    Operation {
        /// The operation that is not defined for the type.
        op: Op,
        /// The type for which the operation is not defined.
        ty: Predefined,
    },
    /// MPI_ERR_OP: a predefined operation on a derived type.
    Derived {
        /// The predefined operation that was called.
        op: Op,
    },
    /// MPI_ERR_VALUE_TOO_LARGE: a value does not fit the external representation.
    Conversion {
        /// The predefined type of the value.
        ty: Predefined,
    },
    /// MPI_ERR_TRUNCATE: the output has no room, or the input ends too early.
    Room {
        /// The number of bytes that the data need.
        needed: usize,
        /// The number of bytes that the caller gave.
        given: usize,
    },
}

/// The result of a constructor or an operation.
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
            Error::Value {
                argument,
                value,
                valid,
            } => write!(f, "{argument} is {value}; valid: {valid}"),
            Error::NoKind { kind } => write!(f, "{kind}: {}", kind.available()),
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
