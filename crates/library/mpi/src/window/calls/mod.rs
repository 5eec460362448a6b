//! Calls on windows (MPI 5.0 §12).

mod common_memory;
mod create;
mod lock;
mod objects;
mod progress;
mod sync;
mod wait;

pub use create::WindowSpec;
