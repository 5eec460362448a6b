//! The detection of launchers of other MPI libraries, and of the protocol between each of them and
//! its ranks.
//!
//! A process that another launcher started is one of several. If it assumed that it is the only
//! rank, it would silently compute wrong results. So it is refused if no protocol connects it with
//! the others, unless that launcher's variables say that it is the only rank.

use std::os::fd::OwnedFd;

use knobs::{Knobs, PmiVersion, RANK};
use rustix::event::PollFlags;

use super::pmi_wire::{PmiWire, Version};
use super::pmix::PmixWire;
use super::{ForeignJob, Opened, guardian, watch_launcher};
use crate::inherit::{Inherited, InheritedKind};
use crate::{Error, aliases};

/// The variable with the descriptor of the connection to a launcher with PMI.
const PMI_FD: &str = "PMI_FD";
/// The variable with the name of the job under a launcher with PMIx.
const PMIX_NAMESPACE: &str = "PMIX_NAMESPACE";

/// The mark of a launcher: environment variables that all of its ranks have. The string is the
/// launcher's name.
type Mark = (&'static [&'static str], &'static str);

/// Launchers that support PMI, the most specific marks first.
const BY_PMI: &[Mark] = &[
    (&["FLUX_TASK_RANK"], "Flux"),
    (&["HYDRA_BSTRAP_LAUNCHER"], "Intel MPI's mpiexec"),
    (&["PMI_HOSTNAME"], "MPICH's mpiexec"),
    (&["MV2_COMM_WORLD_RANK"], "MVAPICH's mpiexec"),
    (&["PMI_JOBID", "SLURM_STEP_ID"], "Slurm's srun"),
    (&[], "a launcher with PMI"),
];

/// Launchers that support PMIx, the most specific marks first.
const BY_PMIX: &[Mark] = &[
    (&["OMPI_COMM_WORLD_RANK"], "Open MPI's mpirun"),
    (&["PRTE_LAUNCHED"], "prterun"),
    (&["SLURM_PMIX_MAPPING_SERV"], "Slurm's srun"),
    (&["FLUX_TASK_RANK"], "Flux"),
    (&[], "a launcher with PMIx"),
];

/// Connects this process to a launcher of another MPI library. `None`: no such launcher started it,
/// or it is the only rank and needs none.
pub(crate) fn open<'a>(
    find: impl Fn(&str) -> Option<&'a str>,
    knobs: &Knobs,
) -> Result<Option<ForeignJob>, Error> {
    let Some((launcher, protocol)) = protocol_of(&find) else {
        return check(find).map(|()| None);
    };
    let (mark, own_rank) = match protocol {
        PMIX => (PMIX_NAMESPACE, "PMIX_RANK"),
        _ => (PMI_FD, "PMI_RANK"),
    };
    let unreachable = |why: String| Error::Unreachable {
        launcher,
        protocol,
        seen: format!("{mark}={}", find(mark).unwrap_or_default()),
        why,
    };
    let guardian = guardian::find();
    // Opening the connection waits for the launcher, with libpmix without limit.
    let opening = guardian.as_ref().and_then(|process| {
        let rank = number(&find, own_rank).ok()?;
        watch_launcher(rank, vec![(process.try_clone().ok()?, PollFlags::IN)])
    });
    let opened = match protocol {
        PMIX => PmixWire::open(&find, &knobs.pmix_library).map(|(wire, facts)| Opened {
            launcher,
            protocol,
            rank: facts.rank,
            program: facts.program,
            hosts: facts.hosts,
            wire: Box::new(wire),
        }),
        _ => by_pmi(launcher, &find, knobs.pmi),
    };
    drop(opening);
    let sizes = match protocol {
        PMIX => &["OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"][..],
        _ => &["PMI_SIZE"],
    };
    // An only rank needs no launcher, nor does a process started by it.
    if opened.is_err() && sizes.iter().any(|size| number(&find, size) == Ok(1)) {
        return Ok(None);
    }
    let job = opened.and_then(|opened| ForeignJob::join(opened, guardian));
    job.map(Some).map_err(unreachable)
}

const PMI: &str = "PMI";
const PMIX: &str = "PMIx";

/// The launcher of another MPI library that started this process as a rank of its job, and the
/// protocol of the connection to it: their names.
pub fn launcher_of<'a>(
    find: impl Fn(&str) -> Option<&'a str>,
) -> Option<(&'static str, &'static str)> {
    match find(RANK) {
        Some(_) => None,
        None => protocol_of(&find),
    }
}

fn protocol_of<'a>(
    find: &impl Fn(&str) -> Option<&'a str>,
) -> Option<(&'static str, &'static str)> {
    let name = |marks: &[Mark]| {
        let mut marks = marks.iter();
        let found = marks.find(|(marks, _)| marks.iter().all(|mark| find(mark).is_some()));
        found.map_or("a launcher", |(_, name)| name)
    };
    // A launcher with PMI that runs within a step of one with PMIx inherits the latter's variables.
    let has_pmi = [PMI_FD, "PMI_RANK", "PMI_SIZE"]
        .iter()
        .all(|name| find(name).is_some());
    if has_pmi {
        return Some((name(BY_PMI), PMI));
    }
    let has_pmix = find(PMIX_NAMESPACE).is_some() && find("PMIX_RANK").is_some();
    has_pmix.then(|| (name(BY_PMIX), PMIX))
}

/// Connects to a launcher over PMI-1 or PMI-2.
fn by_pmi<'a>(
    launcher: &'static str,
    find: &impl Fn(&str) -> Option<&'a str>,
    wanted: PmiVersion,
) -> Result<Opened, String> {
    let (rank, size) = (number(find, "PMI_RANK")?, number(find, "PMI_SIZE")?);
    if rank >= size || size > knobs::MOST_RANKS {
        let most = knobs::MOST_RANKS;
        return Err(format!(
            "PMI_RANK={rank} and PMI_SIZE={size} are no rank of a job of up to {most} ranks"
        ));
    }
    let socket = pmi_socket(find(PMI_FD).unwrap_or_default())?;
    let job = find("PMI_JOBID").unwrap_or("0");
    let wanted = match wanted {
        PmiVersion::One => Version::One,
        PmiVersion::Two => Version::Two,
        // Slurm's plugin is written for PMI-2; with all other launchers PMI-1 has more users.
        PmiVersion::Auto if find("SLURM_MPI_TYPE") == Some("pmi2") => Version::Two,
        PmiVersion::Auto => Version::One,
    };
    let (wire, facts) =
        PmiWire::open(socket, wanted, rank, size, job).map_err(|why| why.to_string())?;
    let protocol = match wire.version() {
        Version::One => "PMI-1",
        Version::Two => "PMI-2",
    };
    Ok(Opened {
        launcher,
        protocol,
        rank,
        program: facts.program,
        hosts: facts.hosts,
        wire: Box::new(wire),
    })
}

fn pmi_socket(value: &str) -> Result<OwnedFd, String> {
    let socket = Inherited::find(PMI_FD, value, InheritedKind::Stream);
    socket.and_then(Inherited::take).map_err(|error| match error {
        Error::Descriptor { why, .. } => format!(
            "{PMI_FD}={value}: {why} (to run a program from within a rank as a job of its own, unset {PMI_FD})"
        ),
        _ => format!("{PMI_FD}={value} is not a number"),
    })
}

fn number<'a>(find: &impl Fn(&str) -> Option<&'a str>, name: &str) -> Result<usize, String> {
    let value = find(name).unwrap_or_default();
    value
        .parse()
        .map_err(|_| format!("{name}={value} is not a number"))
}

/// The variables by which one launcher is recognized in the environment.
struct ForeignLauncher {
    name: &'static str,
    /// Variables of which at least one is set in every rank of this launcher, and in no other
    /// process.
    marks: &'static [&'static str],
    /// Variables for the number of ranks; the first one that is set is used.
    sizes: &'static [&'static str],
    /// A clause for the error message: the command that starts a job whose ranks can reach each
    /// other. It ends with ", or ", and is empty if there is no such command.
    advice: &'static str,
}

/// The advice for a launcher without a command whose ranks can reach each other.
const NO_ADVICE: &str = "";

const LAUNCHERS: &[ForeignLauncher] = &[
    ForeignLauncher {
        name: "Open MPI",
        marks: &["OMPI_COMM_WORLD_RANK"],
        sizes: &["OMPI_COMM_WORLD_SIZE"],
        advice: NO_ADVICE,
    },
    ForeignLauncher {
        name: "MVAPICH",
        marks: &["MV2_COMM_WORLD_RANK"],
        sizes: &["MV2_COMM_WORLD_SIZE"],
        advice: NO_ADVICE,
    },
    ForeignLauncher {
        name: "PALS",
        marks: &["PALS_RANKID"],
        sizes: &["PMI_SIZE"],
        advice: NO_ADVICE,
    },
    ForeignLauncher {
        name: "Flux",
        marks: &["FLUX_TASK_RANK"],
        sizes: &["FLUX_JOB_SIZE"],
        advice: NO_ADVICE,
    },
    ForeignLauncher {
        name: "JSM",
        marks: &["JSM_NAMESPACE_RANK"],
        sizes: &["JSM_NAMESPACE_SIZE"],
        advice: NO_ADVICE,
    },
    ForeignLauncher {
        name: "a PMI launcher such as MPICH's or Intel MPI's mpiexec",
        marks: &["PMI_RANK", "PMI_FD", "PMI_PORT"],
        sizes: &["PMI_SIZE"],
        advice: NO_ADVICE,
    },
    ForeignLauncher {
        name: "a PMIx launcher",
        marks: &["PMIX_RANK"],
        sizes: &["OMPI_COMM_WORLD_SIZE"],
        advice: NO_ADVICE,
    },
    ForeignLauncher {
        name: "Slurm's srun",
        marks: &["SLURM_PROCID"],
        sizes: &["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"],
        advice: "start it with `srun --mpi=pmi2` or `srun --mpi=pmix`, or ",
    },
];

/// The first of Slurm's step numbers for steps without ranks (a batch script, an interactive
/// shell).
const FIRST_SPECIAL_STEP: u64 = 0xffff_fff0;

/// Fails if a launcher of another MPI library started this process as one of several.
pub(crate) fn check<'a>(find: impl Fn(&str) -> Option<&'a str>) -> Result<(), Error> {
    let mut several = LAUNCHERS
        .iter()
        .filter(|launcher| launcher.started(&find) && !launcher.alone(&find));
    let Some(launcher) = several.next() else {
        return Ok(());
    };
    let marks = launcher
        .marks
        .iter()
        .chain(several.flat_map(|other| other.marks));
    let mut seen: Vec<(String, String)> = Vec::new();
    for &mark in marks {
        if let Some(value) = find(mark) {
            seen.push((mark.to_string(), value.to_string()));
        }
    }
    Err(Error::Foreign {
        launcher: launcher.name,
        advice: launcher.advice,
        size: launcher.size(&find),
        seen,
    })
}

impl ForeignLauncher {
    fn started<'a>(&self, find: &impl Fn(&str) -> Option<&'a str>) -> bool {
        let marked = self.marks.iter().any(|mark| find(mark).is_some());
        marked && (self.marks != ["SLURM_PROCID"] || in_slurm_step(find))
    }

    fn alone<'a>(&self, find: &impl Fn(&str) -> Option<&'a str>) -> bool {
        self.size(find) == Some(1)
    }

    fn size<'a>(&self, find: &impl Fn(&str) -> Option<&'a str>) -> Option<usize> {
        self.sizes.iter().find_map(|name| find(name))?.parse().ok()
    }
}

/// True if this process belongs to a Slurm step with ranks. `salloc` and batch scripts have
/// SLURM_PROCID too, but are no ranks.
fn in_slurm_step<'a>(find: &impl Fn(&str) -> Option<&'a str>) -> bool {
    let step = find("SLURM_STEP_ID").or_else(|| find("SLURM_STEPID"));
    step.and_then(|step| step.parse().ok())
        .is_some_and(|step: u64| step < FIRST_SPECIAL_STEP)
}

/// The launchers of other MPI libraries whose variables are set, with the names of these variables.
/// It is for a listing: unlike [`start`](crate::start) it includes launchers of a single rank.
pub fn launchers_seen<'a>(
    find: impl Fn(&str) -> Option<&'a str>,
) -> Vec<(&'static str, Vec<&'static str>)> {
    // Our own launcher also sets some variables of other launchers.
    let is_rank = find(RANK).is_some();
    let find = |name: &str| find(name).filter(|_| !(is_rank && aliases::is_alias(name)));
    let seen = LAUNCHERS.iter().filter(|launcher| launcher.started(&find));
    seen.map(|launcher| {
        (
            launcher.name,
            launcher
                .marks
                .iter()
                .copied()
                .filter(|mark| find(mark).is_some())
                .collect(),
        )
    })
    .collect()
}
