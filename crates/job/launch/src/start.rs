//! The start of ranks: their environment, streams and descriptors.

mod child;
pub(crate) mod libraries;

use std::ffi::OsStr;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use nix::sys::signal::SigSet;
use pmi::Hosts;
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Rlimit, getpid};
use secret::Secret;

use crate::binding::HostBinding;
use crate::cache_topology;
use crate::error::why_text;
use crate::guard::JobMark;
use crate::library::{MPICH_LIBRARY, OTHER_ABIS};
use crate::linked::{LinkedLibraries, can_be_searched};
use crate::mpir;
use crate::output::arrivals::Arrivals;
use crate::output::{OutputPipes, OutputStream};
use crate::rank::RankProcess;
use crate::{Error, Inherited, Input, Options, OutputFile, Program};
use child::{ChildSetup, Group, hold};
use libraries::{
    MPI4PY_ABI, clock_library, given_variable, library_path, linked_libraries, preload,
};

/// The ranks of a job that this process starts.
pub(crate) struct LocalShare {
    /// The world rank of the first rank that this process starts.
    pub first: usize,
    /// The number of ranks that this process starts.
    pub count: usize,
    /// The host of each rank of the job.
    pub hosts: Hosts,
    /// True if ranks that read input get it from [`RankProcess::input`] instead of this process's
    /// standard input.
    pub relayed_input: bool,
    /// The output streams that this process reads through pipes.
    pub pipes: OutputPipes,
    /// The mark of the job: the value of an environment variable by which the processes of the job
    /// are recognized.
    pub mark: JobMark,
    /// The secret of the job, which its ranks share.
    pub secret: Secret,
    /// True if ranks stop before their first instruction, until they get SIGCONT.
    pub held: bool,
}

impl LocalShare {
    /// The share that consists of all ranks of a job on one host.
    pub(crate) fn all(
        options: &Options,
        pipes: OutputPipes,
        mark: JobMark,
        secret: Secret,
    ) -> Self {
        let ranks = options.ranks();
        LocalShare {
            first: 0,
            count: ranks,
            hosts: Hosts::one(ranks),
            relayed_input: options.input == Input::All,
            pipes,
            mark,
            secret,
            held: mpir::is_being_debugged(),
        }
    }
}

/// The ranks that this process has started.
#[derive(Default)]
pub(crate) struct StartedRanks {
    pub ranks: Vec<RankProcess>,
    /// The binding of the ranks, which holds their claims of cores.
    pub binding: HostBinding,
    /// The order of the writes of these ranks to their pipes.
    pub arrivals: Arrivals,
}

/// Starts the ranks of `share`. After an error, the result holds the ranks that were started before
/// the error.
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
            let rank = starter.start(number, &mut started.arrivals)?;
            started.ranks.push(rank);
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
    /// The memory files that all ranks inherit, each with the environment variable for its
    /// descriptor.
    shared: Arc<[(&'static str, OwnedFd)]>,
    /// The limit on descriptors for the ranks, if the launcher has changed its own.
    descriptors: Option<Rlimit>,
    /// The signal mask for the ranks.
    signals: SigSet,
    /// True if the launcher reads from a terminal. Only the foreground process group can read from
    /// it, so the rank that reads input then stays in the launcher's process group.
    terminal: bool,
    /// The MPI libraries of the programs whose ranks this process starts, each with the index of
    /// its program.
    linked: Vec<(usize, LinkedLibraries)>,
    binding: HostBinding,
    /// The value of FISHPLATE_CORES for ranks, unless the user has set it: the cache distance of
    /// this machine's cores.
    cores: Option<&'static str>,
    /// The library to preload so that the system's clocks show virtual time, if that is needed.
    clocks: Option<PathBuf>,
}

impl<'a> Starter<'a> {
    fn new(
        options: &'a Options,
        share: LocalShare,
        descriptors: Option<Rlimit>,
        signals: SigSet,
    ) -> Result<Self, Error> {
        let numbers = share.first..share.first + share.count;
        let mut programs: Vec<(usize, &Program)> =
            numbers.map(|rank| options.program(rank)).collect();
        programs.dedup_by_key(|(at, _)| *at);
        for directory in programs
            .iter()
            .filter_map(|(_, program)| program.directory.as_ref())
        {
            enter(directory).map_err(|why| Error::Directory {
                directory: directory.clone(),
                why,
            })?;
        }
        let available = std::thread::available_parallelism().map_or(1, usize::from);
        if options.one_core_each && share.count > available {
            return Err(Error::TooFewCores {
                ranks: share.count,
                cores: available,
            });
        }
        let linked = linked_libraries(options, share.first, &programs)?;
        let shared = shared_files(options, &share.secret).map_err(|why| Error::System {
            what: "create the shared memory of the job",
            why,
        })?;
        if let Some(library) = options.library.as_ref().filter(|own| !can_be_searched(own)) {
            let library = library.clone();
            return Err(Error::Folder { library });
        }
        let binding = HostBinding::choose(&options.binding, share.count, unfit(options))?;
        binding.report(share.first, share.count);
        Ok(Starter {
            options,
            cores: cores(options, share.count, binding.first_two()),
            clocks: clock_library(options)?,
            binding,
            share,
            shared: shared.into(),
            descriptors,
            signals,
            terminal: io::stdin().is_terminal(),
            linked,
        })
    }

    fn start(&self, number: usize, arrivals: &mut Arrivals) -> Result<RankProcess, Error> {
        let options = self.options;
        let (_, program) = options.program(number);
        let failed = |why: io::Error| Error::Start {
            rank: number,
            ranks: options.ranks(),
            why,
        };
        let (control, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .map_err(|errno| failed(errno.into()))?;
        let mut command = self.command(program);
        command.args(&program.arguments);
        self.set_environment(&mut command, number, theirs.as_raw_fd());
        if let Some(directory) = &program.directory {
            command.current_dir(directory);
        }
        let mut input = None;
        let reads = options.input == Input::All || options.input == Input::Rank(number);
        if !reads {
            command.stdin(Stdio::null());
        } else if self.share.relayed_input {
            let (reader, writer) =
                pipe_with(PipeFlags::CLOEXEC).map_err(|why| failed(why.into()))?;
            rustix::io::ioctl_fionbio(&writer, true).map_err(|why| failed(why.into()))?;
            command.stdin(reader);
            input = Some(writer);
        }
        let streams = self.set_output(&mut command, number)?;
        if self.share.pipes.by_write {
            // Before the rank can write.
            let readers = streams.iter().filter_map(OutputStream::reader).enumerate();
            readers.for_each(|(at, reader)| arrivals.watch((number, at), reader));
        }
        let shares_group = reads && self.terminal && !self.share.relayed_input;
        let setup = ChildSetup {
            launcher: getpid(),
            shared: Arc::clone(&self.shared),
            control: theirs,
            descriptors: self.descriptors,
            signals: self.signals,
            group: match (shares_group, self.binding.keeps_apart()) {
                (true, _) => Group::Launchers,
                (false, true) => Group::Session,
                (false, false) => Group::Own,
            },
            mask: self.binding.mask(number - self.share.first),
            must_bind: self.binding.is_hard(),
            held: self.share.held,
        };
        // SAFETY: between fork and exec, `apply` makes only system calls: it does not allocate,
        // lock or free.
        unsafe { command.pre_exec(move || setup.apply()) };
        let child = command.spawn().map_err(|why| self.explain(number, why))?;
        let pid = Pid::from_child(&child);
        if self.share.held {
            hold(pid).map_err(failed)?;
        }
        let rank = RankProcess::new(number, pid, !shares_group, control, streams);
        let mut rank = rank.among(options.ranks());
        rank.input = input;
        Ok(rank)
    }

    /// The command that starts a program. If ranks do not inherit PATH, the launcher searches it
    /// for them.
    fn command(&self, program: &Program) -> Command {
        let found = match program.inherited {
            Inherited::All => None,
            Inherited::Only(_) => program.file().filter(|_| !is_path(&program.program)),
        };
        match found {
            Some(file) => {
                let mut command = Command::new(file);
                command.arg0(&program.program);
                command
            }
            None => Command::new(&program.program),
        }
    }

    /// Connects the output of a rank to its destination. Returns the streams that the launcher must
    /// read.
    fn set_output(&self, command: &mut Command, number: usize) -> Result<Vec<OutputStream>, Error> {
        let (options, pipes) = (&self.options.output, self.share.pipes);
        let failed = |why: io::Error| Error::Start {
            rank: number,
            ranks: self.options.ranks(),
            why,
        };
        let file = |file: &OutputFile| {
            file.create(number)
                .map_err(|(name, why)| Error::OutputFile { name, why })
        };
        let mut streams = Vec::new();
        let stdout = match &options.stdout {
            Some(name) => Some(file(name)?),
            None if pipes.stdout => {
                let (reader, writer) = pipes.make().map_err(failed)?;
                streams.push(OutputStream::stdout(number, reader, options));
                Some(writer)
            }
            None => None,
        };
        let stderr = match (&options.stderr, &stdout) {
            (Some(name), _) => Some(file(name)?),
            (None, Some(stdout)) if options.merge => Some(stdout.try_clone().map_err(failed)?),
            (None, None) if options.merge => {
                let stdout = io::stdout().as_fd().try_clone_to_owned().map_err(failed)?;
                Some(stdout.into())
            }
            (None, Some(stdout)) if pipes.one && options.stdout.is_none() => {
                Some(stdout.try_clone().map_err(failed)?)
            }
            (None, _) if pipes.stderr => {
                let (reader, writer) = pipes.make().map_err(failed)?;
                streams.push(OutputStream::stderr(number, reader, options));
                Some(writer)
            }
            (None, _) => None,
        };
        stdout.map(|file| command.stdout(file));
        stderr.map(|file| command.stderr(file));
        Ok(streams)
    }

    /// Sets the environment variables of a rank: first the user's, then the launcher's.
    fn set_environment(&self, command: &mut Command, number: usize, control: RawFd) {
        let (at, program) = self.options.program(number);
        if let Inherited::Only(_) = program.inherited {
            let own = std::env::vars_os();
            command.env_clear();
            command.envs(own.filter(|(name, _)| program.inherited.has(name)));
        }
        if let Some(cores) = self.cores {
            command.env(CORES, cores);
        }
        let variables = self.options.variables.iter().chain(&program.variables);
        command.envs(variables.map(|(name, value)| (name, value)));
        if let Some(path) = library_path(self.options, program) {
            command.env("LD_LIBRARY_PATH", path);
        }
        if let Some(own) = &self.options.library
            && own.join(OTHER_ABIS).join(MPICH_LIBRARY).exists()
            && given_variable(self.options, program, MPI4PY_ABI).is_none()
        {
            command.env(MPI4PY_ABI, "mpich");
        }
        let linked = self.linked.iter().filter(|(number, _)| *number == at);
        let overridden = linked.flat_map(|(_, linked)| &linked.overridden);
        let preloaded = overridden
            .map(|(_, own)| own.clone())
            .chain(self.clocks.clone());
        let preloaded: Vec<PathBuf> = preloaded.collect();
        if !preloaded.is_empty() {
            let given = given_variable(self.options, program, "LD_PRELOAD");
            command.env("LD_PRELOAD", preload(given, &preloaded));
        }
        // Removes these variables, which a launcher that is itself a rank has inherited.
        for row in pmi::CONTRACT {
            command.env_remove(row.env);
        }
        command.envs(pmi::variables(number, &self.share.hosts, control));
        command.env(pmi::BINDING, self.binding.variable());
        let machine = self.options.machine.as_ref();
        let places = machine.map_or(&self.share.hosts, |machine| &machine.hosts);
        command.envs(pmi::place_variables(number, places));
        command.env(pmi::JOB, self.share.mark.value());
        if self.options.programs.len() > 1 {
            command.env(pmi::APPNUM, at.to_string());
        }
        if self.options.explain && number == 0 {
            command.env(pmi::EXPLAIN, "1");
        }
        for (variable, file) in self.shared.iter() {
            command.env(variable, file.as_raw_fd().to_string());
        }
    }

    /// Turns an error of `exec` into advice for the user.
    fn explain(&self, number: usize, why: io::Error) -> Error {
        let (_, started) = self.options.program(number);
        let program = started.program.to_string_lossy().into_owned();
        let directory = started.directory.as_deref().unwrap_or(Path::new("."));
        let file = directory.join(&started.program);
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
            _ => Error::Start { rank: number, ranks: self.options.ranks(), why },
        }
    }
}

/// Makes the memory files that the ranks share. Only the processes of ranks inherit them.
fn shared_files(options: &Options, secret: &Secret) -> io::Result<Vec<(&'static str, OwnedFd)>> {
    let mut files = vec![
        (pmi::SEGMENT_FD, pmi::empty_segment()?),
        (pmi::SECRET_FD, pmi::secret_file(secret)?),
    ];
    if let Some(machine) = &options.machine {
        files.push((
            pmi::SCENE_FD,
            memory_file::with_contents("fishplate-scene", &machine.scene)?,
        ));
        files.push((pmi::WORLD_FD, machine.world.try_clone()?));
    }
    if let Some(profile) = &options.profile {
        files.push((pmi::PROFILE_FD, profile.try_clone()?));
    }
    if let Some(record) = &options.record {
        files.push((pmi::RECORD_FD, record.try_clone()?));
    }
    for (_, file) in &files {
        fcntl_setfd(file, FdFlags::CLOEXEC)?;
    }
    Ok(files)
}

const CORES: &str = "FISHPLATE_CORES";

/// The value of FISHPLATE_CORES for the ranks, if it matters and the user has not set it. `pair`
/// has hardware threads of two ranks, if ranks are bound.
fn cores(options: &Options, ranks: usize, pair: Option<[usize; 2]>) -> Option<&'static str> {
    let programs = options.programs.iter();
    let variables = programs.flat_map(|program| &program.variables);
    let given = variables
        .chain(&options.variables)
        .any(|(name, _)| name == CORES)
        || std::env::var_os(CORES).is_some();
    let share_memory = ranks > 1 && options.machine.is_none();
    (share_memory && !given && cache_topology::cores_are_near(pair) == Some(true)).then_some("near")
}

/// The reason why the launcher must not choose a soft binding for this job, if there is one.
fn unfit(options: &Options) -> Option<&'static str> {
    if options.machine.is_some() {
        return Some("the ranks of a modelled machine take turns");
    }
    // These interpreters run the threads of a program one at a time, in an order of their own.
    let interpreters = ["valgrind", "qemu-"];
    let is_interpreted = options.programs.iter().any(|program| {
        let name = Path::new(&program.program).file_name();
        let name = name.and_then(|name| name.to_str()).unwrap_or_default();
        interpreters.iter().any(|known| name.starts_with(known))
    });
    is_interpreted.then_some("the program runs in an interpreter")
}

/// Checks that a process can change to this directory.
fn enter(directory: &Path) -> io::Result<()> {
    if !std::fs::metadata(directory)?.is_dir() {
        return Err(Errno::NOTDIR.into());
    }
    Ok(rustix::fs::access(directory, rustix::fs::Access::EXEC_OK)?)
}

/// True if a program is named by a path, so that it is not searched in PATH.
fn is_path(program: &OsStr) -> bool {
    program.as_encoded_bytes().contains(&b'/')
}
