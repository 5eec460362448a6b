//! The start of ranks: their environment, streams and descriptors.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
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
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::binding::HostBinding;
use crate::cache_topology;
use crate::error::why_text;
use crate::output::OutputStream;
use crate::rank::RankProcess;
use crate::{Error, Options};

/// The ranks of a job that this process starts.
pub(crate) struct LocalShare {
    /// The number of the first.
    pub first: usize,
    /// The number of ranks.
    pub count: usize,
    /// The host of each rank of the job.
    pub hosts: Hosts,
    /// Whether rank 0 reads from [`RankProcess::input`] instead of this process's standard input.
    pub input: bool,
}

impl LocalShare {
    /// All ranks of a job on one host.
    pub(crate) fn all(ranks: usize) -> Self {
        LocalShare {
            first: 0,
            count: ranks,
            hosts: Hosts::one(ranks),
            input: false,
        }
    }
}

/// The ranks that this process has started.
#[derive(Default)]
pub(crate) struct StartedRanks {
    pub ranks: Vec<RankProcess>,
    /// The binding of the ranks, which holds their claims of cores.
    pub binding: HostBinding,
}

/// Starts the ranks of `share`. After an error, the result holds the ranks that were started before
/// it.
pub(crate) fn start(
    options: &Options,
    share: LocalShare,
    descriptors: Option<Rlimit>,
    signals: SigSet,
) -> (StartedRanks, Result<(), Error>) {
    let mut started = StartedRanks::default();
    let numbers = share.first..share.first + share.count;
    let outcome = Starter::new(options, share, descriptors, signals).and_then(|starter| {
        let outcome = numbers.clone().try_for_each(|number| {
            started.ranks.push(starter.start(number)?);
            Ok(())
        });
        started.binding = starter.binding;
        outcome
    });
    (started, outcome)
}

struct Starter<'a> {
    options: &'a Options,
    share: LocalShare,
    /// The memory files that all ranks inherit, each with the variable that names it.
    shared: Arc<[(&'static str, OwnedFd)]>,
    /// The limit on descriptors for the ranks, if the launcher has changed its own.
    descriptors: Option<Rlimit>,
    /// The signal mask for the ranks.
    signals: SigSet,
    /// Whether the launcher reads from a terminal. Only the foreground process group can, so rank 0
    /// then stays in the launcher's group.
    terminal: bool,
    library_path: Option<std::ffi::OsString>,
    binding: HostBinding,
    /// The cache distance of this machine's cores, unless the user has set it.
    cores: Option<&'static str>,
}

impl<'a> Starter<'a> {
    fn new(
        options: &'a Options,
        share: LocalShare,
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
        let binding = HostBinding::choose(&options.binding, share.count, unfit(options))?;
        binding.report(share.first, share.count);
        Ok(Starter {
            options,
            cores: cores(options, share.count, binding.first_two()),
            binding,
            share,
            shared: shared.into(),
            descriptors,
            signals,
            terminal: io::stdin().is_terminal(),
            library_path: library_path(options),
        })
    }

    fn start(&self, number: usize) -> Result<RankProcess, Error> {
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
        self.set_environment(&mut command, number, theirs.as_raw_fd());
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
                OutputStream::stdout(number, stdout),
                OutputStream::stderr(number, stderr),
            ];
        }
        let shares_group = number == 0 && self.terminal;
        if !shares_group {
            command.process_group(0);
        }
        let setup = ChildSetup {
            launcher: getpid(),
            shared: Arc::clone(&self.shared),
            control: theirs,
            descriptors: self.descriptors,
            signals: self.signals,
            shares_group,
            mask: self.binding.mask(number - self.share.first),
            must_bind: self.binding.is_hard(),
        };
        // SAFETY: between fork and exec, `apply` makes only system calls: it does not allocate,
        // lock or free.
        unsafe { command.pre_exec(move || setup.apply()) };
        let child = command.spawn().map_err(|why| self.explain(number, why))?;
        let pid = Pid::from_child(&child);
        let mut rank = RankProcess::new(number, pid, !shares_group, control, streams);
        rank.input = input;
        Ok(rank)
    }

    /// Sets the variables of a rank: the user's, then the launcher's.
    fn set_environment(&self, command: &mut Command, number: usize, control: RawFd) {
        if let Some(cores) = self.cores {
            command.env(CORES, cores);
        }
        command.envs(
            self.options
                .variables
                .iter()
                .map(|(name, value)| (name, value)),
        );
        if let Some(path) = &self.library_path {
            command.env("LD_LIBRARY_PATH", path);
        }
        // A launcher that is itself a rank has some of these variables.
        for row in pmi::CONTRACT {
            command.env_remove(row.env);
        }
        command.envs(pmi::variables(number, &self.share.hosts, control));
        command.env(pmi::BINDING, self.binding.variable());
        if self.options.explain && number == 0 {
            command.env(pmi::EXPLAIN, "1");
        }
        for (variable, file) in self.shared.iter() {
            command.env(variable, file.as_raw_fd().to_string());
        }
    }

    /// Turns the system's answer to exec into advice for the user.
    fn explain(&self, number: usize, why: io::Error) -> Error {
        let program = self.options.program.to_string_lossy().into_owned();
        let directory = self.options.directory.as_deref().unwrap_or(Path::new("."));
        let file = directory.join(&self.options.program);
        match Errno::from_io_error(&why) {
            Some(Errno::NOENT | Errno::NOTDIR) if program.contains('/') && file.exists() => Error::NoProgram {
                hint: "the file exists, but the interpreter in its first line or the loader that it was linked for does not"
                    .into(),
                program,
            },
            Some(Errno::NOENT | Errno::NOTDIR) if program.contains('/') => {
                Error::NoProgram { program, hint: why_text(&why) }
            }
            Some(Errno::NOENT | Errno::NOTDIR) => {
                let hint = if file.is_file() {
                    format!("not found in PATH; the working directory has one: ./{program}")
                } else {
                    "not found in PATH".into()
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

/// The changes to a new process before it becomes the program.
struct ChildSetup {
    launcher: Pid,
    shared: Arc<[(&'static str, OwnedFd)]>,
    control: OwnedFd,
    descriptors: Option<Rlimit>,
    signals: SigSet,
    shares_group: bool,
    /// The cores of this rank, if it is to be bound.
    mask: Option<CpuSet>,
    /// Whether the rank must not start without them.
    must_bind: bool,
}

impl ChildSetup {
    fn apply(&self) -> io::Result<()> {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        // The launcher may have died before the call above.
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
        if let Some(mask) = &self.mask {
            // The kernel may have taken these cores from the job meanwhile.
            let bound = sched_setaffinity(None, mask);
            bound.or_else(|why| if self.must_bind { Err(why) } else { Ok(()) })?;
        }
        if self.shares_group {
            // Ctrl-\ on the terminal asks the launcher for a report. It must not end this rank,
            // which gets the signal too.
            // SAFETY: ignoring a signal involves no handler.
            unsafe { signal(Signal::SIGQUIT, SigHandler::SigIgn) }?;
        }
        // Last, so that no blocked signal is delivered earlier.
        self.signals.thread_set_mask()?;
        Ok(())
    }
}

/// The memory files that the ranks share. Only the processes of ranks inherit them.
fn shared_files(options: &Options) -> io::Result<Vec<(&'static str, OwnedFd)>> {
    let mut files = vec![(pmi::SEGMENT_FD, pmi::empty_segment()?)];
    if let Some(machine) = &options.machine {
        files.push((pmi::SCENE_FD, memory("fishplate-scene", &machine.scene)?));
        files.push((pmi::WORLD_FD, machine.world.try_clone()?));
        if let Some(computed) = &machine.computed {
            files.push((pmi::COMPUTED_FD, memory("fishplate-computed", computed)?));
        }
    }
    if let Some(profile) = &options.profile {
        files.push((pmi::PROFILE_FD, profile.try_clone()?));
    }
    for (_, file) in &files {
        fcntl_setfd(file, FdFlags::CLOEXEC)?;
    }
    Ok(files)
}

/// A memory file with these contents.
fn memory(name: &str, contents: &[u8]) -> io::Result<OwnedFd> {
    let file = rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut file = File::from(file);
    file.write_all(contents)?;
    Ok(file.into())
}

const CORES: &str = "FISHPLATE_CORES";

/// The cache distance of the cores for the ranks, if it matters and the user has not set it.
/// `pair` are cores of two ranks, if ranks are bound.
fn cores(options: &Options, ranks: usize, pair: Option<[usize; 2]>) -> Option<&'static str> {
    let given = options.variables.iter().any(|(name, _)| name == CORES)
        || std::env::var_os(CORES).is_some();
    let share_memory = ranks > 1 && options.machine.is_none();
    (share_memory && !given && cache_topology::cores_are_near(pair) == Some(true)).then_some("near")
}

/// The reason why the launcher must not choose a binding for this job.
fn unfit(options: &Options) -> Option<&'static str> {
    if options.machine.is_some() {
        return Some("the ranks of a modelled machine take turns");
    }
    let name = Path::new(&options.program).file_name()?.to_str()?;
    // They run the threads of a program one after the other, in an order of their own.
    let interpreters = ["valgrind", "qemu-"];
    let is_interpreter = interpreters.iter().any(|known| name.starts_with(known));
    is_interpreter.then_some("the program runs in an interpreter")
}

/// Checks that a process could change to this directory.
fn enter(directory: &Path) -> io::Result<()> {
    if !std::fs::metadata(directory)?.is_dir() {
        return Err(Errno::NOTDIR.into());
    }
    Ok(rustix::fs::access(directory, rustix::fs::Access::EXEC_OK)?)
}

/// LD_LIBRARY_PATH with the folder of our library first.
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

/// A pipe with a nonblocking reading end.
fn pipe() -> io::Result<(File, File)> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&reader, true)?;
    Ok((reader.into(), writer.into()))
}
