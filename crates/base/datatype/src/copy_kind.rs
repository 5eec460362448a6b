//! The kinds of copies between which callers choose.

/// The longest run that is always written by vectors for another core, in bytes. Above it string
/// moves are an alternative, if the processor starts them fast.
pub const HANDED_OVER_BY_VECTORS: usize = 2 << 10;

/// The direction in which a run is copied by vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The run is copied from the first byte to the last.
    Forward,
    /// The run is copied from the last byte to the first.
    Backward,
}

/// The instructions that write runs to memory that another core reads next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandOver {
    /// The direction of the copy, if vectors make it.
    pub direction: Direction,
    /// True if a string move copies a run of more than [`HANDED_OVER_BY_VECTORS`] bytes, on
    /// processors that start it fast.
    pub by_strings: bool,
}

impl HandOver {
    /// Vectors forward for short runs, string moves for long ones.
    pub const USUAL: HandOver = HandOver {
        direction: Direction::Forward,
        by_strings: true,
    };
}
