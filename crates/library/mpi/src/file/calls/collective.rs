//! Collective reads and writes (MPI 5.0 §14.4), also split ones (§14.4.5).

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::file::calls::access::FileAccess;
use crate::file::calls::plan::{Extent, Plan};
use crate::file::calls::round::{FileRound, OTHERS, Procedure, Said, told};
use crate::file::calls::stage::{StagePlan, Staged};
use crate::file::calls::two_phase::TwoPhase;
use crate::file::calls::worker::Unfinished;
use crate::file::{Direction, FileMemory, Pointer, PointerKind, Split, SplitKind};
use crate::rank::Rank;
use crate::request::{RequestId, Waiting};
use crate::{Class, Error, Result, Status};

/// A collective access to a file that this rank has begun.
struct CollectiveAccess {
    round: FileRound,
    kind: SplitKind,
    /// The form of the call: calls of different forms cannot match.
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
    /// A blocking collective access. `memory` is an error if the arguments that describe it are
    /// wrong, so that this rank can report that to the others.
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

    /// Starts a nonblocking collective access.
    pub fn start_file_collective(
        self: &Arc<Rank>,
        file: u32,
        direction: Direction,
        pointer: Pointer,
        memory: Result<FileMemory>,
    ) -> Result<RequestId> {
        let access = self.begin_collective(file, direction, pointer, memory, Form::Nonblocking)?;
        self.spawn_collective_access(access)
    }

    fn spawn_collective_access(&self, access: CollectiveAccess) -> Result<RequestId> {
        let context = access.round.context();
        let unfinished = Unfinished::of(&access.round.file);
        self.spawn_with_status(Some(context), async move {
            let status = access.run().await;
            drop(unfinished);
            status
        })
    }

    /// Begins a split collective access. Errors are reported when it ends.
    pub fn file_begin(
        self: &Arc<Rank>,
        file: u32,
        direction: Direction,
        pointer: Pointer,
        memory: Result<FileMemory>,
    ) -> Result<()> {
        let access = self.begin_collective(file, direction, pointer, memory, Form::Split)?;
        let kind = access.kind;
        let request = self.spawn_collective_access(access)?;
        let mut state = self.lock();
        let open = state.objects.files.get_mut(file)?;
        if open.split.is_none() {
            open.split = Some(Split { kind, request });
            return Ok(());
        }
        // The agreement of the refused access reports the error to the other ranks.
        state.engine.messages.requests.detach(request)?;
        Err(has_begun())
    }

    /// Ends a split collective access.
    pub fn file_end(&self, operation: &'static str, file: u32, kind: SplitKind) -> Result<Status> {
        let mut state = self.lock();
        let open = state.objects.files.get_mut(file)?;
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
        self.result_of(status)
    }

    /// Takes part in a collective call only by reporting an error: the arguments of this rank's
    /// call could not even be read. The other ranks then fail too, rather than wait.
    #[cold]
    pub fn file_refuse(self: &Arc<Rank>, file: u32, error: &Error) {
        let Ok(round) = self.begin_round(file) else {
            return;
        };
        let (context, error) = (round.context(), error.clone());
        let refused = async move { round.exchange(Err(error)).await.map(drop) };
        if let Ok(request) = self.spawn(Some(context), refused) {
            let _ = self.lock().engine.messages.requests.detach(request);
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
        let has_split = self.lock().objects.files.get(file)?.split.is_some();
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
        let said = self.prepare();
        let all = self.round.exchange(said).await?;
        let CollectiveAccess {
            round,
            kind,
            form,
            access,
        } = self;
        let (round, mut access) = (&round, access?);
        let start = match (kind.pointer, access.start) {
            (PointerKind::Individual | PointerKind::Explicit, Some(start)) => start,
            _ => {
                access.start = Some(in_order(round, &all).await?);
                return alone(access, round, form).await;
            }
        };
        let extents: Vec<_> = all.iter().map(|words| Extent::of_words(*words)).collect();
        let core = &round.file.core;
        let hosts = core.shape(|world| round.rank.host_of(world)).spread().hosts;
        let position = access.position(start);
        // A stage serves one access at a time.
        let may_stage = hosts == 1 && form == Form::Blocking && round.rank.has_stages();
        let plan = may_stage
            .then(|| StagePlan::new(&extents, &access))
            .flatten();
        if let Some(plan) = plan
            && let Some(stage) = round.stage().await?
        {
            let staged = Staged {
                round,
                access: &access,
                plan: &plan,
                position: position?,
                stage,
            };
            let moved = staged.run().await;
            return round
                .agree(moved.and_then(|moved| access.finish(moved)))
                .await;
        }
        let Some(plan) = Plan::new(extents, &access, hosts) else {
            return alone(access, round, form).await;
        };
        let access = Arc::new(access);
        let two_phase = TwoPhase {
            round,
            access: &access,
            plan: &plan,
            position: position?,
            memory: access.bytes(),
            is_apart: form != Form::Blocking,
        };
        let moved = two_phase.run().await;
        let result = moved.and_then(|moved| access.finish(moved));
        round.agree(result).await
    }

    /// Prepares the data, and returns the facts of the access that all ranks must know.
    fn prepare(&mut self) -> Result<Said> {
        let rank = self.round.rank.clone();
        let access = self.access.as_mut().map_err(|error| error.clone())?;
        access.prepare(&rank)?;
        let said = Said::new(match self.kind.direction {
            Direction::Read => Procedure::Read,
            Direction::Write => Procedure::Write,
        });
        let extent = extent(access)?;
        // Explicit offsets and individual pointers match: in PnetCDF, ranks without data call
        // `MPI_File_write_all` while the others call `MPI_File_write_at_all`.
        let is_ordered = self.kind.pointer == PointerKind::Shared;
        Ok(Said {
            same: [self.form as u64, u64::from(is_ordered), 0],
            others: match is_ordered {
                true => told(&[access.etypes as u64]),
                false => extent.words(),
            },
            ..said
        })
    }
}

/// The start, in etypes, of this rank's part of an ordered access: the parts are adjacent, in the
/// order of ranks.
async fn in_order(round: &FileRound, all: &[[u64; OTHERS]]) -> Result<i64> {
    let lens = all.iter().map(|[etypes, ..]| *etypes as i64);
    let base = match round.is_first() {
        true => {
            let total = lens.clone().try_fold(0i64, i64::checked_add);
            let base = total.ok_or_else(too_much);
            let base = base.and_then(|total| round.file.advance_pointer(total));
            base.map(|base| base as u64)
        }
        false => Ok(0),
    };
    let base = round.word_of_first(base).await? as i64;
    Ok(base + lens.take(round.file.core.rank).sum::<i64>())
}

/// The extent of this rank's part of a collective access.
fn extent(access: &FileAccess) -> Result<Extent> {
    let Some(start) = access.start.filter(|_| access.etypes > 0) else {
        return Ok(Extent::NOTHING);
    };
    let view = &access.view.bytes;
    let (position, len) = (access.position(start)?, access.len());
    let Some((start, end)) = view.bounds(position, len) else {
        // The access itself reports the error.
        return Ok(Extent {
            run: Extent::ALONE,
            ..Extent::NOTHING
        });
    };
    let extent = Extent {
        start,
        end,
        run: Extent::ALONE,
        bytes: len,
        ..Extent::NOTHING
    };
    if !view.ascends() || access.is_atomic {
        return Ok(extent);
    }
    if let Some(strided) = view.strided() {
        return Ok(Extent {
            run: strided.run,
            stride: strided.stride,
            phase: strided.phase(),
            ..extent
        });
    }
    let mut run = Extent::ALONE;
    let _ = view.runs(position, len, &mut |_, len| {
        run = len;
        ControlFlow::Break(())
    });
    Ok(Extent { run, ..extent })
}

/// Makes a collective access in which each rank moves its own data, without aggregators.
async fn alone(access: FileAccess, round: &FileRound, form: Form) -> Result<Status> {
    let result = match form {
        Form::Blocking => access.run_prepared_here(&round.rank),
        _ => access.run_prepared_apart(&round.rank).await,
    };
    round.agree(result).await
}

#[cold]
fn too_much() -> Error {
    let detail = "the ranks together reach beyond the largest file";
    Error::new(Class::IO, detail)
}
