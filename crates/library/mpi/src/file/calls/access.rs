//! Reads and writes of one rank (MPI 5.0 §14.4).

use std::sync::Arc;

use ::file_io::{Locking, Transfer, View};
use datatype::Buffer;
use datatype::local_work::{LocalWork, Meter};

use crate::file::calls::worker::Unfinished;
use crate::file::{
    Direction, FileHints, FileMemory, FileView, Pointer, Representation, SharedFile, Switch,
    file_bytes, system_error,
};
use crate::rank::Rank;
use crate::request::RequestId;
use crate::state::Objects;
use crate::{Class, Error, Result, Status};

/// Bytes of the longest gap that is read with the data around it, unless a hint sets another
/// length: a system call costs more than a copy of these bytes.
pub(super) const SHORT_GAP: u64 = 4096;

/// An access to a file whose arguments have been checked.
pub(super) struct FileAccess {
    pub(super) file: Arc<SharedFile>,
    pub(super) view: Arc<FileView>,
    pub(super) direction: Direction,
    pub(super) memory: FileMemory,
    /// The offset of the access in the view, in etypes. `None`: the shared file pointer determines
    /// it.
    pub(super) start: Option<i64>,
    /// The length of the access, in etypes.
    pub(super) etypes: i64,
    pub(super) is_atomic: bool,
    pub(super) hints: FileHints,
    /// The bytes of the access in the representation of the file, unless that is the native one.
    pub(super) staged: Option<Buffer>,
    /// The meter for the processor work of conversions and copies, on a modelled machine.
    pub(super) meter: Option<Arc<Meter>>,
}

impl Rank {
    /// Makes a blocking access of this rank alone.
    pub fn file_access(
        self: &Arc<Rank>,
        file: u32,
        direction: Direction,
        pointer: Pointer,
        memory: FileMemory,
    ) -> Result<Status> {
        let access = self.begin_file_access(file, direction, pointer, memory)?;
        let status = access.run(self)?;
        self.pass_storage_time(match direction {
            Direction::Read => "MPI_File_read",
            Direction::Write => "MPI_File_write",
        })?;
        Ok(status)
    }

    /// Starts a nonblocking access of this rank alone.
    pub fn start_file_access(
        self: &Arc<Rank>,
        file: u32,
        direction: Direction,
        pointer: Pointer,
        memory: FileMemory,
    ) -> Result<RequestId> {
        let access = self.begin_file_access(file, direction, pointer, memory)?;
        let (rank, context) = (self.clone(), access.file.core.context);
        let unfinished = Unfinished::of(&access.file);
        self.spawn_with_status(Some(context), async move {
            let status = access.run_apart(&rank).await;
            drop(unfinished);
            status
        })
    }
}

impl Rank {
    /// Checks the arguments of an access, and advances the individual file pointer.
    pub(super) fn begin_file_access(
        &self,
        file: u32,
        direction: Direction,
        pointer: Pointer,
        memory: FileMemory,
    ) -> Result<FileAccess> {
        // The user's functions of a registered representation run without the rank's lock.
        let view = self.lock().objects.files.get(file)?.view.clone();
        let bytes = file_bytes(&view.representation, &memory.ty, memory.count)?;
        self.lock()
            .objects
            .begin_file_access(file, direction, pointer, memory, (view, bytes))
    }
}

impl Objects {
    fn begin_file_access(
        &mut self,
        file: u32,
        direction: Direction,
        pointer: Pointer,
        memory: FileMemory,
        (view, bytes): (Arc<FileView>, u64),
    ) -> Result<FileAccess> {
        let open = self.files.get_mut(file)?;
        check_mode(&open.shared, direction, pointer)?;
        let etype = view.bytes.etype();
        if bytes % etype != 0 {
            let detail = format!("{bytes} bytes of data are no whole number of etypes of {etype}");
            return Err(Error::new(Class::TYPE, detail));
        }
        if bytes > 0 && view.bytes.is_empty() {
            let detail = "the filetype of this rank's view has no data";
            return Err(Error::new(Class::ARG, detail));
        }
        let etypes = (bytes / etype) as i64;
        let start = match pointer {
            Pointer::At(offset @ 0..) => Some(offset),
            Pointer::At(offset) => {
                let detail = format!("the offset is {offset}; it must not be negative");
                return Err(Error::new(Class::ARG, detail));
            }
            Pointer::Individual => {
                let start = open.position;
                let moved = start.checked_add(etypes);
                open.position = moved.ok_or_else(|| beyond(start))?;
                Some(start)
            }
            Pointer::Shared => None,
        };
        Ok(FileAccess {
            file: open.shared.clone(),
            view,
            direction,
            memory,
            start,
            etypes,
            is_atomic: open.is_atomic,
            hints: open.hints.clone(),
            staged: None,
            meter: self.types.meter().cloned(),
        })
    }
}

fn check_mode(file: &SharedFile, direction: Direction, pointer: Pointer) -> Result<()> {
    let path = file.path.display();
    match direction {
        Direction::Read if !file.mode.can_read() => {
            let detail = format!("{path} was opened with MPI_MODE_WRONLY and cannot be read");
            return Err(Error::new(Class::ACCESS, detail));
        }
        Direction::Write if !file.mode.can_write() => {
            let detail = format!("{path} was opened with MPI_MODE_RDONLY and cannot be written");
            return Err(Error::new(Class::READ_ONLY, detail));
        }
        _ => {}
    }
    match pointer {
        Pointer::Shared => Ok(()),
        _ => file.check_random_access(),
    }
}

impl SharedFile {
    /// An error for a file of `MPI_MODE_SEQUENTIAL`: its only pointer is the shared one.
    pub(super) fn check_random_access(&self) -> Result<()> {
        if !self.mode.is_sequential() {
            return Ok(());
        }
        let path = self.path.display();
        let detail = format!(
            "{path} was opened with MPI_MODE_SEQUENTIAL: only accesses by the shared file pointer \
             are possible"
        );
        Err(Error::new(Class::UNSUPPORTED_OPERATION, detail))
    }

    /// Advances the shared file pointer, and returns the value before, in etypes.
    pub(super) fn advance_pointer(&self, etypes: i64) -> Result<i64> {
        self.with_pointer(|pointer| pointer.fetch_add(&*self.storage, etypes))
    }

    /// Calls `then` with the counter that is the shared file pointer.
    pub(super) fn with_pointer<T>(
        &self,
        then: impl FnOnce(&::file_io::Counter) -> std::io::Result<T>,
    ) -> Result<T> {
        let pointer = self.pointer.as_ref().ok_or_else(|| {
            let detail = "the folder of the file does not allow a file for the shared file \
                          pointer, which ranks on several hosts need";
            Error::new(Class::UNSUPPORTED_OPERATION, detail)
        })?;
        let failed = |error| system_error(&self.path, "has lost its shared file pointer", &error);
        then(pointer).map_err(failed)
    }
}

#[cold]
fn beyond(start: i64) -> Error {
    let detail = format!("the access at offset {start} reaches beyond the largest file");
    Error::new(Class::IO, detail)
}

impl FileAccess {
    /// Makes the access to the file on this thread.
    pub(super) fn run(mut self, rank: &Rank) -> Result<Status> {
        self.prepare(rank)?;
        self.run_prepared()
    }

    /// Makes the access to the file on the worker thread.
    async fn run_apart(mut self, rank: &Arc<Rank>) -> Result<Status> {
        self.prepare(rank)?;
        self.run_prepared_apart(rank).await
    }

    /// Makes this rank's own part of a collective access after `prepare`, on this thread.
    pub(super) fn run_prepared_here(&self, rank: &Rank) -> Result<Status> {
        let status = self.run_prepared();
        rank.pass_storage_time("a collective access to a file")?;
        status
    }

    /// Makes the access after `prepare`, on the worker. The file pointers advance at once.
    pub(super) async fn run_prepared_apart(self, rank: &Arc<Rank>) -> Result<Status> {
        let position = self.position(self.located()?)?;
        if self.bytes().is_empty() {
            return self.finish(0);
        }
        let file = self.file.clone();
        let (access, moved) = rank
            .by_worker(&file, move || {
                let moved = self.move_bytes(position);
                (self, moved)
            })
            .await;
        rank.await_storage().await;
        access.finish(moved?)
    }

    /// Converts the data of a write to the representation of the file, or allocates memory for the
    /// data of a read.
    pub(super) fn prepare(&mut self, rank: &Rank) -> Result<()> {
        if !self.view.representation.is_native() {
            self.staged = Some(self.converted(rank)?);
        }
        Ok(())
    }

    /// Makes the access after `prepare`, on this thread.
    pub(super) fn run_prepared(&self) -> Result<Status> {
        let moved = self.move_bytes(self.position(self.located()?)?)?;
        self.finish(moved)
    }

    /// The offset of the access in etypes. If the shared file pointer determines it, advances that.
    fn located(&self) -> Result<i64> {
        match self.start {
            Some(start) => Ok(start),
            None => self.file.advance_pointer(self.etypes),
        }
    }

    /// Completes an access that has moved `moved` bytes of the file, and returns its status.
    pub(super) fn finish(&self, moved: u64) -> Result<Status> {
        let bytes = match (&self.staged, self.direction) {
            (None, _) => moved,
            (Some(_), Direction::Write) => self.memory.buffer.len() as u64,
            (Some(staged), Direction::Read) => self.deliver(staged, moved)?,
        };
        Ok(Status {
            bytes,
            ..Status::EMPTY
        })
    }

    /// The bytes of the access in the representation of the file.
    pub(super) fn bytes(&self) -> &Buffer {
        self.staged.as_ref().unwrap_or(&self.memory.buffer)
    }

    /// The position in the view, in bytes, of an offset in etypes.
    pub(super) fn position(&self, start: i64) -> Result<u64> {
        self.view.position_of(start).ok_or_else(|| beyond(start))
    }

    /// The number of bytes of the access in the file.
    pub(super) fn len(&self) -> u64 {
        self.etypes as u64 * self.view.bytes.etype()
    }

    /// Memory for the bytes of the access in the file; for a write it has the converted data.
    fn converted(&self, rank: &Rank) -> Result<Buffer> {
        let len = self.len() as usize;
        let byte = datatype::Predefined::BYTE.into();
        let staged = rank.lock().engine.scratch.elements(len, &byte)?.buffer();
        if self.direction == Direction::Write {
            let encode = |bytes: &mut [u8]| self.view.representation.encode(&self.memory, bytes);
            staged.with_dense_mut(0, len, encode).unwrap_or(Ok(()))?;
            self.count_conversion(len);
        }
        Ok(staged)
    }

    /// Counts the conversion of `bytes` bytes of the file as work. A function of the program counts
    /// its own time.
    fn count_conversion(&self, bytes: usize) {
        if let Some(meter) = &self.meter
            && matches!(self.view.representation, Representation::External32)
        {
            meter.add(LocalWork::Convert, bytes, bytes);
        }
    }

    /// Converts `read` bytes into the user's memory. Returns the number of bytes there.
    fn deliver(&self, staged: &Buffer, read: u64) -> Result<u64> {
        self.count_conversion(read as usize);
        let decode = |bytes: &mut [u8]| self.view.representation.decode(bytes, &self.memory);
        staged
            .with_dense_mut(0, read as usize, decode)
            .unwrap_or(Ok(0))
    }

    /// Counts a copy between memory and a buffer of the library as work.
    pub(super) fn count_copy(&self, bytes: usize) {
        if let Some(meter) = &self.meter {
            meter.add(LocalWork::Copy, bytes, bytes);
        }
    }

    /// Moves the bytes of the access between memory and the file.
    fn move_bytes(&self, position: u64) -> Result<u64> {
        self.move_through(&self.view.bytes, position, self.bytes())
    }

    /// Moves bytes between `memory` and the file, from byte `offset` of the file on.
    pub(super) fn move_at(&self, offset: u64, memory: &Buffer) -> Result<u64> {
        self.move_through(&View::default(), offset, memory)
    }

    fn move_through(&self, view: &View, position: u64, memory: &Buffer) -> Result<u64> {
        if memory.is_empty() {
            return Ok(0);
        }
        let transfer = self.transfer(view);
        let (what, moved) = match self.direction {
            Direction::Read => ("cannot be read", transfer.read(position, memory)),
            Direction::Write => {
                let written = transfer.write(position, memory);
                ("cannot be written", written.map(|()| memory.len() as u64))
            }
        };
        moved.map_err(|error| system_error(&self.file.path, what, &error))
    }

    fn transfer<'a>(&'a self, view: &'a View) -> Transfer<'a> {
        let hints = &self.hints;
        // Others may rewrite the gaps around data that this rank writes.
        let is_shared = hints.sieve_write == Switch::Enabled;
        let can_sieve = self.file.mode.can_read()
            && (is_shared || hints.sieve_write != Switch::Disabled && self.file.core.size() == 1);
        let (switch, span) = match self.direction {
            Direction::Read => (hints.sieve_read, hints.sieved_read),
            Direction::Write if can_sieve => (hints.sieve_write, hints.sieved_write),
            Direction::Write => (Switch::Disabled, hints.sieved_write),
        };
        Transfer {
            file: &*self.file.backing,
            turn: &self.file.turn,
            view,
            gap: match switch {
                Switch::Automatic => SHORT_GAP,
                Switch::Enabled => span,
                Switch::Disabled => 0,
            },
            span,
            locking: match (self.is_atomic, is_shared) {
                (true, _) => Locking::Whole,
                (false, true) => Locking::Writes,
                (false, false) => Locking::None,
            },
        }
    }
}
