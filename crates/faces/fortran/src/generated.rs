//! What the generators make of the tables for this library.

/// The entry points.
///
/// Parameters keep the names and the number that the standard gives them. Conversions are written
/// without regard to each other, so a cast may change nothing, and conditions follow each other.
#[allow(
    clippy::too_many_arguments,
    clippy::unnecessary_cast,
    clippy::collapsible_if,
    unused_unsafe
)]
mod entry {
    include!(concat!(env!("OUT_DIR"), "/entry.rs"));
}

/// Variables that are recognised by their addresses.
mod commons {
    use crate::program::Program;
    use fortran_convert::commons::{Common, Special, is_near_blocks, note, usual};
    use fortran_convert::loaded::Loaded;
    use fortran_convert::{Commons, block};

    include!(concat!(env!("OUT_DIR"), "/commons.rs"));
}

/// Constants that differ from the standard's.
mod constants {
    use crate::program::Program;
    use fortran_convert::Constants;
    #[allow(unused_imports)] // the standard has none
    use std::ffi::c_int;

    include!(concat!(env!("OUT_DIR"), "/constants.rs"));
}

/// Symbols of modules that a compiler built once.
#[allow(unused_imports)] // not every library has all kinds of them
mod modules {
    use crate::program::Status;
    use fortran_convert::{assignment, comparison, constant, conversion, copy, size};
    use std::ffi::{c_int, c_void};

    include!(concat!(env!("OUT_DIR"), "/modules.rs"));
}

/// Functions that MPI predefines for attributes and data representations.
pub(crate) mod predefined {
    use crate::program::Program;
    use fortran_convert::{duplicate, no_conversion, null_copy, null_delete};
    use std::ffi::{CStr, c_int, c_void};

    include!(concat!(env!("OUT_DIR"), "/predefined.rs"));
}
