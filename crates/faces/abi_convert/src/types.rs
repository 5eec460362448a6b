//! The types of the standard ABI, under the names that the tables of procedures use.

use std::ffi::{c_int, c_void};

/// The address of a user's function, or of the function that replaces it.
pub type Function = *const c_void;

macro_rules! handles {
    ($ty:ty: $($name:ident)*) => { $(#[allow(missing_docs)] pub type $name = $ty;)* };
}

/// The types of users' functions, all as addresses.
pub mod callback {
    use super::Function;

    handles! { Function:
        CommCopyAttr CommDeleteAttr TypeCopyAttr TypeDeleteAttr WinCopyAttr WinDeleteAttr
        CommErrhandler WinErrhandler FileErrhandler SessionErrhandler
        GrequestQuery GrequestFree GrequestCancel User UserLarge
        DatarepConversion DatarepConversionLarge DatarepExtent
        ToolsEvent ToolsEventFree ToolsEventDropped
    }
}

/// The types of the standard ABI. Every handle is a pointer.
pub mod standard {
    handles! { usize:
        Comm Datatype Errhandler File Group Info Message Op Request Session Win ToolsHandle
    }
    pub use super::StandardStatus as Status;
}

/// `MPI_Status` of the standard ABI.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // the names are those of the standard
pub struct StandardStatus {
    pub source: c_int,
    pub tag: c_int,
    pub error: c_int,
    pub internal: [c_int; 5],
}
