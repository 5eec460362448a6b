//! Procedures that MPI 3.0 removed and that no single procedure of the standard ABI replaces.

use crate::abi::Abi;
use crate::handle::Handles;
use crate::{convert, standard};
use std::ffi::c_int;

/// Writes a bound or the extent of a datatype, which `of` computes from the lower bound and the
/// extent.
///
/// # Safety
/// The pointer is NULL or that of an MPI_Aint.
pub unsafe fn extent<A: Abi>(
    datatype: A::Handle,
    bound: *mut isize,
    of: fn(isize, isize) -> isize,
) -> c_int {
    let datatype = A::classes().datatype.standard(datatype);
    let (mut lower, mut extent) = (0, 0);
    // SAFETY: the arguments are integers; the library reports NULL.
    unsafe {
        let address = convert::address(bound, &mut extent);
        let code = standard::type_get_extent(datatype, &mut lower, address);
        if code == 0 && !bound.is_null() {
            *bound = of(lower, extent);
        }
        convert::code::<A>(code)
    }
}
