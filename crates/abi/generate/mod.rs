//! From the two tables, `procedures.txt` and `constants.txt`, to everything that lists procedures or
//! constants. The build script and the tests share this folder; the library itself carries none of it.
//!
//! What must hold: nothing else in the project lists procedures by hand, and each output is a pure
//! function of the tables, so that a test can say when a checked-in one is stale.

pub mod constants;
#[allow(dead_code)] // the build script writes no documents
pub mod coverage;
pub mod entry;
#[allow(dead_code)] // nor the header
pub mod header;
pub mod kinds;
pub mod table;
