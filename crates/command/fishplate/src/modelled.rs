//! `fishplate run --fabric`: the modelled machine of a job, and the files that are written after
//! the job.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use ::fabric::Software;
use clap::{Args, ValueEnum};
use model::config::{Compute, MachineConfig};
use model::placement::Placement;
use model::{IntraHost, PortFault, Usage};
use results::arguments::{ANY, whole_number};

use crate::algorithms;
use crate::checked::{Check, Checks};
use crate::events::EventsFile;
use crate::fabric::ValueChange;

#[derive(Args)]
#[command(next_help_heading = "Modelled machines")]
pub(crate) struct ModelledArguments {
    /// Run on a modelled machine, in virtual time: a name from `fishplate fabric list`, or a file
    #[arg(long, value_name = "NAME|FILE")]
    fabric: Option<String>,

    /// MPI library to predict: `own`, this one, or `named`, the one that the machine names, whose
    /// eager limit, rendezvous and other protocols, and algorithms of collectives, become settings
    /// of the ranks unless they are set
    #[arg(long, value_enum, value_name = "LIBRARY", default_value_t = Predicted::Own, requires = "fabric")]
    predict: Predicted,

    /// Put the machine into other hosts, with their bus, their costs of an MPI library and their
    /// kernel: a name from `fishplate fabric list host`, or a system or its file, whose hosts are
    /// meant
    #[arg(long, value_name = "NAME|FILE", requires = "fabric")]
    fabric_host: Option<String>,

    /// Change one value of the machine, by its keys in `fabric show`: `hca.send=120ns`. May be
    /// repeated
    #[arg(long, value_name = "KEY=VALUE", requires = "fabric")]
    set: Vec<ValueChange>,

    /// Path between ranks of one modelled host
    #[arg(long, value_enum, value_name = "PATH", default_value_t = IntraHostPath::Memory, requires = "fabric")]
    intra_host: IntraHostPath,

    /// Seed for everything random in the model
    #[arg(long, value_name = "NUMBER", default_value_t = 1, requires = "fabric",
        value_parser = |word: &str| whole_number::<u64>(word, ANY))]
    seed: u64,

    /// Hosts of the machine on which the job's nodes lie: `packed` (the first), `spread` (at even
    /// distances), `random[:SEED]`, or their numbers from 0, such as `0,4,8-11`. The machine has as
    /// many hosts as its value `nodes` says (--set nodes=COUNT); a packed job makes it larger
    #[arg(
        long,
        value_name = "RULE|HOSTS",
        requires = "fabric",
        default_value = "packed"
    )]
    placement: Placement,

    /// Faults of the modelled machine: a TOML file (see docs/user/modelled.md)
    #[arg(long, value_name = "FILE", requires = "fabric")]
    faults: Option<String>,

    /// A fault of one port of a modelled host, such as `host=1,rail=0,down=2ms..5ms`; the kinds are
    /// down=SPAN (with port events), silent=SPAN, no-acks=SPAN, flap=PERIOD@SPAN and
    /// rate=SHARE@SPAN, and a span without an end lasts for ever. May be repeated
    #[arg(long, value_name = "FAULT", requires = "fabric", value_parser = model::fault_file::port)]
    fault: Vec<PortFault>,

    /// Time charged for the program's computing between MPI calls: `none`, `measured[:SCALE]` (the
    /// measured time, times SCALE), or `recorded` (the measured time, and the trace of --record has
    /// the times of work inside MPI on this computer too)
    #[arg(long, value_name = "HOW", default_value = "none", requires = "fabric")]
    compute: ComputeOption,

    /// Make the start of the program's work free: connections, registrations, and the making and
    /// freeing of communicators, windows and files. The difference is what they cost
    #[arg(long, requires = "fabric")]
    free_start: bool,

    /// Let links between switches carry any number of messages at once, so that none waits there.
    /// The difference is what contention costs
    #[arg(long, requires = "fabric")]
    wide_links: bool,

    /// Leave the system's clocks real: `clock_gettime`, `gettimeofday` and `time` show no virtual
    /// time, and sleeps and deadlines follow the computer's clock
    #[arg(long, requires = "fabric")]
    real_clocks: bool,

    /// Run in a temporary folder with links to what is in the current one and the three above it,
    /// and remove it with all that the program has written there
    #[arg(long, requires = "fabric")]
    scratch: bool,

    /// Check the program's communication, and report errors after the job, whose exit code is then
    /// 1: `messages`, messages and collective calls of ranks that do not fit each other, messages
    /// never received, requests never completed; `rma`, accesses to windows that conflict (MPI 5.0
    /// §12.7), without loads and stores. With `messages`, `races` and `leaks` add notes, which are
    /// no errors. Several are separated by commas
    #[arg(
        long,
        value_enum,
        value_name = "WHAT,...",
        value_delimiter = ',',
        requires = "fabric"
    )]
    check: Vec<Check>,

    /// Write a trace of ranks, buses and links: FILE.json for ui.perfetto.dev; FILE.svg or FILE.png
    /// as a picture
    #[arg(long, value_name = "FILE", requires = "fabric")]
    trace: Option<PathBuf>,

    /// Span of virtual time that the picture of --trace shows, such as 100us..250us [default: from
    /// the first call to the first MPI_Finalize, as many events as are legible]
    #[arg(long, value_name = "FROM..UNTIL", requires = "trace")]
    trace_part: Option<String>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Predicted {
    /// This library
    Own,
    /// The library that the machine names; this one, if it names none
    Named,
}

#[derive(Clone, Copy, ValueEnum)]
enum IntraHostPath {
    /// Through shared memory: a processor copies
    Memory,
    /// Through the HCA, which loops the packets back
    Hca,
}

impl From<IntraHostPath> for IntraHost {
    fn from(path: IntraHostPath) -> IntraHost {
        match path {
            IntraHostPath::Memory => IntraHost::Memory,
            IntraHostPath::Hca => IntraHost::Hca,
        }
    }
}

#[derive(Clone)]
enum ComputeOption {
    None,
    /// The factor for measured times, in thousandths.
    Measured(u64),
    Recorded,
}

impl FromStr for ComputeOption {
    type Err = String;

    fn from_str(text: &str) -> Result<ComputeOption, String> {
        let (word, rest) = match text.split_once(':') {
            Some((word, rest)) => (word, Some(rest)),
            None => (text, None),
        };
        match (word, rest) {
            ("none", None) => Ok(ComputeOption::None),
            ("measured", None) => Ok(ComputeOption::Measured(1000)),
            ("measured", Some(scale)) => match scale.parse::<f64>() {
                Ok(number) if (0.001..=1e6).contains(&number) => {
                    Ok(ComputeOption::Measured((number * 1000.0).round() as u64))
                }
                _ => Err(format!(
                    "{scale} is not a scale; valid are 0.001 to 1000000"
                )),
            },
            ("recorded", None) => Ok(ComputeOption::Recorded),
            _ => Err("valid are none, measured[:SCALE] and recorded".into()),
        }
    }
}

/// Settings by which idle threads sleep: of OpenMP with any compiler; of the OpenMP of LLVM and
/// Intel, which MKL uses; and of OpenBLAS with threads of its own, as a power of two of processor
/// cycles.
const SLEEPING: [(&str, &str); 3] = [
    ("OMP_WAIT_POLICY", "passive"),
    ("KMP_BLOCKTIME", "0"),
    ("OPENBLAS_THREAD_TIMEOUT", "4"),
];

/// The advice for a job that does not fit.
pub(crate) const LARGER: &str = "--set nodes=COUNT changes the number of its hosts";

/// The modelled machine of a job, and the files to write after the job. Empty for a job on this
/// machine.
#[derive(Default)]
pub(crate) struct ModelledJob {
    /// The machine, in the form that the launcher passes to ranks.
    pub(crate) launched: Option<launch::ModelledMachine>,
    /// Settings that make the ranks behave like the library to predict.
    pub(crate) settings: Vec<(&'static str, String)>,
    /// True if computing takes virtual time, so that idle threads of the program should sleep.
    sleeping: bool,
    /// The number of cores of a modelled host for each of its ranks, if the machine describes its
    /// cores.
    cores_of_rank: Option<usize>,
    trace: Option<EventsFile>,
    /// The checks after the run.
    checks: Checks,
    /// True if the times of work inside MPI are recorded.
    records_work: bool,
    /// True if the replayed trace marks the beginnings of steps.
    pub(crate) has_steps: bool,
    ranks: usize,
    /// The faults of ports that the user has requested.
    faults: Vec<PortFault>,
    /// The numbers of the machine's hosts that have ranks.
    hosts: Vec<u32>,
}

impl ModelledArguments {
    /// True if the job runs on a modelled machine.
    pub(crate) fn is_wanted(&self) -> bool {
        self.fabric.is_some()
    }

    /// True if the ranks run in a temporary folder.
    pub(crate) fn wants_scratch(&self) -> bool {
        self.scratch
    }

    /// An error if the times of work inside MPI are to be recorded, and no trace is.
    pub(crate) fn check_recording(&self, has_trace: bool) -> Result<(), String> {
        match self.compute {
            ComputeOption::Recorded if !has_trace => {
                Err("--compute recorded is for a trace: --record FILE".into())
            }
            _ => Ok(()),
        }
    }

    /// True if an option says what time the program's computing takes.
    pub(crate) fn times_computing(&self) -> bool {
        !matches!(self.compute, ComputeOption::None)
    }

    /// The name or file of the modelled machine, if the job runs on one.
    pub(crate) fn fabric(&self) -> Option<&str> {
        self.fabric.as_deref()
    }

    /// Builds the machine and creates the output files. Reports every error that can be found
    /// before the job starts.
    pub(crate) fn prepare(&self, ranks: usize, per_host: usize) -> Result<ModelledJob, String> {
        let Some(word) = &self.fabric else {
            return Ok(ModelledJob::default());
        };
        if per_host == 0 {
            return Err("--ppn 0: a host needs at least one rank".into());
        }
        let system = crate::fabric::changed_system(word, self.fabric_host.as_deref(), &self.set)?;
        let placed = MachineConfig::placed(&system, (ranks, per_host), &self.placement, self.seed);
        let mut scene = placed.map_err(|why| match self.placement.is_packed() {
            true => format!("--fabric {word}: {why}"),
            false => format!("--placement {}: {word}: {why}; {LARGER}", self.placement),
        })?;
        let mut settings = Vec::new();
        if self.predict == Predicted::Named {
            scene = scene.with_library(&system.software);
            settings = model::library::settings(&system.software);
            settings.extend(algorithms::setting(&system.software, ranks));
            say_settings(word, &system.software, &settings);
        }
        self.add_faults(&mut scene, word)?;
        scene.intra_host = self.intra_host.into();
        if !matches!(self.compute, ComputeOption::None) {
            let checked = model::check_cores(&scene.system, per_host.min(ranks), 1);
            checked.map_err(|why| format!("--fabric {word}: {why}"))?;
        }
        scene.compute = match &self.compute {
            ComputeOption::None => Compute::Ignored,
            ComputeOption::Measured(scale) => {
                eprintln!(
                    "fishplate: --compute measured: the program's computing is timed on this machine, so times differ from run \
                     to run"
                );
                Compute::Measured(*scale)
            }
            ComputeOption::Recorded => Compute::Recorded,
        };
        let trace = self.trace.as_deref();
        let title = format!("{ranks} ranks on {word}: calls, processors, buses and links");
        let trace = trace
            .map(|file| EventsFile::create(file, self.trace_part.as_deref(), title))
            .transpose()?;
        scene.traced = trace.is_some();
        let checks = Checks::of(&self.check)?;
        scene.keeps_notes = checks.windows;
        scene.notes_messages = checks.messages.is_some();
        scene.free_start = self.free_start;
        scene.wide_links = self.wide_links;
        let world = memory_file::of_length("fishplate-world", sim::memory::Memory::BYTES)
            .map_err(|why| format!("cannot create the memory of the modelled machine: {why}"))?;
        Ok(ModelledJob {
            sleeping: !matches!(self.compute, ComputeOption::None),
            cores_of_rank: model::cores_of_rank(&scene.system, per_host.min(ranks)),
            launched: Some(launch::ModelledMachine {
                hosts: pmi::Hosts::renumbered(&scene.hosts),
                scene: scene.encode(),
                world: Arc::new(world),
                virtual_clocks: !self.real_clocks,
            }),
            settings,
            trace,
            checks,
            records_work: scene.compute == Compute::Recorded,
            has_steps: false,
            ranks,
            faults: scene.faults.ports.as_slice().to_vec(),
            hosts: scene.hosts,
        })
    }
}

impl ModelledArguments {
    /// Adds the faults that the user requests to the machine, which is named `word` in errors.
    fn add_faults(&self, scene: &mut MachineConfig, word: &str) -> Result<(), String> {
        if let Some(file) = &self.faults {
            scene.faults = crate::faults::read(file)?;
        }
        for fault in &self.fault {
            let added = scene.faults.ports.push(*fault);
            added.map_err(|why| format!("--fault: {why}"))?;
        }
        let ports = scene.faults.ports.check(&scene.system);
        ports.map_err(|why| format!("a fault on --fabric {word}: {why}"))
    }
}

/// Prints the settings by which the ranks imitate the library that the machine `word` names. Prints
/// nothing if there are none. The choices of algorithms, which may be long, are their table's name.
fn say_settings(word: &str, software: &Software, settings: &[(&str, String)]) {
    let set = settings.iter().map(|(name, value)| {
        let table = algorithms::table(software).filter(|_| *name == algorithms::VARIABLE);
        let value = table.map_or(value.as_str(), |table| &table.name);
        let name = name.trim_start_matches("FISHPLATE_").to_lowercase();
        format!("{}={value}", name.replace('_', "-"))
    });
    let set: Vec<String> = set.collect();
    if !set.is_empty() {
        eprintln!(
            "fishplate: predicting the MPI library that {word} names: {}",
            set.join(" ")
        );
    }
}

/// The programs of a job with their arguments, as one line.
pub(crate) fn command_line(programs: &[launch::Program]) -> String {
    let line = |program: &launch::Program| {
        let words = std::iter::once(&program.program).chain(&program.arguments);
        let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    };
    let lines: Vec<String> = programs.iter().map(line).collect();
    lines.join(" : ").replace(char::is_control, "?")
}

impl ModelledJob {
    /// The settings of the predicted library that no variable in `set` sets.
    pub(crate) fn defaults(&self, set: &[(String, String)]) -> Vec<(OsString, OsString)> {
        let is_free = |name: &str| {
            let knob = knobs::TABLE.iter().find(|knob| knob.env == name);
            let sets = |(variable, text): &(String, String)| {
                knob.is_some_and(|knob| knob.answers_to(variable)) && !text.trim().is_empty()
            };
            !set.iter().any(sets)
        };
        let free = self.settings.iter().filter(|(name, _)| is_free(name));
        free.map(|(name, value)| (name.into(), value.into()))
            .collect()
    }

    /// Environment variables for the threads of a program, unless the user has set them. OpenMP
    /// starts as many threads as a rank has cores on a modelled host. Idle threads sleep instead of
    /// polling, because a model charges processor time, and polling is not the program's work.
    pub(crate) fn of_threads(&self, set: &[(String, String)]) -> Vec<(OsString, OsString)> {
        let is_free = |name: &str| {
            std::env::var_os(name).is_none() && !set.iter().any(|(variable, _)| variable == name)
        };
        let sleeping = SLEEPING.iter().filter(|_| self.sleeping);
        let wanted = sleeping.map(|(name, value)| (*name, value.to_string()));
        let cores = self.cores_of_rank.map(|cores| cores.to_string());
        wanted
            .chain(cores.map(|cores| (model::THREADS_VARIABLE, cores)))
            .filter(|(name, _)| is_free(name))
            .map(|(name, value)| (name.into(), value.into()))
            .collect()
    }

    /// The reason why one of these programs has clocks that show this computer's time although they
    /// should show virtual time. `None` if there is no such program.
    pub(crate) fn real_clocks(&self, programs: &[launch::Program]) -> Option<String> {
        self.launched
            .as_ref()
            .filter(|stage| stage.virtual_clocks)?;
        programs
            .iter()
            .find_map(launch::real_clocks)
            .map(String::from)
    }

    /// The name of a link between switches by the number of its rail and its own.
    pub(crate) fn link_name(&self, rail: u32, link: u32) -> Option<String> {
        let scene = MachineConfig::decode(&self.launched.as_ref()?.scene).ok()?;
        let network = scene.system.network(&scene.system.rail(rail))?;
        Some(::fabric::link_name(&network, link))
    }

    /// The use of the modelled machine's resources, busiest first.
    pub(crate) fn usage(&self) -> io::Result<Vec<Usage>> {
        let Some(stage) = &self.launched else {
            return Ok(Vec::new());
        };
        Usage::read(&File::from(stage.world.try_clone()?))
    }

    /// For each rank the virtual times, in seconds, at which it began the steps that the replayed
    /// trace marks. Empty without marks.
    pub(crate) fn steps(&self) -> io::Result<Vec<Vec<f64>>> {
        let Some(stage) = self.launched.as_ref().filter(|_| self.has_steps) else {
            return Ok(Vec::new());
        };
        let world = File::from(stage.world.try_clone()?);
        let seconds = |times: Vec<u64>| times.into_iter().map(|time| time as f64 * 1e-12);
        let steps = model::steps(&world, self.ranks)?.into_iter();
        Ok(steps.map(|times| seconds(times).collect()).collect())
    }

    /// The times of work inside MPI, each a line, if they are recorded.
    pub(crate) fn work_inside(&self) -> io::Result<String> {
        let Some(stage) = self.launched.as_ref().filter(|_| self.records_work) else {
            return Ok(String::new());
        };
        let world = File::from(stage.world.try_clone()?);
        Ok(model::local_work(&world)?.lines())
    }

    /// True if faults of ports are planned; after the job, those that did not happen are reported.
    pub(crate) fn has_port_faults(&self) -> bool {
        !self.faults.is_empty()
    }

    /// Prints the planned faults of ports that did not happen in a job of `seconds` seconds.
    pub(crate) fn say_missed_faults(&self, seconds: f64) {
        for fault in &self.faults {
            if let Some(text) = crate::faults::missed(fault, &self.hosts, seconds) {
                eprintln!("fishplate: {text}");
            }
        }
    }

    /// Writes the events picture after the job, and reports conflicting accesses.
    pub(crate) fn finish(self) -> Result<(), String> {
        let Some(stage) = self.launched else {
            return Ok(());
        };
        let world = Arc::try_unwrap(stage.world).or_else(|world| world.try_clone());
        let world = world.map_err(|why: io::Error| {
            format!("cannot reopen the memory of the modelled machine: {why}")
        })?;
        let world = File::from(world);
        let mut problems = Vec::new();
        if let Some(events) = self.trace {
            problems.extend(events.write(&world).err());
        }
        problems.extend(self.checks.report(&world));
        match problems.is_empty() {
            true => Ok(()),
            false => Err(problems.join("; ")),
        }
    }
}
