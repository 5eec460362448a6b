//! The outline of a network for a picture: its levels, its grid or its groups, with counts.

/// The outline of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sketch {
    /// Two hosts without a switch.
    Direct,
    /// Levels of switches, those with hosts first.
    Layers(Vec<Layer>),
    /// A grid of switches.
    Grid {
        /// The number of switches along each dimension.
        sizes: Vec<u64>,
        /// The number of cables between neighbours along each dimension.
        cables: Vec<u64>,
        /// True if the ends of each dimension are linked.
        wraps: bool,
        /// The number of hosts of a switch.
        hosts: u64,
    },
    /// Groups of switches, each pair of which is linked.
    Groups {
        /// The number of groups.
        groups: u64,
        /// The numbers of columns and rows of a group.
        sizes: [u64; 2],
        /// The numbers of cables between two switches of a row, two of a column, and two groups.
        cables: [u64; 3],
        /// The number of hosts of a switch.
        hosts: u64,
    },
}

/// A level of switches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layer {
    /// The number of switches of the level.
    pub switches: u64,
    /// The greatest number of hosts of a switch.
    pub hosts: u64,
    /// The greatest number of links from a switch to the next level.
    pub up: u64,
    /// The number of cables to the next level.
    pub cables: u64,
    /// The number of cables between switches of the level.
    pub within: u64,
}
