//! Differences between a real host and a modelled machine that matter to protocols: shared
//! mappings, threads, clocks.

/// The abilities of a rank on its machine, real or modelled, apart from messages. Protocols
/// check these fields, never the kind of machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// True if loads, stores and mapped files can replace messages between ranks of one host, and
    /// within one rank.
    pub maps_memory: bool,
    /// True if threads of the library can run beside the program's.
    pub runs_threads: bool,
    /// True if the rank's clock measures the cost of its choices, so that they can be compared by
    /// time.
    pub measures_time: bool,
    /// True if contact with a peer makes no connection, so that a rank can contact all peers from
    /// which a message may arrive.
    pub reaches_freely: bool,
}

impl Abilities {
    /// The abilities on a real host.
    pub const REAL: Abilities = Abilities {
        maps_memory: true,
        runs_threads: true,
        measures_time: true,
        reaches_freely: false,
    };

    /// The abilities in virtual time: there only messages have a cost, at most one thread runs
    /// inside the machine, and the clock shows computed time.
    pub const MODELLED: Abilities = Abilities {
        maps_memory: false,
        runs_threads: false,
        measures_time: false,
        reaches_freely: true,
    };
}
