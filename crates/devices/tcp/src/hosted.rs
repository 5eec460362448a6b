//! The device as a rail of a node.

use std::collections::VecDeque;

use device::{EventFds, HostDevice, Identity, InterfaceAddress, PortChange, Result};

use super::device::TcpDevice;

/// The longest time between two polls while requests or calls are in progress, in nanoseconds.
const WATCH_NS: u64 = 100_000_000;

impl HostDevice for TcpDevice {
    /// The interface counts as the card: devices on one interface share its bandwidth, as the ports
    /// of one card do.
    fn identity(&self) -> Identity {
        Identity {
            card: Some(self.attributes.name.clone()),
            domain: None,
        }
    }

    fn set_numbers(&mut self, card: usize, domain: usize) {
        (self.attributes.card, self.attributes.domain) = (card, domain);
    }

    fn interface_address(&self) -> Option<InterfaceAddress> {
        Some(self.own)
    }

    fn event_fds(&self) -> EventFds {
        EventFds {
            completions: Some(self.poller.fd()),
            others: None,
            connections: None,
        }
    }

    fn take_events(&mut self, completions: bool, _others: bool) {
        if completions {
            self.progress();
        }
    }

    fn has_connected(&mut self) -> bool {
        std::mem::take(&mut self.has_connected)
    }

    /// Prepares for a sleep. The descriptor stays readable as long as there is something to read,
    /// so nothing is missed.
    fn arm(&mut self) -> Result<bool> {
        self.send_corked();
        self.acknowledge_all();
        self.check_paths();
        self.sleeps_soon = true;
        Ok(false)
    }

    fn due(&self) -> Option<u64> {
        self.is_due_soon().then_some(WATCH_NS)
    }

    fn take_notes(&mut self, notes: &mut VecDeque<String>) {
        notes.append(&mut self.notes);
    }

    fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    fn strangers(&self) -> u64 {
        TcpDevice::strangers(self)
    }

    fn take_changes(&mut self) -> Vec<PortChange> {
        Vec::new()
    }

    fn written(&mut self, keys: &mut Vec<u32>) -> bool {
        self.written.take(keys)
    }
}
