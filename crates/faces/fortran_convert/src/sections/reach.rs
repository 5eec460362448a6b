//! The number of bytes, counted from its beginning, that a call uses of a buffer with several
//! blocks.

use super::errors::Problem;
use crate::abi::Abi;
use crate::handle::{Comm, Datatype, from_integer};
use crate::{peers, standard};
use std::ffi::c_int;

/// A count or a displacement.
pub trait Integer: Copy {
    /// One.
    const ONE: Self;

    /// The value.
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

/// The place of a datatype's bytes.
struct Extent {
    extent: i64,
    /// Behind the last byte of one element.
    end: i64,
}

impl Extent {
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

    /// Behind the last byte of so many elements, the first of them at this displacement.
    fn reach(&self, count: i64, displacement: i64) -> Result<i64, Problem> {
        match count {
            ..=0 => Ok(0),
            _ if displacement < 0 => Err(Problem::Before),
            _ => Ok(displacement + (count - 1) * self.extent + self.end),
        }
    }
}

/// So many blocks of as many elements.
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

/// Blocks of different lengths, one behind the other.
///
/// # Safety
/// The address is that of so many counts.
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

/// Blocks at displacements that count elements.
///
/// # Safety
/// The addresses are those of so many integers.
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

/// Blocks of different datatypes at displacements in bytes.
///
/// # Safety
/// The addresses are those of so many integers and datatypes.
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

/// The reach where it is significant at the root alone.
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

/// One of the counts: that of this rank.
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
