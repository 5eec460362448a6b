//! Calls on windows (MPI 5.0 §12).

mod create;
mod objects;
mod progress;
mod sync;
mod wait;

pub use create::WindowSpec;
