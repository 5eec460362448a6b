//! Abilities of a rank's surroundings, beside messages.

/// The abilities of a rank's surroundings. Protocols ask for one of these, never for the kind of
/// machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// Loads, stores and mapped files may take the place of messages between ranks of one host, and
    /// of a rank with itself.
    pub maps_memory: bool,
    /// Threads may run beside the rank.
    pub runs_threads: bool,
    /// The rank's clock tells what its choices cost.
    pub measures_time: bool,
    /// A rank may reach for every peer that it learns of: that makes no connections.
    pub reaches_freely: bool,
}

impl Abilities {
    /// Those of a rank on a real host.
    pub const REAL: Abilities = Abilities {
        maps_memory: true,
        runs_threads: true,
        measures_time: true,
        reaches_freely: false,
    };

    /// Those of a rank in virtual time: only messages have a cost there, at most one thread is
    /// inside the machine, and the clock shows what the model has computed.
    pub const MODELLED: Abilities = Abilities {
        maps_memory: false,
        runs_threads: false,
        measures_time: false,
        reaches_freely: true,
    };
}
