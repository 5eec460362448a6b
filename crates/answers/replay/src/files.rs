//! The files of a replay. A file is its size and its first bytes; nothing else of it exists, and
//! nothing is on a disk.
//!
//! No choice of the library depends on the contents of a file of the program. The first bytes are
//! there for the shared file pointer, a number that the library keeps in a file of its own.
//!
//! Ranks of a replay take turns, and keep no lock beyond a call of the storage, so a lock is always
//! free.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{Error, ErrorKind, Result};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use file_io::{Backing, Lock, OpenMode, Storage, Token};

/// The number of bytes at the beginning of a file that the replay keeps: those of a shared file
/// pointer.
const KEPT: usize = 8;
/// The most bytes that one call of the system moves.
const MOST: usize = 0x7fff_f000;

/// All files of the replayed program, which its ranks share.
#[derive(Default)]
pub(crate) struct Files {
    named: Mutex<HashMap<PathBuf, Arc<File>>>,
    unnamed: Mutex<HashMap<PathBuf, Weak<File>>>,
    /// The number of files without a name that have been made so far.
    count: AtomicU32,
}

/// A file of the replayed program, shared by the ranks that have it open.
#[derive(Default)]
struct File(Mutex<Contents>);

#[derive(Clone, Copy, Default)]
struct Contents {
    size: u64,
    first: [u8; KEPT],
}

/// A file that a rank has open.
struct Opened(Arc<File>);

impl Files {
    /// Sets the size of a file as the recorded run found it, unless a rank has it open: then the
    /// calls of the trace determine it. `name` has no prefix for the kind of a file system.
    pub(crate) fn found(&self, name: &[u8], size: u64) {
        let path = key(Path::new(OsStr::from_bytes(name)));
        let mut named = locked(&self.named);
        let file = named.entry(path).or_default();
        if Arc::strong_count(file) == 1 {
            file.contents().size = size;
        }
    }
}

impl Storage for Files {
    fn open(&self, path: &Path, _: OpenMode) -> Result<Box<dyn Backing>> {
        let path = key(path);
        let unnamed = locked(&self.unnamed).get(&path).and_then(Weak::upgrade);
        let file = match unnamed {
            Some(file) => file,
            None => Arc::clone(locked(&self.named).entry(path).or_default()),
        };
        Ok(Box::new(Opened(file)))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        locked(&self.named).remove(&key(path));
        Ok(())
    }

    fn unnamed(&self) -> Result<(Box<dyn Backing>, Token)> {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let token = Token::from_word(u64::from(std::process::id()) << 32 | u64::from(number));
        let file = Arc::new(File::default());
        let mut unnamed = locked(&self.unnamed);
        unnamed.retain(|_, file| file.strong_count() > 0);
        unnamed.insert(key(&token.path()), Arc::downgrade(&file));
        Ok((Box::new(Opened(file)), token))
    }
}

impl File {
    fn contents(&self) -> MutexGuard<'_, Contents> {
        locked(&self.0)
    }
}

impl Backing for Opened {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        let contents = *self.0.contents();
        let left = contents.size.saturating_sub(offset);
        let count = into.len().min(MOST).min(left.min(MOST as u64) as usize);
        if let Some(first) = contents.first.get(offset.min(KEPT as u64) as usize..) {
            let kept = first.len().min(count);
            into[..kept].copy_from_slice(&first[..kept]);
        }
        Ok(count)
    }

    fn write_at(&self, offset: u64, from: &[u8]) -> Result<usize> {
        let count = from.len().min(MOST);
        let end = offset.checked_add(count as u64);
        let end = end.ok_or_else(|| Error::from(ErrorKind::FileTooLarge))?;
        let mut contents = self.0.contents();
        contents.size = contents.size.max(end);
        if let Some(first) = contents.first.get_mut(offset.min(KEPT as u64) as usize..) {
            let kept = first.len().min(count);
            first[..kept].copy_from_slice(&from[..kept]);
        }
        Ok(count)
    }

    fn size(&self) -> Result<u64> {
        Ok(self.0.contents().size)
    }

    fn set_size(&self, size: u64) -> Result<()> {
        self.0.contents().size = size;
        Ok(())
    }

    fn allocate(&self, size: u64) -> Result<()> {
        let mut contents = self.0.contents();
        contents.size = contents.size.max(size);
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn finish(&self) -> Result<()> {
        Ok(())
    }

    fn lock(&self, _: Range<u64>, _: Lock) -> Result<()> {
        Ok(())
    }

    fn unlock(&self, _: Range<u64>) -> Result<()> {
        Ok(())
    }
}

/// The path that identifies a file, however a rank names it.
fn key(path: &Path) -> PathBuf {
    let parts = path.components();
    parts.filter(|part| *part != Component::CurDir).collect()
}

fn locked<T>(all: &Mutex<T>) -> MutexGuard<'_, T> {
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use file_io::{Access, Counter, read_full, write_all};

    const MODE: OpenMode = OpenMode {
        access: Access::ReadWrite,
        create: true,
        exclusive: false,
        permissions: 0o600,
    };

    #[test]
    fn files_have_sizes_and_shared_pointers_have_values() {
        let files = Files::default();
        files.found(b"./a/file", 50);
        let file = files.open(Path::new("a/file"), MODE).unwrap();
        assert_eq!(file.size().unwrap(), 50);
        files.found(b"a/file", 70);
        assert_eq!(file.size().unwrap(), 50);
        write_all(&*file, 1 << 45, &[1; 100]).unwrap();
        assert_eq!(file.size().unwrap(), (1 << 45) + 100);
        file.set_size(20).unwrap();
        assert_eq!(read_full(&*file, 15, &mut [0; 100]).unwrap(), 5);
        drop(file);
        files.remove(Path::new("a/file")).unwrap();
        let again = files.open(Path::new("a/file"), MODE).unwrap();
        assert_eq!(again.size().unwrap(), 0);

        let (ours, token) = Counter::on_this_host(&files).unwrap();
        let theirs = Counter::of_this_host(token);
        assert_eq!(ours.fetch_add(&files, 1 << 40).unwrap(), 0);
        assert_eq!(theirs.fetch_add(&files, 5).unwrap(), 1 << 40);
        assert_eq!(ours.get(&files).unwrap(), (1 << 40) + 5);
    }
}
