//! Recognising that another launcher started this process.
//!
//! Such a process is one of several, and taking itself for the only rank would compute wrong results in silence. So it
//! is refused, unless that launcher says that there is only one.

use crate::Error;

/// How one launcher shows in the environment.
struct Launcher {
    name: &'static str,
    /// Any of these is set in every rank, and nowhere else.
    marks: &'static [&'static str],
    /// The first of these that is set holds the number of ranks.
    sizes: &'static [&'static str],
}

const LAUNCHERS: &[Launcher] = &[
    Launcher {
        name: "Open MPI",
        marks: &["OMPI_COMM_WORLD_RANK"],
        sizes: &["OMPI_COMM_WORLD_SIZE"],
    },
    Launcher {
        name: "MVAPICH",
        marks: &["MV2_COMM_WORLD_RANK"],
        sizes: &["MV2_COMM_WORLD_SIZE"],
    },
    Launcher {
        name: "PALS",
        marks: &["PALS_RANKID"],
        sizes: &["PMI_SIZE"],
    },
    Launcher {
        name: "Flux",
        marks: &["FLUX_TASK_RANK"],
        sizes: &["FLUX_JOB_SIZE"],
    },
    Launcher {
        name: "JSM",
        marks: &["JSM_NAMESPACE_RANK"],
        sizes: &["JSM_NAMESPACE_SIZE"],
    },
    Launcher {
        name: "a PMI launcher such as MPICH's or Intel MPI's mpiexec",
        marks: &["PMI_RANK", "PMI_FD", "PMI_PORT"],
        sizes: &["PMI_SIZE"],
    },
    Launcher {
        name: "a PMIx launcher",
        marks: &["PMIX_RANK"],
        sizes: &["OMPI_COMM_WORLD_SIZE"],
    },
    Launcher {
        name: "Slurm's srun",
        marks: &["SLURM_PROCID"],
        sizes: &["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"],
    },
];

/// Slurm numbers the steps that are no ranks (a batch script, an interactive shell) from here on.
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

impl Launcher {
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

/// `salloc` and batch scripts set SLURM_PROCID too, without being ranks; only a numbered step has ranks.
fn in_slurm_step<'a>(find: &impl Fn(&str) -> Option<&'a str>) -> bool {
    let step = find("SLURM_STEP_ID").or_else(|| find("SLURM_STEPID"));
    step.and_then(|step| step.parse().ok())
        .is_some_and(|step: u64| step < FIRST_SPECIAL_STEP)
}

/// The launchers whose variables are set, with what was seen: for a listing, so also where there is only one rank.
pub fn launchers_seen<'a>(
    find: impl Fn(&str) -> Option<&'a str>,
) -> Vec<(&'static str, Vec<&'static str>)> {
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
