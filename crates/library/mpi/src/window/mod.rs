//! One-sided communication: the machine of a window, and the calls.

pub(crate) mod calls;
pub(crate) mod machine;

pub use machine::table::Windows;
pub use machine::*;
