//! Collective reads and writes (MPI 5.0 §14.4), also split ones (§14.4.5).

use std::sync::Arc;

use super::file_access::FileAccess;
use super::file_round::{FileRound, Procedure, Said};
use crate::files::{Direction, FileMemory, Pointer, PointerKind, Split, SplitKind};
use crate::rank::Rank;
use crate::request::{RequestId, Waiting};
use crate::{Class, Error, Result, Status};

/// A collective access of which this rank has begun its part.
struct CollectiveAccess {
    round: FileRound,
    kind: SplitKind,
    /// Blocking, nonblocking and split forms do not match.
    form: Form,
    access: Result<FileAccess>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Blocking,
    Nonblocking,
    Split,
}

impl Rank {
    /// A blocking collective access. `memory` is an error where the arguments that describe it are
    /// wrong, so that this rank can tell the others.
    pub fn file_collective(
        self: &Arc<Rank>,
        operation: &'static str,
        file: u32,
        direction: Direction,
        pointer: Pointer,
        memory: Result<FileMemory>,
    ) -> Result<Status> {
        let access = self.begin_collective(file, direction, pointer, memory, Form::Blocking)?;
        let waiting = Waiting::in_call(operation);
        self.block_on(&waiting, Some(access.round.context()), access.run())
    }

    /// A nonblocking collective access.
    pub fn start_file_collective(
        self: &Arc<Rank>,
        file: u32,
        direction: Direction,
        pointer: Pointer,
        memory: Result<FileMemory>,
    ) -> Result<RequestId> {
        let access = self.begin_collective(file, direction, pointer, memory, Form::Nonblocking)?;
        let context = access.round.context();
        self.spawn_with_status(Some(context), async move { access.run().await })
    }

    /// Begins a split collective access. Errors show at its end.
    pub fn file_begin(
        self: &Arc<Rank>,
        file: u32,
        direction: Direction,
        pointer: Pointer,
        memory: Result<FileMemory>,
    ) -> Result<()> {
        let access = self.begin_collective(file, direction, pointer, memory, Form::Split)?;
        let (context, kind) = (access.round.context(), access.kind);
        let request = self.spawn_with_status(Some(context), async move { access.run().await })?;
        let mut state = self.lock();
        let open = state.files.get_mut(file)?;
        if open.split.is_none() {
            open.split = Some(Split { kind, request });
            return Ok(());
        }
        // Its agreement tells the others.
        state.messages.requests.detach(request)?;
        Err(has_begun())
    }

    /// Ends a split collective access.
    pub fn file_end(&self, operation: &'static str, file: u32, kind: SplitKind) -> Result<Status> {
        let mut state = self.lock();
        let open = state.files.get_mut(file)?;
        let begun = open.split.take_if(|split| split.kind == kind);
        let Some(split) = begun else {
            let detail = match open.split {
                Some(_) => "the split collective operation that has begun is another one",
                None => "no split collective operation has begun",
            };
            return Err(Error::new(Class::IO, detail));
        };
        drop(state);
        let status = self.wait(operation, split.request)?;
        status.into_result(&mut self.lock())
    }

    /// Takes part in a collective call with nothing but an error, for a call whose arguments
    /// cannot even be read. The others end with it; nobody waits.
    #[cold]
    pub fn file_refuse(self: &Arc<Rank>, file: u32, error: &Error) {
        let Ok(round) = self.begin_round(file) else {
            return;
        };
        let (context, error) = (round.context(), error.clone());
        let refused = async move { round.exchange(Err(error)).await.map(drop) };
        if let Ok(request) = self.spawn(Some(context), refused) {
            let _ = self.lock().messages.requests.detach(request);
        }
    }

    fn begin_collective(
        self: &Arc<Rank>,
        file: u32,
        direction: Direction,
        pointer: Pointer,
        memory: Result<FileMemory>,
        form: Form,
    ) -> Result<CollectiveAccess> {
        let round = self.begin_round(file)?;
        let has_split = self.lock().files.get(file)?.split.is_some();
        let access = memory.and_then(|memory| match has_split {
            true => Err(has_begun()),
            false => self.begin_file_access(file, direction, pointer, memory),
        });
        let kind = SplitKind {
            direction,
            pointer: pointer.kind(),
        };
        Ok(CollectiveAccess {
            round,
            kind,
            form,
            access,
        })
    }
}

#[cold]
fn has_begun() -> Error {
    let detail = "a split collective operation has begun on this file and not ended: no other \
                  collective operation is possible meanwhile";
    Error::new(Class::IO, detail)
}

impl CollectiveAccess {
    async fn run(mut self) -> Result<Status> {
        let said = self.said();
        let all = self.round.exchange(said).await?;
        let access = self.access.as_mut().map_err(|error| error.clone())?;
        if self.kind.pointer == PointerKind::Shared {
            let me = self.round.file.core.rank;
            let lens = all.iter().map(|[etypes, ..]| *etypes as i64);
            let total = lens.clone().try_fold(0i64, i64::checked_add);
            let base = match self.round.is_first() {
                true => total.ok_or_else(too_much).and_then(|total| {
                    let base = self.round.file.advance_pointer(total)?;
                    Ok(base as u64)
                }),
                false => Ok(0),
            };
            let base = self.round.word_of_first(base).await? as i64;
            access.start = Some(base + lens.take(me).sum::<i64>());
        }
        let result = access.run(&self.round.rank);
        self.round.agree(result).await
    }

    fn said(&self) -> Result<Said> {
        let access = self.access.as_ref().map_err(Error::clone)?;
        let said = Said::new(match self.kind.direction {
            Direction::Read => Procedure::Read,
            Direction::Write => Procedure::Write,
        });
        Ok(Said {
            same: [self.form as u64, self.kind.pointer as u64, 0],
            others: [access.etypes as u64, 0, 0],
            ..said
        })
    }
}

#[cold]
fn too_much() -> Error {
    let detail = "the ranks together reach beyond the largest file";
    Error::new(Class::IO, detail)
}
