//! The interface of a port for the node of which it is a rail.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use super::device::VerbsDevice;
use super::rdmacm::Exchange;
use device::{EventFds, HostDevice, Identity, InterfaceAddress, PortChange, Result};

impl HostDevice for VerbsDevice {
    fn identity(&self) -> Identity {
        Identity {
            card: self.card.clone(),
            domain: Some(Arc::as_ptr(&self.context).addr()),
        }
    }

    fn set_numbers(&mut self, card: usize, domain: usize) {
        (self.attributes.card, self.attributes.domain) = (card, domain);
    }

    fn interface_address(&self) -> Option<InterfaceAddress> {
        self.exchange.as_ref()?;
        let ip = Ipv6Addr::from(self.path.address);
        Some(InterfaceAddress {
            ip: ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4),
            scope: 0,
        })
    }

    fn event_fds(&self) -> EventFds {
        let [completions, others] = self.channel_fds();
        EventFds {
            completions: Some(completions),
            others: Some(others),
            connections: self.exchange.as_ref().map(Exchange::fd),
        }
    }

    fn take_events(&mut self, completions: bool, others: bool) {
        if others {
            self.handle_events();
        }
        if completions {
            self.take_cq_events();
        }
    }

    fn has_connected(&mut self) -> bool {
        self.exchange.as_ref().is_some_and(Exchange::has_news)
    }

    fn arm(&mut self) -> Result<bool> {
        self.arm_queues()
    }

    fn take_notes(&mut self, notes: &mut VecDeque<String>) {
        self.take_device_events(notes);
    }

    fn take_changes(&mut self) -> Vec<PortChange> {
        self.handle_events();
        self.changes.drain(..).collect()
    }
}
