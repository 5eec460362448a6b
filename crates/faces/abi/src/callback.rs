//! The types of users' functions. NULL arrives as `None`. The predefined copy functions are small
//! integers (`constants`): compare addresses before a call, and never call them.

use crate::handle::{Comm, Datatype, File, Session, ToolsHandle, Win};
use crate::state::{LIBRARY, Rank};
use crate::status::Status;
use std::ffi::{c_int, c_void};

/// A function that copies an attribute of an object of class `H`.
pub type CopyAttr<H> = Option<
    unsafe extern "C" fn(H, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> c_int,
>;
/// A function that deletes an attribute of an object of class `H`.
pub type DeleteAttr<H> = Option<unsafe extern "C" fn(H, c_int, *mut c_void, *mut c_void) -> c_int>;
/// A function that handles an error of an object of class `H`.
pub type ErrhandlerFunction<H> = Option<unsafe extern "C" fn(*mut H, *mut c_int, ...)>;

/// `MPI_Comm_copy_attr_function`
pub type CommCopyAttr = CopyAttr<Comm>;
/// `MPI_Comm_delete_attr_function`
pub type CommDeleteAttr = DeleteAttr<Comm>;
/// `MPI_Type_copy_attr_function`
pub type TypeCopyAttr = CopyAttr<Datatype>;
/// `MPI_Type_delete_attr_function`
pub type TypeDeleteAttr = DeleteAttr<Datatype>;
/// `MPI_Win_copy_attr_function`
pub type WinCopyAttr = CopyAttr<Win>;
/// `MPI_Win_delete_attr_function`
pub type WinDeleteAttr = DeleteAttr<Win>;

/// `MPI_Comm_errhandler_function`
pub type CommErrhandler = ErrhandlerFunction<Comm>;
/// `MPI_Win_errhandler_function`
pub type WinErrhandler = ErrhandlerFunction<Win>;
/// `MPI_File_errhandler_function`
pub type FileErrhandler = ErrhandlerFunction<File>;
/// `MPI_Session_errhandler_function`
pub type SessionErrhandler = ErrhandlerFunction<Session>;

/// `MPI_Grequest_query_function`
pub type GrequestQuery = Option<unsafe extern "C" fn(*mut c_void, *mut Status) -> c_int>;
/// `MPI_Grequest_free_function`
pub type GrequestFree = Option<unsafe extern "C" fn(*mut c_void) -> c_int>;
/// `MPI_Grequest_cancel_function`
pub type GrequestCancel = Option<unsafe extern "C" fn(*mut c_void, c_int) -> c_int>;

/// `MPI_User_function`
pub type User = Option<unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int, *mut Datatype)>;
/// `MPI_User_function_c`
pub type UserLarge =
    Option<unsafe extern "C" fn(*mut c_void, *mut c_void, *mut i64, *mut Datatype)>;

type Conversion<N> =
    Option<unsafe extern "C" fn(*mut c_void, Datatype, N, *mut c_void, i64, *mut c_void) -> c_int>;
/// `MPI_Datarep_conversion_function`
pub type DatarepConversion = Conversion<c_int>;
/// `MPI_Datarep_conversion_function_c`
pub type DatarepConversionLarge = Conversion<i64>;
/// `MPI_Datarep_extent_function`
pub type DatarepExtent = Option<unsafe extern "C" fn(Datatype, *mut isize, *mut c_void) -> c_int>;

/// `MPI_T_event_cb_function`
pub type ToolsEvent = Option<unsafe extern "C" fn(ToolsHandle, ToolsHandle, c_int, *mut c_void)>;
/// `MPI_T_event_free_cb_function`
pub type ToolsEventFree = Option<unsafe extern "C" fn(ToolsHandle, c_int, *mut c_void)>;
/// `MPI_T_event_dropped_cb_function`
pub type ToolsEventDropped =
    Option<unsafe extern "C" fn(i64, ToolsHandle, c_int, c_int, *mut c_void)>;

/// The function of MPI_Op_create or MPI_Op_create_c.
#[derive(Clone, Copy)]
pub enum UserFunction {
    /// The form with counts of type int.
    Small(User),
    /// The form with counts of type MPI_Count.
    Large(UserLarge),
}

/// A conversion function of MPI_Register_datarep or MPI_Register_datarep_c.
#[derive(Clone, Copy)]
pub enum DatarepConversionFunction {
    /// The form with counts of type int.
    Small(DatarepConversion),
    /// The form with counts of type MPI_Count.
    Large(DatarepConversionLarge),
}

/// Runs a function of the program that MPI calls back. If computing takes virtual time, this is
/// computing.
pub fn run<R>(function: impl FnOnce() -> R) -> R {
    match LIBRARY.rank().and_then(|rank| rank.watch.as_ref()) {
        Some(watch) => watch.called_back(function),
        None => function(),
    }
}

/// Runs the reduction operation with this number of a rank's program on `elements` elements. If
/// computing takes virtual time, this is work inside MPI.
pub fn run_operation(rank: &Rank, number: u32, elements: usize, function: impl FnOnce()) {
    match (&rank.watch, rank.mpi.meter()) {
        (Some(watch), Some(meter)) => watch.operation(meter, number, elements, function),
        _ => function(),
    }
}

/// The reduction operation of a program whose function a replay does not have. It leaves the vector
/// unchanged: the data that a replay moves have no meaning.
pub(crate) unsafe extern "C" fn reduce_nothing(
    _: *mut c_void,
    _: *mut c_void,
    _: *mut c_int,
    _: *mut Datatype,
) {
}

/// The operation of [`reduce_nothing`] with counts of type MPI_Count.
pub(crate) unsafe extern "C" fn reduce_nothing_large(
    _: *mut c_void,
    _: *mut c_void,
    _: *mut i64,
    _: *mut Datatype,
) {
}
