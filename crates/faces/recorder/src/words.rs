//! The arguments of calls as words of the standard ABI.

use crate::family::{Family, Form};

include!(concat!(env!("OUT_DIR"), "/parameters.rs"));

/// A parameter of a procedure.
pub(crate) struct Parameter {
    /// The form of the argument, or of what it points to.
    pub(crate) form: Form,
    /// True if the argument is an address.
    is_address: bool,
}

/// Turns the arguments of a call into those that the standard ABI has. Memory behind addresses
/// stays as it is.
pub(crate) fn standard(family: &Family, procedure: usize, words: &[u64], to: &mut [u64]) {
    let all = PARAMETERS[procedure].iter().zip(words);
    for (to, (parameter, &raw)) in to.iter_mut().zip(all) {
        *to = match parameter.is_address {
            true => family.address(raw),
            false => family.standard(parameter.form, raw) as u64,
        };
    }
}

/// Reads an element of an array, or the value behind a pointer.
///
/// # Safety
/// The parameter points to memory that has this element.
pub(crate) unsafe fn element(
    family: &Family,
    procedure: usize,
    parameter: usize,
    start: *const u8,
    index: usize,
) -> i64 {
    let form = PARAMETERS[procedure][parameter].form;
    // SAFETY: the caller's promise.
    let raw = unsafe {
        match family.is_short(form) {
            true => start.cast::<u32>().add(index).read_unaligned().into(),
            false => start.cast::<u64>().add(index).read_unaligned(),
        }
    };
    family.standard(form, raw)
}
