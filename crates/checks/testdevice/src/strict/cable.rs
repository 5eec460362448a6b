//! The state of the simulated cable at one port of a strict device.

use device::PortChange;

/// The effect of a cut on a cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Nothing arrives in either direction, and the port does not notice it.
    Silent,
    /// Nothing arrives in either direction, and the port reports that it is down.
    Down,
    /// Writes, sends and atomics arrive and take effect, in either direction; their
    /// acknowledgements, and all answers to reads, are lost.
    Acknowledgements,
}

/// The condition of the cable at one port.
#[derive(Clone, Copy, Default)]
pub(super) struct Cable {
    pub cut: Option<Cut>,
    /// The duration of each request, in nanoseconds; 0 at full speed.
    pub request_ns: u64,
    /// The time at which the port will have executed all requests that it has begun, in nanoseconds
    /// since the machine was made.
    pub free_at: u64,
    pub requests: u64,
    pub bytes: u64,
    /// A planned cut: the number of executed requests at which it happens, and its kind. `None`: no
    /// cut is planned.
    pub later: Option<(u64, Cut)>,
}

impl Cable {
    /// Cuts the cable. Returns the change that the port reports, if any.
    pub(super) fn cut(&mut self, how: Cut) -> Option<PortChange> {
        self.later = None;
        match (self.cut.replace(how), how) {
            (Some(Cut::Down), Cut::Down) => None,
            (_, Cut::Down) => Some(PortChange::Down),
            (Some(Cut::Down), _) => Some(PortChange::Up),
            _ => None,
        }
    }
}
