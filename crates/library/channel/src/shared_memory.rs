//! Memory that some ranks of a host map for their own use: shared-memory windows (MPI 5.0 §12.2.3).
//!
//! One rank creates an anonymous file; the others open it through the creator's descriptor in
//! /proc, so nothing is left behind and /dev/shm is never used. A token in the file's first page
//! proves to a rank that it has opened the creator's file, even if the process number means another
//! process here.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

use datatype::Buffer;

use crate::{Fault, Result};

/// Bytes before the usable memory: a page, which begins with the token.
const HEAD: usize = 4096;

/// Shared memory as one of its ranks has mapped it.
#[derive(Debug)]
pub struct SharedMemory {
    mapping: Arc<Mapping>,
    len: usize,
    /// The file at the rank that created it, while other ranks may still open it.
    file: Option<File>,
    token: u64,
}

/// The name by which the other ranks of a host open the shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedName {
    /// The process ID of the process that created the memory.
    pub process: u32,
    /// The descriptor of the file in that process.
    pub descriptor: i32,
    /// The token that the file's first page must contain.
    pub token: u64,
}

impl SharedMemory {
    /// Creates `len` bytes of shared memory, all zero.
    ///
    /// # Errors
    /// There is not enough memory, or no descriptor is free.
    pub fn new(len: usize) -> Result<SharedMemory> {
        let whole = whole(len)?;
        let file = memory_file::of_length("fishplate-window", whole as u64)
            .map_err(|why| failed("cannot make shared memory", why))?;
        let file = File::from(file);
        let mut token = [0u8; 8];
        // SAFETY: the array is as long as the length given.
        let filled = unsafe { libc::getrandom(token.as_mut_ptr().cast(), token.len(), 0) };
        if filled != token.len() as isize {
            return Err(failed("cannot draw a token", io::Error::last_os_error()));
        }
        let mapping = Mapping::new(&file, whole)?;
        let token = u64::from_ne_bytes(token);
        // SAFETY: the first page is mapped, and nobody else knows the file yet.
        unsafe { mapping.base.cast::<u64>().write(token) };
        Ok(SharedMemory {
            mapping: Arc::new(mapping),
            len,
            file: Some(file),
            token,
        })
    }

    /// Maps the `len` bytes of shared memory that another rank of this host has created.
    ///
    /// # Errors
    /// The name means another file in this process's namespace, or the memory cannot be mapped.
    pub fn open(name: SharedName, len: usize) -> Result<SharedMemory> {
        let path = format!("/proc/{}/fd/{}", name.process, name.descriptor);
        let whole = whole(len)?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(path)
            .map_err(|why| failed("cannot open the shared memory of another rank", why))?;
        let facts = file
            .metadata()
            .map_err(|why| failed("cannot look at shared memory", why))?;
        let other = || {
            let why = "the shared memory of another rank is not reachable: do both ranks run in \
                       one process namespace?";
            Fault::Mismatch(why.into())
        };
        if !facts.is_file() || facts.len() != whole as u64 {
            return Err(other().into());
        }
        let mapping = Mapping::new(&file, whole)?;
        // SAFETY: the first page is mapped.
        if unsafe { mapping.base.cast::<u64>().read() } != name.token {
            return Err(other().into());
        }
        Ok(SharedMemory {
            mapping: Arc::new(mapping),
            len,
            file: None,
            token: name.token,
        })
    }

    /// The name by which the other ranks of this host open the memory. `None` at a rank that has
    /// not created it, or has called `close`.
    pub fn name(&self) -> Option<SharedName> {
        Some(SharedName {
            process: std::process::id(),
            descriptor: self.file.as_ref()?.as_raw_fd(),
            token: self.token,
        })
    }

    /// Closes the file: all ranks have opened the memory. It stays mapped.
    pub fn close(&mut self) {
        self.file = None;
    }

    /// The first byte of the usable memory, which is aligned to a page.
    pub(crate) fn base(&self) -> *mut u8 {
        self.mapping.base.wrapping_add(HEAD)
    }

    /// The memory as a buffer, which stays mapped as long as any part of the buffer is in use.
    pub fn buffer(&self) -> Buffer {
        let base = self.base();
        // SAFETY: the mapping has `len` bytes behind its head, and the buffer keeps the mapping.
        // The rules of the program's window order accesses.
        unsafe { Buffer::owned(base, self.len, self.mapping.clone()) }
    }
}

fn whole(len: usize) -> Result<usize> {
    let whole = len
        .checked_add(HEAD)
        .filter(|whole| *whole <= isize::MAX as usize);
    whole
        .ok_or_else(|| Fault::Mismatch(format!("{len} bytes of shared memory are too many")).into())
}

fn failed(what: &'static str, why: io::Error) -> crate::Error {
    Fault::System(what, why).into()
}

#[derive(Debug)]
struct Mapping {
    base: *mut u8,
    len: usize,
}

// SAFETY: plain shared memory; the rules of windows order accesses.
unsafe impl Send for Mapping {}
// SAFETY: as for `Send`.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(file: &File, len: usize) -> Result<Mapping> {
        // SAFETY: a new mapping at an address of the kernel's choice.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        match base == libc::MAP_FAILED {
            true => Err(failed(
                "cannot map shared memory",
                io::Error::last_os_error(),
            )),
            false => Ok(Mapping {
                base: base.cast(),
                len,
            }),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length; buffers in it keep the mapping.
        unsafe { libc::munmap(self.base.cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_mapping_stores_the_other_loads() {
        let mut made = SharedMemory::new(10_000).unwrap();
        let name = made.name().unwrap();
        let opened = SharedMemory::open(name, 10_000).unwrap();
        made.close();
        assert_eq!((made.name(), opened.name()), (None, None));
        let (one, other) = (made.buffer(), opened.buffer());
        assert_ne!(one.as_dense(), other.as_dense());
        assert_eq!(one.unpack(9_990, &[7; 10]), 10);
        drop((made, opened, one));
        let mut read = [0; 10];
        assert_eq!(other.slice(9_990, 10).pack(0, &mut read), 10);
        assert_eq!(read, [7; 10]);
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_refused() {
        let made = SharedMemory::new(64).unwrap();
        let name = made.name().unwrap();
        let token = name.token ^ 1;
        assert!(SharedMemory::open(SharedName { token, ..name }, 64).is_err());
        assert!(SharedMemory::open(name, 65).is_err());
        let descriptor = 1 << 20;
        assert!(SharedMemory::open(SharedName { descriptor, ..name }, 64).is_err());
        let (read, write) = std::io::pipe().unwrap();
        let descriptor = read.as_raw_fd();
        assert!(SharedMemory::open(SharedName { descriptor, ..name }, 64).is_err());
        drop(write);
    }
}
