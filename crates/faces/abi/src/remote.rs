//! The devices by which a rank reaches the ranks on other hosts of its job, and the rank's node,
//! made from them.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use device::{Error, Node, Result};
use host_node::{Directory, HostNode};
use knobs::Knobs;
use pmi::{Bootstrap, hex, unhex};
use rail_choice::Wishes;

use crate::interfaces::{self, lost};

/// Opens the devices by which this rank reaches ranks on other hosts: the devices that the settings
/// name, or the default ones, and no more than the number of rails.
pub(crate) fn node(
    job: &Arc<dyn Bootstrap>,
    knobs: &Knobs,
) -> std::result::Result<Box<dyn Node>, String> {
    let wishes = wishes(knobs);
    let patience = knobs.outage.0;
    open(job, &wishes, patience).map(|node| Box::new(node) as _).map_err(|why| {
        let hosts = job.hosts().count();
        format!(
            "the job's {hosts} hosts are to reach each other over a network, and here that cannot be: {why} \
             (`fishplate info` shows what there is; FISHPLATE_DEVICE names a device)"
        )
    })
}

/// Checks that this host has the devices that the settings name. Ranks of one host do not use them,
/// so one rank checks the names for all.
pub(crate) fn check_names(job: &dyn Bootstrap, knobs: &Knobs) -> std::result::Result<(), String> {
    if job.rank() > 0 || knobs.device.is_empty() {
        return Ok(());
    }
    let found = rail_choice::choose(&wishes(knobs));
    found.map(|_| ()).map_err(|why| {
        let devices = &knobs.device;
        format!("FISHPLATE_DEVICE={devices}: {why} (`fishplate info` shows what there is)")
    })
}

fn wishes(knobs: &Knobs) -> Wishes<'_> {
    Wishes {
        devices: &knobs.device,
        connections: knobs.tcp_connections,
        most: knobs.rails.most(),
    }
}

fn open(job: &Arc<dyn Bootstrap>, wishes: &Wishes, patience: Option<Duration>) -> Result<HostNode> {
    let secret = job.secret().ok_or_else(|| {
        let why = "the launcher gives the ranks of this job no secret, by which they would know each other on a network";
        Error::System(why.into())
    })?;
    interfaces::publish(job)?;
    let devices = rail_choice::open(&interfaces::ports(job, wishes, patience)?, &secret)?;
    let cards = Cards {
        bootstrap: Arc::clone(job),
        known: BTreeMap::new(),
        asked: BTreeSet::new(),
    };
    let mut node = HostNode::new(devices, job.rank(), job.size(), &secret, Box::new(cards))?
        .with_last_words(patience.map(|patience| patience.as_nanos() as u64));
    if !job.get_waits() {
        job.fence().map_err(lost)?;
    }
    // Answers to requests for the cards of peers arrive on this descriptor.
    if let Some(fd) = job.event_fd() {
        node.wake_on(fd.as_raw_fd())?;
    }
    Ok(node)
}

/// The directory of ranks' cards (their addresses), in the job's key-value store.
struct Cards {
    bootstrap: Arc<dyn Bootstrap>,
    known: BTreeMap<String, Vec<u8>>,
    asked: BTreeSet<usize>,
}

fn key(rank: usize) -> String {
    format!("card.{rank}")
}

impl Directory for Cards {
    fn publish(&mut self, card: &[u8]) -> Result<()> {
        let key = key(self.bootstrap.rank());
        self.bootstrap.put(&key, &hex(card)).map_err(lost)
    }

    fn find(&mut self, peer: usize) -> Result<Option<Vec<u8>>> {
        while let Some((key, value)) = self.bootstrap.next_value().map_err(lost)? {
            let card = unhex(&value).ok_or_else(|| lost(format!("{key} is {value}")))?;
            self.known.insert(key, card);
        }
        if let Some(card) = self.known.remove(&key(peer)) {
            return Ok(Some(card));
        }
        if self.asked.insert(peer) {
            self.bootstrap.get(&key(peer)).map_err(lost)?;
        }
        Ok(None)
    }
}
