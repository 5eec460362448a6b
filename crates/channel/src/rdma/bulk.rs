//! Bulk transfers: a peer's exposed memory is read or written by the device, straight from or to memory of this rank's.
//!
//! Memory that several transfers need at once in the same way, as a buffer that is sent to many, is registered once: the last
//! of them takes the access back.
//!
//! They go by a queue pair of their own, in the order in which they were started for a peer. A write may end with a
//! notice: the peer hears of it when all its bytes are there.
//!
//! What must always hold: there is a receive for every notice that is expected. A number is given to a peer only where
//! there is one more, it stands for one write, and the receive that this uses up is there again before the number is
//! forgotten. So no notice waits for this rank to look.

use std::collections::{HashMap, VecDeque};

use device::{Completion, Device, Operation, Qp, ReceiveQueue, Region, Remote, Slice, Srq};

use super::Rdma;
use crate::{Done, Exposed, Exposure, Fault, Head, Result, Transfer as Answer};

/// Notices that are expected at once, at most.
pub(super) const NOTICES: usize = 1024;
/// The number of the receives that notices use up.
pub(super) const NOTICE: u64 = u64::MAX;

#[derive(Default)]
pub(super) struct Bulk {
    /// By number; those that are done are empty.
    transfers: Vec<Option<Transfer>>,
    free: Vec<usize>,
    /// Transfers that have not been posted whole, by peer, in order.
    waiting: HashMap<usize, VecDeque<usize>>,
    pub(super) done: VecDeque<Done>,
    /// Transfers under way.
    started: usize,
    /// Writes that peers will tell of, by number: who, and what for.
    pub(super) expected: HashMap<u32, Done>,
    /// Receives for notices.
    pub(super) receives: usize,
    pub(super) next_notice: u32,
    /// Which peer has which queue pair.
    peers: HashMap<Qp, usize>,
    /// Memory that the device has access to, and for how many.
    pub(super) exposed: HashMap<(u64, usize, Exposed), (Region, usize)>,
}

struct Transfer {
    peer: usize,
    way: Way,
    local: Slice0,
    far: Remote,
    len: usize,
    posted: usize,
    token: Head,
}

#[derive(Clone, Copy)]
pub(super) enum Way {
    Read,
    Write { notice: Option<u32> },
}

/// The beginning of a local piece.
#[derive(Clone, Copy)]
struct Slice0 {
    address: u64,
    lkey: u32,
}

impl Bulk {
    pub fn peer_of(&self, qp: Qp) -> usize {
        self.peers.get(&qp).copied().unwrap_or(usize::MAX)
    }

    pub fn belongs(&mut self, qp: Qp, peer: usize) {
        self.peers.insert(qp, peer);
    }

    /// May completions tell of something here?
    #[inline(always)]
    pub fn is_active(&self) -> bool {
        self.started > 0 || !self.expected.is_empty()
    }
}

pub(super) fn receive_notice(device: &mut dyn Device, srq: Srq) -> Result<()> {
    // SAFETY: there is no memory in it.
    unsafe { device.post_receive(ReceiveQueue::Shared(srq), NOTICE, &[])? };
    Ok(())
}

impl Rdma {
    /// A peer's write with a notice is whole.
    pub(super) fn notice(&mut self, completion: &Completion) -> Result<()> {
        receive_notice(self.node.rail(0), self.srq)?;
        let peer = self.bulk.peers.get(&completion.qp).copied();
        let (Some(peer), Some(notice)) = (peer, completion.immediate) else {
            return Ok(());
        };
        match self.bulk.expected.remove(&notice) {
            Some(done) if done.peer == peer => self.bulk.done.push_back(done),
            _ => {
                return Err(Fault::Broken {
                    peer,
                    what: format!("it has written by number {notice}, which was not given to it"),
                }
                .into());
            }
        }
        Ok(())
    }

    /// A request of a transfer's is done, and all before it.
    pub(super) fn transferred(&mut self, peer: usize, note: u64) -> Result<()> {
        let (number, last) = ((note >> 1) as usize, note & 1 == 1);
        if last && let Some(transfer) = self.bulk.transfers[number].take() {
            self.bulk.free.push(number);
            self.bulk.started -= 1;
            self.bulk.done.push_back(Done {
                peer,
                token: transfer.token,
            });
        }
        self.post_transfers(peer)
    }

    fn begin(&mut self, transfer: Transfer) -> Result<()> {
        let peer = transfer.peer;
        let number = self.bulk.free.pop().unwrap_or_else(|| {
            self.bulk.transfers.push(None);
            self.bulk.transfers.len() - 1
        });
        self.bulk.transfers[number] = Some(transfer);
        self.bulk.started += 1;
        self.bulk.waiting.entry(peer).or_default().push_back(number);
        self.post_transfers(peer)
    }

    /// Posts what there is room for.
    pub(super) fn post_transfers(&mut self, to: usize) -> Result<()> {
        let Rdma {
            peers, node, bulk, ..
        } = self;
        let Some(peer) = peers[to].as_mut().filter(|peer| peer.ready) else {
            return Ok(());
        };
        let Some(waiting) = bulk.waiting.get_mut(&to) else {
            return Ok(());
        };
        let longest = node.rail(peer.bulk.rail).attributes().longest.min(1 << 30) as usize;
        while let Some(&number) = waiting.front() {
            let Some(transfer) = &mut bulk.transfers[number] else {
                waiting.pop_front();
                continue;
            };
            if !peer.bulk.has_room() {
                return Ok(());
            }
            let piece = (transfer.len - transfer.posted).min(longest);
            let last = transfer.posted + piece == transfer.len;
            let at = transfer.posted as u64;
            let far = Remote {
                address: transfer.far.address + at,
                rkey: transfer.far.rkey,
            };
            let operation = match transfer.way {
                Way::Read => Operation::Read { from: far },
                Way::Write { notice } => Operation::Write {
                    to: far,
                    immediate: notice.filter(|_| last),
                },
            };
            let local = Slice {
                address: transfer.local.address + at,
                len: piece as u32,
                lkey: transfer.local.lkey,
            };
            let note = (number as u64) << 1 | u64::from(last);
            peer.bulk
                .post(&mut **node, operation, &[local], false, last, note)?;
            transfer.posted += piece;
            if last {
                waiting.pop_front();
            }
        }
        Ok(())
    }
}

impl Rdma {
    pub(super) fn start(
        &mut self,
        peer: usize,
        way: Way,
        far: Remote,
        local: &Exposure,
        len: usize,
        token: Head,
    ) -> Result<Answer> {
        if self.peers[peer].is_none() {
            return Err(Fault::Broken {
                peer,
                what: "a transfer without a connection".into(),
            }
            .into());
        }
        self.begin(Transfer {
            peer,
            way,
            local: Slice0 {
                address: local.key.address,
                lkey: self.local_key(local),
            },
            far,
            len,
            posted: 0,
            token,
        })?;
        Ok(Answer::Started)
    }
}
