//! The system calls that files need, as two small traits, and the loops around them.

use std::io::{Error, ErrorKind, Result};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The interface that opens and removes files.
pub trait Storage: Send + Sync {
    /// Opens a file.
    ///
    /// # Errors
    /// Those of `open(2)`.
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Box<dyn Backing>>;

    /// Removes the file with this path.  # Errors Those of `unlink(2)`.
    ///
    /// # Errors
    /// Those of `unlink(2)`.
    fn remove(&self, path: &Path) -> Result<()>;

    /// Makes a file without a name. Returns it with the token by which processes of this host can
    /// open it while this one has it open.
    ///
    /// # Errors
    /// Those of `memfd_create(2)`.
    fn unnamed(&self) -> Result<(Box<dyn Backing>, Token)>;
}

/// The name of an open descriptor of a process on this host, for other processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token {
    process: u32,
    descriptor: u32,
}

impl Token {
    /// The token of an open descriptor of this process.
    pub(crate) fn of(descriptor: u32) -> Token {
        Token {
            process: std::process::id(),
            descriptor,
        }
    }

    /// A token that names no descriptor, and that no other process has made.
    pub fn unused() -> Token {
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed();
        Token::of(now.map_or(0, |now| now.subsec_nanos()) | 1 << 31)
    }

    /// The token as a number, to be sent to other processes.
    pub fn to_word(self) -> u64 {
        u64::from(self.process) << 32 | u64::from(self.descriptor)
    }

    /// The token of a number that [`to_word`](Token::to_word) has returned.
    pub fn from_word(word: u64) -> Token {
        Token {
            process: (word >> 32) as u32,
            descriptor: word as u32,
        }
    }

    /// The path of the descriptor in the folder `/proc`.
    pub fn path(self) -> PathBuf {
        format!("/proc/{}/fd/{}", self.process, self.descriptor).into()
    }
}

/// The access for which a file is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// The file is opened to be read.
    Read,
    /// The file is opened to be written.
    Write,
    /// The file is opened to be read and written.
    ReadWrite,
}

/// The mode in which a file is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenMode {
    /// The accesses that the file is opened for.
    pub access: Access,
    /// True if the file is made where it does not exist.
    pub create: bool,
    /// True if it is an error that the file exists.
    pub exclusive: bool,
    /// Permissions of a file that is made, before the process's umask is applied.
    pub permissions: u32,
}

/// The kind of a lock on a range of bytes. A lock belongs to the open file description, not to the
/// process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lock {
    /// Others may hold shared locks on the range as well.
    Shared,
    /// Others may hold no lock on the range.
    Exclusive,
}

/// An open file of a storage.
pub trait Backing: Send + Sync {
    /// Reads at most as many bytes as the slice has. 0: the end of the file.
    ///
    /// # Errors
    /// Those of `pread(2)`.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize>;

    /// Writes at most as many bytes as the slice has.
    ///
    /// # Errors
    /// Those of `pwrite(2)`.
    fn write_at(&self, offset: u64, from: &[u8]) -> Result<usize>;

    /// The size of the file in bytes.
    ///
    /// # Errors
    /// Those of `fstat(2)`.
    fn size(&self) -> Result<u64>;

    /// Sets the size of the file in bytes: cuts the file, or extends it.
    ///
    /// # Errors
    /// Those of `ftruncate(2)`.
    fn set_size(&self, size: u64) -> Result<()>;

    /// Reserves space on the device for the first `size` bytes. A shorter file grows to that size.
    ///
    /// # Errors
    /// Those of `fallocate(2)`.
    fn allocate(&self, size: u64) -> Result<()>;

    /// Transfers all written data to the device.
    ///
    /// # Errors
    /// Those of `fsync(2)`, among them errors of earlier writes.
    fn sync(&self) -> Result<()>;

    /// Ends the writes of this descriptor as its close does, and reports their errors. The file
    /// stays open.
    ///
    /// # Errors
    /// Those of `close(2)`, among them errors of earlier writes.
    fn finish(&self) -> Result<()>;

    /// Locks a range of bytes, after a wait for the ends of others' conflicting locks.
    ///
    /// # Errors
    /// Those of `fcntl(2)` with `F_OFD_SETLKW`.
    fn lock(&self, range: Range<u64>, lock: Lock) -> Result<()>;

    /// Releases the locks of this open file on a range of bytes.
    ///
    /// # Errors
    /// Those of `fcntl(2)` with `F_OFD_SETLKW`.
    fn unlock(&self, range: Range<u64>) -> Result<()>;
}

/// Repeats a system call while signals interrupt it.
pub(crate) fn uninterrupted<T>(mut call: impl FnMut() -> Result<T>) -> Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Writes all bytes of a slice from `offset` on, in as many calls as that takes.
///
/// # Errors
/// Those of the writes; a device that accepts no bytes is reported as full.
pub fn write_all(file: &dyn Backing, mut offset: u64, mut from: &[u8]) -> Result<()> {
    while !from.is_empty() {
        let count = uninterrupted(|| file.write_at(offset, from))?;
        if count == 0 {
            return Err(Error::from_raw_os_error(libc::ENOSPC));
        }
        from = &from[count..];
        offset += count as u64;
    }
    Ok(())
}

/// Reads from `offset` on until the slice is full or the file ends. Returns the number of bytes
/// read.
///
/// # Errors
/// Those of the reads.
pub fn read_full(file: &dyn Backing, offset: u64, into: &mut [u8]) -> Result<usize> {
    let mut done = 0;
    while done < into.len() {
        match uninterrupted(|| file.read_at(offset + done as u64, &mut into[done..]))? {
            0 => break,
            count => done += count,
        }
    }
    Ok(done)
}

/// The text of a system error, without its number and with its first letter in lower case.
pub fn described(error: &Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    let mut words = text[..end].to_string();
    if let Some(first) = words.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    words
}

impl Storage for Arc<dyn Storage> {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Box<dyn Backing>> {
        (**self).open(path, mode)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        (**self).remove(path)
    }

    fn unnamed(&self) -> Result<(Box<dyn Backing>, Token)> {
        (**self).unnamed()
    }
}
