//! Fortran's kinds (MPI 5.0, section 19.1.9): the precision and range that a program requests.
//!
//! The datatype of a kind behaves as a named predefined type of its size; its envelope and contents
//! report the request.

use std::fmt;

use crate::combiner::Combiner;
use crate::predefined::Predefined;

/// `MPI_UNDEFINED`: the program does not request a precision, or a range.
pub const UNDEFINED: i32 = -32766;

/// The arguments of Fortran's `selected_real_kind` or `selected_int_kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `MPI_Type_create_f90_real`.
    Real {
        /// The required decimal digits of precision.
        p: i32,
        /// The required decimal exponent range.
        r: i32,
    },
    /// `MPI_Type_create_f90_complex`; precision and range are those of the real and the imaginary
    /// part.
    Complex {
        /// The required decimal digits of precision.
        p: i32,
        /// The required decimal exponent range.
        r: i32,
    },
    /// `MPI_Type_create_f90_integer`.
    Integer {
        /// The required decimal exponent range.
        r: i32,
    },
}

/// Precision and range of the formats of real numbers, in rising order: binary32, binary64, and C's
/// long double.
const REALS: [(i32, i32); 3] = [(6, 37), (15, 307), LONG_DOUBLE];

/// Precision and range of C's long double: the 80 bits of x87, which are also Fortran's kind 10, or
/// IEEE binary128.
const LONG_DOUBLE: (i32, i32) = if cfg!(target_arch = "x86_64") {
    (18, 4931)
} else {
    (33, 4931)
};

/// Decimal exponent ranges of integers with 1, 2, 4, 8 and 16 bytes.
const INTEGERS: [i32; 5] = [2, 4, 9, 18, 38];

impl Kind {
    /// The named predefined type with the smallest elements that have at least this precision and
    /// range. `None`: no type has.
    pub fn basic(self) -> Option<Predefined> {
        use Predefined as P;
        match self {
            Kind::Real { p, r } => pick(real(p, r)?, [P::REAL4, P::REAL8, P::LONG_DOUBLE]),
            Kind::Complex { p, r } => pick(
                real(p, r)?,
                [P::COMPLEX8, P::COMPLEX16, P::C_LONG_DOUBLE_COMPLEX],
            ),
            Kind::Integer { r } => {
                let at = INTEGERS.iter().position(|&most| (0..=most).contains(&r))?;
                pick(
                    at,
                    [
                        P::INTEGER1,
                        P::INTEGER2,
                        P::INTEGER4,
                        P::INTEGER8,
                        P::INTEGER16,
                    ],
                )
            }
        }
    }

    pub(crate) fn combiner(self) -> Combiner {
        match self {
            Kind::Real { .. } => Combiner::F90Real,
            Kind::Complex { .. } => Combiner::F90Complex,
            Kind::Integer { .. } => Combiner::F90Integer,
        }
    }

    pub(crate) fn arguments(self) -> Vec<i32> {
        match self {
            Kind::Real { p, r } | Kind::Complex { p, r } => vec![p, r],
            Kind::Integer { r } => vec![r],
        }
    }

    /// The valid precisions and ranges, as text for an error message.
    pub(crate) fn available(self) -> String {
        match self {
            Kind::Integer { .. } => "valid: r from 0 to 38".into(),
            _ => {
                let (p, r) = LONG_DOUBLE;
                format!("valid: p from 0 to {p}, r from 0 to {r}; one of both may be MPI_UNDEFINED")
            }
        }
    }
}

fn pick<const N: usize>(at: usize, types: [Predefined; N]) -> Option<Predefined> {
    types.get(at).copied()
}

/// The index in `REALS` of the first format with at least this precision and range.
fn real(p: i32, r: i32) -> Option<usize> {
    if (p, r) == (UNDEFINED, UNDEFINED) {
        return None;
    }
    let suits = |value, most| value == UNDEFINED || (0..=most).contains(&value);
    REALS
        .iter()
        .position(|&(most_p, most_r)| suits(p, most_p) && suits(r, most_r))
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: i32| match value {
            UNDEFINED => "MPI_UNDEFINED".to_string(),
            value => value.to_string(),
        };
        match *self {
            Kind::Real { p, r } => write!(
                f,
                "no datatype for reals has p = {} and r = {}",
                shown(p),
                shown(r)
            ),
            Kind::Complex { p, r } => write!(
                f,
                "no datatype for complex numbers has p = {} and r = {}",
                shown(p),
                shown(r)
            ),
            Kind::Integer { r } => write!(f, "no datatype for integers has r = {}", shown(r)),
        }
    }
}
