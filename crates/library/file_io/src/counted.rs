//! A storage that counts its requests, for machines whose time is virtual.

use std::io::Result;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::backing::{Backing, Lock, OpenMode, Storage, Token};

/// Counters of the requests to a storage, and of the bytes that they have moved.
#[derive(Default)]
pub struct Requests {
    count: AtomicU64,
    read: AtomicU64,
    written: AtomicU64,
}

/// The numbers of requests to a storage and of the bytes that they moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// The number of requests to the storage.
    pub requests: u64,
    /// The number of bytes that were read from files.
    pub read: u64,
    /// The number of bytes that were written to files.
    pub written: u64,
}

impl Requests {
    /// The counts since the last call of this function, which sets them to 0.
    pub fn take(&self) -> Moved {
        let take = |all: &AtomicU64| all.swap(0, Ordering::Relaxed);
        Moved {
            requests: take(&self.count),
            read: take(&self.read),
            written: take(&self.written),
        }
    }

    fn add(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }
}

/// A storage that counts its requests: each call of [`Storage`] or [`Backing`] is one. Files
/// without a name are in memory, and their calls are not counted.
pub struct CountedStorage {
    storage: Arc<dyn Storage>,
    requests: Arc<Requests>,
}

impl CountedStorage {
    /// Wraps a storage, and counts the requests to it in `requests`.
    pub fn new(storage: Arc<dyn Storage>, requests: Arc<Requests>) -> CountedStorage {
        CountedStorage { storage, requests }
    }
}

struct CountedFile {
    file: Box<dyn Backing>,
    requests: Arc<Requests>,
}

impl Storage for CountedStorage {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Box<dyn Backing>> {
        let file = self.storage.open(path, mode)?;
        // A path in this folder is that of a token: the memory of a shared file pointer.
        if path.starts_with("/proc") {
            return Ok(file);
        }
        self.requests.add();
        let requests = self.requests.clone();
        Ok(Box::new(CountedFile { file, requests }))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.requests.add();
        self.storage.remove(path)
    }

    fn unnamed(&self) -> Result<(Box<dyn Backing>, Token)> {
        self.storage.unnamed()
    }
}

impl Backing for CountedFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        let read = self.file.read_at(offset, into)?;
        self.requests.add();
        self.requests.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }

    fn write_at(&self, offset: u64, from: &[u8]) -> Result<usize> {
        let written = self.file.write_at(offset, from)?;
        self.requests.add();
        let all = &self.requests.written;
        all.fetch_add(written as u64, Ordering::Relaxed);
        Ok(written)
    }

    fn size(&self) -> Result<u64> {
        self.requests.add();
        self.file.size()
    }

    fn set_size(&self, size: u64) -> Result<()> {
        self.requests.add();
        self.file.set_size(size)
    }

    fn allocate(&self, size: u64) -> Result<()> {
        self.requests.add();
        self.file.allocate(size)
    }

    fn sync(&self) -> Result<()> {
        self.requests.add();
        self.file.sync()
    }

    fn finish(&self) -> Result<()> {
        self.requests.add();
        self.file.finish()
    }

    fn lock(&self, range: Range<u64>, lock: Lock) -> Result<()> {
        self.requests.add();
        self.file.lock(range, lock)
    }

    fn unlock(&self, range: Range<u64>) -> Result<()> {
        self.requests.add();
        self.file.unlock(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Access, RealStorage, read_full, write_all};

    #[test]
    fn requests_and_bytes_are_counted_until_they_are_taken() {
        let moved = |requests, read, written| Moved {
            requests,
            read,
            written,
        };
        let folder = tempfile::tempdir().unwrap();
        let requests = Arc::new(Requests::default());
        let storage = CountedStorage::new(Arc::new(RealStorage), requests.clone());
        let mode = OpenMode {
            access: Access::ReadWrite,
            create: true,
            exclusive: true,
            permissions: 0o600,
        };
        let path = folder.path().join("file");
        let file = storage.open(&path, mode).unwrap();
        assert_eq!(requests.take(), moved(1, 0, 0));
        write_all(&*file, 0, &[1; 100]).unwrap();
        // The end of the file takes a request of its own.
        assert_eq!(read_full(&*file, 60, &mut [0; 100]).unwrap(), 40);
        assert_eq!(requests.take(), moved(3, 40, 100));
        file.sync().unwrap();
        storage.remove(&path).unwrap();
        assert_eq!(requests.take(), moved(2, 0, 0));
        assert_eq!(requests.take(), Moved::default());
    }
}
