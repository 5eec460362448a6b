//! Names that MPI 3.0 removed and that no single procedure of the standard ABI replaces.

use crate::common::classes::DATATYPE;
use crate::common::handle::Handles;
use crate::common::{convert, standard};
use crate::program::Handle;
use std::ffi::c_int;

macro_rules! extents {
    ($($name:ident $profiled:ident $of:expr;)*) => {$(
        /// A bound or the extent of a datatype.
        ///
        /// # Safety
        /// The pointer is NULL or that of an MPI_Aint.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(datatype: Handle, bound: *mut isize) -> c_int {
            // SAFETY: promised.
            unsafe { extent(datatype, bound, $of) }
        }

        /// A bound or the extent of a datatype.
        ///
        /// # Safety
        /// The pointer is NULL or that of an MPI_Aint.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $profiled(datatype: Handle, bound: *mut isize) -> c_int {
            // SAFETY: promised.
            unsafe { extent(datatype, bound, $of) }
        }
    )*};
}

extents! {
    MPI_Type_extent PMPI_Type_extent |_, extent| extent;
    MPI_Type_lb PMPI_Type_lb |lower, _| lower;
    MPI_Type_ub PMPI_Type_ub |lower, extent| lower.wrapping_add(extent);
}

unsafe fn extent(datatype: Handle, bound: *mut isize, of: fn(isize, isize) -> isize) -> c_int {
    let (mut lower, mut extent) = (0, 0);
    // SAFETY: the arguments are integers; NULL is for the library to report.
    unsafe {
        let address = convert::address(bound, &mut extent);
        let code = standard::type_get_extent(DATATYPE.standard(datatype), &mut lower, address);
        if code == 0 && !bound.is_null() {
            *bound = of(lower, extent);
        }
        convert::code(code)
    }
}
