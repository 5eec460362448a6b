//! The conversion of integers, pointers and strings between an older ABI and the standard one.

use crate::abi::Abi;
use crate::array::Array;
use crate::constants::standard;
use std::ffi::{c_char, c_int, c_void};

/// The value that a table of pairs assigns to `value`; `None` if no pair has it. `from` turns a
/// pair into the direction of the conversion.
fn find(pairs: &[(i64, i64)], from: impl Fn(&(i64, i64)) -> (i64, i64), value: i64) -> Option<i64> {
    pairs
        .iter()
        .map(from)
        .find(|pair| pair.0 == value)
        .map(|pair| pair.1)
}

/// Defines conversions in both directions of integer constants whose values differ between the
/// ABIs. Values that are no constants stay.
macro_rules! meanings {
    ($($to_standard:ident $to_program:ident $pairs:ident $ty:ty;)*) => {$(
        /// The value in the standard ABI for a value of the program's ABI.
        pub fn $to_standard<A: Abi>(value: $ty) -> $ty {
            find(A::$pairs, |pair| *pair, value.into()).map_or(value, |value| value as $ty)
        }

        /// The value in the program's ABI for a value of the standard ABI.
        pub fn $to_program<A: Abi>(value: $ty) -> $ty {
            find(A::$pairs, |pair| (pair.1, pair.0), value.into()).map_or(value, |value| value as $ty)
        }
    )*};
}

meanings! {
    thread_in thread_out LEVELS_OF_THREAD_SUPPORT c_int;
    topology_in topology_out TOPOLOGIES c_int;
    comparison_in comparison_out RESULTS_OF_COMPARISONS c_int;
    combiner_in combiner_out COMBINERS c_int;
    split_type_in split_type_out SPLIT_TYPES c_int;
    type_class_in type_class_out TYPE_CLASSES c_int;
    order_in order_out ORDERS_OF_ARRAYS c_int;
    distribution_in distribution_out DISTRIBUTIONS_OF_ARRAYS c_int;
    default_argument_in default_argument_out DEFAULT_ARGUMENT_OF_A_DISTRIBUTION c_int;
    lock_type_in lock_type_out LOCK_TYPES c_int;
    flavor_in flavor_out FLAVOURS_OF_WINDOWS c_int;
    memory_model_in memory_model_out MEMORY_MODELS_OF_WINDOWS c_int;
    whence_in whence_out POSITIONS_IN_FILES c_int;
    verbosity_in verbosity_out TOOLS_VERBOSITY c_int;
    bind_in bind_out TOOLS_WHAT_A_VARIABLE_IS_BOUND_TO c_int;
    scope_in scope_out TOOLS_SCOPES c_int;
    variable_class_in variable_class_out TOOLS_CLASSES_OF_PERFORMANCE_VARIABLES c_int;
    displacement_in displacement_out FILE_DISPLACEMENTS i64;
    known_error_in known_error_out ERROR_CLASSES c_int;
}

/// The standard's key of an attribute for the program's key. Keys that a library assigns may be any
/// integers.
pub fn keyval_in<A: Abi>(keyval: c_int) -> c_int {
    exchanged(A::ATTRIBUTE_KEYS, |pair| pair, keyval)
}

/// The program's key of an attribute for the standard's key.
pub fn keyval_out<A: Abi>(keyval: c_int) -> c_int {
    exchanged(A::ATTRIBUTE_KEYS, |pair| (pair.1, pair.0), keyval)
}

/// The value on the other side of a pair. Any other value is mapped to a value that is no constant
/// either: the mapping is a permutation of all integers, so the opposite conversion restores every
/// value.
fn exchanged(pairs: &[(i64, i64)], from: impl Fn((i64, i64)) -> (i64, i64), value: c_int) -> c_int {
    if let Some(other) = find(pairs, |pair| from(*pair), value.into()) {
        return other as c_int;
    }
    // A value that is a constant only in the other ABI is mapped to one that no pair produces: the
    // end of the chain of pairs leading back from it. The chain ends, because it is not part of a
    // cycle.
    let back = |pair: &(i64, i64)| {
        let (value, other) = from(*pair);
        (other, value)
    };
    let mut place = i64::from(value);
    while let Some(left) = find(pairs, back, place) {
        place = left;
    }
    place as c_int
}

/// The standard's rank for a rank of the program. Some negative values are constants.
#[inline(always)]
pub fn rank_in<A: Abi>(rank: c_int) -> c_int {
    if rank >= 0 {
        rank
    } else {
        special_rank::<A>(rank, |pair| pair)
    }
}

/// The rank in the program's ABI for a rank of the standard ABI.
#[inline(always)]
pub fn rank_out<A: Abi>(rank: c_int) -> c_int {
    if rank >= 0 {
        rank
    } else if rank == standard::MPI_ANY_SOURCE as c_int {
        // A fast case: the status of every send has this value.
        A::MPI_ANY_SOURCE as c_int
    } else {
        special_rank::<A>(rank, |pair| (pair.1, pair.0))
    }
}

#[cold]
fn special_rank<A: Abi>(rank: c_int, from: impl Fn((i64, i64)) -> (i64, i64)) -> c_int {
    let special = const {
        &[
            (A::MPI_PROC_NULL, standard::MPI_PROC_NULL),
            (A::MPI_ANY_SOURCE, standard::MPI_ANY_SOURCE),
            (A::MPI_ROOT, standard::MPI_ROOT),
        ]
    };
    exchanged(special, from, rank)
}

/// The standard's tag for a tag of the program: MPI_ANY_TAG of both ABIs are exchanged.
#[inline(always)]
pub fn tag_in<A: Abi>(tag: c_int) -> c_int {
    const STANDARD_ANY: c_int = standard::MPI_ANY_TAG as c_int;
    let any = const {
        assert!(A::MPI_ANY_TAG < 0 && STANDARD_ANY < 0);
        A::MPI_ANY_TAG as c_int
    };
    match tag {
        0.. => tag,
        _ if tag == any => STANDARD_ANY,
        STANDARD_ANY => any,
        _ => tag,
    }
}

/// The program's tag for a tag of the standard. The exchange of values is its own inverse.
#[inline(always)]
pub fn tag_out<A: Abi>(tag: c_int) -> c_int {
    tag_in::<A>(tag)
}

/// The standard's error code or class for one of the program.
pub fn error_in<A: Abi>(code: c_int) -> c_int {
    let pairs = A::ERROR_CLASSES;
    if let Some(class) = find(pairs, |pair| *pair, code.into()) {
        return class as c_int;
    }
    match A::free_error(code) {
        Some(code) => code,
        None if (0..=A::LAST_ERROR_CLASS).contains(&code) => standard::MPI_ERR_UNKNOWN as c_int,
        None if find(pairs, |pair| (pair.1, pair.0), code.into()).is_some() => {
            standard::MPI_ERR_UNKNOWN as c_int
        }
        None => code,
    }
}

/// The program's error code or class for one of the standard.
pub fn error_out<A: Abi>(code: c_int) -> c_int {
    let pairs = A::ERROR_CLASSES;
    if let Some(class) = find(pairs, |pair| (pair.1, pair.0), code.into()) {
        return class as c_int;
    }
    match A::free_error(code) {
        Some(code) => code,
        None if (0..=A::LAST_ERROR_CLASS).contains(&code) => A::MPI_ERR_UNKNOWN as c_int,
        None => code,
    }
}

/// The code that an entry point returns for a code of the library.
#[inline(always)]
pub fn code<A: Abi>(code: c_int) -> c_int {
    #[cold]
    #[inline(never)]
    fn failed<A: Abi>(code: c_int) -> c_int {
        error_out::<A>(code)
    }
    if code == 0 { 0 } else { failed::<A>(code) }
}

/// The standard's assertions of windows, which are sets of bits.
pub fn assertion_in<A: Abi>(set: c_int) -> c_int {
    converted(set, A::ASSERTIONS_OF_WINDOWS, |pair| pair)
}

/// The standard's access modes of files, which are sets of bits.
pub fn file_mode_in<A: Abi>(set: c_int) -> c_int {
    converted(set, A::MODES_OF_FILES, |pair| pair)
}

/// The program's access modes of files, which are sets of bits.
pub fn file_mode_out<A: Abi>(set: c_int) -> c_int {
    converted(set, A::MODES_OF_FILES, |pair| (pair.1, pair.0))
}

fn converted(set: c_int, pairs: &[(i64, i64)], from: impl Fn((i64, i64)) -> (i64, i64)) -> c_int {
    let (mut known, mut converted) = (0, 0);
    for (value, other) in pairs.iter().map(|pair| from(*pair)) {
        known |= value as c_int;
        if set & value as c_int != 0 {
            converted |= other as c_int;
        }
    }
    // A bit that is no constant stays, and the library reports it.
    set & !known | converted
}

/// The standard's buffer argument of a collective call: MPI_IN_PLACE is converted.
#[inline(always)]
pub fn buffer<A: Abi, P: Address>(buffer: P) -> P {
    if buffer.address() == A::MPI_IN_PLACE as usize {
        return P::at(standard::MPI_IN_PLACE as usize);
    }
    buffer
}

/// True if a buffer argument is MPI_IN_PLACE of the program's ABI.
pub fn is_in_place<A: Abi>(buffer: *const c_void) -> bool {
    buffer.address() == A::MPI_IN_PLACE as usize
}

/// A pointer argument that may be a constant instead of an address.
pub trait Address: Copy {
    /// The pointer's address, or the number of the constant.
    fn address(self) -> usize;

    /// The pointer with an address, or the constant with a number.
    fn at(address: usize) -> Self;
}

impl Address for *const c_void {
    fn address(self) -> usize {
        self as usize
    }

    fn at(address: usize) -> Self {
        std::ptr::without_provenance(address)
    }
}

impl Address for *mut c_void {
    fn address(self) -> usize {
        self as usize
    }

    fn at(address: usize) -> Self {
        std::ptr::without_provenance_mut(address)
    }
}

/// The standard's argument for the weights of a graph's edges: two addresses are constants.
pub fn weights<A: Abi>(weights: *const c_int) -> *const c_int {
    let (unweighted, empty) = A::weights();
    if weights == unweighted {
        std::ptr::without_provenance(standard::MPI_UNWEIGHTED as usize)
    } else if weights == empty {
        std::ptr::without_provenance(standard::MPI_WEIGHTS_EMPTY as usize)
    } else {
        weights
    }
}

/// The standard's handle of a performance variable; MPI_T_PVAR_ALL_HANDLES is converted.
pub fn variable_handle<A: Abi>(handle: usize) -> usize {
    if handle == A::MPI_T_PVAR_ALL_HANDLES as usize {
        return standard::MPI_T_PVAR_ALL_HANDLES as usize;
    }
    handle
}

/// The standard's file for a file of the program. A file is a pointer in both ABIs; only the null
/// handles differ.
pub fn file_in<A: Abi>(file: usize) -> usize {
    if file == A::file_null() {
        standard::MPI_FILE_NULL as usize
    } else {
        file
    }
}

/// The file handle in the program's ABI for one of the standard ABI.
pub fn file_out<A: Abi>(file: usize) -> usize {
    if file == standard::MPI_FILE_NULL as usize {
        A::file_null()
    } else {
        file
    }
}

/// The address of a converted value instead of the caller's. NULL stays NULL: the library reports
/// it, or accepts it.
#[inline(always)]
pub fn address<T, U>(caller: *mut T, converted: &mut U) -> *mut U {
    if caller.is_null() {
        std::ptr::null_mut()
    } else {
        converted
    }
}

/// The value at an address, converted; the default value if the address is NULL.
///
/// # Safety
/// The address is NULL or that of a value.
pub unsafe fn at<T: Copy + Default>(word: *const T, convert: impl Fn(T) -> T) -> T {
    if word.is_null() {
        return T::default();
    }
    // SAFETY: promised.
    convert(unsafe { *word })
}

/// Fills an array with converted integers, or leaves it NULL.
///
/// # Safety
/// The address is NULL or that of `length` integers.
pub unsafe fn integers(
    array: &mut Array<c_int>,
    values: *const c_int,
    length: i64,
    convert: impl Fn(c_int) -> c_int,
) {
    if !values.is_null() {
        // SAFETY: promised.
        array.fill(length, |at| convert(unsafe { *values.add(at) }));
    }
}

/// Converts the integers of an array where they lie.
///
/// # Safety
/// The address is NULL or that of `length` integers.
pub unsafe fn integers_out(values: *mut c_int, length: i64, convert: impl Fn(c_int) -> c_int) {
    if values.is_null() {
        return;
    }
    for at in 0..usize::try_from(length).unwrap_or(0) {
        // SAFETY: promised.
        unsafe { *values.add(at) = convert(*values.add(at)) };
    }
}

/// Copies a string, shortened to `limit` bytes including its NUL. Its length is written to
/// `length`.
///
/// # Safety
/// `to` is NULL or the address of `limit` bytes; `length` is NULL or the address of an integer.
pub unsafe fn text(from: &[c_char], to: *mut c_char, limit: usize, length: *mut c_int) {
    if to.is_null() {
        return;
    }
    let bytes = from.iter().take_while(|byte| **byte != 0).take(limit - 1);
    let count = bytes.clone().count();
    for (at, byte) in bytes.enumerate() {
        // SAFETY: promised, since fewer bytes than the limit are copied.
        unsafe { *to.add(at) = *byte };
    }
    // SAFETY: as above.
    unsafe { *to.add(count) = 0 };
    if !length.is_null() {
        // SAFETY: promised.
        unsafe { *length = count as c_int };
    }
}

/// A null pointer instead of an argument that cannot be passed on: the library reports it.
pub fn unsupported<P, Q: Null>(_argument: P) -> Q {
    Q::NULL
}

/// A type that has a null pointer.
pub trait Null {
    /// The null pointer.
    const NULL: Self;
}

impl<T> Null for *const T {
    const NULL: Self = std::ptr::null();
}

impl<T> Null for *mut T {
    const NULL: Self = std::ptr::null_mut();
}
