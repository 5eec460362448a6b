//! A storage that counts its requests, for machines whose time is virtual.

use std::io::Result;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::backing::{Backing, Lock, OpenMode, Storage, Token};

/// Requests to a storage, and the bytes that they have moved.
#[derive(Default)]
pub struct Requests {
    count: AtomicU64,
    bytes: AtomicU64,
}

impl Requests {
    /// The numbers of requests and bytes since the last call.
    pub fn take(&self) -> (u64, u64) {
        let [count, bytes] = [&self.count, &self.bytes].map(|all| all.swap(0, Ordering::Relaxed));
        (count, bytes)
    }

    fn add(&self, bytes: usize) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// A storage that counts: files are opened and removed, read, written, resized, synchronised and
/// locked by one request each. Files without a name lie in memory, and are not counted.
pub struct CountedStorage {
    storage: Arc<dyn Storage>,
    requests: Arc<Requests>,
}

impl CountedStorage {
    /// Counts the requests to a storage.
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
        // Processes find the memory of a shared pointer in this folder.
        if path.starts_with("/proc") {
            return Ok(file);
        }
        self.requests.add(0);
        let requests = self.requests.clone();
        Ok(Box::new(CountedFile { file, requests }))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.requests.add(0);
        self.storage.remove(path)
    }

    fn unnamed(&self) -> Result<(Box<dyn Backing>, Token)> {
        self.storage.unnamed()
    }
}

impl Backing for CountedFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        let read = self.file.read_at(offset, into)?;
        self.requests.add(read);
        Ok(read)
    }

    fn write_at(&self, offset: u64, from: &[u8]) -> Result<usize> {
        let written = self.file.write_at(offset, from)?;
        self.requests.add(written);
        Ok(written)
    }

    fn size(&self) -> Result<u64> {
        self.requests.add(0);
        self.file.size()
    }

    fn set_size(&self, size: u64) -> Result<()> {
        self.requests.add(0);
        self.file.set_size(size)
    }

    fn allocate(&self, size: u64) -> Result<()> {
        self.requests.add(0);
        self.file.allocate(size)
    }

    fn sync(&self) -> Result<()> {
        self.requests.add(0);
        self.file.sync()
    }

    fn finish(&self) -> Result<()> {
        self.requests.add(0);
        self.file.finish()
    }

    fn lock(&self, range: Range<u64>, lock: Lock) -> Result<()> {
        self.requests.add(0);
        self.file.lock(range, lock)
    }

    fn unlock(&self, range: Range<u64>) -> Result<()> {
        self.requests.add(0);
        self.file.unlock(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Access, RealStorage, read_full, write_all};

    #[test]
    fn requests_and_bytes_are_counted_until_they_are_taken() {
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
        assert_eq!(requests.take(), (1, 0));
        write_all(&*file, 0, &[1; 100]).unwrap();
        // The end of the file takes a request of its own.
        assert_eq!(read_full(&*file, 60, &mut [0; 100]).unwrap(), 40);
        assert_eq!(requests.take(), (3, 140));
        file.sync().unwrap();
        storage.remove(&path).unwrap();
        assert_eq!(requests.take(), (2, 0));
        assert_eq!(requests.take(), (0, 0));
    }
}
