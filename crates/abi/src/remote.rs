//! A rank's place among RDMA devices, in a job on several hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, AsRawFd};

use device::verbs::{self, Directory, VerbsNode};
use device::{Error, Node, Result};
use pmi::{Control, Job, Space, hex, unhex};

/// Opens the device by which this rank reaches those on other hosts: the first of those that
/// `wanted` names, or that would be used.
pub(crate) fn node(job: &Job, wanted: &str) -> std::result::Result<Box<dyn Node>, String> {
    open(job, wanted).map(|node| Box::new(node) as _).map_err(|why| {
        let hosts = job.hosts.count();
        format!(
            "the job's {hosts} hosts are to reach each other by RDMA, and here that cannot be: {why} (`fishplate info` \
             shows what there is; FISHPLATE_DEVICE names a device)"
        )
    })
}

fn open(job: &Job, wanted: &str) -> Result<VerbsNode> {
    let mut devices = verbs::open(wanted)?;
    devices.truncate(1);
    let cards = Cards {
        control: job.control.clone(),
        known: BTreeMap::new(),
        asked: BTreeSet::new(),
        rank: job.rank,
    };
    let mut node = VerbsNode::new(devices, job.rank, job.size, Box::new(cards))?;
    // A card that was asked for comes that way.
    node.wake_on(job.control.as_fd().as_raw_fd())?;
    Ok(node)
}

/// Ranks' cards in the job's key-value space.
struct Cards {
    control: Control,
    known: BTreeMap<String, Vec<u8>>,
    asked: BTreeSet<usize>,
    rank: usize,
}

fn key(rank: usize) -> String {
    format!("card.{rank}")
}

fn lost(why: impl std::fmt::Display) -> Error {
    Error::System(format!("the job's key-value space: {why}"))
}

impl Directory for Cards {
    fn publish(&mut self, card: &[u8]) -> Result<()> {
        self.control.put(&key(self.rank), &hex(card)).map_err(lost)
    }

    fn find(&mut self, peer: usize) -> Result<Option<Vec<u8>>> {
        while let Some((key, value)) = self.control.answer().map_err(lost)? {
            let card = unhex(&value).ok_or_else(|| lost(format!("{key} is {value}")))?;
            self.known.insert(key, card);
        }
        if let Some(card) = self.known.remove(&key(peer)) {
            return Ok(Some(card));
        }
        if self.asked.insert(peer) {
            self.control.ask(&key(peer)).map_err(lost)?;
        }
        Ok(None)
    }
}
