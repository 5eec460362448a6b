//! Strict devices, which are simulated in memory, as rails of a real host's node, together with
//! devices of other kinds.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use device::{EventFds, HostDevice, Identity, InterfaceAddress, PortChange, Result};

use super::cables::Cables;
use super::machine::shared;
use super::rail::{StrictDevice, devices};
use super::setup::Setup;

/// The longest time between two polls, in nanoseconds: a strict device has no descriptor for its
/// events.
const WATCH_NS: u64 = 200_000;

/// The devices of each of `ranks` ranks, and the cables between them. The cards and protection
/// domains of `setup` have no effect: a node numbers those of its devices.
///
/// ```
/// use testdevice::strict::{Setup, hosted};
///
/// let (devices, _cables) = hosted(2, &Setup::default());
/// assert_eq!(devices[1].len(), 1);
/// ```
pub fn hosted(ranks: usize, setup: &Setup) -> (Vec<Vec<Box<dyn HostDevice>>>, Cables) {
    let shared = shared(ranks, setup);
    let of = |rank| {
        let devices = devices(&shared, rank, setup).into_iter();
        devices.map(|one| Box::new(one) as Box<dyn HostDevice>)
    };
    let all = (0..ranks).map(|rank| of(rank).collect()).collect();
    (all, Cables { shared })
}

impl HostDevice for StrictDevice {
    fn identity(&self) -> Identity {
        Identity::default()
    }

    fn set_numbers(&mut self, card: usize, domain: usize) {
        (self.attributes.card, self.attributes.domain) = (card, domain);
    }

    fn interface_address(&self) -> Option<InterfaceAddress> {
        None
    }

    fn event_fds(&self) -> EventFds {
        EventFds::default()
    }

    fn take_events(&mut self, _completions: bool, _others: bool) {}

    fn has_connected(&mut self) -> bool {
        false
    }

    fn arm(&mut self) -> Result<bool> {
        Ok(false)
    }

    fn due(&self) -> Option<u64> {
        Some(WATCH_NS)
    }

    fn take_notes(&mut self, _notes: &mut VecDeque<String>) {}

    fn take_changes(&mut self) -> Vec<PortChange> {
        let (rank, rail) = (
            self.index / self.shared.rails,
            self.index % self.shared.rails,
        );
        if self.shared.signs.port_events[rank].load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        self.shared.with(|world| {
            let events = &mut world.port_events[rank];
            let own = events.extract_if(.., |event| event.rail == rail);
            own.map(|event| event.change).collect()
        })
    }
}
