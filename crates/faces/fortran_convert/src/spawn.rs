//! Arrays of character strings: commands and arguments of spawned processes.

use crate::abi::Abi;
use crate::text::{Input, input};
use std::ffi::c_char;
use std::ptr::null_mut;

/// An array of C strings, as an argument.
pub struct Strings {
    /// The addresses of the strings; `None` for the argument NULL.
    pointers: Option<Vec<*mut c_char>>,
    _texts: Vec<Input>,
}

impl Strings {
    fn new(texts: Vec<Input>) -> Strings {
        let pointers = texts.iter().map(|text| text.as_ptr().cast_mut());
        Strings {
            pointers: Some(pointers.chain([null_mut()]).collect()),
            _texts: texts,
        }
    }

    /// The address of the strings, as C's argument.
    pub fn as_mut_ptr(&mut self) -> *mut *mut c_char {
        self.pointers.as_mut().map_or(null_mut(), Vec::as_mut_ptr)
    }
}

/// The commands of an array of `count` strings of `length` characters.
///
/// # Safety
/// The address is that of such an array.
pub unsafe fn commands(texts: *const u8, length: usize, count: i64) -> Strings {
    let count = count.max(0) as usize;
    // SAFETY: promised.
    Strings::new(
        (0..count)
            .map(|at| unsafe { input(texts.add(at * length), length) })
            .collect(),
    )
}

/// The arguments of a command, as strings of `length` characters; a blank string ends them.
///
/// # Safety
/// The address is that of such strings, or MPI_ARGV_NULL.
pub unsafe fn argv<A: Abi>(texts: *const u8, length: usize) -> Strings {
    // SAFETY: promised.
    unsafe { arguments::<A>(texts, length, length) }
}

/// The strings up to the first blank one.
///
/// # Safety
/// As for `argv`; the strings lie at this stride in bytes.
unsafe fn arguments<A: Abi>(texts: *const u8, length: usize, stride: usize) -> Strings {
    if A::is_mpi_argv_null(texts) || length == 0 {
        return Strings {
            pointers: None,
            _texts: Vec::new(),
        };
    }
    // SAFETY: promised; a blank string follows the last one.
    let texts = (0..).map(|at| unsafe { input(texts.add(at * stride), length) });
    Strings::new(texts.take_while(|text| !text.is_empty()).collect())
}

/// The arguments of several commands, as an argument.
pub struct AllArguments {
    pointers: Option<Vec<*mut *mut c_char>>,
    _arguments: Vec<Strings>,
}

impl AllArguments {
    /// The address of the lists of arguments, as C's argument.
    pub fn as_mut_ptr(&mut self) -> *mut *mut *mut c_char {
        self.pointers.as_mut().map_or(null_mut(), Vec::as_mut_ptr)
    }
}

/// The arguments of `count` commands: each row of a matrix of strings with `count` rows has the
/// arguments of one command.
///
/// # Safety
/// The address is that of such a matrix, or MPI_ARGVS_NULL.
pub unsafe fn argvs<A: Abi>(texts: *const u8, length: usize, count: i64) -> AllArguments {
    if A::is_mpi_argvs_null(texts) {
        return AllArguments {
            pointers: None,
            _arguments: Vec::new(),
        };
    }
    let count = count.max(0) as usize;
    let mut arguments: Vec<_> = (0..count)
        // SAFETY: promised; elements of a row lie as many strings apart as the matrix has rows.
        .map(|row| unsafe { arguments::<A>(texts.add(row * length), length, count * length) })
        .collect();
    let pointers = arguments.iter_mut().map(Strings::as_mut_ptr);
    AllArguments {
        pointers: Some(pointers.collect()),
        _arguments: arguments,
    }
}
