//! The reach of a call into a buffer with several blocks: the number of bytes, counted from the
//! start of the buffer, that the call uses.

use super::errors::Problem;
use crate::abi::Abi;
use crate::handle::{Comm, Datatype, from_integer};
use crate::{peers, standard};
use std::ffi::c_int;

/// An integer type in which a call passes counts or displacements.
pub trait Integer: Copy {
    /// The value 1.
    const ONE: Self;

    /// The value as a 64-bit integer.
    fn get(self) -> i64;
}

macro_rules! integers {
    ($($ty:ty)*) => {$(
        impl Integer for $ty {
            const ONE: $ty = 1;
            #[inline(always)]
            fn get(self) -> i64 {
                self as i64
            }
        }
    )*};
}
integers! { c_int i64 isize }

/// The range of bytes that elements of a datatype span.
struct Extent {
    extent: i64,
    /// The end of the last byte of one element, in bytes from its address.
    end: i64,
}

impl Extent {
    /// The span of a datatype's bytes.
    ///
    /// # Safety
    /// The datatype is the library's.
    unsafe fn of<A: Abi>(datatype: A::Handle) -> Result<Extent, Problem> {
        let [mut lb, mut extent, mut true_lb, mut true_extent] = [0i64; 4];
        // SAFETY: promised; the addresses are those of counts.
        let codes = unsafe {
            let code = standard::type_get_extent_c::<A, true>(datatype, &mut lb, &mut extent);
            let true_code = standard::type_get_true_extent_c::<A, true>(
                datatype,
                &mut true_lb,
                &mut true_extent,
            );
            [code, true_code]
        };
        if let Some(code) = codes.into_iter().find(|code| *code != 0) {
            return Err(Problem::OfLibrary(code));
        }
        if true_lb < 0 || extent < 0 {
            return Err(Problem::Before);
        }
        Ok(Extent {
            extent,
            end: true_lb + true_extent,
        })
    }

    /// The end of `count` elements, in bytes from the start of the buffer; the first of them is at
    /// this displacement in bytes.
    fn reach(&self, count: i64, displacement: i64) -> Result<i64, Problem> {
        match count {
            ..=0 => Ok(0),
            _ if displacement < 0 => Err(Problem::Before),
            _ => Ok(displacement + (count - 1) * self.extent + self.end),
        }
    }
}

/// The bytes that a call uses, counted from the start of the buffer: `blocks` consecutive blocks of
/// `count` elements each.
///
/// # Safety
/// The datatype is the library's.
pub unsafe fn blocks<A: Abi, N: Integer>(
    count: N,
    datatype: A::Handle,
    blocks: i64,
) -> Result<i64, Problem> {
    // SAFETY: promised.
    unsafe { Extent::of::<A>(datatype) }?.reach(count.get() * blocks, 0)
}

/// The bytes that a call uses, counted from the start of the buffer: consecutive blocks of
/// different lengths.
///
/// # Safety
/// The address is that of `blocks` counts.
pub unsafe fn sum<A: Abi, N: Integer>(
    counts: *const N,
    datatype: A::Handle,
    blocks: i64,
) -> Result<i64, Problem> {
    // SAFETY: promised.
    let count = |at| unsafe { *counts.add(at) }.get().max(0);
    let sum = (0..blocks.max(0) as usize).map(count).sum();
    // SAFETY: promised.
    unsafe { Extent::of::<A>(datatype) }?.reach(sum, 0)
}

/// The bytes that a call uses, counted from the start of the buffer: blocks at displacements that
/// count extents of the datatype.
///
/// # Safety
/// The addresses are those of `blocks` integers.
pub unsafe fn vector<A: Abi, N: Integer, D: Integer>(
    counts: *const N,
    displacements: *const D,
    datatype: A::Handle,
    blocks: i64,
) -> Result<i64, Problem> {
    // SAFETY: promised.
    unsafe {
        let extent = Extent::of::<A>(datatype)?;
        furthest(blocks, |at| {
            let displacement = (*displacements.add(at)).get() * extent.extent;
            extent.reach((*counts.add(at)).get(), displacement)
        })
    }
}

/// The bytes that a call uses, counted from the start of the buffer: blocks of different datatypes
/// at displacements in bytes.
///
/// # Safety
/// The addresses are those of `blocks` integers and datatypes.
pub unsafe fn mixed<A: Abi, N: Integer, D: Integer>(
    counts: *const N,
    displacements: *const D,
    types: *const c_int,
    blocks: i64,
) -> Result<i64, Problem> {
    // SAFETY: promised.
    unsafe {
        furthest(blocks, |at| {
            let count = (*counts.add(at)).get();
            if count <= 0 {
                return Ok(0);
            }
            let extent = Extent::of::<A>(from_integer::<A, Datatype>(*types.add(at)))?;
            extent.reach(count, (*displacements.add(at)).get())
        })
    }
}

fn furthest(blocks: i64, reach: impl Fn(usize) -> Result<i64, Problem>) -> Result<i64, Problem> {
    let mut blocks = 0..blocks.max(0) as usize;
    blocks.try_fold(0, |furthest, at| Ok(furthest.max(reach(at)?)))
}

/// The bytes that a call uses, counted from the start of the buffer, if it is significant at the
/// root only: 0 at other ranks.
///
/// # Safety
/// The address is that of a handle.
pub unsafe fn at_root<A: Abi>(
    comm: *const c_int,
    root: c_int,
    reach: impl FnOnce() -> Result<i64, Problem>,
) -> Result<i64, Problem> {
    // SAFETY: promised.
    match unsafe { peers::is_root::<A>(comm, root) } {
        true => reach(),
        false => Ok(0),
    }
}

/// The bytes that a call uses, counted from the start of the buffer: a block whose count is this
/// rank's element of an array.
///
/// # Safety
/// The addresses are those of a handle and of as many counts as ranks.
pub unsafe fn own<A: Abi, N: Integer>(
    comm: *const c_int,
    counts: *const N,
    datatype: A::Handle,
) -> Result<i64, Problem> {
    let mut rank = 0;
    // SAFETY: promised; the address is that of an integer.
    unsafe {
        let code = standard::comm_rank::<A, true>(from_integer::<A, Comm>(*comm), &mut rank);
        match code {
            0 => blocks::<A, _>(*counts.add(rank as usize), datatype, 1),
            _ => Err(Problem::OfLibrary(code)),
        }
    }
}
