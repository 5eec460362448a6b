//! The environment variables by which the launcher describes the job to a rank. They are not
//! settings: users never set them.

/// The most ranks of one job.
pub const MOST_RANKS: usize = 4096;

/// The world rank of this process, from 0.
pub const RANK: &str = "FISHPLATE_RANK";
/// The number of ranks in the job.
pub const SIZE: &str = "FISHPLATE_SIZE";
/// The index of this rank among those of its host, from 0.
pub const LOCAL_RANK: &str = "FISHPLATE_LOCAL_RANK";
/// The number of ranks on this rank's host.
pub const LOCAL_SIZE: &str = "FISHPLATE_LOCAL_SIZE";
/// The index of this rank's program, from 0, in a job of several programs: `MPI_APPNUM`.
pub const APPNUM: &str = "FISHPLATE_APPNUM";
/// The mark of the job, a value by which the launcher finds processes of the job.
pub const JOB: &str = "FISHPLATE_JOB";
/// The host number of each rank, such as `0*2,1*2`, in a job on several hosts.
pub const HOSTS: &str = "FISHPLATE_HOSTS";
/// The inherited file descriptor of the segment, the memory that the ranks of this host share.
pub const SEGMENT_FD: &str = "FISHPLATE_SEGMENT_FD";
/// The inherited file descriptor of the control socket, which is connected to the launcher.
pub const CONTROL_FD: &str = "FISHPLATE_CONTROL_FD";
/// The inherited file descriptor of the job's secret, by which ranks on different hosts recognize
/// each other.
pub const SECRET_FD: &str = "FISHPLATE_SECRET_FD";
/// The inherited file descriptor of the modelled machine's description.
pub const SCENE_FD: &str = "FISHPLATE_SCENE_FD";
/// The inherited file descriptor of the world: the memory of the modelled machine and its clock.
pub const WORLD_FD: &str = "FISHPLATE_WORLD_FD";
/// The inherited file descriptor of the profile, in which the ranks of this host record.
pub const PROFILE_FD: &str = "FISHPLATE_PROFILE_FD";
/// The inherited file descriptor of the file to which the ranks append their parts of a trace.
pub const RECORD_FD: &str = "FISHPLATE_RECORD_FD";
/// The binding of the rank to cores: `hard`, `none`, or `soft:0-3`, chosen by a launcher that may
/// use these hardware threads.
pub const BINDING: &str = "FISHPLATE_BINDING";

/// The folder to which `libfishplate_record.so`, preloaded, writes the parts of a trace. The
/// launcher leaves it as it is.
pub const RECORD: &str = "FISHPLATE_RECORD";
/// The limits of such a recording by time and by size.
pub const RECORD_LIMIT: &str = "FISHPLATE_RECORD_LIMIT";

/// If set, rank 0 explains its choices of protocols and rails at MPI_Finalize.
pub const EXPLAIN: &str = "FISHPLATE_EXPLAIN";

/// The description of one environment variable between launcher and rank.
#[derive(Debug, Clone, Copy)]
pub struct ContractVariable {
    /// The name of the variable.
    pub env: &'static str,
    /// The meaning of the variable.
    pub doc: &'static str,
}

/// All environment variables between launcher and rank.
pub const CONTRACT: &[ContractVariable] = &[
    ContractVariable {
        env: RANK,
        doc: "number of this rank, from 0",
    },
    ContractVariable {
        env: SIZE,
        doc: "number of ranks in the job",
    },
    ContractVariable {
        env: LOCAL_RANK,
        doc: "number of this rank among those of its host, from 0",
    },
    ContractVariable {
        env: LOCAL_SIZE,
        doc: "number of ranks on this rank's host",
    },
    ContractVariable {
        env: APPNUM,
        doc: "number of this rank's program, from 0 (in a job of several)",
    },
    ContractVariable {
        env: JOB,
        doc: "mark of the job, by which its processes are found",
    },
    ContractVariable {
        env: HOSTS,
        doc: "host of each rank, such as 0*2,1*2 (in a job on several hosts)",
    },
    ContractVariable {
        env: SEGMENT_FD,
        doc: "inherited descriptor of the memory that the ranks of this host share",
    },
    ContractVariable {
        env: CONTROL_FD,
        doc: "inherited descriptor of the socket to the launcher",
    },
    ContractVariable {
        env: SECRET_FD,
        doc: "inherited descriptor of the job's secret",
    },
    ContractVariable {
        env: SCENE_FD,
        doc: "inherited descriptor of the modelled machine (with --fabric)",
    },
    ContractVariable {
        env: WORLD_FD,
        doc: "inherited descriptor of the memory of virtual time (with --fabric)",
    },
    ContractVariable {
        env: PROFILE_FD,
        doc: "inherited descriptor of the profile (with --summary or --profile)",
    },
    ContractVariable {
        env: RECORD_FD,
        doc: "inherited descriptor of the parts of a trace (with --record)",
    },
    ContractVariable {
        env: BINDING,
        doc: "binding of this rank: hard, none, or soft:0-3 (chosen by a launcher that may use hardware threads 0-3)",
    },
    ContractVariable {
        env: EXPLAIN,
        doc: "request that rank 0 explains its choices (with --explain)",
    },
];
