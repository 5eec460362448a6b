//! Procedures of MPI 1 that no single procedure of the ABI replaces.

use crate::abi::Abi;
use crate::standard;
use std::ffi::c_int;

/// Writes the extent of a datatype.
///
/// # Safety
/// The address is that of an extent.
pub unsafe fn type_extent<A: Abi, const P: bool>(datatype: A::Handle, extent: *mut isize) -> c_int {
    let mut lb = 0;
    // SAFETY: promised.
    unsafe { standard::type_get_extent::<A, P>(datatype, &mut lb, extent) }
}

/// Writes the lower bound of a datatype.
///
/// # Safety
/// The address is that of a displacement.
pub unsafe fn type_lb<A: Abi, const P: bool>(
    datatype: A::Handle,
    displacement: *mut isize,
) -> c_int {
    let mut extent = 0;
    // SAFETY: promised.
    unsafe { standard::type_get_extent::<A, P>(datatype, displacement, &mut extent) }
}

/// Writes the upper bound of a datatype.
///
/// # Safety
/// The address is that of a displacement.
pub unsafe fn type_ub<A: Abi, const P: bool>(
    datatype: A::Handle,
    displacement: *mut isize,
) -> c_int {
    let (mut lb, mut extent) = (0, 0);
    // SAFETY: the addresses are those of extents.
    let code = unsafe { standard::type_get_extent::<A, P>(datatype, &mut lb, &mut extent) };
    if code == 0 {
        // SAFETY: promised.
        unsafe { *displacement = lb + extent };
    }
    code
}
