//! Datatypes: flattening, packing, extents, and the arithmetic of predefined operations. Pure.
//!
//! A [`Type`] is flattened once, when it is built, into a small tree of strided loops; a [`Buffer`]
//! joins it to the user's memory and moves any range of its bytes in or out. [`reduce`] computes
//! on packed elements, [`external32`] converts them for other machines. [`Elements`] are what a
//! reduction works on, the user's or in scratch memory out of a [`Pool`].
//!
//! What must always hold: the packed form of a buffer is its bytes in the order of the typemap;
//! nothing outside those bytes is ever touched; the cost of touching a range depends on the pieces
//! in the range and the depth of the type, not on what lies before it.

mod bounds;
mod buffer;
mod construct;
mod elements;
mod envelope;
mod error;
pub mod external32;
mod layout;
mod memcpy;
mod op;
mod pack;
mod predefined;
pub mod reduce;
mod scratch;
mod signature;
mod types;
mod walk;

pub use buffer::Buffer;
pub use elements::Elements;
pub use envelope::{Combiner, Contents, Envelope, Order};
pub use error::{Error, Result};
pub use memcpy::Direction;
pub use op::Op;
pub use predefined::{Class, Predefined};
pub use scratch::Pool;
pub use types::{Derived, Type};
