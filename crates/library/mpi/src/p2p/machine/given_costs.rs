//! Costs of the paths by which this rank fetches announced messages, from a file of the user's.
//!
//! Invariant: nothing is learned, so equal messages take equal paths in every run, as far as the
//! ranks' cores are as far apart.

use std::sync::Arc;

use knobs::{CopyPath, CoreDistance, CostTable};

use super::protocol::Protocol;

/// The costs of the file.
#[derive(Default)]
pub(super) struct GivenCosts {
    table: Arc<CostTable>,
}

/// The protocol that takes a path.
pub(super) fn protocol_of(path: CopyPath) -> Protocol {
    match path {
        CopyPath::CooperativeCopy => Protocol::CooperativeCopy,
        CopyPath::Read => Protocol::ReadRendezvous,
        CopyPath::Packets => Protocol::Packets,
    }
}

/// The distance of two cores.
pub(super) fn distance(is_near: bool) -> CoreDistance {
    match is_near {
        true => CoreDistance::Near,
        false => CoreDistance::Far,
    }
}

impl GivenCosts {
    pub(super) fn of(table: Arc<CostTable>) -> GivenCosts {
        GivenCosts { table }
    }

    /// The fastest path of a fetch of `len` bytes among those that are possible. None: the file
    /// says nothing about such fetches.
    pub(super) fn choose(
        &self,
        len: usize,
        is_near: bool,
        is_followed: bool,
        is_possible: impl Fn(Protocol) -> bool,
    ) -> Option<Protocol> {
        let costs = self.table.costs(len, distance(is_near), is_followed)?;
        let fastest = costs.fastest(|path| is_possible(protocol_of(path)));
        fastest.map(protocol_of)
    }

    /// The times of a fetch of `len` bytes, alone if the file has that: protocols, picoseconds a
    /// byte, and whether the path is chosen.
    pub(super) fn times(
        &self,
        len: usize,
        is_near: bool,
        is_possible: impl Fn(Protocol) -> bool,
    ) -> impl Iterator<Item = (Protocol, u64, bool)> {
        let of = |is_followed| self.table.costs(len, distance(is_near), is_followed);
        let costs = of(false).or_else(|| of(true));
        let chosen = costs.and_then(|costs| costs.fastest(|path| is_possible(protocol_of(path))));
        costs.into_iter().flat_map(move |costs| {
            let times = CopyPath::ALL.into_iter().zip(costs.ps_per_byte);
            times.filter_map(move |(path, ps)| {
                Some((protocol_of(path), ps?.into(), chosen == Some(path)))
            })
        })
    }
}
