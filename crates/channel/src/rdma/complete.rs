//! Completions: what has become of requests, and what of it is somebody's business.

use device::{Completed, Completion, Cq, Qp, Status};

use super::qp_link::{self, QpRole};
use super::srq_path::SHARED;
use super::{Rdma, put};
use crate::{Error, Fault, Result};

/// Completions taken from a queue at once.
const SOME: usize = 16;

/// Receives of one peer that are used up and not yet posted again, at most.
pub(super) const LATE: u32 = 16;

/// Where completions are taken to. It stays, for most looks find none and should not have to make it.
pub(super) type Taken = Box<[Completion; SOME]>;

pub(super) fn none_taken() -> Taken {
    let none = Completion {
        id: 0,
        qp: Qp(0),
        status: Status::Success,
        of: Completed::Write,
        bytes: 0,
        immediate: None,
    };
    Box::new([none; SOME])
}

impl Rdma {
    /// Takes all completions that there are.
    #[inline(never)]
    pub(super) fn poll(&mut self) -> Result<()> {
        for number in 0..self.cqs.len() {
            let cq: Cq = self.cqs[number];
            loop {
                let count = self.node.rail(0).poll(cq, &mut *self.taken)?;
                for at in 0..count {
                    let completion = self.taken[at];
                    self.completed(&completion)?;
                }
                if count < SOME {
                    break;
                }
            }
        }
        Ok(())
    }

    fn completed(&mut self, completion: &Completion) -> Result<()> {
        if completion.of == Completed::ReceiveWrite && completion.id == super::bulk::NOTICE {
            return self.notice(completion);
        }
        let is_shared = completion.id & SHARED != 0;
        let (from, lane) = match is_shared {
            true => (self.bulk.peer_of(completion.qp), QpRole::Control),
            false => qp_link::of_id(completion.id),
        };
        let Some(Some(peer)) = self.peers.get(from) else {
            return Ok(());
        };
        if completion.status != Status::Success {
            // A peer that has heard our last word may be gone, and some devices say so of receives that nothing will use.
            if peer.said_bye {
                return Ok(());
            }
            return Err(self.lost(from, completion.status));
        }
        match (completion.of, lane) {
            (Completed::Receive, _) => match completion.immediate {
                Some(granted) => self.granted(from, granted, completion.id),
                None => {
                    self.shared.received(from, completion);
                    Ok(())
                }
            },
            (Completed::ReceiveWrite, _) => self.written(from, completion.immediate),
            (_, QpRole::Control) => {
                let peer = self.peer(from);
                if completion.of == Completed::Read {
                    peer.asked = None;
                }
                if let Some(note) = peer.control.completed() {
                    if note & SHARED != 0 {
                        self.shared.sent(note);
                        return Ok(());
                    }
                    peer.out.heard_completed(note & !put::DATA);
                    if note & put::DATA != 0 {
                        return self.write_head(from);
                    }
                }
                Ok(())
            }
            (_, QpRole::Bulk) => {
                if let Some(note) = self.peer(from).bulk.completed() {
                    self.transferred(from, note)?;
                }
                Ok(())
            }
        }
    }

    /// A write of a peer's is whole.
    fn written(&mut self, from: usize, immediate: Option<u32>) -> Result<()> {
        match immediate.filter(|_| self.peer(from).by_rings()) {
            Some(put::PACKET) => self.peer(from).inbound.completion(),
            Some(tail) if tail & put::TAILS != 0 => self.heard_tail(from, tail)?,
            _ => {
                return Err(Fault::Broken {
                    peer: from,
                    what: format!("a write that says {immediate:?}"),
                }
                .into());
            }
        }
        self.peer(from).receives_due += 1;
        self.attention.receives_due += 1;
        match self.peer(from).receives_due == LATE {
            true => self.post_due(),
            false => Ok(()),
        }
    }

    /// Posts the receives that have been used up. The packet that used up the last one is more urgent, and so is what is
    /// said to it: so this comes behind a packet that leaves, or when there is nothing else to do.
    #[inline(never)]
    pub(super) fn post_due(&mut self) -> Result<()> {
        let Rdma {
            peers,
            node,
            ringed,
            attention,
            ..
        } = self;
        attention.receives_due = 0;
        for &at in &*ringed {
            let Some(peer) = &mut peers[at] else { continue };
            while peer.receives_due > 0 {
                peer.control.post_receive(&mut **node)?;
                peer.receives_due -= 1;
            }
        }
        Ok(())
    }

    /// A request has failed, and with it the connection.
    #[cold]
    pub(super) fn lost(&mut self, peer: usize, status: Status) -> Error {
        let mut device = self.node.rail(0).attributes().name.clone();
        // What the devices have said of themselves tells why, perhaps.
        let notes = self.node.notes();
        if !notes.is_empty() {
            device = format!("{device} ({})", notes.join("; "));
        }
        Fault::Lost {
            peer,
            device,
            status: status.words(),
            check: advice(status),
        }
        .into()
    }
}

fn advice(status: Status) -> &'static str {
    match status {
        // The second is what some devices say that find no way to the peer any more.
        Status::RetryExceeded | Status::LocalQpOperation => {
            "is that rank still alive, and are cable, port and switch between the two up (ibstat, ibdiagnet)?"
        }
        Status::RnrRetryExceeded => {
            "is that rank stopped, so that it takes nothing, or is its host overloaded?"
        }
        Status::RemoteAccess | Status::RemoteInvalidRequest | Status::RemoteOperation => {
            "do all ranks use the same version of the library, and did the program leave buffers alone that \
             were still in use?"
        }
        Status::LocalProtection | Status::LocalLength => {
            "did the program free or unmap a buffer that was still in use?"
        }
        Status::Flushed | Status::BadResponse | Status::Success => {
            "has that rank ended, or was there an earlier error on this connection?"
        }
    }
}
