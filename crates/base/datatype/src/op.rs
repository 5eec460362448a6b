//! The predefined operations and the types they are defined for (MPI 5.0, section 6.9.2).

use crate::predefined::{self, Class, Format, Predefined};

/// A predefined operation. Its number is its ABI value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum Op {
    /// `MPI_SUM`
    Sum = 0x21,
    /// `MPI_MIN`
    Min = 0x22,
    /// `MPI_MAX`
    Max = 0x23,
    /// `MPI_PROD`
    Prod = 0x24,
    /// `MPI_BAND`
    Band = 0x28,
    /// `MPI_BOR`
    Bor = 0x29,
    /// `MPI_BXOR`
    Bxor = 0x2a,
    /// `MPI_LAND`
    Land = 0x30,
    /// `MPI_LOR`
    Lor = 0x31,
    /// `MPI_LXOR`
    Lxor = 0x32,
    /// `MPI_MINLOC`
    Minloc = 0x38,
    /// `MPI_MAXLOC`
    Maxloc = 0x39,
    /// `MPI_REPLACE`
    Replace = 0x3c,
    /// `MPI_NO_OP`
    NoOp = 0x3d,
}

impl Op {
    /// Every predefined operation.
    pub const ALL: [Op; 14] = {
        use Op::*;
        [
            Sum, Min, Max, Prod, Band, Bor, Bxor, Land, Lor, Lxor, Minloc, Maxloc, Replace, NoOp,
        ]
    };

    /// The operation with an ABI handle; `None` if no operation has it.
    #[inline]
    pub fn from_handle(handle: usize) -> Option<Op> {
        *BY_HANDLE.get(handle.wrapping_sub(FIRST))?
    }

    /// The ABI handle of the operation.
    pub fn handle(self) -> usize {
        self as usize
    }

    /// The name of the operation in the standard, such as `MPI_SUM`.
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

    /// True if the operation is commutative. REPLACE keeps the last operand and NO_OP the first.
    pub fn is_commutative(self) -> bool {
        !matches!(self, Op::Replace | Op::NoOp)
    }

    /// True if the operation is for one-sided communication only; collectives reject it.
    pub fn is_accumulate_only(self) -> bool {
        matches!(self, Op::Replace | Op::NoOp)
    }

    /// True if the operation is defined for this type.
    ///
    /// Beyond the standard, which keeps characters out of arithmetic, CHAR counts as a C integer,
    /// and the logical operations take every integer, as in MPICH: programs rely on it.
    #[inline]
    pub fn permits(self, ty: Predefined) -> bool {
        PERMITTED[ty.low_byte()] >> (self as u32 & 0x1f) & 1 == 1
    }

    const fn is_for(self, class: Class, format: Format) -> bool {
        use Class::*;
        let integer = matches!(class, CInteger | FortranInteger | MultiLanguage);
        match self {
            _ if matches!(format, Format::Unsupported) => false,
            Op::Sum | Op::Prod => integer || matches!(class, FloatingPoint | Complex),
            Op::Min | Op::Max => integer || matches!(class, FloatingPoint),
            Op::Band | Op::Bor | Op::Bxor => integer || matches!(class, Byte),
            Op::Land | Op::Lor | Op::Lxor => integer || matches!(class, Logical),
            Op::Minloc | Op::Maxloc => matches!(class, Pair),
            Op::Replace | Op::NoOp => true,
        }
    }
}

/// The least handle in the table of operations.
const FIRST: usize = 0x20;

/// The operations, indexed by handle less [`FIRST`]. A table needs one load; a match would jump.
static BY_HANDLE: [Option<Op>; 0x20] = {
    let mut table = [None; 0x20];
    let mut i = 0;
    while i < Op::ALL.len() {
        table[Op::ALL[i] as usize - FIRST] = Some(Op::ALL[i]);
        i += 1;
    }
    table
};

/// For each type, indexed by the low byte of its handle: the set of operations that are defined for
/// it. A set has one bit for each operation, indexed by the low bits of the operation's handle.
static PERMITTED: [u32; 256] = {
    let mut permitted = [0; 256];
    let mut i = 0;
    while i < predefined::TABLE.len() {
        let (ty, class, format) = predefined::row(i);
        let class = match ty {
            Predefined::CHAR => Class::CInteger,
            _ => class,
        };
        let mut j = 0;
        while j < Op::ALL.len() {
            let op = Op::ALL[j];
            if op.is_for(class, format) {
                permitted[ty.low_byte()] |= 1 << (op as u32 & 0x1f);
            }
            j += 1;
        }
        i += 1;
    }
    permitted
};
