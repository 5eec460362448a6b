//! Descriptors of actual arguments, by which compilers pass `TYPE(*), DIMENSION(..)`.
//!
//! Two layouts occur, and an entry point accepts both. The C descriptor (Fortran 2018 §18.5) is
//! used by all compilers for procedures with BIND(C), and by flang for all procedures. gfortran has
//! a layout of its own for its other procedures. Bytes 16 to 24 distinguish them: in gfortran's
//! layout they contain the length of an element; in the C descriptor a version and, in the upper
//! half, rank, type and attribute, which are not all 0.

use super::section::{Dimension, MOST_DIMENSIONS, Section};
use std::ffi::c_void;

/// The address of a compiler's descriptor.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Descriptor(*const Head);

/// The head of a descriptor. The dimensions follow; the rank is their number.
#[repr(C)]
#[derive(Clone, Copy)]
struct Head {
    address: *mut c_void,
    /// In a C descriptor: the length of an element in bytes.
    length: usize,
    /// In a C descriptor: version, rank, type and attribute. In gfortran's: the length of an
    /// element in bytes.
    kind: u64,
}

/// A dimension of a C descriptor. The last extent of an array of assumed size is -1.
#[repr(C)]
#[derive(Clone, Copy)]
struct CDimension {
    lower: isize,
    extent: isize,
    stride: isize,
}

/// The fields of gfortran's descriptor between the head and the dimensions.
#[repr(C)]
#[derive(Clone, Copy)]
struct GnuTail {
    version: i32,
    rank: i8,
    ty: i8,
    attribute: i16,
    /// The unit of the dimensions' strides, in bytes.
    span: isize,
}

/// A dimension of gfortran's descriptor. In an array of assumed size, the last upper bound is -1
/// and the lower one 1.
#[repr(C)]
#[derive(Clone, Copy)]
struct GnuDimension {
    stride: isize,
    lower: isize,
    upper: isize,
}

/// The number of bytes before the dimensions: of a C descriptor, and of gfortran's.
const C_HEAD: usize = 24;
const GNU_HEAD: usize = 40;

/// The offset of four bytes that are 0 only in gfortran's descriptor.
const MARK: usize = 20;

impl Descriptor {
    /// True if a few instructions show that the elements are contiguous: those of a scalar, and of
    /// most arrays of rank 1.
    ///
    /// # Safety
    /// The descriptor comes from a compiler.
    #[inline(always)]
    pub unsafe fn is_simple(self) -> bool {
        // SAFETY: promised; each layout is read only after a check of its mark.
        unsafe {
            let head = self.0;
            // Only the upper half is read, which saves an instruction.
            if *self.behind::<u32>(MARK) != 0 {
                let rank = (*head).c_rank();
                let stride = || (*self.behind::<CDimension>(C_HEAD)).stride as usize;
                return rank == 1 && stride() == (*head).length || rank == 0;
            }
            let tail = self.behind::<GnuTail>(C_HEAD);
            let is_close = || {
                let dimension = self.behind::<GnuDimension>(GNU_HEAD);
                (*dimension).stride == 1 && (*tail).span as u64 == (*head).kind
            };
            (*tail).rank == 1 && is_close() || (*tail).rank == 0
        }
    }

    /// The address of the argument if its elements are contiguous, in array element order.
    ///
    /// # Safety
    /// The descriptor comes from a compiler.
    #[inline(always)]
    pub unsafe fn contiguous(self) -> Option<*mut c_void> {
        // SAFETY: promised.
        let head = unsafe { *self.0 };
        let (mut expected, mut is_contiguous, mut is_empty) = (head.element(), true, false);
        // SAFETY: promised.
        for at in 0..unsafe { self.rank(head) } {
            // SAFETY: promised.
            let Dimension { extent, stride } = unsafe { self.dimension(head, at) };
            // gfortran 12 sets the strides of a whole array that the function PACK has allocated to
            // 0.
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
    /// The descriptor comes from a compiler.
    #[inline(always)]
    pub unsafe fn address(self) -> *mut c_void {
        // SAFETY: promised.
        unsafe { (*self.0).address }
    }

    /// The argument, which is not of assumed size, as a section of memory.
    ///
    /// # Safety
    /// The descriptor comes from a compiler.
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

    /// The number of dimensions, at most [`MOST_DIMENSIONS`].
    ///
    /// # Safety
    /// The head is that of the descriptor, which comes from a compiler.
    #[inline(always)]
    unsafe fn rank(self, head: Head) -> usize {
        let rank = if head.is_gnu() {
            // SAFETY: gfortran's descriptor has this layout.
            unsafe { self.behind::<GnuTail>(C_HEAD).read().rank as usize }
        } else {
            head.c_rank() as usize
        };
        rank.min(MOST_DIMENSIONS)
    }

    /// Dimension number `at`, with its stride in bytes.
    ///
    /// # Safety
    /// The head is that of the descriptor, which comes from a compiler and has this dimension.
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

    #[inline(always)]
    fn behind<T>(self, bytes: usize) -> *const T {
        self.0.wrapping_byte_add(bytes).cast()
    }
}

impl Head {
    #[inline(always)]
    fn is_gnu(self) -> bool {
        self.kind >> 32 == 0
    }

    /// The rank in a C descriptor.
    #[inline(always)]
    fn c_rank(self) -> u8 {
        (self.kind >> 32) as u8
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

/// The extent that represents the last one of an array of assumed size, which is contiguous.
const UNKNOWN: usize = usize::MAX;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RANK_1: u64 = 1 << 32;

    /// True if an array with this dimension and elements of 4 bytes, in a C descriptor of rank 1,
    /// is contiguous.
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

    #[repr(C)]
    struct Gnu(Head, GnuTail, [GnuDimension; 2]);

    /// Makes a descriptor in gfortran's layout.
    fn of_gnu(element: u64, rank: i8, span: isize, strides: [isize; 2], upper: isize) -> Gnu {
        let address = std::ptr::dangling_mut();
        let tail = GnuTail {
            version: 0,
            rank,
            ty: 1,
            attribute: 0,
            span,
        };
        let dimensions = strides.map(|stride| GnuDimension {
            stride,
            lower: 1,
            upper,
        });
        let length = usize::MAX - 3;
        let head = Head {
            address,
            length,
            kind: element,
        };
        Gnu(head, tail, dimensions)
    }

    #[repr(C)]
    struct OfC(Head, [CDimension; 2]);

    /// Makes a C descriptor.
    fn of_c(element: usize, rank: u8, strides: [isize; 2], extent: isize) -> OfC {
        let head = Head {
            address: std::ptr::dangling_mut(),
            length: element,
            kind: 0x0207_0000_0000_0000 | u64::from(rank) << 32,
        };
        let dimensions = strides.map(|stride| CDimension {
            lower: 0,
            extent,
            stride,
        });
        OfC(head, dimensions)
    }

    proptest! {
        #[test]
        fn what_is_simple_has_no_gaps(
            (element, rank, span) in (1..=3usize, 0..=2u8, 1..=3isize),
            strides in [-2..=3isize, -2..=3isize],
            extent in 1..=3isize,
        ) {
            let gnu = of_gnu(element as u64, rank as i8, span, strides, extent);
            let c = of_c(element, rank, strides, extent);
            for (descriptor, has_no_gap) in [
                (Descriptor((&raw const gnu).cast()), strides[0] * span == element as isize),
                (Descriptor((&raw const c).cast()), strides[0] == element as isize),
            ] {
                // SAFETY: the descriptor is one of two dimensions.
                let (is_simple, whole) = unsafe { (descriptor.is_simple(), descriptor.contiguous()) };
                prop_assert!(!is_simple || whole.is_some());
                prop_assert!(!is_simple || rank < 2);
                prop_assert!(is_simple || rank > 0);
                // Other strides are covered by the other test.
                prop_assert!(rank != 1 || !is_simple || has_no_gap);
            }
        }
    }

    #[test]
    fn scalars_and_whole_arrays_are_simple() {
        let gnu = |rank, stride| of_gnu(8, rank, 8, [stride, 7], 5);
        let c = |rank, stride| of_c(8, rank, [stride, 7], 5);
        let is_simple = |place: *const c_void| {
            // SAFETY: the descriptor is one of two dimensions.
            unsafe { Descriptor(place.cast()).is_simple() }
        };
        for (rank, stride, expected) in [(0, 3, true), (1, 1, true), (1, 2, false), (2, 1, false)] {
            let (gnu, c) = (gnu(rank as i8, stride), c(rank, stride * 8));
            assert_eq!(
                is_simple((&raw const gnu).cast()),
                expected,
                "{rank} {stride}"
            );
            assert_eq!(
                is_simple((&raw const c).cast()),
                expected,
                "{rank} {stride}"
            );
        }
    }

    #[test]
    fn strides_that_are_not_the_elements_length_are_gaps() {
        for (extent, stride, expected) in [
            (5, 4, true),
            (5, 8, false),
            (5, -4, false),
            (1, 8, true),
            (0, 8, true),
            // An array of assumed size.
            (-1, 4, true),
            // An array that PACK has allocated.
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
