//! The storage of this host: files by the operating system's calls.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Result};
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use crate::backing::{Access, Backing, Lock, OpenMode, Storage, Token, uninterrupted, write_all};

/// The storage of this host.
#[derive(Clone, Copy, Default, Debug)]
pub struct RealStorage;

struct RealFile(File);

impl Storage for RealStorage {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Box<dyn Backing>> {
        let mut options = OpenOptions::new();
        options
            .read(mode.access != Access::Write)
            .write(mode.access != Access::Read)
            .mode(mode.permissions);
        // The standard library does not create a file that is opened to be read only; MPI does.
        let mut flags = libc::O_CLOEXEC;
        if mode.create {
            flags |= libc::O_CREAT;
        }
        if mode.exclusive {
            flags |= libc::O_EXCL;
        }
        options.custom_flags(flags);
        let file = uninterrupted(|| options.open(path))?;
        if file.metadata()?.is_dir() {
            return Err(Error::from_raw_os_error(libc::EISDIR));
        }
        Ok(Box::new(RealFile(file)))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        std::fs::remove_file(path)
    }

    fn unnamed(&self) -> Result<(Box<dyn Backing>, Token)> {
        // SAFETY: the name is a string; the result is checked.
        let fd = unsafe { libc::memfd_create(c"fishplate-pointer".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(Error::last_os_error());
        }
        // SAFETY: a new descriptor, which nobody else has.
        let file = unsafe { File::from_raw_fd(fd) };
        Ok((Box::new(RealFile(file)), Token::of(fd.unsigned_abs())))
    }
}

impl Backing for RealFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        self.0.read_at(into, offset)
    }

    fn write_at(&self, offset: u64, from: &[u8]) -> Result<usize> {
        self.0.write_at(from, offset)
    }

    fn size(&self) -> Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn set_size(&self, size: u64) -> Result<()> {
        self.0.set_len(size)
    }

    fn allocate(&self, size: u64) -> Result<()> {
        if size == 0 {
            return Ok(());
        }
        let length = libc::off_t::try_from(size).map_err(|_| ErrorKind::FileTooLarge)?;
        // SAFETY: numbers and a descriptor that is open.
        let failed = unsafe { libc::fallocate(self.0.as_raw_fd(), 0, 0, length) } != 0;
        if !failed {
            return Ok(());
        }
        let error = Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EOPNOTSUPP | libc::ENOSYS) => self.extend_by_zeros(size),
            _ => Err(error),
        }
    }

    fn sync(&self) -> Result<()> {
        match self.0.sync_all() {
            // Pipes and some devices have nothing to transfer.
            Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(()),
            result => result,
        }
    }

    fn finish(&self) -> Result<()> {
        let again = self.0.try_clone()?.into_raw_fd();
        // SAFETY: a descriptor of this function's own, which is not used afterwards.
        match unsafe { libc::close(again) } {
            0 => Ok(()),
            _ => Err(Error::last_os_error()),
        }
    }

    fn lock(&self, range: Range<u64>, lock: Lock) -> Result<()> {
        self.set_lock(
            &range,
            match lock {
                Lock::Shared => libc::F_RDLCK,
                Lock::Exclusive => libc::F_WRLCK,
            },
        )
    }

    fn unlock(&self, range: Range<u64>) -> Result<()> {
        self.set_lock(&range, libc::F_UNLCK)
    }
}

impl RealFile {
    /// Writes zeros behind the end of the file up to `size`, for a file system that cannot reserve
    /// space.
    fn extend_by_zeros(&self, size: u64) -> Result<()> {
        let zeros = [0; 65536];
        let mut at = self.size()?;
        while at < size {
            let count = (size - at).min(zeros.len() as u64);
            write_all(self, at, &zeros[..count as usize])?;
            at += count;
        }
        Ok(())
    }

    fn set_lock(&self, range: &Range<u64>, kind: libc::c_int) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let limit = libc::off_t::MAX as u64;
        let start = range.start.min(limit);
        // A length of 0 is a range without end.
        let length = if range.end > limit {
            0
        } else {
            range.end - start
        };
        let lock = libc::flock {
            l_type: kind as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: start as libc::off_t,
            l_len: length as libc::off_t,
            l_pid: 0,
        };
        uninterrupted(|| {
            // SAFETY: the descriptor is open, and the lock outlives the call.
            match unsafe { libc::fcntl(self.0.as_raw_fd(), libc::F_OFD_SETLKW, &raw const lock) } {
                -1 => Err(Error::last_os_error()),
                _ => Ok(()),
            }
        })
    }
}
