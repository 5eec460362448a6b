//! The memory file by which the ranks of one host inherit the secret of their job: a launcher makes
//! it, and each rank reads it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::{Errno, pread};
use secret::Secret;

/// Makes the file by which the ranks of one host inherit the secret of their job: anonymous memory,
/// sealed so that nobody can change it. The descriptor is close-on-exec.
pub fn secret_file(secret: &Secret) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = memfd_create("fishplate-secret", flags)?;
    let file = File::from(file);
    memory_file::write(&file, secret.as_bytes())?;
    let all = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    fcntl_add_seals(&file, all)?;
    Ok(file.into())
}

/// Reads the job's secret from its file. `None` if the length of the file is not that of a secret.
/// Ranks share the file's offset, which does not change.
pub(crate) fn read_secret(file: impl AsFd) -> Result<Option<Secret>, Errno> {
    let mut bytes = [0; Secret::LENGTH + 1];
    let length = pread(file, &mut bytes, 0)?;
    let whole = bytes.first_chunk().filter(|_| length == Secret::LENGTH);
    Ok(whole.copied().map(Secret::from_bytes))
}
