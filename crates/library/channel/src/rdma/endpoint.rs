//! An endpoint: the connection to one peer, as a composition of machines.
//!
//! [`Connection`] says what may be done at all, [`RingSender`] and [`RingReceiver`] keep the two
//! rings, [`Credits`] count the messages of a peer without rings, and each [`Link`] keeps the queue
//! pairs on one rail.

use std::collections::VecDeque;

use device::{Node, Operation, Status};

use super::bulk::{Reserved, TransferQueue};
use super::connection::{Before, Connection};
use super::credit::Credits;
use super::flow::Flow;
use super::lifecycle::LifeStage;
use super::link::{Link, Wire};
use super::outage::Outage;
use super::outbound::SlotPlace;
use super::qp_link::{DEPTH, Note};
use super::rail_set::{RailKeys, RailSet};
use super::ring_receiver::RingReceiver;
use super::ring_sender::{PostedSlot, RingSender};
use super::schedule::Schedules;
use crate::{Error, Head, Result};

/// The connection to one peer, with its links, rings and credits.
pub(super) struct Endpoint {
    pub connection: Connection,
    /// One link for each pair of rails.
    links: Box<[Link]>,
    /// The choice of links for packets and transfers. `None`: the endpoint has one link.
    pub schedules: Option<Box<Schedules>>,
    /// The position of the home link, which control messages use.
    home: usize,
    /// The position of the link that was chosen for the next packet, which had no room yet.
    pub chosen: Option<usize>,
    /// The rank's count of polls that found nothing, as it was at the last packet to this peer.
    pub idle_polls: u32,
    pub sender: RingSender,
    pub receiver: RingReceiver,
    pub credits: Credits,
    /// Zero-copy transfers that wait for room in the send queue.
    pub transfers: TransferQueue,
    /// Send buffers of messages that failed with their link, in the order of the messages.
    pub lost_messages: VecDeque<usize>,
    pub last_path: LastPath,
    /// Links that carried the peer's messages when they failed, and whose fence this rank has not
    /// sent.
    carried: RailSet,
}

/// The state of an endpoint whose last link has failed, or whose peer is silent.
#[derive(Default)]
pub(super) struct LastPath {
    /// The clocks of the time without any live link, or without an out-of-band message for which
    /// this rank waits. `None`: neither is running.
    pub outage: Option<Outage>,
    /// The rail of the last request that failed, and the status of the request.
    pub failure: Option<(usize, Status)>,
    /// The numbers of the buffers, in this end's memory for the ring from the peer, whose receives
    /// failed with the last link.
    pub unposted: Vec<usize>,
    /// The error that reports the loss of the peer, kept until the links are drained.
    pub loss: Option<Error>,
}

impl Endpoint {
    pub(super) fn new(
        links: Box<[Link]>,
        sender: RingSender,
        receiver: RingReceiver,
        credits: Credits,
    ) -> Endpoint {
        Endpoint {
            connection: Connection::Opening,
            links,
            schedules: None,
            home: 0,
            chosen: None,
            idle_polls: 0,
            sender,
            receiver,
            credits,
            transfers: TransferQueue::default(),
            lost_messages: VecDeque::new(),
            last_path: LastPath::default(),
            carried: RailSet::default(),
        }
    }

    /// The home link: the one that control messages use.
    #[inline(always)]
    pub(super) fn home(&self) -> &Link {
        &self.links[self.home]
    }

    #[inline(always)]
    pub(super) fn home_mut(&mut self) -> &mut Link {
        &mut self.links[self.home]
    }

    /// The endpoint's link on `rail`, which must exist.
    pub(super) fn link_on(&mut self, rail: usize) -> &mut Link {
        let link = self.links.iter_mut().find(|link| link.rail() == rail);
        link.expect("a rail reports only on endpoints with a link on it")
    }

    /// True if the peer's notices arrive at the queue pairs for packets.
    pub(super) fn notices_in_control(&self) -> bool {
        self.home().shared_notices.is_some()
    }

    /// Reserves a receive for a notice in the receive queue for packets of each link. `None`: some
    /// link has no receive left.
    pub(super) fn reserve_shared_notices(
        &mut self,
        node: &mut dyn Node,
    ) -> Result<Option<Reserved>> {
        let mut reserved = RailSet::default();
        for at in 0..self.links.len() {
            if !self.links[at].life.is_connected() {
                continue;
            }
            if !self.links[at].reserve_shared_notice(node)? {
                for link in reserved.iter() {
                    self.links[link].release_shared_notice();
                }
                return Ok(None);
            }
            reserved = reserved.with(at);
        }
        Ok(Some(Reserved::Links(reserved)))
    }

    /// The links for transfers, their schedules, and the transfers that wait for them.
    pub(super) fn bulk_parts(
        &mut self,
    ) -> (&mut [Link], Option<&mut Schedules>, &mut TransferQueue) {
        let schedules = self.schedules.as_deref_mut();
        (&mut self.links, schedules, &mut self.transfers)
    }

    /// The queue that a new transfer of `flow` joins. A single link has one queue for writes and
    /// reads.
    #[inline]
    pub(super) fn queue_of(&self, flow: Flow) -> Flow {
        match self.schedules {
            None => Flow::Out,
            Some(_) => flow,
        }
    }

    /// Keeps the links for which `keep` is true, and starts the schedules if several remain.
    /// Returns the other links.
    pub(super) fn settle_links(
        &mut self,
        keep: impl Fn(&Link) -> bool,
        schedules: impl FnOnce(&[Link]) -> Schedules,
    ) -> Vec<Link> {
        let all = std::mem::take(&mut self.links).into_vec();
        let (mut kept, lost): (Vec<Link>, Vec<Link>) = all.into_iter().partition(keep);
        for (index, link) in kept.iter_mut().enumerate() {
            link.renumber(index);
        }
        self.links = kept.into();
        if self.links.len() > 1 {
            let schedules = schedules(&self.links);
            self.home = schedules.out.home();
            self.schedules = Some(Box::new(schedules));
        }
        lost
    }

    /// The position of the link for the next packet, of `len` bytes. It stays chosen until a packet
    /// has been posted.
    #[inline(always)]
    pub(super) fn choose(&mut self, node: &mut dyn Node, len: usize) -> usize {
        match &mut self.schedules {
            None => 0,
            Some(schedules) => *self
                .chosen
                .get_or_insert_with(|| schedules.out.packet(len, || node.now())),
        }
    }

    pub(super) fn links(&self) -> &[Link] {
        &self.links
    }

    pub(super) fn links_mut(&mut self) -> &mut [Link] {
        &mut self.links
    }

    /// Stops the use of link `on`, which has failed. False: no other link is live. The last of
    /// several links stays in the schedule, which always has one.
    pub(super) fn leave_link(&mut self, on: usize) -> bool {
        let others = self
            .links
            .iter()
            .any(|link| link.index() != on && link.life.is_live());
        self.chosen = None;
        if on == self.home {
            self.carried = self.carried.with(on);
        }
        if others && let Some(schedules) = &mut self.schedules {
            schedules.set_alive(on, false);
            self.home = schedules.out.home();
        }
        others
    }

    /// Writes lost packets to the peer's ring again, as far as the send queue has room.
    pub(super) fn replay_packets(&mut self, node: &mut dyn Node) -> Result<()> {
        let link = &mut self.links[self.home];
        if !link.life.is_live() {
            return Ok(());
        }
        while self.sender.has_replays() && link.control.held() + 1 < DEPTH {
            self.sender.replay(Wire { node, link })?;
        }
        Ok(())
    }

    /// The number of the last message that the peer may send, as the fence of link `on` reports it.
    /// This end has received everything up to `received`. If the link carried messages, the grants
    /// restart from there. While no link works, a link that was being connected again may have
    /// carried them.
    pub(super) fn grants_after(&mut self, on: usize, received: u64) -> u64 {
        let carried = self.carried.contains(on) || self.is_cut_off();
        self.carried = self.carried.without(on);
        let own = self.home().window;
        match (self.has_rings(), carried) {
            (true, _) => received,
            (false, true) => self.credits.window.restart(received, own),
            (false, false) => self.credits.window.granted(),
        }
    }

    /// Uses link `on` again, which works. If no other link is live, the schedule drops the one that
    /// worked last.
    pub(super) fn take_back_link(&mut self, on: usize) {
        let Some(schedules) = &mut self.schedules else {
            return;
        };
        self.chosen = None;
        schedules.set_alive(on, true);
        let home = &self.links[self.home];
        if !home.life.is_live() {
            if home.index() != on {
                schedules.set_alive(home.index(), false);
            }
            self.home = schedules.out.home();
        }
    }

    /// True if a link is being given up: not both of its ends are drained.
    pub(super) fn is_fencing(&self) -> bool {
        let fencing =
            |link: &Link| matches!(link.life.stage(), LifeStage::Draining | LifeStage::Fenced);
        self.links.iter().any(fencing)
    }

    /// True if packets or messages that were lost with a link wait to be written again.
    pub(super) fn has_lost(&self) -> bool {
        self.sender.has_replays() || !self.lost_messages.is_empty()
    }

    /// True if no link of the connection works.
    pub(super) fn is_cut_off(&self) -> bool {
        !self.links.iter().any(|link| link.life.is_live())
    }

    /// True if this rank awaits an out-of-band message of the peer: its hello, its report that it
    /// is ready, or its goodbye.
    pub(super) fn awaits_word(&self) -> bool {
        matches!(
            self.connection,
            Connection::Opening | Connection::Connected | Connection::SaidBye
        )
    }

    /// True if the connection has been made, even if it has ended or no link works now.
    pub(super) fn has_been_made(&self) -> bool {
        !matches!(
            self.connection,
            Connection::Opening
                | Connection::Connecting(_)
                | Connection::Connected
                | Connection::Severed(Before::Connected)
        )
    }

    /// True if link `on`, which is dead, may be connected again. Without rings both ends must use
    /// one link for messages: a link is revived only while all others are dead.
    pub(super) fn may_return(&self, on: usize) -> bool {
        let is_out = |link: &Link| link.index() == on || link.life.stage() == LifeStage::Dead;
        let is_made = !matches!(
            self.connection,
            Connection::Opening | Connection::Connecting(_)
        );
        is_made && !self.connection.is_over() && (self.has_rings() || self.links.iter().all(is_out))
    }

    /// The link between rail `ours` of this rank and rail `theirs` of the peer.
    pub(super) fn link_between(&mut self, ours: usize, theirs: usize) -> Option<&mut Link> {
        let mut links = self.links.iter_mut();
        links.find(|link| (link.rail(), link.peer_rail()) == (ours, theirs))
    }

    /// The rails of the links that the peer may use.
    pub(super) fn connected_rails(&self) -> RailSet {
        let connected = self.links.iter().filter(|link| link.life.is_connected());
        connected.fold(RailSet::default(), |set, link| set.with(link.rail()))
    }

    /// The rails over which live links of the connection run.
    pub(super) fn live_rails(&self) -> RailSet {
        let live = self.links.iter().filter(|link| link.life.is_live());
        live.fold(RailSet::default(), |set, link| set.with(link.rail()))
    }

    /// The rails over which links of the connection run.
    pub(super) fn rails(&self) -> RailSet {
        let links = self.links.iter();
        links.fold(RailSet::default(), |set, link| set.with(link.rail()))
    }

    /// The keys of the memory that the peer writes to, if this end has any.
    pub(super) fn memory_keys(&self) -> Option<&RailKeys> {
        self.receiver.memory().map(|memory| &memory.keys)
    }

    /// True if packets travel through rings, and not as messages.
    #[inline(always)]
    pub(super) fn has_rings(&self) -> bool {
        self.sender.has_ring()
    }

    /// A free slot for a body of `len` bytes, if the send queue of link `on` has room for its
    /// write. One entry of the queue stays free for the tail.
    #[inline(always)]
    pub(super) fn find(&self, on: usize, len: usize) -> Option<SlotPlace> {
        let has_room = self.links[on].control.held() + 1 < DEPTH;
        self.sender.find(len).filter(|_| has_room)
    }

    /// Writes a packet to a free slot of the peer's ring, over link `on`.
    #[inline(always)]
    pub(super) fn write_packet(
        &mut self,
        node: &mut dyn Node,
        (on, place): (usize, SlotPlace),
        head: Head,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<PostedSlot> {
        self.chosen = None;
        let tail = self.receiver.report_tail() as u32;
        let link = &mut self.links[on];
        self.sender
            .write_packet(Wire { node, link }, tail, place, head, len, fill)
    }

    /// Writes the slot of coalesced packets to the peer's ring. `None`: there is no such slot, or
    /// it cannot be written now.
    pub(super) fn write_coalesced(&mut self, node: &mut dyn Node) -> Result<Option<PostedSlot>> {
        let Some(len) = self
            .sender
            .coalesced()
            .filter(|_| self.connection.may_write())
        else {
            return Ok(None);
        };
        let on = match &mut self.schedules {
            None => 0,
            Some(schedules) => *self
                .chosen
                .get_or_insert_with(|| schedules.out.coalesced(len, || node.now())),
        };
        let link = &mut self.links[on];
        if link.control.held() + 1 >= DEPTH {
            return Ok(None);
        }
        self.chosen = None;
        let tail = self.receiver.report_tail() as u32;
        self.sender
            .write_coalesced(Wire { node, link }, tail)
            .map(Some)
    }

    /// Posts the head pointer (the flag, in the design `Basic`) of a packet whose data has been
    /// written. False: no head pointer is due, or the link has failed meanwhile.
    pub(super) fn write_head_pointer(&mut self, node: &mut dyn Node) -> Result<bool> {
        let link = &mut self.links[self.home];
        if !link.life.is_live() {
            return Ok(false);
        }
        self.sender.write_head_pointer(Wire { node, link })
    }

    /// Writes the tail to the peer, unless the send queue has no room for it now or the connection
    /// does not allow it.
    pub(super) fn write_tail(&mut self, node: &mut dyn Node, signaled: bool) -> Result<()> {
        let has_room = self.home().control.has_room();
        if !self.connection.may_write() || !has_room || !self.has_rings() {
            return Ok(());
        }
        let link = &mut self.links[self.home];
        let to = self.sender.remote_tail(link);
        let note = Note::Ring(self.sender.last());
        self.receiver
            .write_tail(Wire { node, link }, to, signaled, note)
    }

    /// Takes over the tail that the peer has written to this rank's memory. False: no correct peer
    /// writes that number.
    pub(super) fn read_tail(&mut self) -> bool {
        match self.receiver.tail_in_memory() {
            Some(tail) => self.sender.heard_tail(tail),
            None => true,
        }
    }

    /// Requests a completion on each live link that has requests of which no expected completion
    /// reports the end: the schedule may have left that link, and ring slots wait for its writes.
    #[cold]
    pub(super) fn ask_for_reports(&mut self, node: &mut dyn Node) -> Result<()> {
        let note = Note::Ring(self.sender.last());
        for link in &mut self.links {
            let control = &link.control;
            let may_post = link.life.is_live() && control.has_room();
            if may_post && control.has_unreported() && !control.awaits() {
                let to = self.sender.remote_memory(link);
                let nothing = Operation::Write {
                    to,
                    immediate: None,
                };
                link.control.post(node, nothing, &[], false, true, note)?;
            }
        }
        Ok(())
    }

    /// Destroys the queue pairs of the connection and deregisters its memory.
    pub(super) fn end(self, node: &mut dyn Node) {
        // First the queue pairs: after that nothing writes to the memory.
        for link in &self.links {
            link.close(node);
        }
        self.receiver.end(node);
        self.sender.end(node);
    }
}
