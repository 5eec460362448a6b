//! The types of users' functions. NULL arrives as `None`; the predefined copy functions are the small
//! integers of `constants` and must be recognised by address before a call, never called.

use crate::handle::{Comm, Datatype, File, Session, ToolsHandle, Win};
use crate::status::Status;
use std::ffi::{c_int, c_void};

pub type CopyAttr<H> = Option<
    unsafe extern "C" fn(H, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> c_int,
>;
pub type DeleteAttr<H> = Option<unsafe extern "C" fn(H, c_int, *mut c_void, *mut c_void) -> c_int>;
type ErrhandlerFunction<H> = Option<unsafe extern "C" fn(*mut H, *mut c_int, ...)>;

pub type CommCopyAttr = CopyAttr<Comm>;
pub type CommDeleteAttr = DeleteAttr<Comm>;
pub type TypeCopyAttr = CopyAttr<Datatype>;
pub type TypeDeleteAttr = DeleteAttr<Datatype>;
pub type WinCopyAttr = CopyAttr<Win>;
pub type WinDeleteAttr = DeleteAttr<Win>;

pub type CommErrhandler = ErrhandlerFunction<Comm>;
pub type WinErrhandler = ErrhandlerFunction<Win>;
pub type FileErrhandler = ErrhandlerFunction<File>;
pub type SessionErrhandler = ErrhandlerFunction<Session>;

pub type GrequestQuery = Option<unsafe extern "C" fn(*mut c_void, *mut Status) -> c_int>;
pub type GrequestFree = Option<unsafe extern "C" fn(*mut c_void) -> c_int>;
pub type GrequestCancel = Option<unsafe extern "C" fn(*mut c_void, c_int) -> c_int>;

pub type User = Option<unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int, *mut Datatype)>;
pub type UserLarge =
    Option<unsafe extern "C" fn(*mut c_void, *mut c_void, *mut i64, *mut Datatype)>;

type Conversion<N> =
    Option<unsafe extern "C" fn(*mut c_void, Datatype, N, *mut c_void, i64, *mut c_void) -> c_int>;
pub type DatarepConversion = Conversion<c_int>;
pub type DatarepConversionLarge = Conversion<i64>;
pub type DatarepExtent = Option<unsafe extern "C" fn(Datatype, *mut isize, *mut c_void) -> c_int>;

pub type ToolsEvent = Option<unsafe extern "C" fn(ToolsHandle, ToolsHandle, c_int, *mut c_void)>;
pub type ToolsEventFree = Option<unsafe extern "C" fn(ToolsHandle, c_int, *mut c_void)>;
pub type ToolsEventDropped =
    Option<unsafe extern "C" fn(i64, ToolsHandle, c_int, c_int, *mut c_void)>;

/// The function of MPI_Op_create or MPI_Op_create_c.
#[derive(Clone, Copy)]
pub enum UserFunction {
    Small(User),
    Large(UserLarge),
}

/// A conversion function of MPI_Register_datarep or MPI_Register_datarep_c.
#[derive(Clone, Copy)]
pub enum DatarepConversionFunction {
    Small(DatarepConversion),
    Large(DatarepConversionLarge),
}
