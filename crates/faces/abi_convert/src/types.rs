//! The types of both ABIs under the names that the tables of procedures use.

pub(crate) use crate::program::Status as ProgramStatus;
use std::ffi::{c_int, c_void};

/// The address of a user's function, and of the function that stands for it.
pub(crate) type Function = *const c_void;

macro_rules! handles {
    ($ty:ty: $($name:ident)*) => { $(pub(crate) type $name = $ty;)* };
}

/// Users' functions, by address alone.
pub(crate) mod callback {
    use super::Function;

    handles! { Function:
        CommCopyAttr CommDeleteAttr TypeCopyAttr TypeDeleteAttr WinCopyAttr WinDeleteAttr
        CommErrhandler WinErrhandler FileErrhandler SessionErrhandler
        GrequestQuery GrequestFree GrequestCancel User UserLarge
        DatarepConversion DatarepConversionLarge DatarepExtent
        ToolsEvent ToolsEventFree ToolsEventDropped
    }
}

/// The program's ABI. A file is a pointer in all of them.
pub(crate) mod program {
    use crate::program::Handle;

    handles! { Handle: Comm Datatype Errhandler Group Info Message Op Request Session Win }
    handles! { usize: File ToolsHandle }
    pub(crate) use super::ProgramStatus as Status;
}

/// The standard ABI. Every handle is a pointer.
pub(crate) mod standard {
    handles! { usize:
        Comm Datatype Errhandler File Group Info Message Op Request Session Win ToolsHandle
    }
    pub(crate) use super::StandardStatus as Status;
}

/// `MPI_Status` of the standard ABI.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StandardStatus {
    pub(crate) source: c_int,
    pub(crate) tag: c_int,
    pub(crate) error: c_int,
    pub(crate) internal: [c_int; 5],
}
