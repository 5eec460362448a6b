//! The events that a rank has to poll for besides its rings, and the changes that it has to report.

use super::outage::Outages;
use super::rail_set::MAX_RAILS;

/// The events that a rank has to poll for besides its rings.
#[derive(Default)]
pub(super) struct Attention {
    /// Polls of the rings so far.
    pub polls: u32,
    /// Connections that are not ready.
    pub connecting: usize,
    /// Peers whose queue pairs a device is connecting.
    pub in_progress: Vec<usize>,
    /// Writes that wait for a completion: coalesced packets and head pointers.
    pub deferred: usize,
    /// Receives that are to be posted again.
    pub receives_due: u32,
    /// The next poll covers everything.
    pub all: bool,
    /// Polls of the rings that found nothing.
    pub idle_polls: u32,
    /// Peers with links that are not live.
    pub impaired: Vec<usize>,
    /// Links are being given up, or something that they carried is not written again yet.
    pub fencing: bool,
    /// Peers whose silence is counted, and lost ones whose links are not drained.
    pub silent: Vec<usize>,
    /// The outages that have ended.
    pub outages: Outages,
    /// Rails whose failure has been reported.
    pub reported: [bool; MAX_RAILS],
    /// Reports for the user: a topic, and the words.
    reports: Vec<(String, String)>,
}

impl Attention {
    /// A link to `peer` is being given up.
    pub(super) fn is_impaired(&mut self, peer: usize) {
        if !self.impaired.contains(&peer) {
            self.impaired.push(peer);
        }
        self.fencing = true;
    }

    /// The silence of `peer` counts from now on.
    pub(super) fn watch_silence(&mut self, peer: usize) {
        if !self.silent.contains(&peer) {
            self.silent.push(peer);
        }
    }

    /// Keeps a report for the user.
    pub(super) fn report(&mut self, topic: String, text: String) {
        self.reports.push((topic, text));
    }

    /// Takes the reports since the last call.
    pub(super) fn take_reports(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.reports)
    }
}
