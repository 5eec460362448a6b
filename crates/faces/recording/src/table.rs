//! The recorded procedures as recordings and replays need them, generated from `procedures.txt` of
//! `tables` by its module `recorded`.

/// A procedure whose calls are recorded in a trace.
pub struct Recorded {
    /// The name of the procedure in C.
    pub name: &'static str,
    /// The line of the procedure's signature.
    pub line: &'static str,
    /// For each parameter whether an element of it has 64 bits, not 32.
    pub wide: &'static [bool],
    /// True if the procedure makes or frees a communicator, a window or a file.
    pub constructs: bool,
}

include!(concat!(env!("OUT_DIR"), "/recorded.rs"));
