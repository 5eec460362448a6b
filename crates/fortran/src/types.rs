//! The types of the standard ABI under the names that the table of procedures uses.

use std::ffi::{c_int, c_void};

/// The address of a function, of the program or of this library.
pub(crate) type Function = *const c_void;

macro_rules! aliases {
    ($ty:ty: $($name:ident)*) => { $(pub(crate) type $name = $ty;)* };
}

/// Handles are pointers in C.
pub(crate) mod standard {
    aliases! { usize:
        Comm Datatype Errhandler File Group Info Message Op Request Session Win
    }
    pub(crate) use super::Status;
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

/// A status: eight integers in C and in Fortran, in the same order.
pub(crate) type Status = [c_int; 8];
