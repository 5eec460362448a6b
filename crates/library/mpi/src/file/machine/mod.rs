//! Open files (MPI 5.0 §14): the state that a rank has of each.
//!
//! The crate `file_io` handles bytes and system calls, this module the state that MPI defines for
//! files, and `calls` the operations, in which ranks exchange messages.

mod access_mode;
mod errors;
mod hints;
mod representation;
mod view;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use ::file_io::{Backing, Counter, RealStorage, Requests, Storage, Worker};
use channel::SharedMemory;

pub(crate) use access_mode::AccessMode;
pub(crate) use errors::system_error;
pub(crate) use hints::{FileHints, Switch};
pub use representation::{Conversion, FileMemory, RepresentationFunctions};
pub(crate) use representation::{Representation, file_bytes};
pub(crate) use view::FileView;

use crate::comm::Core;
use crate::errhandler;
use crate::handle::{ObjectKind, Slab};
use crate::request::RequestId;
use crate::{Class, Error, Result};

/// `MPI_FILE_NULL`, with the ABI's value.
pub const NULL: u32 = 0x118;
/// `MPI_DISPLACEMENT_CURRENT`, with the ABI's value.
pub const DISPLACEMENT_CURRENT: i64 = -1;
/// `MPI_SEEK_CUR`, with the ABI's value.
pub const SEEK_CUR: i32 = 401;
/// `MPI_SEEK_END`, with the ABI's value.
pub const SEEK_END: i32 = 402;
/// `MPI_SEEK_SET`, with the ABI's value.
pub const SEEK_SET: i32 = 403;

/// All open files of a rank, by handle.
pub struct Files {
    open: Slab<OpenFile>,
    /// The error handler of `MPI_FILE_NULL`, which new files inherit.
    pub(crate) errhandler: u32,
    /// The storage that takes the place of the real one, if there is one.
    storage: Option<Arc<dyn Storage>>,
    /// The data representations that the program has registered.
    pub(crate) registered: Vec<(String, Arc<dyn RepresentationFunctions>)>,
    /// The worker thread, which makes nonblocking accesses. The first of them starts it.
    pub(crate) worker: Option<Arc<Worker>>,
    /// The counted requests that are not yet reported to the modelled machine's storage.
    pub(crate) requests: Option<Arc<Requests>>,
    /// The points in virtual time for which accesses wait, in nanoseconds.
    pub(crate) moments: Vec<u64>,
    /// True if collective accesses may use a stage on a modelled machine too.
    pub(crate) are_staged_in_model: bool,
}

impl Default for Files {
    fn default() -> Files {
        Files {
            open: Slab::new(ObjectKind::File),
            errhandler: errhandler::RETURN,
            storage: None,
            registered: Vec::new(),
            worker: None,
            requests: None,
            moments: Vec::new(),
            are_staged_in_model: false,
        }
    }
}

/// A file that is open.
pub(crate) struct OpenFile {
    /// The part of the file's data that does not change while it is open.
    pub(crate) shared: Arc<SharedFile>,
    pub(crate) view: Arc<FileView>,
    /// The rank's individual file pointer, in etypes.
    pub(crate) position: i64,
    pub(crate) is_atomic: bool,
    pub(crate) hints: FileHints,
    /// The handle of the file's error handler.
    pub(crate) errhandler: u32,
    /// The split collective access that has begun, if there is one.
    pub(crate) split: Option<Split>,
}

/// The part of an open file that does not change.
pub(crate) struct SharedFile {
    /// The file's own communicator, and (`comm`) the handle of that communicator.
    pub(crate) core: Arc<Core>,
    pub(crate) comm: u32,
    pub(crate) path: PathBuf,
    pub(crate) mode: AccessMode,
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) backing: Box<dyn Backing>,
    /// The shared file pointer, in etypes. `None`: there is no storage for it that all ranks can
    /// reach.
    pub(crate) pointer: Option<Counter>,
    /// The lock of the threads of this rank that lock parts of the file.
    pub(crate) turn: Mutex<()>,
    /// True if this rank is the first of the file's ranks on its host.
    pub(crate) is_first_of_host: bool,
    pub(crate) unfinished: Unfinished,
    /// The stage: memory that all ranks share for collective accesses, once one has needed it.
    /// `None`: the ranks cannot share memory.
    pub(crate) stage: OnceLock<Option<SharedMemory>>,
}

/// The nonblocking accesses of a rank to a file that are in progress.
#[derive(Default)]
pub(crate) struct Unfinished {
    count: AtomicUsize,
    has_worker: AtomicBool,
}

impl Unfinished {
    /// Records that an access to the file begins.
    pub(crate) fn begin(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that an access to the file has ended.
    pub(crate) fn end(&self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    /// True if some access to the file is in progress.
    pub(crate) fn is_any(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Records that the worker makes accesses to the file, until the file is closed.
    pub(crate) fn uses_worker(&self) {
        self.has_worker.store(true, Ordering::Relaxed);
    }
}

/// A split collective access that has begun (MPI 5.0 §14.4.5).
pub(crate) struct Split {
    pub(crate) kind: SplitKind,
    pub(crate) request: RequestId,
}

/// The kind of a split collective access: its begin and end procedures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SplitKind {
    /// The direction of the access: read or write.
    pub direction: Direction,
    /// The kind of file pointer that the access uses.
    pub pointer: PointerKind,
}

/// The direction of an access: a read or a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// The access reads the file.
    Read,
    /// The access writes the file.
    Write,
}

/// The kind of file pointer that an access uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PointerKind {
    /// An explicit offset.
    Explicit,
    /// The rank's own file pointer.
    Individual,
    /// The shared file pointer.
    Shared,
}

/// The position in the file at which an access starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pointer {
    /// An explicit offset, in etypes.
    At(i64),
    /// The rank's own file pointer.
    Individual,
    /// The shared file pointer. In a collective access the ranks' parts are in the order of ranks.
    Shared,
}

impl Pointer {
    /// The kind of this file pointer.
    pub fn kind(self) -> PointerKind {
        match self {
            Pointer::At(_) => PointerKind::Explicit,
            Pointer::Individual => PointerKind::Individual,
            Pointer::Shared => PointerKind::Shared,
        }
    }
}

impl Files {
    pub(crate) fn get(&self, handle: u32) -> Result<&OpenFile> {
        self.open.get(handle).ok_or_else(|| unknown(handle))
    }

    pub(crate) fn get_mut(&mut self, handle: u32) -> Result<&mut OpenFile> {
        self.open.get_mut(handle).ok_or_else(|| unknown(handle))
    }

    pub(crate) fn insert(&mut self, file: OpenFile) -> Result<u32> {
        self.open.insert(file).ok_or_else(|| {
            let detail = "there are a million open files: close some of them first";
            Error::new(Class::NO_MEM, detail)
        })
    }

    pub(crate) fn remove(&mut self, handle: u32) -> Option<OpenFile> {
        self.open.remove(handle)
    }

    /// True if no nonblocking access to any file of the rank is in progress.
    pub(crate) fn are_quiet(&self) -> bool {
        let mut files = self.open.iter();
        files.all(|(_, file)| !file.shared.unfinished.is_any())
    }

    /// Takes the worker out if no open file needs it. To be dropped without the rank's lock.
    pub(crate) fn idle_worker(&mut self) -> Option<Arc<Worker>> {
        let is_needed = |file: &OpenFile| file.shared.unfinished.has_worker.load(Ordering::Relaxed);
        let mut files = self.open.iter();
        match files.any(|(_, file)| is_needed(file)) {
            true => None,
            false => self.worker.take(),
        }
    }

    /// The handle of the file whose communicator has this handle.
    pub fn of_comm(&self, comm: u32) -> Option<u32> {
        let mut files = self.open.iter();
        files
            .find(|(_, file)| file.shared.comm == comm)
            .map(|(handle, _)| handle)
    }

    /// The storage in which files are opened.
    pub(crate) fn storage(&self) -> Arc<dyn Storage> {
        match &self.storage {
            Some(storage) => storage.clone(),
            None => Arc::new(RealStorage),
        }
    }

    /// Lets collective accesses use a stage on a modelled machine too, for tests.
    pub fn stage_in_model(&mut self) {
        self.are_staged_in_model = true;
    }

    /// Replaces the real storage by another one: that of a test, or of a replay.
    pub fn set_storage(&mut self, storage: Arc<dyn Storage>) {
        self.storage = Some(storage);
    }
}

#[cold]
fn unknown(handle: u32) -> Error {
    let detail = match handle {
        NULL => "MPI_FILE_NULL is not a file that can be used".to_string(),
        _ => format!("{handle:#x} is not a file: it was never one, or it has been closed"),
    };
    Error::new(Class::FILE, detail)
}
