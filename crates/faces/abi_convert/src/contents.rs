//! The conversion of the constants for orders and distributions that MPI_Type_get_contents returns.

use crate::abi::Abi;
use crate::constants::standard::*;
use crate::convert::{default_argument_out, distribution_out, order_out};
use crate::standard;
use std::ffi::c_int;

/// Converts the integers that MPI_Type_get_contents has written.
///
/// # Safety
/// The integers are those of the datatype, or the pointer is NULL.
pub unsafe fn convert<A: Abi, N: Number>(datatype: usize, length: i64, integers: *mut N) {
    if integers.is_null() {
        return;
    }
    let (mut counts, mut combiner) = ([0; 3], 0);
    let [integers_made, addresses, types] = &mut counts;
    // SAFETY: the arguments are integers.
    if unsafe {
        standard::type_get_envelope(datatype, integers_made, addresses, types, &mut combiner)
    } != 0
    {
        return;
    }
    let count = i64::from(*integers_made).min(length).max(0) as usize;
    let each = |places: std::ops::Range<usize>, convert: fn(c_int) -> c_int| {
        for at in places.start..places.end.min(count) {
            // SAFETY: the integer is one of the datatype's contents.
            unsafe { (*integers.add(at)).set(convert((*integers.add(at)).get())) };
        }
    };
    match i64::from(combiner) {
        // The integers are ndims, sizes, subsizes, starts, and the order.
        MPI_COMBINER_SUBARRAY if count > 0 => each(count - 1..count, order_out::<A>),
        // The integers are size, rank, ndims, and four arrays, of which the second and third are
        // the distributions and their arguments; and the order.
        MPI_COMBINER_DARRAY if count > 3 => {
            // SAFETY: the third integer is one of the datatype's contents.
            let ndims = unsafe { (*integers.add(2)).get() }.max(0) as usize;
            each(3 + ndims..3 + 2 * ndims, distribution_out::<A>);
            each(3 + 2 * ndims..3 + 3 * ndims, default_argument_out::<A>);
            each(count - 1..count, order_out::<A>);
        }
        _ => (),
    }
}

/// An integer of the small or the large form of a procedure.
pub trait Number {
    /// The number as an int.
    fn get(&self) -> c_int;

    /// Sets the number to an int.
    fn set(&mut self, value: c_int);
}

impl Number for c_int {
    fn get(&self) -> c_int {
        *self
    }

    fn set(&mut self, value: c_int) {
        *self = value;
    }
}
