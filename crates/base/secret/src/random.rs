//! Random bytes from the kernel.

use std::io;

use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

/// Draws random bytes. Blocks only early in the boot of a machine, before the kernel has any.
pub(crate) fn bytes<const LENGTH: usize>() -> io::Result<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    let mut drawn = 0;
    while drawn < LENGTH {
        match getrandom(&mut bytes[drawn..], GetRandomFlags::empty()) {
            Ok(length) => drawn += length,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(bytes)
}
