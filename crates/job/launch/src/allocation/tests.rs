//! Tests with recorded environments of batch systems.

use std::collections::HashMap;

use super::*;
use crate::host_list::HostList;

/// Finds an allocation in an environment of lines `NAME=VALUE`; a name that begins with `/` is a
/// file, one that begins with `$` a command.
fn find_by(choice: AllocationChoice, recorded: &[&str]) -> Result<Option<Allocation>, String> {
    let known: HashMap<String, String> = recorded
        .iter()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect();
    let missing = || io::Error::from(io::ErrorKind::NotFound);
    let surroundings = Surroundings {
        variable: &|name| known.get(name).cloned(),
        file: &|path| {
            known
                .get(path.to_str().unwrap())
                .cloned()
                .ok_or_else(missing)
        },
        command: &|words| {
            let name = format!("${}", words.join(" "));
            known.get(&name).cloned().ok_or_else(missing)
        },
    };
    Allocation::find(choice, &surroundings)
}

fn found(recorded: &[&str]) -> Allocation {
    find_by(AllocationChoice::Any, recorded).unwrap().unwrap()
}

fn why_not(recorded: &[&str]) -> String {
    find_by(AllocationChoice::Any, recorded).unwrap_err()
}

const SLURM: &[&str] = &[
    "SLURM_JOB_ID=17",
    "SLURM_JOB_NODELIST=node[01-03],x",
    "SLURM_TASKS_PER_NODE=2(x3),1",
];

#[test]
fn slurm_gives_hosts_and_places() {
    let allocation = found(SLURM);
    assert_eq!(allocation.name, "Slurm job 17");
    assert_eq!(allocation.shown(), "node01:2,node02:2,node03:2,x:1");
    let words = allocation.reach.words.unwrap();
    assert_eq!(words[..2], ["srun", "--nodelist={host}"]);
    assert!(words.contains(&"--overlap".into()) && words.contains(&"--unbuffered".into()));
}

#[test]
fn slurm_without_tasks_of_each_node_gives_cores_or_a_number() {
    let base = ["SLURM_JOBID=1", "SLURM_NODELIST=a,b", "SLURM_NTASKS=4"];
    let allocation = found(&base);
    assert_eq!(
        (allocation.shown(), allocation.ranks()),
        ("a,b".into(), Some(4))
    );
    let more = [
        "SLURM_TASKS_PER_NODE=1",
        "SLURM_JOB_CPUS_PER_NODE=8(x2)",
        "SLURM_CPUS_PER_TASK=2",
    ];
    let all: Vec<&str> = base.iter().chain(&more).copied().collect();
    assert_eq!(found(&all).shown(), "a:4,b:4");
}

#[test]
fn files_of_pbs_lsf_and_grid_engine_are_read() {
    let pbs = [
        "PBS_NODEFILE=/nodes",
        "PBS_JOBID=9.server",
        "/nodes=a\na\nb\n",
    ];
    assert_eq!(
        found(&pbs).describe(),
        "PBS job 9.server: a:2,b:1 (agents start by ssh)"
    );
    let lsf = ["LSB_MCPU_HOSTS=a 2 b 4", "LSB_JOBID=5"];
    assert_eq!(
        found(&lsf).describe(),
        "LSF job 5: a:2,b:4 (agents start by blaunch)"
    );
    let file = ["LSB_DJOB_HOSTFILE=/hosts", "/hosts=a\nb\na\n"];
    assert_eq!(
        found(&file).describe(),
        "the LSF job: a:2,b:1 (agents start by blaunch)"
    );
    let engine = [
        "PE_HOSTFILE=/pe",
        "JOB_ID=3",
        "/pe=a.x 2 all.q@a.x UNDEFINED\nb.x 1 all.q@b.x <NULL>\n",
    ];
    assert_eq!(
        found(&engine).describe(),
        "Grid Engine job 3: a.x:2,b.x:1 (agents start by qrsh)"
    );
}

#[test]
fn flux_gives_a_place_for_each_core() {
    let resources = r#"{"version":1,"execution":{"R_lite":[{"rank":"0","children":{"core":"0-3"}},
        {"rank":"1-2","children":{"core":"0-1,8","gpu":"0"}}],"nodelist":["f[1-3]"]}}"#;
    let command = format!("$flux resource R={resources}");
    let recorded = ["FLUX_URI=local:///run/flux", command.as_str()];
    let allocation = found(&recorded);
    assert_eq!(allocation.shown(), "f1:4,f2:3,f3:3");
    assert_eq!(allocation.hosts[2].index, 2);
    // Flux inside of Slurm is found first.
    let both: Vec<&str> = SLURM.iter().chain(&recorded).copied().collect();
    assert_eq!(found(&both).name, "the Flux instance");
}

#[test]
fn an_operator_of_kubernetes_names_hostfile_and_shell() {
    let script = "/etc/mpi/kubexec.sh=#!/bin/sh\nPOD_NAME=$1\nshift\n/opt/kube/kubectl exec ${POD_NAME} -- /bin/sh -c \"$*\"";
    let recorded = [
        "OMPI_MCA_orte_default_hostfile=/etc/mpi/hostfile",
        "OMPI_MCA_plm_rsh_agent=/etc/mpi/kubexec.sh",
        "/etc/mpi/hostfile=w-0 slots=2\nw-1 slots=2\n",
        script,
    ];
    let allocation = found(&recorded);
    assert_eq!(allocation.shown(), "w-0:2,w-1:2");
    let words = allocation.reach.words.unwrap();
    assert_eq!((words[0].as_str(), words[1].as_str()), ("sh", "-c"));
    assert!(
        words[2].contains("kubectl exec -i ${POD_NAME}"),
        "{}",
        words[2]
    );
    assert_eq!(words[3..], ["/etc/mpi/kubexec.sh", "{host}"]);
    let recorded = [
        "HYDRA_HOST_FILE=/hosts",
        "HYDRA_LAUNCH_EXTRA_ARGS=-o ConnectionAttempts=10",
        "/hosts=w-0:2\nw-1:1\n",
    ];
    let words = found(&recorded).reach.words.unwrap();
    assert_eq!(words[0], "ssh");
    assert_eq!(
        words[words.len() - 3..],
        ["-o", "ConnectionAttempts=10", "{host}"]
    );
}

#[test]
fn what_cannot_be_read_is_explained() {
    for (recorded, expected) in [
        (
            &["SLURM_JOB_ID=1", "SLURM_JOB_NODELIST=a["][..],
            "Slurm job 1: SLURM_JOB_NODELIST: `a[`",
        ),
        (
            &["SLURM_JOB_ID=1", "SLURM_JOB_NODELIST=-o", "SLURM_NTASKS=1"],
            "no name of a host",
        ),
        (
            &[
                "SLURM_JOB_ID=1",
                "SLURM_NODELIST=a",
                "SLURM_TASKS_PER_NODE=x",
            ],
            "SLURM_TASKS_PER_NODE",
        ),
        (&["PBS_NODEFILE=/none"], "PBS_NODEFILE=/none: "),
        (&["PBS_NODEFILE=/nodes", "/nodes=\n"], "names no host"),
        (&["LSB_MCPU_HOSTS=a 2 b"], "pairs of a host and a number"),
        (&["PE_HOSTFILE=/pe", "/pe=a x"], "/pe:1: a line is"),
        (&["FLUX_URI=x"], "flux resource R"),
        (&["FLUX_URI=x", "$flux resource R={}"], "no description"),
    ] {
        let why = why_not(recorded);
        assert!(why.contains(expected), "{why}");
    }
}

#[test]
fn the_user_chooses_among_allocations() {
    let find = |word: &str, recorded| find_by(AllocationChoice::parse(word).unwrap(), recorded);
    assert_eq!(find("auto", &[]), Ok(None));
    assert_eq!(find("none", SLURM), Ok(None));
    assert_eq!(find("slurm", SLURM).unwrap().unwrap().name, "Slurm job 17");
    assert!(
        find("pbs", SLURM)
            .unwrap_err()
            .contains("no such allocation")
    );
    assert!(
        AllocationChoice::parse("cobalt")
            .unwrap_err()
            .contains("slurm")
    );
}

#[test]
fn a_list_of_the_user_has_to_fit() {
    let allocation = found(SLURM);
    let restrict = |list: &str, oversubscribe| {
        let list = HostList::parse(list).unwrap();
        let fitting = allocation.restrict(&list, oversubscribe)?;
        let words = fitting.hosts.iter();
        let words = words.map(|host| format!("{}:{}", host.name, host.places.unwrap()));
        Ok::<_, String>(words.collect::<Vec<_>>().join(","))
    };
    assert_eq!(restrict("node02,x", false).as_deref(), Ok("node02:2,x:1"));
    assert_eq!(
        restrict("node02.cluster:1", false).as_deref(),
        Ok("node02:1")
    );
    let twice = "node02.cluster:1,node02:1";
    assert_eq!(restrict(twice, false).as_deref(), Ok("node02:2"));
    assert_eq!(restrict("x:5", true).as_deref(), Ok("x:5"));
    let why = restrict("x:5", false).unwrap_err();
    assert!(
        why.contains("--hosts x:5: 5 ranks on x, for which Slurm job 17 has 1 places"),
        "{why}"
    );
    let why = restrict("y", false).unwrap_err();
    assert!(
        why.contains("y does not belong to Slurm job 17, which has node01:2"),
        "{why}"
    );
}
