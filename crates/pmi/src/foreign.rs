//! Detection of other launchers.
//!
//! A process that another launcher started is one of several. If it took itself for the only rank,
//! it would silently compute wrong results. So it is refused, unless that launcher's variables say
//! that it is the only one.

use knobs::RANK;

use crate::{Error, aliases};

/// The traces of one launcher in the environment.
struct ForeignLauncher {
    name: &'static str,
    /// Variables of which at least one is set in every rank, and none anywhere else.
    marks: &'static [&'static str],
    /// Variables of which the first that is set holds the number of ranks.
    sizes: &'static [&'static str],
}

const LAUNCHERS: &[ForeignLauncher] = &[
    ForeignLauncher {
        name: "Open MPI",
        marks: &["OMPI_COMM_WORLD_RANK"],
        sizes: &["OMPI_COMM_WORLD_SIZE"],
    },
    ForeignLauncher {
        name: "MVAPICH",
        marks: &["MV2_COMM_WORLD_RANK"],
        sizes: &["MV2_COMM_WORLD_SIZE"],
    },
    ForeignLauncher {
        name: "PALS",
        marks: &["PALS_RANKID"],
        sizes: &["PMI_SIZE"],
    },
    ForeignLauncher {
        name: "Flux",
        marks: &["FLUX_TASK_RANK"],
        sizes: &["FLUX_JOB_SIZE"],
    },
    ForeignLauncher {
        name: "JSM",
        marks: &["JSM_NAMESPACE_RANK"],
        sizes: &["JSM_NAMESPACE_SIZE"],
    },
    ForeignLauncher {
        name: "a PMI launcher such as MPICH's or Intel MPI's mpiexec",
        marks: &["PMI_RANK", "PMI_FD", "PMI_PORT"],
        sizes: &["PMI_SIZE"],
    },
    ForeignLauncher {
        name: "a PMIx launcher",
        marks: &["PMIX_RANK"],
        sizes: &["OMPI_COMM_WORLD_SIZE"],
    },
    ForeignLauncher {
        name: "Slurm's srun",
        marks: &["SLURM_PROCID"],
        sizes: &["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"],
    },
];

/// Slurm's first number of a step without ranks (a batch script, an interactive shell).
const FIRST_SPECIAL_STEP: u64 = 0xffff_fff0;

/// Fails if another launcher started this process as one of several.
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

/// Whether this process belongs to a Slurm step with ranks. `salloc` and batch scripts set
/// SLURM_PROCID too, but are none.
fn in_slurm_step<'a>(find: &impl Fn(&str) -> Option<&'a str>) -> bool {
    let step = find("SLURM_STEP_ID").or_else(|| find("SLURM_STEPID"));
    step.and_then(|step| step.parse().ok())
        .is_some_and(|step: u64| step < FIRST_SPECIAL_STEP)
}

/// The other launchers whose variables are set, with the names of those variables. For a listing:
/// unlike [`Job::from_env`](crate::Job::from_env) it includes launchers of a single rank.
pub fn launchers_seen<'a>(
    find: impl Fn(&str) -> Option<&'a str>,
) -> Vec<(&'static str, Vec<&'static str>)> {
    // Our own launcher sets some of their variables too.
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
