//! The file to which the processes of a host append their parts of a trace. A block is in the file
//! whole or not at all, whenever a process is killed and even if the disk is full.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::Path;

/// The file of this host.
pub(crate) struct PartFile(File);

impl PartFile {
    /// Opens the file of this host. Its folder is made if it does not exist.
    pub(crate) fn open(path: &Path) -> io::Result<PartFile> {
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        Ok(PartFile(file))
    }

    /// Appends a block. After an error the file is as long as before.
    pub(crate) fn append(&self, block: &[u8]) -> io::Result<()> {
        let _lock = Lock::of(&self.0)?;
        let before = self.0.metadata()?.len();
        // A write beyond the limit would end the program by a signal.
        if before + block.len() as u64 > longest_file() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let written = (&self.0).write_all(block);
        if written.is_err() {
            self.0.set_len(before)?;
        }
        written
    }
}

/// The limit of the process on the length of files.
fn longest_file() -> u64 {
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the structure is a local variable.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) };
    limit.rlim_cur
}

/// A lock of a file among the processes of a host.
struct Lock<'a>(&'a File);

impl Lock<'_> {
    fn of(file: &File) -> io::Result<Lock<'_>> {
        // SAFETY: the descriptor is that of an open file.
        match unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) } {
            0 => Ok(Lock(file)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        // SAFETY: the descriptor is that of an open file.
        unsafe { libc::flock(self.0.as_raw_fd(), libc::LOCK_UN) };
    }
}
