//! The distribution of an array over the processes of a grid.

/// The distribution of one dimension of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// `MPI_DISTRIBUTE_NONE`: one process holds the whole dimension.
    None {
        /// The distribution argument of the call. It has no effect, but the contents of the type
        /// report it.
        argument: i64,
    },
    /// `MPI_DISTRIBUTE_BLOCK`: each process holds one block of this length; `None`: of the default
    /// length.
    Block(Option<i64>),
    /// `MPI_DISTRIBUTE_CYCLIC`: blocks of this length are dealt to the processes one after the
    /// other; `None`: of the default length.
    Cyclic(Option<i64>),
}

const NONE: i32 = 16;
const BLOCK: i32 = 17;
const CYCLIC: i32 = 18;

impl Distribution {
    /// `MPI_DISTRIBUTE_DFLT_DARG`: a block of the default length. In the standard ABI it is a
    /// positive number, so a program cannot request blocks of 19 elements.
    pub const DEFAULT_ARGUMENT: i64 = 19;

    /// The distribution that an ABI value and its argument stand for; `None` if the value is none
    /// of a distribution.
    pub fn from_value(value: i32, argument: i64) -> Option<Distribution> {
        let length = (argument != Distribution::DEFAULT_ARGUMENT).then_some(argument);
        match value {
            NONE => Some(Distribution::None { argument }),
            BLOCK => Some(Distribution::Block(length)),
            CYCLIC => Some(Distribution::Cyclic(length)),
            _ => None,
        }
    }

    /// The ABI value of the distribution.
    pub fn value(self) -> i32 {
        match self {
            Distribution::None { .. } => NONE,
            Distribution::Block(_) => BLOCK,
            Distribution::Cyclic(_) => CYCLIC,
        }
    }

    /// The distribution argument of the dimension, as the ABI encodes it.
    pub fn argument(self) -> i64 {
        match self {
            Distribution::None { argument } => argument,
            Distribution::Block(length) | Distribution::Cyclic(length) => {
                length.unwrap_or(Distribution::DEFAULT_ARGUMENT)
            }
        }
    }
}

/// One dimension of a distributed array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// The number of elements of the whole array in this dimension.
    pub gsize: i64,
    /// The distribution of the elements over the processes.
    pub distribution: Distribution,
    /// The number of processes of the grid in this dimension.
    pub psize: i64,
}
