//! The name of a switch on a path, and of the link to it.

/// A switch on a path, and the link that leads to it from the switch before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The name of the switch.
    pub switch: String,
    /// The description of the link; of the first switch that of the host's link.
    pub link: String,
}
