//! Procedures of MPI 1 whose work no procedure of the ABI does alone.

use crate::common::standard;
use crate::program::handles;
use std::ffi::c_int;

/// # Safety
/// The address is that of an extent.
pub(crate) unsafe fn type_extent<const P: bool>(
    datatype: handles::Datatype,
    extent: *mut isize,
) -> c_int {
    let mut lb = 0;
    // SAFETY: promised.
    unsafe { standard::type_get_extent::<P>(datatype, &mut lb, extent) }
}

/// # Safety
/// The address is that of a displacement.
pub(crate) unsafe fn type_lb<const P: bool>(
    datatype: handles::Datatype,
    displacement: *mut isize,
) -> c_int {
    let mut extent = 0;
    // SAFETY: promised.
    unsafe { standard::type_get_extent::<P>(datatype, displacement, &mut extent) }
}

/// # Safety
/// The address is that of a displacement.
pub(crate) unsafe fn type_ub<const P: bool>(
    datatype: handles::Datatype,
    displacement: *mut isize,
) -> c_int {
    let (mut lb, mut extent) = (0, 0);
    // SAFETY: the addresses are those of extents.
    let code = unsafe { standard::type_get_extent::<P>(datatype, &mut lb, &mut extent) };
    if code == 0 {
        // SAFETY: promised.
        unsafe { *displacement = lb + extent };
    }
    code
}
