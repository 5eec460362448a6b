//! Datatypes: flattening, packing, extents, and the arithmetic of predefined operations. Pure.
//!
//! A [`Type`] is flattened once, when it is built, into a small tree of strided loops. A [`Buffer`]
//! joins it to the user's memory and moves any range of its bytes in or out. [`Elements`] are the
//! operands of a reduction: the user's memory, or scratch memory from a [`Pool`]. [`reduce`]
//! computes on packed elements; [`external32`] converts them for other machines. [`local_work`] has
//! the times of such work on modelled machines.
//!
//! Invariant: the packed form of a buffer is its bytes in the order of the typemap; no
//! access leaves those bytes; the cost of a range depends on the pieces in it and the depth of the
//! type, not on its position.
//!
//! ```
//! use datatype::{Buffer, Predefined, Type};
//!
//! // The first column of a 3 x 3 matrix.
//! let column = Type::vector(3, 1, 3, &Predefined::INT.into())?;
//! let mut matrix = [1i32, 2, 3, 4, 5, 6, 7, 8, 9];
//! // SAFETY: the matrix holds the column and outlives the buffer.
//! let buffer = unsafe { Buffer::new(matrix.as_mut_ptr().cast(), 1, &column) };
//! let mut packed = [0; 12];
//! assert_eq!(buffer.pack(0, &mut packed), 12);
//! assert_eq!(packed[4..8], 4i32.to_ne_bytes());
//! # Ok::<(), datatype::Error>(())
//! ```
//!
//! Never here: communication.

mod bounds;
mod buffer;
mod combiner;
mod construct;
mod copy_kind;
mod darray;
mod distribution;
pub mod double;
mod elements;
mod envelope;
mod error;
pub mod external32;
mod f90;
mod layout;
pub mod local_work;
mod memcpy;
mod op;
mod pack;
mod predefined;
mod rebuilt;
pub mod reduce;
mod runs;
mod scratch;
mod signature;
mod spread;
mod types;
mod walk;
mod wire;
mod within;

pub use buffer::Buffer;
pub use combiner::{Combiner, Order};
pub use copy_kind::{Direction, HANDED_OVER_BY_VECTORS, HandOver};
pub use distribution::{Dimension, Distribution};
pub use elements::Elements;
pub use envelope::{Contents, Envelope};
pub use error::{Error, Result};
pub use f90::{Kind, UNDEFINED};
pub use memcpy::string_moves_start_fast;
pub use op::Op;
pub use predefined::{Class, Predefined};
pub use runs::RunOrder;
pub use scratch::{Pool, granted, is_granted};
pub use types::{Derived, Type};
