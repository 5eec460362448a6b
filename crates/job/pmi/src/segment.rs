//! The file of a job's segment: the memory that the ranks of one host share.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

/// Makes the file of the memory that the ranks of one host share. It is anonymous memory, so
/// nothing is left behind however the ranks end. It is empty, and the ranks extend it as needed. It
/// cannot shrink, so no rank can take memory away from another. The descriptor is close-on-exec.
pub fn empty_segment() -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = memfd_create("fishplate-segment", flags)?;
    fcntl_add_seals(&file, SealFlags::SHRINK)?;
    Ok(file)
}
