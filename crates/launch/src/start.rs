//! Starting the ranks: their environment, streams and descriptors.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use nix::sys::signal::{SigHandler, SigSet, Signal, signal};
use pmi::Hosts;
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Resource, Rlimit};
use rustix::process::{getpid, getppid, setrlimit};

use crate::cache_topology;
use crate::output::Stream;
use crate::rank::Rank;
use crate::{Error, Options};

/// The ranks of a job that start here.
pub(crate) struct Share {
    pub first: usize,
    pub count: usize,
    /// The host of each rank of the job.
    pub hosts: Hosts,
    /// Rank 0 reads what is written to [`Rank::input`], not what this process would read.
    pub input: bool,
}

impl Share {
    pub fn all(ranks: usize) -> Self {
        Share {
            first: 0,
            count: ranks,
            hosts: Hosts::one(ranks),
            input: false,
        }
    }
}

/// Starts these ranks. With an error come the ranks that had been started before it.
pub(crate) fn start(
    options: &Options,
    share: Share,
    descriptors: Option<Rlimit>,
    signals: SigSet,
) -> (Vec<Rank>, Result<(), Error>) {
    let mut ranks = Vec::with_capacity(share.count);
    let numbers = share.first..share.first + share.count;
    let outcome = Starter::new(options, share, descriptors, signals).and_then(|starter| {
        numbers.clone().try_for_each(|number| {
            ranks.push(starter.start(number)?);
            Ok(())
        })
    });
    (ranks, outcome)
}

struct Starter<'a> {
    options: &'a Options,
    share: Share,
    /// Files of memory that all ranks inherit: the variable that names each, and the file.
    shared: Arc<[(&'static str, OwnedFd)]>,
    /// The limit on descriptors and the held-back signals that ranks get, where the launcher has changed its own.
    descriptors: Option<Rlimit>,
    signals: SigSet,
    /// A rank that reads from a terminal has to be in the foreground process group, so rank 0 stays in the launcher's.
    terminal: bool,
    library_path: Option<std::ffi::OsString>,
    /// How this machine's cores lie, unless the user has said it.
    cores: Option<&'static str>,
}

impl<'a> Starter<'a> {
    fn new(
        options: &'a Options,
        share: Share,
        descriptors: Option<Rlimit>,
        signals: SigSet,
    ) -> Result<Self, Error> {
        if let Some(directory) = &options.directory {
            enter(directory).map_err(|why| Error::Directory {
                directory: directory.clone(),
                why,
            })?;
        }
        let shared = shared_files(options).map_err(|why| Error::System {
            what: "create the shared memory of the job",
            why,
        })?;
        Ok(Starter {
            options,
            cores: cores(options, share.count),
            share,
            shared: shared.into(),
            descriptors,
            signals,
            terminal: io::stdin().is_terminal(),
            library_path: library_path(options),
        })
    }

    fn start(&self, number: usize) -> Result<Rank, Error> {
        let options = self.options;
        let failed = |why: io::Error| Error::Start {
            rank: number,
            ranks: options.ranks,
            why,
        };
        let (control, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .map_err(|errno| failed(errno.into()))?;
        let mut command = Command::new(&options.program);
        command.args(&options.arguments);
        if let Some(cores) = self.cores {
            command.env(CORES, cores);
        }
        command.envs(options.variables.iter().map(|(name, value)| (name, value)));
        if let Some(path) = &self.library_path {
            command.env("LD_LIBRARY_PATH", path);
        }
        // A launcher that is itself a rank has some of them.
        for row in pmi::CONTRACT {
            command.env_remove(row.env);
        }
        command.envs(pmi::variables(
            number,
            &self.share.hosts,
            theirs.as_raw_fd(),
        ));
        for (variable, file) in self.shared.iter() {
            command.env(variable, file.as_raw_fd().to_string());
        }
        if let Some(directory) = &options.directory {
            command.current_dir(directory);
        }
        let mut input = None;
        if number > 0 {
            command.stdin(Stdio::null());
        } else if self.share.input {
            let (reader, writer) =
                pipe_with(PipeFlags::CLOEXEC).map_err(|why| failed(why.into()))?;
            rustix::io::ioctl_fionbio(&writer, true).map_err(|why| failed(why.into()))?;
            command.stdin(reader);
            input = Some(writer);
        }
        let mut streams = Vec::new();
        if options.tag_output {
            let (stdout, writer) = pipe().map_err(failed)?;
            command.stdout(writer);
            let (stderr, writer) = pipe().map_err(failed)?;
            command.stderr(writer);
            streams = vec![
                Stream::stdout(number, stdout),
                Stream::stderr(number, stderr),
            ];
        }
        let shares_group = number == 0 && self.terminal;
        if !shares_group {
            command.process_group(0);
        }
        let legacy = Legacy {
            launcher: getpid(),
            shared: Arc::clone(&self.shared),
            control: theirs,
            descriptors: self.descriptors,
            signals: self.signals,
            shares_group,
        };
        // SAFETY: between fork and exec, `settle` makes system calls and nothing else: it does not allocate, lock or
        // free.
        unsafe { command.pre_exec(move || legacy.settle()) };
        let child = command.spawn().map_err(|why| self.explain(number, why))?;
        let pid = Pid::from_child(&child);
        let mut rank = Rank::new(number, pid, !shares_group, control, streams);
        rank.input = input;
        Ok(rank)
    }

    /// What the system's answer to exec means for the one who typed the command.
    fn explain(&self, number: usize, why: io::Error) -> Error {
        let program = self.options.program.to_string_lossy().into_owned();
        let directory = self.options.directory.as_deref().unwrap_or(Path::new("."));
        let file = directory.join(&self.options.program);
        match Errno::from_io_error(&why) {
            Some(Errno::NOENT | Errno::NOTDIR) if program.contains('/') && file.exists() => Error::NoProgram {
                hint: "it is there, but the interpreter that its first line names, or the loader that it was linked \
                       for, is not"
                    .into(),
                program,
            },
            Some(Errno::NOENT | Errno::NOTDIR) if program.contains('/') => {
                Error::NoProgram { program, hint: why_text(&why) }
            }
            Some(Errno::NOENT | Errno::NOTDIR) => {
                let hint = if file.is_file() {
                    format!("it is not in PATH; ./{program} is, in the working directory, if that was meant")
                } else {
                    "it is not in PATH".into()
                };
                Error::NoProgram { program, hint }
            }
            Some(Errno::ACCESS) if file.is_dir() => Error::NotExecutable { program, why: "it is a directory".into() },
            Some(Errno::ACCESS | Errno::PERM) => {
                Error::NotExecutable { program, why: format!("{} (chmod +x?)", why_text(&why)) }
            }
            _ => Error::Start { rank: number, ranks: self.options.ranks, why },
        }
    }
}

/// What a new process gets from the launcher before it becomes the program.
struct Legacy {
    launcher: Pid,
    shared: Arc<[(&'static str, OwnedFd)]>,
    control: OwnedFd,
    descriptors: Option<Rlimit>,
    signals: SigSet,
    shares_group: bool,
}

impl Legacy {
    fn settle(&self) -> io::Result<()> {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        // The launcher may have died before the line above.
        if getppid() != Some(self.launcher) {
            return Err(Errno::SRCH.into());
        }
        let shared = self.shared.iter().map(|(_, file)| file);
        for descriptor in shared.chain([&self.control]) {
            fcntl_setfd(descriptor, FdFlags::empty())?;
        }
        if let Some(limit) = self.descriptors {
            setrlimit(Resource::Nofile, limit)?;
        }
        if self.shares_group {
            // The terminal's Ctrl-\ asks the launcher for a report, and must not end the rank beside it.
            // SAFETY: ignoring a signal involves no handler.
            unsafe { signal(Signal::SIGQUIT, SigHandler::SigIgn) }?;
        }
        // Last, so that a signal that has been held back cannot come between.
        self.signals.thread_set_mask()?;
        Ok(())
    }
}

/// The memory that ranks share. Only their own processes will inherit it.
fn shared_files(options: &Options) -> io::Result<Vec<(&'static str, OwnedFd)>> {
    let mut files = vec![(pmi::SEGMENT_FD, pmi::empty_segment()?)];
    if let Some(stage) = &options.stage {
        files.push((pmi::SCENE_FD, memory("fishplate-scene", &stage.scene)?));
        files.push((pmi::WORLD_FD, stage.world.try_clone()?));
        if let Some(computed) = &stage.computed {
            files.push((pmi::COMPUTED_FD, memory("fishplate-computed", computed)?));
        }
    }
    for (_, file) in &files {
        fcntl_setfd(file, FdFlags::CLOEXEC)?;
    }
    Ok(files)
}

/// A file of memory with these contents.
fn memory(name: &str, contents: &[u8]) -> io::Result<OwnedFd> {
    let file = rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut file = File::from(file);
    file.write_all(contents)?;
    Ok(file.into())
}

const CORES: &str = "FISHPLATE_CORES";

/// How the cores lie that ranks will run on, if it matters and nobody has said it.
fn cores(options: &Options, ranks: usize) -> Option<&'static str> {
    let given = options.variables.iter().any(|(name, _)| name == CORES)
        || std::env::var_os(CORES).is_some();
    let talks_here = ranks > 1 && options.stage.is_none();
    (talks_here && !given && cache_topology::cores_are_near() == Some(true)).then_some("near")
}

/// Could a process change to this directory?
fn enter(directory: &Path) -> io::Result<()> {
    if !std::fs::metadata(directory)?.is_dir() {
        return Err(Errno::NOTDIR.into());
    }
    Ok(rustix::fs::access(directory, rustix::fs::Access::EXEC_OK)?)
}

/// LD_LIBRARY_PATH with our library first.
fn library_path(options: &Options) -> Option<std::ffi::OsString> {
    let mut path = options.library.clone()?.into_os_string();
    let given = options
        .variables
        .iter()
        .rfind(|(name, _)| name == "LD_LIBRARY_PATH")
        .map(|(_, value)| value.clone());
    let rest = given
        .or_else(|| std::env::var_os("LD_LIBRARY_PATH"))
        .filter(|rest| !rest.is_empty());
    if let Some(rest) = rest {
        path.push(":");
        path.push(rest);
    }
    Some(path)
}

/// A pipe whose reading end does not block.
fn pipe() -> io::Result<(File, File)> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&reader, true)?;
    Ok((reader.into(), writer.into()))
}

/// The system's words, without Rust's number behind them.
fn why_text(why: &io::Error) -> String {
    let text = why.to_string();
    text.split(" (os error")
        .next()
        .unwrap_or(&text)
        .to_lowercase()
}
