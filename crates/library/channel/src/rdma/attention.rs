//! The account of what a poll of a rank must do besides polling the rings: connections in progress,
//! deferred writes, failed links, reports to the user.

use super::outage::Outages;
use super::rail_set::MAX_RAILS;

/// The work that a poll must do besides polling the rings.
#[derive(Default)]
pub(super) struct Attention {
    /// The number of polls of the rings that this rank has made.
    pub polls: u32,
    /// The number of connections that have begun and are not ready.
    pub connecting: usize,
    /// Peers whose queue pairs a device is connecting.
    pub in_progress: Vec<usize>,
    /// The number of writes that wait for the completion of an earlier one: slots of coalesced
    /// packets, and head pointers (design `Basic`).
    pub deferred: usize,
    /// The number of receives that are to be posted again.
    pub receives_due: u32,
    /// True if the next poll must cover all rings and all completion queues.
    pub all: bool,
    /// The number of polls of the rings that found nothing.
    pub idle_polls: u32,
    /// Peers with links that are not live.
    pub impaired: Vec<usize>,
    /// True while links are being given up, or while data that they carried have not been written
    /// again.
    pub fencing: bool,
    /// Peers whose silence is being timed, and lost peers whose links are not drained yet.
    pub silent: Vec<usize>,
    /// The outages of this rank that have ended.
    pub outages: Outages,
    /// For each rail: true if its failure has been reported to the user.
    pub reported: [bool; MAX_RAILS],
    /// Reports for the user, each with its topic and its text.
    reports: Vec<(String, String)>,
}

impl Attention {
    /// Records that a link to `peer` is being given up.
    pub(super) fn is_impaired(&mut self, peer: usize) {
        if !self.impaired.contains(&peer) {
            self.impaired.push(peer);
        }
        self.fencing = true;
    }

    /// Begins to time the silence of `peer`.
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
