//! The bytes of a datatype in the order of a message. They are found by packing with the library,
//! because the standard ABI has no function that lists them.

use super::errors::Problem;
use crate::abi::Abi;
use crate::handle::{Comm, from_integer};
use crate::standard;
use std::ffi::c_int;

/// Bytes without gaps, at an offset in bytes from the start of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) offset: usize,
    pub(crate) bytes: usize,
}

/// The bytes of one element of a datatype, in the order of a message.
pub(crate) struct Layout {
    pub(crate) runs: Vec<Run>,
    pub(crate) size: usize,
    pub(crate) extent: usize,
}

impl Layout {
    /// The layout of a datatype.
    ///
    /// # Safety
    /// The datatype is the library's.
    pub(crate) unsafe fn of<A: Abi>(datatype: A::Handle) -> Result<Layout, Problem> {
        let [mut size, mut lb, mut extent, mut true_lb, mut true_extent] = [0i64; 5];
        let ok = |code: c_int| match code {
            0 => Ok(()),
            code => Err(Problem::OfLibrary(code)),
        };
        // SAFETY: promised; the addresses are those of counts.
        unsafe {
            ok(standard::type_size_c::<A, true>(datatype, &mut size))?;
            ok(standard::type_get_extent_c::<A, true>(
                datatype,
                &mut lb,
                &mut extent,
            ))?;
            let (lower, length) = (&mut true_lb, &mut true_extent);
            ok(standard::type_get_true_extent_c::<A, true>(
                datatype, lower, length,
            ))?;
        }
        if true_lb < 0 || extent < 0 {
            return Err(Problem::Before);
        }
        let (size, extent) = (size as usize, extent as usize);
        let whole = Run {
            offset: 0,
            bytes: size,
        };
        let runs = match A::is_predefined(datatype) && size == extent {
            true => vec![whole],
            // SAFETY: promised.
            false => unsafe { packed::<A>(datatype, size, (true_lb + true_extent) as usize) }?,
        };
        Ok(Layout { runs, size, extent })
    }

    /// True if the bytes of elements are contiguous and in ascending order.
    pub(crate) fn is_dense(&self) -> bool {
        self.size == self.extent
            && self.runs
                == [Run {
                    offset: 0,
                    bytes: self.size,
                }]
    }
}

/// Packs memory in which each byte is a digit of its own offset: the packed bytes thus are the
/// offsets of the bytes of a message.
///
/// # Safety
/// The datatype is the library's, has this size, and ends at `end`.
unsafe fn packed<A: Abi>(
    datatype: A::Handle,
    size: usize,
    end: usize,
) -> Result<Vec<Run>, Problem> {
    let digits = (usize::BITS - end.leading_zeros()).div_ceil(8);
    let (mut memory, mut places, mut bytes) = (vec![0u8; end], vec![0usize; size], vec![0u8; size]);
    for digit in 0..digits {
        for (place, byte) in memory.iter_mut().enumerate() {
            *byte = (place >> (8 * digit)) as u8;
        }
        let mut position = 0i64;
        let (from, to) = (memory.as_ptr().cast(), bytes.as_mut_ptr().cast());
        // SAFETY: the memory has the bytes of an element; the library stops at the given size.
        let code = unsafe {
            let length = size as i64;
            let own = from_integer::<A, Comm>(A::MPI_COMM_SELF);
            standard::pack_c::<A, true>(from, 1, datatype, to, length, &mut position, own)
        };
        match code {
            0 if position as usize == size => {}
            0 => return Err(Problem::Opaque),
            code => return Err(Problem::OfLibrary(code)),
        }
        for (place, byte) in places.iter_mut().zip(&bytes) {
            *place |= usize::from(*byte) << (8 * digit);
        }
    }
    if places.iter().any(|place| *place >= end) {
        return Err(Problem::Opaque);
    }
    Ok(runs(&places))
}

/// Joins offsets of single bytes to runs.
fn runs(places: &[usize]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for &offset in places {
        match runs.last_mut() {
            Some(last) if last.offset + last.bytes == offset => last.bytes += 1,
            _ => runs.push(Run { offset, bytes: 1 }),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_follow_each_other_are_a_run() {
        let run = |offset, bytes| Run { offset, bytes };
        assert_eq!(runs(&[4, 5, 6, 0, 1, 9]), [run(4, 3), run(0, 2), run(9, 1)]);
        assert_eq!(runs(&[]), []);
    }
}
