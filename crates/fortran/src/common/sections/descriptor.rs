//! Descriptors of actual arguments, by which compilers pass `TYPE(*), DIMENSION(..)`.
//!
//! Two layouts occur, and one entry point takes both. The C descriptor (Fortran 2018 §18.5) is that
//! of every procedure with BIND(C), and flang's own. gfortran's own is that of its other
//! procedures. Bytes 16 to 24 tell them apart: the length of an element in gfortran's, in the C
//! descriptor a version, and above it rank, type and attribute, which are not all 0.

use super::section::{Dimension, MOST_DIMENSIONS, Section};
use std::ffi::c_void;

/// The address of a compiler's descriptor.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Descriptor(*const Head);

/// Head of a descriptor. The dimensions follow, as many as the rank says.
#[repr(C)]
#[derive(Clone, Copy)]
struct Head {
    address: *mut c_void,
    /// The length of an element in a C descriptor.
    length: usize,
    /// Version, rank, type and attribute in a C descriptor; the length of an element in gfortran's.
    kind: u64,
}

/// A dimension of a C descriptor. Assumed size: the last extent is -1.
#[repr(C)]
#[derive(Clone, Copy)]
struct CDimension {
    lower: isize,
    extent: isize,
    stride: isize,
}

/// Behind the head of gfortran's descriptor.
#[repr(C)]
#[derive(Clone, Copy)]
struct GnuTail {
    version: i32,
    rank: i8,
    ty: i8,
    attribute: i16,
    /// The unit of strides in bytes.
    span: isize,
}

/// A dimension of gfortran's descriptor. Assumed size: the last upper bound is -1, the lower one 1.
#[repr(C)]
#[derive(Clone, Copy)]
struct GnuDimension {
    stride: isize,
    lower: isize,
    upper: isize,
}

/// Bytes before the dimensions of a C descriptor, and of gfortran's.
const C_HEAD: usize = 24;
const GNU_HEAD: usize = 40;

impl Descriptor {
    /// The address of the argument if its elements lie one behind the other, in array element
    /// order.
    ///
    /// # Safety
    /// The descriptor is a compiler's.
    #[inline(always)]
    pub(crate) unsafe fn contiguous(self) -> Option<*mut c_void> {
        // SAFETY: promised.
        let head = unsafe { *self.0 };
        let (mut expected, mut is_contiguous, mut is_empty) = (head.element(), true, false);
        // SAFETY: promised.
        for at in 0..unsafe { self.rank(head) } {
            // SAFETY: promised.
            let Dimension { extent, stride } = unsafe { self.dimension(head, at) };
            // gfortran 12 gives strides of 0 to a whole array that the function PACK has allocated.
            is_contiguous &=
                stride == expected as isize || extent == 1 || extent == UNKNOWN || stride == 0;
            is_empty |= extent == 0;
            expected = expected.wrapping_mul(extent);
        }
        (is_contiguous || is_empty).then_some(head.address)
    }

    /// The address of the first element.
    ///
    /// # Safety
    /// The descriptor is a compiler's.
    #[inline(always)]
    pub(crate) unsafe fn address(self) -> *mut c_void {
        // SAFETY: promised.
        unsafe { (*self.0).address }
    }

    /// The argument, which is not of assumed size, as a section of memory.
    ///
    /// # Safety
    /// The descriptor is a compiler's.
    pub(crate) unsafe fn section(self) -> Section {
        // SAFETY: promised.
        let head = unsafe { *self.0 };
        let mut section = Section::scalar(head.address.cast(), head.element());
        // SAFETY: promised.
        for at in 0..unsafe { self.rank(head) } {
            // SAFETY: promised.
            section.push(unsafe { self.dimension(head, at) });
        }
        section
    }

    /// # Safety
    /// The head is that of the descriptor, which is a compiler's.
    #[inline(always)]
    unsafe fn rank(self, head: Head) -> usize {
        let rank = if head.is_gnu() {
            // SAFETY: gfortran's descriptor goes on so.
            unsafe { self.behind::<GnuTail>(C_HEAD).read().rank as usize }
        } else {
            (head.kind >> 32) as u8 as usize
        };
        rank.min(MOST_DIMENSIONS)
    }

    /// # Safety
    /// The head is that of the descriptor, which is a compiler's and has such a dimension.
    #[inline(always)]
    unsafe fn dimension(self, head: Head, at: usize) -> Dimension {
        // SAFETY: promised; dimensions follow the head.
        unsafe {
            if head.is_gnu() {
                let span = self.behind::<GnuTail>(C_HEAD).read().span;
                let dimension = self.behind::<GnuDimension>(GNU_HEAD).add(at).read();
                return dimension.in_bytes(span);
            }
            let dimension = self.behind::<CDimension>(C_HEAD).add(at).read();
            Dimension {
                extent: dimension.extent.max(-1) as usize,
                stride: dimension.stride,
            }
        }
    }

    fn behind<T>(self, bytes: usize) -> *const T {
        self.0.wrapping_byte_add(bytes).cast()
    }
}

impl Head {
    #[inline(always)]
    fn is_gnu(self) -> bool {
        self.kind >> 32 == 0
    }

    /// The length of an element in bytes.
    #[inline(always)]
    fn element(self) -> usize {
        if self.is_gnu() {
            self.kind as usize
        } else {
            self.length
        }
    }
}

impl GnuDimension {
    #[inline(always)]
    fn in_bytes(self, span: isize) -> Dimension {
        let GnuDimension {
            stride,
            lower,
            upper,
        } = self;
        let is_unknown = lower == 1 && upper == -1;
        let extent = (upper - lower + 1).max(0) as usize;
        Dimension {
            extent: if is_unknown { UNKNOWN } else { extent },
            stride: stride.wrapping_mul(span),
        }
    }
}

/// The last extent of an array of assumed size, which is contiguous.
const UNKNOWN: usize = usize::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    const RANK_1: u64 = 1 << 32;

    /// Asks a C descriptor of rank 1, with elements of 4 bytes.
    fn is_contiguous(dimension: CDimension) -> bool {
        #[repr(C)]
        struct Whole(Head, CDimension);
        let address = std::ptr::dangling_mut();
        let head = Head {
            address,
            length: 4,
            kind: RANK_1,
        };
        let whole = Whole(head, dimension);
        // SAFETY: the descriptor is one of rank 1.
        let found = unsafe { Descriptor((&raw const whole).cast()).contiguous() };
        assert!(found.is_none_or(|found| found == address));
        found.is_some()
    }

    #[test]
    fn strides_that_are_not_the_elements_length_are_gaps() {
        for (extent, stride, expected) in [
            (5, 4, true),
            (5, 8, false),
            (5, -4, false),
            (1, 8, true),
            (0, 8, true),
            // Of assumed size.
            (-1, 4, true),
            // An array of PACK.
            (5, 0, true),
        ] {
            let dimension = CDimension {
                lower: 0,
                extent,
                stride,
            };
            assert_eq!(is_contiguous(dimension), expected, "{extent} {stride}");
        }
    }
}
