//! Presentation of results: text tables, plots, sizes, units, percentiles and a progress bar; and
//! parsing of numbers on command lines.
//!
//! Invariant: nothing here measures, and nothing here knows what was measured.
//!
//! Never here: measuring.

pub mod arguments;
pub mod console;
mod memory_file;
pub mod origin;
pub mod output;
pub mod plot;
pub mod report;
pub mod sizes;
pub mod stats;
pub mod style;
pub mod table;
pub mod terminal;
pub mod ticks;
pub mod unit;

pub use console::Console;
pub use memory_file::MemoryFile;
pub use unit::Unit;
