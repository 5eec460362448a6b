//! Completions: what devices report, handed to the machine that it concerns.

use device::{Completed, Completion, LinkLayer, Qp, Status};

use super::Rdma;
use super::immediate::Immediate;
use super::qp_link::Note;
use super::srq_path::MessagePlace;
use super::wr_id::{QpRole, Subject, WrId};
use crate::{Error, Fault, Result};

/// Completions taken from a queue at once.
const SOME: usize = 16;

/// The longest time between two polls of completions, in nanoseconds, for which a completion counts
/// as found when it came.
const FRESH: u64 = 2_000;

/// The longest time from an event to the poll of the rank that it wakes, in nanoseconds.
const WAKE: u64 = 100_000;

/// Receives of one link that are used up and not yet posted again, at most.
pub(super) const LATE: u32 = 16;

/// The place that completions are taken to. It stays: most polls find none, and should not have to
/// make it.
pub(super) type PolledCompletions = Box<[Completion; SOME]>;

pub(super) fn no_completions() -> PolledCompletions {
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
    /// Takes the completions that this rank waits for. A rail on which nothing is outstanding is
    /// not polled, unless it is the only one.
    #[inline(never)]
    pub(super) fn poll(&mut self) -> Result<()> {
        let everything = self.rails.len() == 1 || self.srq_path.is_active();
        self.note_poll();
        for rail in 0..self.rails.len() {
            if everything || self.rails[rail].is_awaited() {
                self.poll_rail(rail)?;
            }
        }
        Ok(())
    }

    /// Takes all completions of all rails.
    pub(super) fn poll_all(&mut self) -> Result<()> {
        (0..self.rails.len()).try_for_each(|rail| self.poll_rail(rail))
    }

    /// Notes when completions are polled while schedules learn from them.
    #[inline]
    fn note_poll(&mut self) {
        if self.in_use.len() > 1 && self.bulk.is_moving() {
            let (now, is_polled) = (self.node.now(), self.needs_polls);
            let attention = &mut self.attention;
            let gap = now.saturating_sub(attention.polled_at);
            attention.late = match gap < FRESH {
                true => Some(FRESH),
                false => is_polled.then_some(gap),
            };
            attention.polled_at = now;
        }
    }

    /// Notes the end of a wait: nothing had completed before an event ended it. Completions of
    /// devices that work while they are polled come rarely, and hardly ever without a wait.
    pub(super) fn note_wake(&mut self) {
        if self.in_use.len() > 1 && self.bulk.is_moving() && self.needs_polls {
            let woken = self.node.now().saturating_sub(WAKE);
            self.attention.polled_at = self.attention.polled_at.max(woken);
        }
    }

    /// Takes all completions of a rail.
    pub(super) fn poll_rail(&mut self, rail: usize) -> Result<()> {
        for number in 0..self.rails[rail].cqs().len() {
            let cq = self.rails[rail].cqs()[number];
            loop {
                let count = self.node.rail(rail).poll(cq, &mut *self.polled)?;
                for at in 0..count {
                    let completion = self.polled[at];
                    self.completed(rail, &completion)?;
                }
                if count < SOME {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Handles a completion that a rail has reported.
    fn completed(&mut self, rail: usize, completion: &Completion) -> Result<()> {
        let id = WrId::decode(completion.id);
        assert_eq!(id.rail, rail, "rail {rail} reports {id:?}");
        let peer = match id.subject {
            Subject::Marker { peer, role } => {
                let link = self.endpoints.of(peer).link_on(rail);
                link.queue_pair_mut(role).heard_marker();
                return Ok(());
            }
            Subject::QueuePair { peer, .. } | Subject::EndpointBuffer { peer, .. } => peer,
            Subject::PoolBuffer { .. } => self.rails[rail].peer_of(completion.qp, QpRole::Control),
            Subject::Notice => self.rails[rail].peer_of(completion.qp, QpRole::Bulk),
        };
        if completion.status != Status::Success {
            // A peer that has heard our goodbye may be gone. Some devices then flush receives that
            // nothing will use. A probe of a link that has failed before is no such case: the peer
            // waits for the next attempt.
            let endpoint = self.endpoints.of(peer);
            let (said_bye, is_over) = (
                endpoint.connection.has_said_bye(),
                endpoint.connection.is_over(),
            );
            if said_bye && (is_over || endpoint.link_on(rail).life.is_live()) {
                return Ok(());
            }
            self.request_failed(peer, rail, completion.status)?;
            return self.return_receive(peer, rail, id.subject);
        }
        let place = match (completion.of, id.subject) {
            (Completed::ReceiveWrite, Subject::Notice) => {
                return self.notice(peer, rail, completion.immediate);
            }
            (Completed::ReceiveWrite, _) => {
                return self.written(peer, rail, completion.immediate);
            }
            (Completed::Receive, Subject::PoolBuffer { buffer }) => MessagePlace::Pool(buffer),
            (Completed::Receive, Subject::EndpointBuffer { buffer, .. }) => {
                MessagePlace::Endpoint(buffer)
            }
            (Completed::Receive, _) => {
                return Err(Error::broken(peer, "a message to a queue pair for writes"));
            }
            (of, Subject::QueuePair { role, .. }) => {
                return self.sent_request(peer, rail, role, of);
            }
            (of, subject) => panic!("a receive for {subject:?} completes as {of:?}"),
        };
        match completion.immediate {
            Some(grant) => self.granted(peer, rail, place, grant),
            None => {
                let bytes = completion.bytes as usize;
                self.srq_path.received(rail, peer, place, bytes);
                Ok(())
            }
        }
    }

    /// A receive has failed with its link. Those of shared queues are posted again; those into the
    /// memory for a ring move to another link.
    fn return_receive(&mut self, peer: usize, rail: usize, subject: Subject) -> Result<()> {
        let Rdma {
            endpoints,
            node,
            layout,
            rails,
            ..
        } = self;
        match subject {
            Subject::Notice => rails[rail].post_notice_receive(&mut **node),
            Subject::PoolBuffer { buffer } => {
                let pool = endpoints.of(peer).link_on(rail).pool;
                rails[rail].pool(pool).post(&mut **node, buffer)
            }
            Subject::EndpointBuffer { buffer, .. } => {
                let endpoint = endpoints.of(peer);
                endpoint.post_in_memory(&mut **node, layout, peer, buffer)
            }
            Subject::QueuePair { .. } | Subject::Marker { .. } => Ok(()),
        }
    }

    /// A request of a send queue is complete, and every one before it.
    fn sent_request(
        &mut self,
        peer: usize,
        rail: usize,
        role: QpRole,
        of: Completed,
    ) -> Result<()> {
        let link = self.endpoints.of(peer).link_on(rail);
        let index = link.index();
        if of == Completed::Read && role == QpRole::Control {
            link.probed = None;
        }
        let (note, slot) = link.queue_pair_mut(role).completed();
        let sender = &mut self.endpoints.of(peer).sender;
        // Whatever it was: the ring slots before it on this queue pair are written.
        sender.heard_completed(index, slot);
        match note {
            Note::Ring(_) => Ok(()),
            Note::RingData(_) => self.write_head_pointer(peer),
            Note::Replay(sequence) => {
                let sender = &mut self.endpoints.of(peer).sender;
                sender.replay_completed(sequence);
                Ok(())
            }
            Note::Probe => self.probe_arrived(peer, index),
            Note::SendBuffer(number) => {
                self.srq_path.sent(number);
                Ok(())
            }
            Note::Piece(piece) => self.transferred(peer, index, &piece),
            Note::Grant => Ok(()),
        }
    }

    /// The data of a packet of the design `Basic` has been written: its head pointer follows.
    fn write_head_pointer(&mut self, to: usize) -> Result<()> {
        let endpoint = self.endpoints.of(to);
        if endpoint.write_head_pointer(&mut *self.node)? {
            self.attention.deferred -= 1;
        }
        Ok(())
    }

    /// A peer's write with an immediate is whole.
    fn written(&mut self, from: usize, rail: usize, immediate: Option<u32>) -> Result<()> {
        let endpoint = self.endpoints.of(from);
        if endpoint.notices_in_control() {
            let link = endpoint.link_on(rail);
            link.control.post_receive(&mut *self.node)?;
            return self.noticed(from, immediate);
        }
        let report = immediate.filter(|_| endpoint.has_rings());
        match report.map(Immediate::decode) {
            Some(Immediate::Tail(tail)) => self.heard_tail(from, tail)?,
            Some(Immediate::Whole { class, lower }) => {
                let known = endpoint.receiver.completion(class, lower);
                known.map_err(|what| Error::broken(from, what))?;
            }
            None => {
                let what = match immediate {
                    Some(number) => format!("a write with the impossible immediate {number:#x}"),
                    None => "a write that consumes a receive without an immediate".to_string(),
                };
                return Err(Error::broken(from, what));
            }
        }
        let link = self.endpoints.of(from).link_on(rail);
        link.receives_due += 1;
        let late = link.receives_due == LATE;
        self.attention.receives_due += 1;
        match late {
            true => self.post_due(),
            false => Ok(()),
        }
    }

    /// Posts the receives that have been used up. The answer to the packet that used up the last
    /// one is more urgent: so this follows a packet that leaves, or is done when there is nothing
    /// else to do.
    #[inline(never)]
    pub(super) fn post_due(&mut self) -> Result<()> {
        self.attention.receives_due = 0;
        for at in 0..self.endpoints.ringed().len() {
            let peer = self.endpoints.ringed()[at];
            for link in self.endpoints.of(peer).links_mut() {
                link.post_receives_due(&mut *self.node)?;
            }
        }
        Ok(())
    }

    /// The error of a request that has failed on a rail, and with it the connection.
    #[cold]
    pub(super) fn lost(&mut self, peer: usize, rail: usize, status: Status) -> Error {
        let mut device = self.node.rail(rail).attributes().name.clone();
        // The devices' own notes may tell why.
        let notes = self.node.notes();
        if !notes.is_empty() {
            device = format!("{device} ({})", notes.join("; "));
        }
        Fault::Lost {
            peer,
            device,
            status: status.words().into(),
            check: advice(status, self.rails[rail].network().link_layer),
            may_be_death: !self.node.is_virtual(),
        }
        .into()
    }
}

/// The advice for a request that failed with `status` on such a link.
pub(super) fn advice(status: Status, link: LinkLayer) -> &'static str {
    match status {
        Status::RetryExceeded if link == LinkLayer::Internet => {
            "is that rank still alive, and are interface, cable and route between the two hosts up (ip link, ping)?"
        }
        // The second is what some devices report that have no path to the peer any more.
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
