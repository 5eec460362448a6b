//! A queue pair to one peer on one rail, with the account of its send queue.
//!
//! Only some requests ask for a completion. A completion also reports the completion of every
//! request before it. Invariant: no more requests are posted than the queue holds, and the last of
//! any `SIGNAL` requests in a row asks for a completion, so that every entry of the queue becomes
//! free again.

use std::collections::VecDeque;

use device::{
    Address, Cq, Ending, Node, Operation, Qp, QpWanted, ReceiveQueue, Slice, Srq, Transport, Work,
};

use super::rail::Rail;
use super::reports::Reports;
use super::wr_id::{QpRole, Subject, WrId};
use crate::Result;

/// The most requests from one that asks for a completion to the next.
pub(super) const SIGNAL: u32 = 8;
/// The most requests of a send queue that are posted and not known to be complete.
pub(super) const DEPTH: u32 = 128;

/// The longest request whose payload travels inline, where the device allows it, in bytes.
pub(super) const INLINE: usize = 256;

/// The meaning of a completion of a send queue: what has left or arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Note {
    /// Every ring slot up to this sequence number has been written to the peer.
    Ring(u64),
    /// As `Ring`, and the data of the next packet is written (design `Basic`), so that its head
    /// pointer, the flag, may follow.
    RingData(u64),
    /// The repeated write of the packet with this number has completed.
    Replay(u64),
    /// The message in this send buffer has left, so the buffer is free.
    SendBuffer(usize),
    /// A probe of a link that was dead has arrived at the peer.
    Probe,
    /// A grant of credits has left. Nothing waits for it.
    Grant,
    /// A piece of a bulk transfer is complete.
    Piece(PieceId),
}

/// A posted piece of a bulk transfer, by transfer, share and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PieceId {
    /// The number of the share that the piece is part of.
    pub share: usize,
    /// The number of the transfer.
    pub transfer: usize,
    /// The offset of the first byte of the piece in the transfer.
    pub from: u64,
    /// The length of the piece in bytes.
    pub len: u32,
    /// True for the last piece of its share: it carries the share's notice, if there is one.
    pub last: bool,
}

/// A queue pair of an endpoint, with the account of its send queue.
pub(super) struct QpLink {
    rail: usize,
    qp: Qp,
    wanted: QpWanted,
    /// True if the marker of the failing queue pair has completed.
    is_drained: bool,
    id: u64,
    inline: usize,
    held: u32,
    since_signal: u32,
    /// The sequence number of the last ring slot that was posted.
    slot: u64,
    signals: VecDeque<Signal>,
    /// The shared count of the completions that the rail is still to report.
    reports: Reports,
}

/// A completion that a send queue is expected to report.
struct Signal {
    /// The number of requests whose end the completion reports.
    requests: u32,
    note: Note,
    /// The sequence number of the last ring slot that was posted before the completion's request,
    /// or with it.
    slot: u64,
}

/// The completion and receive queues that a queue pair uses.
#[derive(Clone, Copy)]
pub(super) struct Queues {
    pub cq: Cq,
    pub srq: Option<Srq>,
    /// The depth of the queue pair's private receive queue, in receives.
    pub receives: usize,
}

/// A write of this rank to a ring in the peer's memory.
pub(super) struct RingWrite<'a> {
    pub from: &'a [Slice],
    pub to: device::Remote,
    pub immediate: Option<u32>,
    /// True if the write asks for a completion.
    pub signaled: bool,
    pub note: Note,
}

impl QpLink {
    /// Creates the queue pair of `role` to `peer` on `rail`.
    pub(super) fn open(
        node: &mut dyn Node,
        on: &Rail,
        peer: usize,
        role: QpRole,
        queues: Queues,
    ) -> Result<QpLink> {
        let rail = on.index();
        let device = node.rail(rail);
        let inline = device.attributes().inline.min(INLINE);
        let wanted = QpWanted {
            transport: Transport::Rc,
            send_cq: queues.cq,
            receive_cq: queues.cq,
            srq: queues.srq,
            // One entry more for the marker of a queue pair that fails.
            sends: DEPTH as usize + 1,
            receives: queues.receives,
            inline,
        };
        let subject = Subject::QueuePair { peer, role };
        Ok(QpLink {
            rail,
            qp: device.create_qp(&wanted)?,
            wanted,
            is_drained: false,
            id: WrId { rail, subject }.encode(),
            inline,
            held: 0,
            since_signal: 0,
            slot: 0,
            signals: VecDeque::new(),
            reports: on.reports(),
        })
    }

    /// The queue pair's number on its rail.
    pub(super) fn qp(&self) -> Qp {
        self.qp
    }

    /// True if a request of `len` bytes travels inline.
    pub(super) fn takes_inline(&self, len: usize) -> bool {
        len <= self.inline
    }

    /// The address by which the peer reaches this queue pair.
    pub(super) fn address(&self, node: &mut dyn Node) -> Result<Address> {
        Ok(node.rail(self.rail).address(self.qp)?)
    }

    /// The number of requests that are posted and not known to be complete.
    #[inline(always)]
    pub(super) fn held(&self) -> u32 {
        self.held
    }

    #[inline(always)]
    pub(super) fn has_room(&self) -> bool {
        self.held < DEPTH
    }

    /// True if a completion of a request, or an error, is expected.
    pub(super) fn awaits(&self) -> bool {
        !self.signals.is_empty()
    }

    /// The oldest expected completion: its meaning, and the last ring slot that it reports.
    pub(super) fn oldest(&self) -> Option<(Note, u64)> {
        self.signals
            .front()
            .map(|signal| (signal.note, signal.slot))
    }

    /// True if the end of some posted request will be reported by no expected completion.
    pub(super) fn has_unreported(&self) -> bool {
        self.since_signal > 0
    }

    /// Posts a write from memory of the endpoint, which stays registered as long as the queue pair
    /// exists.
    #[inline]
    pub(super) fn write(&mut self, node: &mut dyn Node, write: &RingWrite) -> Result<()> {
        let len: usize = write.from.iter().map(|slice| slice.len as usize).sum();
        let operation = Operation::Write {
            to: write.to,
            immediate: write.immediate,
        };
        self.post(
            node,
            operation,
            write.from,
            // A write of no bytes needs no inline payload: the device may have none.
            len > 0 && len <= self.inline,
            write.signaled,
            write.note,
        )?;
        Ok(())
    }

    /// Posts a request. Its local memory must stay registered until the request completes. True:
    /// the request asks for a completion.
    pub(super) fn post(
        &mut self,
        node: &mut dyn Node,
        operation: Operation,
        local: &[Slice],
        inline: bool,
        signaled: bool,
        note: Note,
    ) -> Result<bool> {
        assert!(self.has_room());
        let signaled = signaled || self.since_signal + 1 >= SIGNAL;
        let work = Work {
            id: self.id,
            operation,
            local,
            inline,
            signaled,
            to: None,
        };
        // SAFETY: the slices lie in memory of the endpoint, or in memory that the layer above has
        // exposed and keeps until the transfer is reported complete.
        unsafe { node.rail(self.rail).post(self.qp, &work)? };
        self.held += 1;
        self.since_signal += 1;
        if let Note::Ring(slot) | Note::RingData(slot) = note {
            self.slot = slot;
        }
        if signaled {
            self.signals.push_back(Signal {
                requests: self.since_signal,
                note,
                slot: self.slot,
            });
            self.since_signal = 0;
            self.reports.expect();
        }
        Ok(signaled)
    }

    /// True if posted requests wait so that they leave together with others.
    pub(super) fn is_corked(&self, node: &mut dyn Node) -> bool {
        node.rail(self.rail).is_corked(self.qp)
    }

    /// Records a completion of the send queue. Returns its meaning, and the sequence number up to
    /// which every ring slot that this queue pair carried has been written.
    pub(super) fn completed(&mut self) -> (Note, u64) {
        let signal = self.signals.pop_front();
        let signal = signal.expect("a device reports only completions that it was asked for");
        self.held -= signal.requests;
        self.reports.come(1);
        (signal.note, signal.slot)
    }

    /// Takes the queue pair to ERROR, and posts a marker: once the marker completes, every earlier
    /// request has been reported.
    pub(super) fn fail(&mut self, node: &mut dyn Node, peer: usize, role: QpRole) -> Result<()> {
        let device = node.rail(self.rail);
        device.modify(self.qp, Ending::Error)?;
        let subject = Subject::Marker { peer, role };
        let marker = Work {
            id: WrId {
                rail: self.rail,
                subject,
            }
            .encode(),
            operation: Operation::Send { immediate: None },
            local: &[],
            inline: false,
            signaled: true,
            to: None,
        };
        self.is_drained = false;
        // SAFETY: the request has no memory.
        unsafe { device.post(self.qp, &marker)? };
        Ok(())
    }

    /// Records that the completion of the marker has been reported.
    pub(super) fn heard_marker(&mut self) {
        self.is_drained = true;
    }

    /// True if every completion of the queue pair since `fail` has been polled.
    pub(super) fn is_drained(&self, node: &mut dyn Node) -> Result<bool> {
        Ok(self.is_drained && node.rail(self.rail).is_drained(self.qp)?)
    }

    /// Removes the requests that have failed. Returns the meanings of the completions that will not
    /// arrive.
    pub(super) fn forget(&mut self) -> Vec<Note> {
        self.held = 0;
        self.since_signal = 0;
        self.reports.come(self.signals.len() as u32);
        self.signals.drain(..).map(|signal| signal.note).collect()
    }

    /// Takes the queue pair back to RESET, or replaces it where the device cannot. Returns the
    /// replaced queue pair, if it was replaced.
    pub(super) fn renew(&mut self, node: &mut dyn Node, resets: bool) -> Result<Option<Qp>> {
        let device = node.rail(self.rail);
        if resets {
            device.modify(self.qp, Ending::Reset)?;
            return Ok(None);
        }
        let old = self.qp;
        device.destroy_qp(old)?;
        self.qp = device.create_qp(&self.wanted)?;
        Ok(Some(old))
    }

    /// Posts a receive of a message into a buffer of the endpoint.
    pub(super) fn post_buffer(
        &self,
        node: &mut dyn Node,
        peer: usize,
        buffer: usize,
        into: Slice,
    ) -> Result<()> {
        let subject = Subject::EndpointBuffer { peer, buffer };
        let id = WrId {
            rail: self.rail,
            subject,
        };
        let queue = ReceiveQueue::Own(self.qp);
        // SAFETY: the memory stays until the queue pair is gone, and is read only between a
        // completion and the next post.
        unsafe {
            node.rail(self.rail)
                .post_receive(queue, id.encode(), &[into])?
        };
        Ok(())
    }

    /// Posts a receive without memory, for a write with immediate.
    pub(super) fn post_receive(&self, node: &mut dyn Node) -> Result<()> {
        let queue = ReceiveQueue::Own(self.qp);
        // SAFETY: the receive has no memory.
        unsafe { node.rail(self.rail).post_receive(queue, self.id, &[])? };
        Ok(())
    }

    /// Destroys the queue pair. An error of the device is ignored.
    pub(super) fn close(&self, node: &mut dyn Node) {
        let _ = node.rail(self.rail).destroy_qp(self.qp);
    }
}
