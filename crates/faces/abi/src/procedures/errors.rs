//! Section 9.4: error codes, classes and their texts.

use crate::args::{Out, OutText};
use crate::call_guard::Call;
use crate::constants::*;
use crate::error::{Done, Error};
use crate::state::LIBRARY;
use std::ffi::{CStr, c_int};

/// `MPI_Error_class` (MPI 5.0, chapter 9).
pub fn error_class(_: &Call, code: c_int, class: Out<c_int>) -> Done {
    let added = LIBRARY.codes().class_of(code);
    class.set(match added {
        Some(class) => class,
        None => text_of(code).map(|_| code)?,
    });
    Ok(())
}

/// `MPI_Error_string` (MPI 5.0, chapter 9).
pub fn error_string(_: &Call, code: c_int, string: OutText, length: Out<c_int>) -> Done {
    if let Some(text) = LIBRARY.codes().text_of(code) {
        length.set(string.set(text.as_bytes()) as c_int);
        return Ok(());
    }
    let name = error_class_name(code).unwrap_or("");
    let of_last = match code {
        MPI_ERR_UNSUPPORTED_OPERATION => LIBRARY.refused().text_of_last(),
        _ => None,
    };
    let text = match of_last {
        Some(text) => format!("{name}: {text}"),
        None => format!("{name}: {}", text_of(code)?),
    };
    length.set(string.set(text.as_bytes()) as c_int);
    Ok(())
}

/// `MPI_Add_error_class` (MPI 5.0, chapter 9).
pub fn add_error_class(_: &Call, class: Out<c_int>) -> Done {
    class.set(LIBRARY.codes().add_class()?);
    Ok(())
}

/// `MPI_Add_error_code` (MPI 5.0, chapter 9).
pub fn add_error_code(_: &Call, class: c_int, code: Out<c_int>) -> Done {
    code.set(LIBRARY.codes().add_code(class)?);
    Ok(())
}

/// `MPI_Add_error_string` (MPI 5.0, chapter 9).
pub fn add_error_string(_: &Call, code: c_int, string: &CStr) -> Done {
    LIBRARY.codes().add_string(code, &string.to_string_lossy())
}

/// `MPI_Remove_error_class` (MPI 5.0, chapter 9).
pub fn remove_error_class(_: &Call, class: c_int) -> Done {
    LIBRARY.codes().remove_class(class)
}

/// `MPI_Remove_error_code` (MPI 5.0, chapter 9).
pub fn remove_error_code(_: &Call, code: c_int) -> Done {
    LIBRARY.codes().remove_code(code)
}

/// `MPI_Remove_error_string` (MPI 5.0, chapter 9).
pub fn remove_error_string(_: &Call, code: c_int) -> Done {
    LIBRARY.codes().remove_string(code)
}

fn text_of(code: c_int) -> Result<&'static str, Error> {
    predefined_text(code).ok_or_else(|| {
        Error::new(
            MPI_ERR_ARG,
            format!("{code} is no error code of MPI or of this program"),
        )
    })
}

/// The text of a predefined error class; `None` for other numbers.
// Over 80 lines: one line for each error class.
fn predefined_text(class: c_int) -> Option<&'static str> {
    Some(match class {
        MPI_SUCCESS => "no error",
        MPI_ERR_BUFFER => "the address of a message buffer is not valid",
        MPI_ERR_COUNT => "a count is not valid",
        MPI_ERR_TYPE => "a datatype is not valid here, or not committed",
        MPI_ERR_TAG => "a tag is not valid",
        MPI_ERR_COMM => "a communicator is not valid",
        MPI_ERR_RANK => "a rank is not one of the communicator's or group's",
        MPI_ERR_REQUEST => "a request is not valid",
        MPI_ERR_ROOT => "the root is not valid",
        MPI_ERR_GROUP => "a group is not valid",
        MPI_ERR_OP => "an operation is not valid for this datatype, or at all",
        MPI_ERR_TOPOLOGY => "the communicator has not the topology that the call needs",
        MPI_ERR_DIMS => "the dimensions are not valid",
        MPI_ERR_ARG => "an argument is not valid",
        MPI_ERR_UNKNOWN => "an error of no known class",
        MPI_ERR_TRUNCATE => "a message is longer than the buffer that received it",
        MPI_ERR_OTHER => "an error that the message describes",
        MPI_ERR_INTERN => "a fault of the library itself",
        MPI_ERR_PENDING => "the operation has neither failed nor completed",
        MPI_ERR_IN_STATUS => "the statuses say which operations failed",
        MPI_ERR_ACCESS => "access to the file is denied",
        MPI_ERR_AMODE => "the access mode is not valid",
        MPI_ERR_ASSERT => "the assertion is not valid",
        MPI_ERR_BAD_FILE => "the file name is not valid",
        MPI_ERR_BASE => "the base address of a window is not valid",
        MPI_ERR_CONVERSION => "a conversion function of a data representation failed",
        MPI_ERR_DISP => "a displacement is not valid",
        MPI_ERR_DUP_DATAREP => "a data representation of this name exists already",
        MPI_ERR_FILE_EXISTS => "the file exists already",
        MPI_ERR_FILE_IN_USE => "the file is open in some process",
        MPI_ERR_FILE => "a file handle is not valid",
        MPI_ERR_INFO_KEY => "an info key is too long, or empty",
        MPI_ERR_INFO_NOKEY => "the info object has no such key",
        MPI_ERR_INFO_VALUE => "an info value is too long, or not one that the key may have",
        MPI_ERR_INFO => "an info object is not valid",
        MPI_ERR_IO => "reading or writing failed",
        MPI_ERR_KEYVAL => "an attribute key is not valid",
        MPI_ERR_LOCKTYPE => "the lock type is not valid",
        MPI_ERR_NAME => "no service of this name is published",
        MPI_ERR_NO_MEM => "there is no memory left",
        MPI_ERR_NOT_SAME => "an argument differs between processes that must agree on it",
        MPI_ERR_NO_SPACE => "there is no space left on the device",
        MPI_ERR_NO_SUCH_FILE => "the file does not exist",
        MPI_ERR_PORT => "a port name is not valid",
        MPI_ERR_QUOTA => "the quota is used up",
        MPI_ERR_READ_ONLY => "the file or file system can only be read",
        MPI_ERR_RMA_ATTACH => "memory cannot be attached to the window",
        MPI_ERR_RMA_CONFLICT => "accesses to a window conflict",
        MPI_ERR_RMA_RANGE => "the target memory is not part of the window",
        MPI_ERR_RMA_SHARED => "memory cannot be shared by these processes",
        MPI_ERR_RMA_SYNC => "the synchronisation of a window is used wrongly",
        MPI_ERR_SERVICE => "the service is not known",
        MPI_ERR_SIZE => "a size is not valid",
        MPI_ERR_SPAWN => "processes could not be started",
        MPI_ERR_UNSUPPORTED_DATAREP => "the data representation is not supported",
        MPI_ERR_UNSUPPORTED_OPERATION => "the operation is not supported",
        MPI_ERR_WIN => "a window is not valid",
        MPI_ERR_RMA_FLAVOR => "the window is of the wrong flavour",
        MPI_ERR_PROC_ABORTED => "a process that the call needs has aborted",
        MPI_ERR_VALUE_TOO_LARGE => "a value does not fit the caller's integer",
        MPI_ERR_SESSION => "a session is not valid",
        MPI_ERR_ERRHANDLER => "an error handler is not valid",
        MPI_ERR_ABI => "the ABI does not allow this, or it was decided before",
        MPI_T_ERR_CANNOT_INIT => "the tools interface cannot be initialised",
        MPI_T_ERR_NOT_ACCESSIBLE => "the tools interface cannot be used here",
        MPI_T_ERR_NOT_INITIALIZED => "the tools interface is not initialised",
        MPI_T_ERR_NOT_SUPPORTED => "the tools interface does not support this",
        MPI_T_ERR_MEMORY => "the tools interface has no memory left",
        MPI_T_ERR_INVALID => "the tools interface was used wrongly",
        MPI_T_ERR_INVALID_INDEX => "an index is not valid",
        MPI_T_ERR_INVALID_ITEM => "an item of an enumeration is not valid",
        MPI_T_ERR_INVALID_SESSION => "a session of performance variables is not valid",
        MPI_T_ERR_INVALID_HANDLE => "a handle of the tools interface is not valid",
        MPI_T_ERR_INVALID_NAME => "no variable, category or event has this name",
        MPI_T_ERR_OUT_OF_HANDLES => "there are no handles left",
        MPI_T_ERR_OUT_OF_SESSIONS => "there are no sessions left",
        MPI_T_ERR_CVAR_SET_NOT_NOW => "the control variable cannot be set now",
        MPI_T_ERR_CVAR_SET_NEVER => "the control variable cannot be set",
        MPI_T_ERR_PVAR_NO_WRITE => "the performance variable cannot be written",
        MPI_T_ERR_PVAR_NO_STARTSTOP => "the performance variable cannot be started or stopped",
        MPI_T_ERR_PVAR_NO_ATOMIC => "the performance variable cannot be read and reset at once",
        MPI_ERR_LASTCODE => "the last error code of MPI itself",
        _ => return None,
    })
}
