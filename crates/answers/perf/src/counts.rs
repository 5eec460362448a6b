//! Counts of the requests of both sides to their devices during one size, and of the packets that
//! they caused.

use std::ops::AddAssign;

use anyhow::{Context, Result};
use model::Traffic;
use serde::{Deserialize, Serialize};

use crate::side::Side;

/// The numbers of requests of one side, or of both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requests {
    /// The number of work requests posted to send queues.
    pub work_requests: u64,
    /// The number of posted receives.
    pub receives: u64,
    /// The number of completions polled, of sends and of receives.
    pub completions: u64,
}

impl AddAssign for Requests {
    fn add_assign(&mut self, other: Requests) {
        self.work_requests += other.work_requests;
        self.receives += other.receives;
        self.completions += other.completions;
    }
}

/// The work requests and packets for the messages of one size, summed over both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The work requests posted to the devices.
    pub requests: Requests,
    /// The packets on the links of a modelled machine; `None` on real devices.
    pub traffic: Option<Traffic>,
}

/// The counts of a side's device before the messages of a size.
pub(crate) struct Before {
    requests: Requests,
    traffic: Option<Traffic>,
}

impl Before {
    pub(crate) fn new(side: &mut Side) -> Before {
        Before {
            requests: side.requests,
            traffic: side.target.traffic(),
        }
    }

    /// The counts of both sides since the start of the size. While the sides exchange them, the
    /// last acknowledgements arrive.
    pub(crate) fn since(self, side: &mut Side) -> Result<Counts> {
        let own = Requests {
            work_requests: side.requests.work_requests - self.requests.work_requests,
            receives: side.requests.receives - self.requests.receives,
            completions: side.requests.completions - self.requests.completions,
        };
        let theirs = side.target.swap(&serde_json::to_string(&own)?)?;
        let mut requests: Requests =
            serde_json::from_str(&theirs).context("cannot read the counts of the other side")?;
        requests += own;
        // A model counts the traffic of all pairs, so wait until all have completed the size.
        side.target.synchronise_pairs()?;
        let now = side.target.traffic();
        let traffic = now.zip(self.traffic).map(|(now, before)| Traffic {
            packets: now.packets - before.packets,
            acknowledgements: now.acknowledgements - before.acknowledgements,
            bytes: now.bytes - before.bytes,
        });
        Ok(Counts { requests, traffic })
    }
}
