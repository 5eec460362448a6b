//! The file of a segment, as a launcher makes it.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

/// Makes the file that the ranks of one host share: anonymous memory, so that nothing is left
/// behind however they end. It is empty, and the ranks extend it as they need; it never shrinks, so
/// that no rank can pull memory away from another. The descriptor is close-on-exec.
pub fn empty_segment() -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = memfd_create("fishplate-segment", flags)?;
    fcntl_add_seals(&file, SealFlags::SHRINK)?;
    Ok(file)
}
