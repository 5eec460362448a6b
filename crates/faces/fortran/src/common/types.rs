//! The types of the C library under the names that the table of procedures uses.

use std::ffi::c_void;

/// The address of a function, of the program or of this library.
pub(crate) type Function = *const c_void;

/// Types of C.
pub(crate) mod standard {
    pub(crate) use super::Status;
    pub(crate) use crate::program::handles::*;
}

macro_rules! aliases {
    ($ty:ty: $($name:ident)*) => { $(pub(crate) type $name = $ty;)* };
}

/// Users' functions, by address alone.
pub(crate) mod callback {
    use super::Function;

    aliases! { Function:
        CommCopyAttr CommDeleteAttr TypeCopyAttr TypeDeleteAttr WinCopyAttr WinDeleteAttr
        CommErrhandler WinErrhandler FileErrhandler SessionErrhandler
        GrequestQuery GrequestFree GrequestCancel User UserLarge
        DatarepConversion DatarepConversionLarge DatarepExtent
    }
}

/// A status, which is the same in C and in Fortran.
pub(crate) use crate::program::Status;
