//! The table of traffics. Each is a function that runs one round of a rank.

use std::fmt::{Debug, Formatter};

use mpi::Mode;

use super::messages::{self, Probe};
use super::player::Player;
use super::{collectives, messages as by};

/// A traffic.
pub(super) struct Traffic {
    pub(super) name: &'static str,
    /// The most requests of a rank for each partner.
    pub(super) most_requests: usize,
    pub(super) round: fn(&Player, u64),
}

impl Debug for Traffic {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

const fn traffic(name: &'static str, most_requests: usize, round: fn(&Player, u64)) -> Traffic {
    Traffic {
        name,
        most_requests,
        round,
    }
}

/// All traffics.
pub(super) static TRAFFICS: [Traffic; 24] = [
    traffic("wait", 100, |player, round| {
        messages::exchange(player, round, by::by_wait)
    }),
    traffic("waitall", 100, |player, round| {
        messages::exchange(player, round, by::by_waitall)
    }),
    traffic("waitany", 100, |player, round| {
        messages::exchange(player, round, by::by_waitany)
    }),
    traffic("waitsome", 100, |player, round| {
        messages::exchange(player, round, by::by_waitsome)
    }),
    traffic("test", 100, |player, round| {
        messages::exchange(player, round, by::by_test)
    }),
    traffic("testall", 100, |player, round| {
        messages::exchange(player, round, by::by_testall)
    }),
    traffic("testany", 100, |player, round| {
        messages::exchange(player, round, by::by_testany)
    }),
    traffic("testsome", 100, |player, round| {
        messages::exchange(player, round, by::by_testsome)
    }),
    traffic("probe", 8, |player, round| {
        messages::probed(player, round, Probe::Wait)
    }),
    traffic("iprobe", 8, |player, round| {
        messages::probed(player, round, Probe::Poll)
    }),
    traffic("mprobe", 8, |player, round| {
        messages::probed(player, round, Probe::WaitAndClaim)
    }),
    traffic("improbe", 8, |player, round| {
        messages::probed(player, round, Probe::PollAndClaim)
    }),
    traffic("send and receive", 100, |player, round| {
        messages::blocking(player, round, None)
    }),
    traffic("synchronous sends", 100, |player, round| {
        messages::blocking(player, round, Some(Mode::Synchronous))
    }),
    traffic("buffered sends", 100, messages::buffered),
    traffic("persistent requests", 100, messages::persistent),
    traffic("from any source", 100, messages::from_any),
    traffic("cancelled", 8, messages::cancelled),
    traffic("collectives", 8, collectives::blocking),
    traffic("nonblocking collectives", 8, collectives::nonblocking),
    traffic("persistent collectives", 8, collectives::persistent),
    traffic("collectives, one by one", 1, collectives::blocking),
    traffic("neighbourhood collectives", 1, collectives::neighbours),
    traffic("new communicators", 2, collectives::makers),
];

/// The traffic of a test of its own: its ranks have an intercommunicator.
pub(super) static BETWEEN: Traffic =
    traffic("collectives between two groups", 8, collectives::between);
