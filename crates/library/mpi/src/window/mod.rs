//! One-sided communication: the data and state machines of windows (`machine`), and the calls.

pub(crate) mod calls;
pub(crate) mod machine;

pub use machine::table::Windows;
pub use machine::*;
