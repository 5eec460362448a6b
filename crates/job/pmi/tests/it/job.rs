//! Tests of the environment variables by which our launcher, and those of other MPI libraries,
//! identify a rank.

use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};

use knobs::Knobs;
use pmi::{Bootstrap, Error, Hosts, Job, Notice, Started};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::SocketFlags;
use secret::Secret;

use crate::control_socket;

/// The job that these variables describe, if our launcher has set them. There is no libpmix.
fn read(vars: &[(&str, String)]) -> Result<Option<Job>, Error> {
    let vars = vars.iter();
    let vars = vars.map(|(name, value)| (name.to_string(), value.clone()));
    let knobs = Knobs {
        pmix_library: "/nowhere/libpmix.so".into(),
        ..Knobs::default()
    };
    match pmi::start(vars, &knobs)? {
        Started::Ours(job) => Ok(Some(*job)),
        Started::Alone => Ok(None),
        Started::Foreign(job) => panic!("{job:?}"),
    }
}

fn message(vars: &[(&str, String)]) -> String {
    read(vars).expect_err("accepted").to_string()
}

/// A segment as a launcher leaves it for a rank: not close-on-exec.
fn segment() -> OwnedFd {
    memfd_create("test", MemfdFlags::empty()).unwrap()
}

/// A control socket as a launcher leaves it for a rank: not close-on-exec.
fn sockets() -> (OwnedFd, OwnedFd) {
    control_socket(SocketFlags::empty())
}

fn job(segment: i32, control: i32) -> Vec<(&'static str, String)> {
    let mut variables = pmi::variables(1, &Hosts::one(4), control);
    variables.push((pmi::SEGMENT_FD, segment.to_string()));
    variables
}

#[test]
fn a_rank_knows_its_place_and_its_program() {
    let hosts = Hosts::parse("0*2,1,0", 4).unwrap();
    let variables = pmi::place_variables(3, &hosts);
    let of = |name: &str| {
        let row = variables.iter().find(|(known, _)| *known == name);
        row.unwrap_or_else(|| panic!("{name}")).1.clone()
    };
    for name in ["PMI_RANK", "OMPI_COMM_WORLD_RANK"] {
        assert_eq!(of(name), "3");
    }
    for name in [
        pmi::LOCAL_RANK,
        "MPI_LOCALRANKID",
        "OMPI_COMM_WORLD_LOCAL_RANK",
    ] {
        assert_eq!(of(name), "2");
    }
    for name in [
        pmi::LOCAL_SIZE,
        "MPI_LOCALNRANKS",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
    ] {
        assert_eq!(of(name), "3");
    }
    assert_eq!(
        (of("PMI_SIZE"), of("OMPI_COMM_WORLD_SIZE")),
        ("4".into(), "4".into())
    );

    let (_launcher, rank) = sockets();
    let mut vars = job(segment().into_raw_fd(), rank.into_raw_fd());
    vars.extend(variables);
    vars.push((pmi::APPNUM, "2".into()));
    assert_eq!(read(&vars).unwrap().expect("a job").program(), 2);
    // Variables that our launcher sets under names of other launchers do not count as theirs.
    let seen = |vars: &[(&str, String)]| {
        let find = |name: &str| {
            let row = vars.iter().find(|(known, _)| *known == name);
            row.map(|(_, value)| value.as_str())
        };
        pmi::launchers_seen(find).len()
    };
    assert_eq!(seen(&vars), 0);
    vars.push(("SLURM_PROCID", "0".into()));
    vars.push(("SLURM_STEP_ID", "0".into()));
    assert_eq!(seen(&vars), 1);
}

#[test]
fn a_size_beyond_any_job_is_refused_before_memory_is_taken() {
    let mut vars = job(3, 4);
    for size in ["4097", "4294967295", "18446744073709551615"] {
        let place = vars.iter_mut().find(|(name, _)| *name == pmi::SIZE);
        place.unwrap().1 = size.into();
        let message = message(&vars);
        let expected = format!("FISHPLATE_SIZE={size} is more than the 4096 ranks");
        assert!(message.contains(&expected), "{message}");
    }
}

#[test]
fn a_process_without_a_launcher_is_alone() {
    assert!(read(&[("PATH", "/bin".into())]).unwrap().is_none());
}

#[test]
fn the_contract_is_read_and_the_descriptors_are_close_on_exec() {
    let (launcher, rank) = sockets();
    let vars = job(segment().into_raw_fd(), rank.into_raw_fd());
    let job = read(&vars).unwrap().expect("a job");
    assert_eq!((job.rank(), job.size()), (1, 4));
    assert_eq!(job.hosts, Hosts::one(4));
    let segment = job.take_segment().expect("a segment");
    assert!(job.take_segment().is_none());
    assert_eq!(
        rustix::io::fcntl_getfd(&segment).unwrap(),
        rustix::io::FdFlags::CLOEXEC
    );
    job.notify(Notice::Finalized).unwrap();
    let mut line = [0; 64];
    let (_, length) =
        rustix::net::recv(&launcher, &mut line[..], rustix::net::RecvFlags::empty()).unwrap();
    assert_eq!(&line[..length], b"finalize\n");
    // A second adoption of the same descriptors is an error.
    let message = message(&vars);
    assert!(message.contains("has taken it before"), "{message}");
}

/// The names of the files that this process has open.
fn open_files() -> Vec<String> {
    let folder = std::fs::read_dir("/proc/self/fd").unwrap();
    let names = folder
        .flatten()
        .flat_map(|entry| std::fs::read_link(entry.path()));
    names.map(|name| name.display().to_string()).collect()
}

#[test]
fn a_rank_reads_the_secret_of_its_job_and_closes_its_file() {
    let inherited = |file: OwnedFd| {
        rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
        file.into_raw_fd()
    };
    let read_with = |secret: Option<i32>| {
        let (_launcher, rank) = sockets();
        let mut vars = job(segment().into_raw_fd(), rank.into_raw_fd());
        vars.extend(secret.map(|file| (pmi::SECRET_FD, file.to_string())));
        read(&vars)
    };
    let secret = Secret::draw().unwrap();
    let file = pmi::secret_file(&secret).unwrap();
    assert!(rustix::io::pwrite(&file, b"x", 0).is_err());
    let is_secret = |name: &String| name.contains("fishplate-secret");
    assert!(open_files().iter().any(is_secret));
    let rank = read_with(Some(inherited(file))).unwrap().expect("a job");
    assert_eq!(rank.secret(), Some(secret));
    assert!(!open_files().iter().any(is_secret));
    assert_eq!(read_with(None).unwrap().expect("a job").secret(), None);
    // An empty file is no secret.
    let message = read_with(Some(inherited(segment())))
        .unwrap_err()
        .to_string();
    assert!(message.contains("it does not hold 32 bytes"), "{message}");
}

#[test]
fn ranks_without_a_launcher_know_each_other_only_in_one_process() {
    let ranks = pmi::InProcess::job(Hosts::one(2));
    assert!(ranks[0].secret().is_some());
    assert_eq!(ranks[0].secret(), ranks[1].secret());
    let alone = pmi::Standalone::alone();
    assert!(alone.secret().is_some());
    assert_eq!(alone.secret(), alone.secret());
    assert_ne!(alone.secret(), pmi::Standalone::alone().secret());
    assert_eq!(pmi::Standalone::new(0, Hosts::one(2)).secret(), None);
}

#[test]
fn a_wrong_descriptor_is_refused_and_left_alone() {
    let (_launcher, rank) = sockets();
    let segment = segment();
    let file = OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
    let closed = 9999;
    let cases = [
        (segment.as_raw_fd(), segment.as_raw_fd(), "both descriptor"),
        (
            closed,
            rank.as_raw_fd(),
            "FISHPLATE_SEGMENT_FD=9999: not a descriptor of this job: it is not open",
        ),
        (
            segment.as_raw_fd(),
            closed,
            "FISHPLATE_CONTROL_FD=9999: not a descriptor of this job: it is not open",
        ),
        (
            segment.as_raw_fd(),
            file.as_raw_fd(),
            "it is not a socket to the launcher",
        ),
        (
            rank.as_raw_fd(),
            segment.as_raw_fd(),
            "it is not a socket to the launcher",
        ),
        (segment.as_raw_fd(), 1, "standard streams"),
        (segment.as_raw_fd(), -1, "standard streams"),
    ];
    for (segment, control, expected) in cases {
        let message = message(&job(segment, control));
        assert!(message.contains(expected), "{message}");
    }
    for descriptor in [&segment, &rank, &file] {
        assert!(
            rustix::io::fcntl_getfd(descriptor).unwrap().is_empty(),
            "was changed"
        );
    }
}

#[test]
fn a_file_is_no_segment() {
    let (_launcher, rank) = sockets();
    let file = OwnedFd::from(std::fs::File::open("/proc/self/exe").unwrap());
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
    let message = message(&job(file.as_raw_fd(), rank.into_raw_fd()));
    assert!(message.contains("it is not shared memory"), "{message}");
}

#[test]
fn half_a_contract_is_an_error_that_names_what_is_missing() {
    let good = job(7, 8);
    for missing in [pmi::SIZE, pmi::SEGMENT_FD, pmi::CONTROL_FD] {
        let vars: Vec<_> = good
            .iter()
            .filter(|(name, _)| *name != missing)
            .cloned()
            .collect();
        let message = message(&vars);
        assert!(message.contains(&format!("{missing} is not")), "{message}");
    }
    for (variable, value, expected) in [
        (
            pmi::RANK,
            "4",
            "FISHPLATE_RANK=4 is not below FISHPLATE_SIZE=4",
        ),
        (pmi::RANK, "x", "FISHPLATE_RANK=x is not a number"),
        (pmi::SIZE, "-1", "FISHPLATE_SIZE=-1 is not a number"),
        (
            pmi::CONTROL_FD,
            "x",
            "FISHPLATE_CONTROL_FD=x is not a number",
        ),
    ] {
        let mut vars = good.clone();
        vars.iter_mut()
            .find(|(name, _)| *name == variable)
            .unwrap()
            .1 = value.to_string();
        let message = message(&vars);
        assert!(message.contains(expected), "{message}");
    }
}

type Vars = &'static [(&'static str, &'static str)];

/// Each row has variables, and a part of the expected error, or `None` if the process is an only
/// rank.
const FOREIGN: &[(Vars, Option<&str>)] = &[
    (
        &[("PMI_RANK", "1"), ("PMI_SIZE", "2")],
        Some("PMI_RANK=1), "),
    ),
    // A program started by an only rank, without the connection to the launcher.
    (
        &[("PMI_RANK", "0"), ("PMI_SIZE", "1"), ("PMI_FD", "9999")],
        None,
    ),
    (&[("PMI_PORT", "host:99")], Some("run -n N")),
    (&[("PMIX_RANK", "0")], Some("PMIx")),
    // An only rank needs no libpmix.
    (
        &[
            ("PMIX_RANK", "0"),
            ("PMIX_NAMESPACE", "job"),
            ("SLURM_STEP_NUM_TASKS", "1"),
        ],
        None,
    ),
    (
        &[
            ("OMPI_COMM_WORLD_RANK", "0"),
            ("OMPI_COMM_WORLD_SIZE", "3"),
            ("PMIX_RANK", "0"),
        ],
        Some("run -n 3"),
    ),
    (
        &[
            ("OMPI_COMM_WORLD_RANK", "0"),
            ("OMPI_COMM_WORLD_SIZE", "1"),
            ("PMIX_RANK", "0"),
        ],
        None,
    ),
    (
        &[("PALS_RANKID", "0"), ("PMI_SIZE", "2")],
        Some("PALS_RANKID=0"),
    ),
    (
        &[("FLUX_TASK_RANK", "0"), ("FLUX_JOB_SIZE", "2")],
        Some("Flux"),
    ),
    (
        &[("JSM_NAMESPACE_RANK", "0"), ("JSM_NAMESPACE_SIZE", "2")],
        Some("JSM"),
    ),
    (
        &[("MV2_COMM_WORLD_RANK", "0"), ("MV2_COMM_WORLD_SIZE", "2")],
        Some("MVAPICH"),
    ),
    // In order: a step of several tasks; the shell of salloc; a batch script; an interactive step;
    // a step of one task.
    (
        &[
            ("SLURM_PROCID", "0"),
            ("SLURM_STEP_ID", "0"),
            ("SLURM_STEP_NUM_TASKS", "4"),
        ],
        Some("`srun --mpi=pmi2` or `srun --mpi=pmix`, or start"),
    ),
    (&[("SLURM_NTASKS", "4"), ("SLURM_JOB_ID", "1")], None),
    (&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4")], None),
    (
        &[
            ("SLURM_PROCID", "0"),
            ("SLURM_STEP_ID", "4294967290"),
            ("SLURM_NTASKS", "4"),
        ],
        None,
    ),
    (
        &[
            ("SLURM_PROCID", "0"),
            ("SLURM_STEP_ID", "0"),
            ("SLURM_STEP_NUM_TASKS", "1"),
            ("SLURM_NTASKS", "4"),
        ],
        None,
    ),
];

#[test]
fn a_rank_of_another_launcher_is_refused_and_a_lone_process_is_not() {
    for (vars, expected) in FOREIGN {
        let owned: Vec<(&str, String)> = vars
            .iter()
            .map(|(name, value)| (*name, value.to_string()))
            .collect();
        match (read(&owned), expected) {
            (Ok(None), None) => {}
            (Err(error), Some(expected)) => {
                let text = error.to_string();
                assert!(text.contains(expected), "{vars:?}: {text}");
                assert!(
                    text.contains("fishplate run") && text.contains("unset"),
                    "{vars:?}: {text}"
                );
            }
            (other, _) => panic!("{vars:?}: {other:?}"),
        }
    }
}

#[test]
fn a_launcher_that_cannot_be_reached_is_named_with_the_reason() {
    let cases: [(Vars, &str); 5] = [
        (
            &[("PMI_RANK", "1"), ("PMI_SIZE", "2"), ("PMI_FD", "9999")],
            "a launcher with PMI started this process (PMI_FD=9999), and over PMI this rank cannot join the others: \
             PMI_FD=9999: it is not open",
        ),
        (
            &[
                ("PMI_RANK", "2"),
                ("PMI_SIZE", "2"),
                ("PMI_FD", "9999"),
                ("PMI_HOSTNAME", "a"),
            ],
            "MPICH's mpiexec started this process (PMI_FD=9999), and over PMI this rank cannot join the others: \
             PMI_RANK=2 and PMI_SIZE=2 are no rank",
        ),
        (
            &[("PMI_RANK", "x"), ("PMI_SIZE", "2"), ("PMI_FD", "9999")],
            "PMI_RANK=x is not a number",
        ),
        (
            &[("PMI_RANK", "0"), ("PMI_SIZE", "5000"), ("PMI_FD", "9999")],
            "up to 4096 ranks",
        ),
        (
            &[
                ("PMIX_RANK", "0"),
                ("PMIX_NAMESPACE", "job"),
                ("PRTE_LAUNCHED", "1"),
            ],
            "prterun started this process (PMIX_NAMESPACE=job), and over PMIx this rank cannot join the others: libpmix \
             cannot be opened",
        ),
    ];
    for (vars, expected) in cases {
        let vars: Vec<(&str, String)> = vars
            .iter()
            .map(|(name, value)| (*name, value.to_string()))
            .collect();
        let message = message(&vars);
        assert!(message.contains(expected), "{message}");
        assert!(
            message.contains("`fishplate run` starts the program"),
            "{message}"
        );
    }
}

#[test]
fn ranks_learn_who_shares_their_host() {
    let (_launcher, rank) = sockets();
    let hosts = Hosts::blocks(&[1, 3]);
    let mut vars = pmi::variables(2, &hosts, rank.into_raw_fd());
    vars.push((pmi::SEGMENT_FD, segment().into_raw_fd().to_string()));
    assert!(vars.contains(&(pmi::HOSTS, "0,1*3".into())));
    let job = read(&vars).unwrap().expect("a job");
    assert_eq!((job.size(), &job.hosts), (4, &hosts));
    assert_eq!(hosts.beside(2).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!((hosts.index(0), hosts.index(2)), (0, 1));
    assert!(hosts.share(1, 3) && !hosts.share(0, 1));
}

#[test]
fn hosts_are_written_as_they_are_read() {
    let cases: [(&str, &[u32], &str); 4] = [
        ("0*2,1*2", &[0, 0, 1, 1], "0*2,1*2"),
        ("0,1,0*1", &[0, 1, 0], "0,1,0"),
        ("0*1,0*2,1", &[0, 0, 0, 1], "0*3,1"),
        ("0", &[0], "0"),
    ];
    for (text, expected, again) in cases {
        let hosts = Hosts::parse(text, expected.len()).unwrap();
        let of: Vec<u32> = (0..hosts.ranks()).map(|rank| hosts.of(rank)).collect();
        assert_eq!(of, expected);
        assert_eq!(hosts.to_string(), again);
    }
}

#[test]
fn a_list_of_hosts_that_is_not_of_this_job_is_refused() {
    for (text, expected) in [
        ("0*2,1", "it places 3 ranks, and the job has 4"),
        ("0*2,1*3", "more ranks than the 4 of the job"),
        ("0*4294967295", "more ranks"),
        ("1*4", "host 1 comes before host 0"),
        ("0*2,2*2", "host 2 comes before host 1"),
        ("0*2,1*", "`1*` is neither"),
        ("0*2,1*0", "`1*0` is neither"),
        ("0*2,,1*2", "`` is neither"),
        ("0*2,+1*2", "`+1*2` is neither"),
        ("a*4", "`a*4` is neither"),
        ("0*99999999999999999999", "is neither"),
    ] {
        let mut vars = job(7, 8);
        vars.push((pmi::HOSTS, text.into()));
        let message = message(&vars);
        assert!(
            message.contains(&format!("FISHPLATE_HOSTS={text}: ")),
            "{message}"
        );
        assert!(message.contains(expected), "{message}");
    }
}
