//! The hosts of a Slurm job, found by its variables. Agents are started by `srun`.

use super::given::{Allocation, Reach, Surroundings};
use super::hostlist::{counts, expand};
use crate::host_table::ListedHost;

/// The command that reaches one host. Its step takes no resources from steps of ranks, binds
/// nothing, and forwards bytes at once: without `--unbuffered`, srun waits for ends of lines.
const SRUN: &str = "srun --nodelist={host} --nodes=1 --ntasks=1 --overlap --mpi=none \
                    --cpu-bind=none --mem=0 --unbuffered --kill-on-bad-exit=0";

/// Variables that describe the job's own tasks. They are removed, as srun would read each as an
/// option for the agent's step.
const OPTIONS: &[&str] = &[
    "SLURM_CPU_BIND",
    "SLURM_CPU_BIND_LIST",
    "SLURM_CPU_BIND_TYPE",
    "SLURM_CPU_BIND_VERBOSE",
    "SLURM_CPUS_PER_GPU",
    "SLURM_CPUS_PER_TASK",
    "SLURM_DISTRIBUTION",
    "SLURM_EXACT",
    "SLURM_EXCLUSIVE",
    "SLURM_HINT",
    "SLURM_LABELIO",
    "SLURM_MEM_PER_CPU",
    "SLURM_MEM_PER_GPU",
    "SLURM_MEM_PER_NODE",
    "SLURM_MPI_TYPE",
    "SLURM_NNODES",
    "SLURM_NPROCS",
    "SLURM_NTASKS",
    "SLURM_NTASKS_PER_CORE",
    "SLURM_NTASKS_PER_GPU",
    "SLURM_NTASKS_PER_NODE",
    "SLURM_NTASKS_PER_SOCKET",
    "SLURM_STDERRMODE",
    "SLURM_STDINMODE",
    "SLURM_STDOUTMODE",
    "SLURM_THREADS_PER_CORE",
    "SLURM_TRES_PER_TASK",
    "SLURM_WAIT",
    "SLURM_WHOLE",
    "SRUN_CPUS_PER_TASK",
];

pub(super) fn find(from: &Surroundings<'_>) -> Result<Option<Allocation>, String> {
    let Some((_, job)) = from.first(&["SLURM_JOB_ID", "SLURM_JOBID"]) else {
        return Ok(None);
    };
    let Some((list_name, list)) = from.first(&["SLURM_JOB_NODELIST", "SLURM_NODELIST"]) else {
        return Ok(None);
    };
    let name = format!("Slurm job {job}");
    let wrong = |variable: &str, why: String| format!("{name}: {variable}: {why}");
    let names = expand(&list).map_err(|why| wrong(list_name, why))?;
    let number = |variable| {
        from.get(variable)
            .and_then(|text| text.parse::<usize>().ok())
    };
    let mut places = None;
    // In a step, the first variable is that of the step, and may describe fewer hosts.
    for (variable, divisor) in [
        ("SLURM_TASKS_PER_NODE", 1),
        (
            "SLURM_JOB_CPUS_PER_NODE",
            number("SLURM_CPUS_PER_TASK").unwrap_or(1).max(1),
        ),
    ] {
        let Some(text) = from.get(variable) else {
            continue;
        };
        let counts = counts(&text).map_err(|why| wrong(variable, why))?;
        if counts.len() == names.len() {
            let each = counts.into_iter().map(|count| (count / divisor).max(1));
            places = Some(each.collect::<Vec<_>>());
            break;
        }
    }
    let hosts = names.into_iter().enumerate().map(|(at, name)| ListedHost {
        name,
        places: places.as_ref().map(|places| places[at]),
        most: None,
        index: at,
    });
    let ranks = match places {
        None => number("SLURM_NTASKS").or_else(|| number("SLURM_NPROCS")),
        Some(_) => None,
    };
    let reach = Reach {
        words: Some(SRUN.split_whitespace().map(str::to_string).collect()),
        unset: OPTIONS,
    };
    Allocation::new(name, hosts.collect(), ranks, reach)
}
