//! Opening, closing and deleting files (MPI 5.0 §14.2.1 to §14.2.3).

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use ::file_io::{Access, Backing, Counter, OpenMode, Storage, Token};

use crate::comm::Core;
use crate::comm::calls::agreement::Agreement;
use crate::file::calls::round::{Procedure, Said, agree, exchange, word_of_first};
use crate::file::{
    AccessMode, FileHints, FileView, OpenFile, SharedFile, Unfinished, system_error,
};
use crate::rank::Rank;
use crate::request::Waiting;
use crate::state::Objects;
use crate::{Class, Error, Result};

/// A file that the ranks are about to open.
struct Opening {
    storage: Arc<dyn Storage>,
    path: PathBuf,
    mode: AccessMode,
    hints: FileHints,
    agreement: Agreement,
    is_first: bool,
    size: usize,
    /// True if all ranks of the file are on one host.
    has_one_host: bool,
}

/// The number of words of a rank in the first exchange: its proposal for the context, the token of
/// the shared file pointer, the mode, and three of hints.
const WORDS: usize = 6;

/// An open file and its shared file pointer, if there can be one.
type Opened = (Box<dyn Backing>, Option<Counter>);

impl Rank {
    /// `MPI_File_open`. `path` has no prefix for the kind of file system.
    pub fn file_open(
        self: &Arc<Rank>,
        operation: &'static str,
        comm: u32,
        path: Result<&Path>,
        mode: i32,
        info: Result<Vec<(String, String)>>,
    ) -> Result<u32> {
        let parent = self.begin_intra(comm)?;
        let core = parent.core.clone();
        let hosts: Vec<u32> = core
            .members
            .iter()
            .map(|world| self.host_of(world))
            .collect();
        let arguments = path.and_then(|path| {
            let mut hints = FileHints::default();
            hints.update(&info?);
            Ok((path.to_path_buf(), AccessMode::new(mode)?, hints))
        });
        let storage = self.lock().storage();
        let agreement = Agreement::all(self, &core, parent.tag);
        let proposal = self.lock().objects.comms.new_context(self.rank());
        let has_one_host = hosts.iter().all(|host| *host == hosts[0]);
        let opening = open(storage, &core, agreement, arguments, has_one_host, proposal);
        let waiting = Waiting::in_call(operation);
        let (opening, context, (backing, pointer)) =
            self.block_on(&waiting, Some(core.context), opening)?;

        let new = parent.child(core.again(context).made_from(&core));
        let core = new.core.clone();
        let comm = self.add_comm(new)?;
        let is_first_of_host = hosts[..core.rank]
            .iter()
            .all(|host| *host != hosts[core.rank]);
        let shared = SharedFile {
            core,
            comm,
            path: opening.path,
            mode: opening.mode,
            storage: opening.storage,
            backing,
            pointer,
            turn: Mutex::new(()),
            is_first_of_host,
            unfinished: Unfinished::default(),
            stage: OnceLock::new(),
        };
        let file = self.lock().objects.add_file(shared, opening.hints)?;
        self.pass_storage_time(operation)?;
        Ok(file)
    }

    /// `MPI_File_close`. A file that cannot be closed stays open.
    pub fn file_close(self: &Arc<Rank>, operation: &'static str, file: u32) -> Result<()> {
        let shared = self.lock().objects.files.get(file)?.shared.clone();
        self.finish_file_accesses(operation, &shared)?;
        drop(shared);
        let round = self.begin_round(file)?;
        let has_begun = self.lock().objects.files.get(file)?.split.is_some();
        self.in_round(operation, &round, async {
            let shared = &round.file;
            let mine = match has_begun {
                true => Err(Error::new(
                    Class::IO,
                    "a split collective operation has begun and not ended",
                )),
                false => Ok(Said::new(Procedure::Close)),
            };
            round.exchange(mine).await?;
            let failed = |error| system_error(&shared.path, "cannot be closed", &error);
            let finished = match shared.mode.can_write() {
                true => shared.backing.finish().map_err(failed),
                false => Ok(()),
            };
            round.agree(finished).await?;
            if shared.mode.deletes_on_close() {
                let removed = match round.is_first() {
                    true => remove(&*shared.storage, &shared.path),
                    false => Ok(()),
                };
                round.agree(removed).await?;
            }
            Ok(())
        })?;
        let mut state = self.lock();
        if let Some(closed) = state.objects.files.remove(file) {
            state.objects.errhandlers.remove_object(closed.errhandler);
        }
        let worker = state.objects.files.idle_worker();
        drop(state);
        drop(worker);
        self.comm_free(round.file.comm)
    }

    /// `MPI_File_delete`.
    pub fn file_delete(&self, path: &Path) -> Result<()> {
        let storage = self.lock().storage();
        remove(&*storage, path)?;
        self.pass_storage_time("MPI_File_delete")
    }
}

impl Objects {
    fn add_file(&mut self, shared: SharedFile, hints: FileHints) -> Result<u32> {
        let errhandler = self.files.errhandler;
        let position = match shared.mode.appends() {
            true => size(&shared)? as i64,
            false => 0,
        };
        let handle = self.files.insert(OpenFile {
            shared: Arc::new(shared),
            view: Arc::new(FileView::default()),
            position,
            is_atomic: false,
            hints,
            errhandler,
            split: None,
        })?;
        self.errhandlers.add_object(errhandler);
        Ok(handle)
    }
}

/// The size of a file in bytes.
pub(super) fn size(file: &SharedFile) -> Result<u64> {
    let failed = |error| system_error(&file.path, "does not tell its size", &error);
    file.backing.size().map_err(failed)
}

fn remove(storage: &dyn Storage, path: &Path) -> Result<()> {
    let failed = |error| system_error(path, "cannot be deleted", &error);
    storage.remove(path).map_err(failed)
}

/// Opens a file on all ranks or on none. Also returns the context of the file's communicator.
async fn open(
    storage: Arc<dyn Storage>,
    core: &Core,
    agreement: Agreement,
    arguments: Result<(PathBuf, AccessMode, FileHints)>,
    has_one_host: bool,
    proposal: u64,
) -> Result<(Opening, u64, Opened)> {
    let (is_first, size) = (core.rank == 0, core.size());
    // Processes of one host open the shared file pointer by the first rank's descriptor.
    let counter = match is_first && has_one_host && size > 1 && arguments.is_ok() {
        true => Some(Counter::on_this_host(&*storage)),
        false => None,
    };
    let path = arguments.as_ref().map(|arguments| arguments.0.clone());
    let counter = counter.transpose().map_err(|error| {
        let path = path.unwrap_or_default();
        system_error(&path, "can have no shared file pointer", &error)
    });
    let mine = match (&arguments, &counter) {
        (Err(error), _) | (_, Err(error)) => Err(error.clone()),
        (Ok((_, mode, hints)), Ok(counter)) => {
            let token = counter
                .as_ref()
                .map_or_else(Token::unused, |(_, token)| *token);
            let token = token.to_word();
            let mut words = vec![proposal, token, mode.value() as u64];
            words.extend(hints.words());
            Ok(words)
        }
    };
    let all = exchange(&agreement, mine, WORDS).await?;
    let (path, mode, mut hints) = arguments?;
    if all.iter().any(|words| words[2] != all[0][2]) {
        let detail = "the access modes of the ranks differ";
        return Err(Error::new(Class::NOT_SAME, detail));
    }
    let words: Vec<[u64; 3]> = all
        .iter()
        .map(|words| std::array::from_fn(|at| words[3 + at]))
        .collect();
    hints.agree(&words);
    let (context, token) = (all[0][0], Token::from_word(all[0][1]));
    let opening = Opening {
        storage,
        path,
        mode,
        hints,
        agreement,
        is_first,
        size,
        has_one_host,
    };
    let counter = counter?.map(|(counter, _)| counter);
    let opened = opening.open(counter, token).await?;
    Ok((opening, context, opened))
}

impl Opening {
    async fn open(&self, ours: Option<Counter>, token: Token) -> Result<Opened> {
        // The shared file pointer is in a file beside the opened one, where all hosts can reach it.
        let beside = (!self.has_one_host).then(|| {
            let name = self.path.file_name().unwrap_or_default().to_string_lossy();
            let number = token.to_word();
            self.path
                .with_file_name(format!(".{name}.{number:x}.pointer"))
        });
        let opened = match self.mode.creates() || beside.is_some() {
            true => self.open_in_turn(beside.as_deref(), ours, token).await,
            false => {
                let pointer = ours.unwrap_or_else(|| match self.size {
                    1 => Counter::alone(),
                    _ => Counter::of_this_host(token),
                });
                let file = self.open_here().and_then(|file| match self.is_first {
                    true => self.with_end(file, Some(&pointer)),
                    false => Ok(file),
                });
                agree(&self.agreement, file.map(|file| (file, Some(pointer)))).await
            }
        };
        if let Some(path) = beside.filter(|_| self.is_first) {
            // Every rank has opened that file, or none needs it.
            let _ = self.storage.remove(&path);
        }
        opened
    }

    /// Opens the file on the first rank, which may create it, and afterwards on the other ranks.
    async fn open_in_turn(
        &self,
        beside: Option<&Path>,
        ours: Option<Counter>,
        token: Token,
    ) -> Result<Opened> {
        let in_file = |path: &Path| match Counter::in_file(&*self.storage, path, self.is_first) {
            Ok(counter) => Ok(Some(counter)),
            // Only accesses by the shared file pointer fail then.
            Err(error) if self.is_first && is_forbidden(&error) => Ok(None),
            Err(error) => Err(system_error(path, "cannot be opened", &error)),
        };
        let pointer = |is_there: bool| match beside {
            _ if self.size == 1 => Ok(Some(Counter::alone())),
            Some(path) if is_there => in_file(path),
            Some(_) => Ok(None),
            None => Ok(Some(Counter::of_this_host(token))),
        };
        if self.is_first {
            let opened = self.open_here().and_then(|file| {
                let pointer = match ours {
                    Some(pointer) => Some(pointer),
                    None => pointer(true)?,
                };
                let file = self.with_end(file, pointer.as_ref())?;
                Ok((file, pointer))
            });
            let told = opened.as_ref().map_err(Error::clone);
            let told = told.map(|(_, pointer)| pointer.is_some().into());
            if self.size > 1 {
                word_of_first(&self.agreement, told).await?;
            }
            return agree(&self.agreement, opened).await;
        }
        let is_there = word_of_first(&self.agreement, Ok(0)).await? != 0;
        let opened = self
            .open_here()
            .and_then(|file| Ok((file, pointer(is_there)?)));
        agree(&self.agreement, opened).await
    }

    /// Sets the shared file pointer to the end of a file that is opened to append.
    fn with_end(
        &self,
        file: Box<dyn Backing>,
        pointer: Option<&Counter>,
    ) -> Result<Box<dyn Backing>> {
        if let Some(pointer) = pointer.filter(|_| self.mode.appends()) {
            let end = file.size();
            let set = end.and_then(|end| pointer.set(&*self.storage, end as i64));
            set.map_err(|error| system_error(&self.path, "does not tell its end", &error))?;
        }
        Ok(file)
    }

    fn open_here(&self) -> Result<Box<dyn Backing>> {
        let mode = OpenMode {
            access: match (self.mode.can_read(), self.mode.can_write()) {
                (true, true) => Access::ReadWrite,
                (false, _) => Access::Write,
                (true, false) => Access::Read,
            },
            create: self.mode.creates() && self.is_first,
            exclusive: self.mode.is_exclusive() && self.mode.creates() && self.is_first,
            permissions: self.hints.permissions,
        };
        let failed = |error| system_error(&self.path, "cannot be opened", &error);
        self.storage.open(&self.path, mode).map_err(failed)
    }
}

/// True if the folder of a file does not allow another file there.
fn is_forbidden(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem)
}
