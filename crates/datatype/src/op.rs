//! The predefined operations and the types they are defined for (MPI 5.0, section 6.9.2).

use crate::predefined::{Class, Format, Predefined};

/// A predefined operation, by its ABI value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum Op {
    Sum = 0x21,
    Min = 0x22,
    Max = 0x23,
    Prod = 0x24,
    Band = 0x28,
    Bor = 0x29,
    Bxor = 0x2a,
    Land = 0x30,
    Lor = 0x31,
    Lxor = 0x32,
    Minloc = 0x38,
    Maxloc = 0x39,
    Replace = 0x3c,
    NoOp = 0x3d,
}

impl Op {
    pub const ALL: [Op; 14] = {
        use Op::*;
        [
            Sum, Min, Max, Prod, Band, Bor, Bxor, Land, Lor, Lxor, Minloc, Maxloc, Replace, NoOp,
        ]
    };

    pub fn from_handle(handle: usize) -> Option<Op> {
        Op::ALL.into_iter().find(|op| op.handle() == handle)
    }

    pub fn handle(self) -> usize {
        self as usize
    }

    pub fn name(self) -> &'static str {
        match self {
            Op::Sum => "MPI_SUM",
            Op::Min => "MPI_MIN",
            Op::Max => "MPI_MAX",
            Op::Prod => "MPI_PROD",
            Op::Band => "MPI_BAND",
            Op::Bor => "MPI_BOR",
            Op::Bxor => "MPI_BXOR",
            Op::Land => "MPI_LAND",
            Op::Lor => "MPI_LOR",
            Op::Lxor => "MPI_LXOR",
            Op::Minloc => "MPI_MINLOC",
            Op::Maxloc => "MPI_MAXLOC",
            Op::Replace => "MPI_REPLACE",
            Op::NoOp => "MPI_NO_OP",
        }
    }

    /// REPLACE keeps the last operand, so the order matters to it, and to NO_OP likewise.
    pub fn is_commutative(self) -> bool {
        !matches!(self, Op::Replace | Op::NoOp)
    }

    /// Only for one-sided communication; collectives refuse these two.
    pub fn is_accumulate_only(self) -> bool {
        matches!(self, Op::Replace | Op::NoOp)
    }

    /// Whether the operation works on this type.
    ///
    /// Beyond the standard, which keeps characters out of arithmetic, CHAR counts as a C integer,
    /// and the logical operations take every integer: MPICH does the same and programs rely on it.
    pub fn permits(self, ty: Predefined) -> bool {
        use Class::*;
        if ty.size().is_none() {
            return false;
        }
        let class = if ty == Predefined::CHAR {
            CInteger
        } else {
            ty.class()
        };
        let integer = matches!(class, CInteger | FortranInteger | MultiLanguage);
        match self {
            Op::Sum | Op::Prod => {
                (integer || matches!(class, FloatingPoint | Complex)) && computable(ty)
            }
            Op::Min | Op::Max => (integer || class == FloatingPoint) && computable(ty),
            Op::Band | Op::Bor | Op::Bxor => integer || class == Byte,
            Op::Land | Op::Lor | Op::Lxor => integer || class == Logical,
            Op::Minloc | Op::Maxloc => class == Pair && computable(ty),
            Op::Replace | Op::NoOp => true,
        }
    }
}

/// Arithmetic on long double needs x87 instructions.
fn computable(ty: Predefined) -> bool {
    use Format::*;
    cfg!(target_arch = "x86_64")
        || !matches!(ty.format(), LongDouble | ComplexLongDouble | LongDoubleI32)
}
