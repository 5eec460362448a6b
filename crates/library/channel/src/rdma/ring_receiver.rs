//! The receiver of a ring: it takes packets out of the memory that the peer writes to, and reports
//! the tail.

use device::{Charges, Effort, Node, Remote};

use super::immediate::Immediate;
use super::inbound::{Inbound, Nonsense};
use super::layout::{OWN, TAIL, WORD};
use super::link::Wire;
use super::qp_link::{Note, RingWrite};
use super::registered::{Block, Registered};
use super::ring_sender::{RingSender, TOO_MANY};
use crate::{Head, More, Result};

/// The most packets that one poll takes from one peer's ring.
pub(super) const BATCH: usize = 32;

/// The receiver's end of the ring from one peer, with its memory.
pub(super) struct RingReceiver {
    inbound: Inbound,
    /// The memory that the peer writes to: the word for the peer's tail, a word of this rank, and
    /// the ring. Messages arrive in it if the peer has no memory for rings. `None`: this end has no
    /// memory for rings with this peer.
    memory: Option<Registered>,
    /// The peer's tail in memory at the last read.
    tail_before: u64,
    /// True if the tail is due after every packet.
    basic: bool,
    charges: Charges,
}

impl RingReceiver {
    pub(super) fn new(
        inbound: Inbound,
        memory: Option<Registered>,
        basic: bool,
        charges: Charges,
    ) -> RingReceiver {
        RingReceiver {
            inbound,
            memory,
            tail_before: 0,
            basic,
            charges,
        }
    }

    pub(super) fn has_memory(&self) -> bool {
        self.memory.is_some()
    }

    /// The registered memory into which the peer writes.
    pub(super) fn memory(&self) -> Option<&Registered> {
        self.memory.as_ref()
    }

    /// The memory block that contains the ring, into which the peer writes.
    #[inline(always)]
    pub(super) fn block(&self) -> &Block {
        match &self.memory {
            Some(memory) => &memory.block,
            None => unreachable!("a peer without rings writes nowhere"),
        }
    }

    /// The sequence number of the last packet that was consumed.
    pub(super) fn consumed(&self) -> u64 {
        self.inbound.consumed()
    }

    /// True if some packets of a slot have been consumed, and some not.
    pub(super) fn is_amid_slot(&self) -> bool {
        self.inbound.is_amid_slot()
    }

    /// Records a completion: the packet whose number has the lower bits `lower` is complete, in a
    /// slot of size class `class`. An error: no such packet is possible.
    pub(super) fn completion(
        &mut self,
        class: usize,
        lower: u32,
    ) -> std::result::Result<(), Nonsense> {
        self.inbound.completion(class, lower)
    }

    /// Checks the number of a packet that has arrived as a message (not through a ring).
    pub(super) fn check_message(
        &self,
        sequence: u64,
        granted: u64,
    ) -> std::result::Result<(), Nonsense> {
        self.inbound.check_message(sequence, granted)
    }

    /// Records that the packet of the next message has been handled.
    pub(super) fn consume_message(&mut self) {
        self.inbound.consume_message();
    }

    #[inline(always)]
    pub(super) fn tail_due(&self) -> bool {
        self.inbound.tail_due()
    }

    /// Returns the number of consumed packets, and records that it is sent to the peer now.
    #[inline(always)]
    pub(super) fn report_tail(&mut self) -> u64 {
        self.inbound.report_tail()
    }

    /// The lower bits of the tail that the peer has written to memory. `None`: it is as at the last
    /// call.
    pub(super) fn tail_in_memory(&mut self) -> Option<u32> {
        let tail = self.block().load(TAIL);
        let before = std::mem::replace(&mut self.tail_before, tail);
        (tail != before).then_some(tail as u32)
    }

    /// Passes packets to `handler`, at most `BATCH`. The tails in the packets go to `sender`.
    #[inline(always)]
    pub(super) fn drain(
        &mut self,
        sender: &mut RingSender,
        node: &mut dyn Node,
        from: usize,
        handler: &mut impl FnMut(usize, Head, &[u8]) -> More,
    ) -> std::result::Result<usize, Nonsense> {
        let Some(Registered { block, .. }) = &self.memory else {
            unreachable!("rank {from} has no ring here");
        };
        let mut packets = 0;
        while packets < BATCH {
            let Some(arrived) = self.inbound.poll(block)? else {
                break;
            };
            if !sender.heard_tail(arrived.tail) {
                return Err(TOO_MANY.into());
            }
            packets += 1;
            let body = arrived.body.clone();
            if !body.is_empty() {
                self.charges.charge(node, Effort::Copy(body.len()));
            }
            let more = handler(from, arrived.head, block.bytes(body.start, body.len()));
            self.charges.charge(node, Effort::Receive);
            self.inbound.consume(arrived);
            if self.basic {
                self.inbound.demand_tail();
            }
            if more == More::Enough {
                break;
            }
        }
        Ok(packets)
    }

    /// Writes the tail (the number of consumed packets) to the peer.
    pub(super) fn write_tail(
        &mut self,
        wire: Wire,
        to: Remote,
        signaled: bool,
        note: Note,
    ) -> Result<()> {
        let Wire { node, link } = wire;
        let memory = self.memory.as_ref();
        let memory = memory.expect("a tail is reported only to a peer that writes here");
        let own = memory.slice(link.rail(), OWN..OWN + WORD);
        self.charges.charge(node, Effort::Control);
        let tail = self.inbound.report_tail();
        memory.block.store(OWN, tail);
        // If bytes are placed in any order, the tail travels in the immediate alone.
        let unordered = link.peer_is_unordered();
        let write = RingWrite {
            from: match unordered {
                true => &[],
                false => &[own],
            },
            to,
            immediate: unordered.then_some(Immediate::Tail(tail as u32).encode()),
            signaled,
            note,
        };
        link.control.write(node, &write)
    }

    /// Deregisters the memory into which the peer writes.
    pub(super) fn end(self, node: &mut dyn Node) {
        if let Some(memory) = self.memory {
            memory.end(node);
        }
    }
}
