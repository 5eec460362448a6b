//! Errors of system calls as errors of MPI (MPI 5.0 §14.8).

use std::io::{self, ErrorKind};
use std::path::Path;

use crate::{Class, Error};

/// The error of a system call on a file. `what`: the failure, such as "cannot be opened".
#[cold]
pub(crate) fn system_error(path: &Path, what: &str, error: &io::Error) -> Error {
    let class = match error.kind() {
        ErrorKind::NotFound => Class::NO_SUCH_FILE,
        ErrorKind::PermissionDenied => Class::ACCESS,
        ErrorKind::ReadOnlyFilesystem => Class::READ_ONLY,
        ErrorKind::AlreadyExists => Class::FILE_EXISTS,
        ErrorKind::StorageFull => Class::NO_SPACE,
        ErrorKind::QuotaExceeded => Class::QUOTA,
        ErrorKind::ResourceBusy | ErrorKind::ExecutableFileBusy => Class::FILE_IN_USE,
        ErrorKind::OutOfMemory => Class::NO_MEM,
        ErrorKind::InvalidFilename | ErrorKind::NotADirectory | ErrorKind::IsADirectory => {
            Class::BAD_FILE
        }
        _ => Class::IO,
    };
    let path = path.display();
    Error::new(
        class,
        format!("{path} {what}: {}", file_io::described(error)),
    )
}
