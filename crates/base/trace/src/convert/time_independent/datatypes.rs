//! Datatypes by SimGrid's numbers.

use crate::standard;

/// MPI_BYTE, whose elements are those of a trace that names no datatype.
pub(super) const BYTE: i64 = standard::BYTE;

/// The number of a datatype in the ABI by its number in SimGrid. `None`: it is unknown.
pub(super) fn of(number: usize) -> Option<i64> {
    // MPI_CHAR is no number for a reduction, so it counts as the signed one.
    const ALL: [i64; 27] = [
        0x214, 0x209, 0x244, 0x208, 0x20a, 0x210, 0x247, 0x20b, 0x244, 0x245, 0x20c, 0x20d, 0x20e,
        0x20f, 0x220, 0x23c, 0x238, 0x240, 0x248, 0x250, 0x258, 0x241, 0x249, 0x251, 0x259, 0x212,
        0x216,
    ];
    ALL.get(number).copied()
}

/// The operation of a reduction over elements of a datatype. `None`: MPI has no sum of them.
pub(super) fn operation(datatype: i64) -> Option<i64> {
    const WIDE_CHARACTER: i64 = 0x23c;
    const LOGICAL: i64 = 0x238;
    match datatype {
        BYTE => Some(standard::BOR),
        WIDE_CHARACTER | LOGICAL => None,
        _ => Some(standard::SUM),
    }
}
