//! The variables by which a launcher tells a rank who it is. Not settings: nobody sets them by hand.

/// Which rank this process is, from 0.
pub const RANK: &str = "FISHPLATE_RANK";
/// How many ranks the job has.
pub const SIZE: &str = "FISHPLATE_SIZE";
/// The host of each rank, such as `0*2,1*2`, in a job on several.
pub const HOSTS: &str = "FISHPLATE_HOSTS";
/// The number of the inherited descriptor of the segment that the job's ranks on this host share.
pub const SEGMENT_FD: &str = "FISHPLATE_SEGMENT_FD";
/// The number of the inherited socket to the launcher.
pub const CONTROL_FD: &str = "FISHPLATE_CONTROL_FD";
/// The number of the inherited descriptor of the modelled machine's description, in a job that runs on one.
pub const SCENE_FD: &str = "FISHPLATE_SCENE_FD";
/// The number of the inherited descriptor of the memory in which virtual time passes, in such a job.
pub const WORLD_FD: &str = "FISHPLATE_WORLD_FD";

/// The number of the inherited descriptor of what ranks computed when that was recorded, in a job that replays it.
pub const COMPUTED_FD: &str = "FISHPLATE_COMPUTED_FD";

/// A variable of the contract, described.
#[derive(Debug, Clone, Copy)]
pub struct Contract {
    pub env: &'static str,
    pub doc: &'static str,
}

/// All of them.
pub const CONTRACT: &[Contract] = &[
    Contract {
        env: RANK,
        doc: "which rank this process is, from 0",
    },
    Contract {
        env: SIZE,
        doc: "how many ranks the job has",
    },
    Contract {
        env: HOSTS,
        doc: "the host of each rank, such as 0*2,1*2 (in a job on several hosts)",
    },
    Contract {
        env: SEGMENT_FD,
        doc: "number of the inherited descriptor of the job's shared segment on this host",
    },
    Contract {
        env: CONTROL_FD,
        doc: "number of the inherited socket to the launcher",
    },
    Contract {
        env: SCENE_FD,
        doc: "number of the inherited descriptor of the modelled machine (with --fabric)",
    },
    Contract {
        env: WORLD_FD,
        doc: "number of the inherited descriptor of the memory of virtual time (with --fabric)",
    },
    Contract {
        env: COMPUTED_FD,
        doc: "number of the inherited descriptor of what ranks computed (with --compute replay)",
    },
];
