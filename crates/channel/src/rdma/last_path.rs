//! The driver of the last path to a peer: it waits for a link that works while none does, and gives
//! the peer up when the user's patience has ended.
//!
//! [`Outage`] has the clocks. They also run while this rank awaits a word that no link carries: the
//! peer's hello or goodbye.
//!
//! Invariants:
//! - nothing is posted for a peer without a link that works; what was posted waits, and is written
//!   again over the first link that does;
//! - a lost peer stays lost. Its loss is reported once, as the error of a poll, after its queue
//!   pairs are drained: from then on no device touches memory that was exposed for it.

use device::{LinkLayer, Status};

use super::bulk::Reserved;
use super::connection::Connection;
use super::handshake::HandshakeMessage;
use super::lifecycle::LifeStage;
use super::outage::{Loss, Outage};
use super::rail_set::RailSet;
use super::wr_id::QpRole;
use super::{Rdma, complete};
use crate::{Error, Fault, Result};

/// The time for which a word may be awaited before the node is asked for signs of the peer, in
/// nanoseconds.
const USUAL: u64 = 1_000_000_000;

impl Rdma {
    /// No link to `peer` works any more.
    #[cold]
    pub(super) fn cut_off(&mut self, peer: usize) {
        let now = self.node.now();
        let endpoint = self.endpoints.of(peer);
        endpoint.connection.sever();
        let outage = &mut endpoint.last_path.outage;
        outage.get_or_insert_with(|| Outage::begin(now));
        self.watch_silence(peer);
    }

    /// This rank awaits a word of `peer` that no link carries. A modelled machine loses no word
    /// unless a fault is planned.
    pub(super) fn await_word(&mut self, peer: usize) {
        if self.node.is_virtual() && !self.knows_cuts {
            return;
        }
        let now = self.node.now();
        let outage = &mut self.endpoints.of(peer).last_path.outage;
        outage.get_or_insert_with(|| Outage::begin(now));
        self.watch_silence(peer);
    }

    fn watch_silence(&mut self, peer: usize) {
        if !self.attention.silent.contains(&peer) {
            self.attention.silent.push(peer);
        }
    }

    /// The peer has said something out of band.
    pub(super) fn heard_from(&mut self, peer: usize) {
        if self.endpoints.get(peer).is_none() {
            return;
        }
        let now = match self.endpoints.of(peer).last_path.outage {
            Some(_) => self.node.now(),
            None => return,
        };
        if let Some(outage) = &mut self.endpoints.of(peer).last_path.outage {
            outage.sign(now);
        }
    }

    /// An attempt to take back a link to `peer` has failed.
    pub(super) fn attempt_failed(&mut self, peer: usize) {
        self.note_attempt(peer, Outage::attempt_failed);
    }

    /// The peer has answered an attempt to take back a link.
    pub(super) fn attempt_answered(&mut self, peer: usize) {
        self.note_attempt(peer, Outage::answered);
    }

    fn note_attempt(&mut self, peer: usize, note: fn(&mut Outage, u64)) {
        if self.endpoints.of(peer).last_path.outage.is_some() {
            let now = self.node.now();
            if let Some(outage) = &mut self.endpoints.of(peer).last_path.outage {
                note(outage, now);
            }
        }
    }

    /// A link to `peer` works again. Nothing happens if another one did all the time.
    pub(super) fn end_outage(&mut self, peer: usize) -> Result<()> {
        let now = self.node.now();
        let endpoint = self.endpoints.of(peer);
        let carrier = endpoint.home().index();
        // Those of links that are being given up follow when both ends are drained.
        let dead = endpoint.links().iter().filter(|link| link.life.is_dead());
        let dead = dead.fold(RailSet::default(), |set, link| set.with(link.index()));
        endpoint.connection.restore();
        let awaits_word = endpoint.awaits_word();
        let Some(outage) = endpoint.last_path.outage.take() else {
            return Ok(());
        };
        // Messages that were consumed since the link was connected have freed buffers.
        endpoint.post_unposted(&mut *self.node, &self.layout, peer, carrier)?;
        self.bulk.carry_all(peer, carrier, dead);
        // Lost packets are written again with the next poll.
        self.attention.fencing = true;
        self.attention.outages.add(outage.lasts(now));
        if outage.was_told() {
            let seconds = outage.lasts(now) as f64 / 1e9;
            let text = format!(
                "{} is reached again after {seconds:.1} s without a network",
                self.name_of(peer)
            );
            self.report(
                format!("back-{peer}-{}", self.attention.outages.count),
                text,
            );
        }
        if awaits_word {
            self.await_word(peer);
        }
        Ok(())
    }

    /// Judges the silence of peers without a link that works, and of those whose word is awaited.
    /// To be called now and then. An error: a peer is lost.
    #[cold]
    pub(super) fn tend_silence(&mut self) -> Result<()> {
        let now = self.node.now();
        for at in 0..self.attention.silent.len() {
            let peer = self.attention.silent[at];
            if self.endpoints.of(peer).last_path.outage.is_some() {
                self.judge(peer, now)?;
            }
        }
        let ended = self.bury_lost()?;
        let endpoints = &mut self.endpoints;
        self.attention.silent.retain(|peer| {
            let last_path = &endpoints.of(*peer).last_path;
            last_path.outage.is_some() || last_path.loss.is_some()
        });
        ended.map_or(Ok(()), Err)
    }

    fn judge(&mut self, peer: usize, now: u64) -> Result<()> {
        let endpoint = self.endpoints.of(peer);
        let is_cut_off = endpoint.is_cut_off();
        let awaits_word = endpoint.awaits_word();
        if !is_cut_off && !awaits_word && !self.knows_cuts {
            endpoint.last_path.outage = None;
            return Ok(());
        }
        let Some(outage) = &mut endpoint.last_path.outage else {
            return Ok(());
        };
        if !self.node.is_virtual() {
            outage.look(now);
        }
        let is_usual = !is_cut_off && outage.lasts(now) < USUAL;
        if is_usual && !self.knows_cuts {
            return Ok(());
        }
        let signs = self.node.signs(peer);
        if !is_cut_off && self.knows_cuts && signs.cut.is_none() {
            // The paths carry what is awaited: the silence of the peer is none.
            let outage = awaits_word.then(|| Outage::begin(now));
            self.endpoints.of(peer).last_path.outage = outage;
            return Ok(());
        }
        let patience = self.config.patience;
        let Some(outage) = &mut self.endpoints.of(peer).last_path.outage else {
            return Ok(());
        };
        if let Some(since) = signs.cut {
            outage.silent_from(since);
        }
        let may_be_lost = is_cut_off || signs.tell;
        let loss = outage.loss(&signs, patience, now);
        let is_real = is_cut_off && !self.node.is_virtual();
        let outlasts = loss.is_none() && is_real && outage.outlasts(patience, now);
        let is_news = loss.is_none() && may_be_lost && outage.is_news(is_cut_off, now);
        if is_news {
            self.tell_outage(peer, is_cut_off);
        }
        if outlasts {
            self.tell_answers(peer);
        }
        match loss.filter(|_| may_be_lost) {
            Some(loss) => {
                let error = self.error_of(peer, loss);
                self.lose(peer, error)
            }
            None => Ok(()),
        }
    }

    /// Finds peers to which a modelled machine has no path, though no request has failed.
    #[cold]
    pub(super) fn find_cuts(&mut self) {
        for at in 0..self.endpoints.known().len() {
            let peer = self.endpoints.known()[at];
            let endpoint = self.endpoints.of(peer);
            if endpoint.last_path.outage.is_some() || endpoint.connection.is_over() {
                continue;
            }
            if let Some(since) = self.node.signs(peer).cut {
                self.endpoints.of(peer).last_path.outage = Some(Outage::begin(since));
                self.watch_silence(peer);
            }
        }
    }

    /// The time at which a peer is lost, or the user is to be told of an outage, at the earliest.
    pub(super) fn next_judgement(&mut self) -> Option<u64> {
        let mut next = None;
        for at in 0..self.attention.silent.len() {
            let peer = self.attention.silent[at];
            let endpoint = self.endpoints.of(peer);
            if endpoint.last_path.loss.is_some() {
                return Some(0);
            }
            let is_cut_off = endpoint.is_cut_off();
            let Some(outage) = &endpoint.last_path.outage else {
                continue;
            };
            let deadline = outage.deadline(self.config.patience);
            let news = outage.news_at(is_cut_off);
            // In virtual time a wait without a cut needs no limit, and must not get one: other
            // ranks may be in a deadlock.
            if is_cut_off || !self.node.is_virtual() || self.node.signs(peer).cut.is_some() {
                next = [next, deadline, news].into_iter().flatten().min();
            }
        }
        next
    }

    /// Gives up a peer, for good.
    #[cold]
    pub(super) fn lose(&mut self, peer: usize, error: Error) -> Result<()> {
        let endpoint = self.endpoints.of(peer);
        if endpoint.connection == Connection::Lost {
            return Ok(());
        }
        if endpoint.connection.lose() {
            self.attention.connecting -= 1;
            self.attention.in_progress.retain(|other| *other != peer);
        }
        let endpoint = self.endpoints.of(peer);
        endpoint.last_path.outage = None;
        endpoint.last_path.loss = Some(error);
        self.attention.deferred -= endpoint.sender.give_up();
        for index in 0..self.endpoints.of(peer).links().len() {
            let link = &mut self.endpoints.of(peer).links_mut()[index];
            match link.life.stage() {
                LifeStage::Live | LifeStage::Probing(_) if !link.is_new() => {
                    link.life.fail();
                    link.fail(&mut *self.node, peer)?;
                }
                _ => (),
            }
        }
        // The peer may wait for this rank, and the network may return.
        let word = HandshakeMessage::GaveUp.encode();
        self.node.oob_send(peer, &word)?;
        self.node.give_up(peer);
        self.watch_silence(peer);
        self.attention.all = true;
        Ok(())
    }

    /// Another part of this rank has given up a peer.
    pub(crate) fn give_up_peer(&mut self, peer: usize) {
        let is_open = self.endpoints.get(peer).is_some();
        if is_open && self.endpoints.of(peer).connection != Connection::Lost {
            // The error is known where this call comes from.
            let known = Fault::Gone { peer };
            if self.lose(peer, known.into()).is_err() {
                // Its queue pairs stay as they are.
                self.endpoints.of(peer).last_path.loss = None;
            }
        }
    }

    /// The peer has given up this rank.
    pub(super) fn hear_gave_up(&mut self, peer: usize) -> Result<()> {
        let what = self.name_of(peer);
        let check = complete::advice(Status::RetryExceeded, self.layer_to(peer));
        let error = Fault::Lost {
            peer,
            device: self.device_to(peer),
            status: format!("{what} has given up this one"),
            check,
            may_be_death: false,
        };
        self.lose(peer, error.into())
    }

    /// Ends the links of lost peers whose queue pairs are drained. Returns the error of one, which
    /// is to be reported.
    fn bury_lost(&mut self) -> Result<Option<Error>> {
        for at in 0..self.attention.silent.len() {
            let peer = self.attention.silent[at];
            if self.endpoints.of(peer).last_path.loss.is_none() {
                continue;
            }
            self.poll_all()?;
            if self.is_drained(peer)? {
                self.end_links(peer);
                return Ok(self.endpoints.of(peer).last_path.loss.take());
            }
        }
        Ok(None)
    }

    fn is_drained(&mut self, peer: usize) -> Result<bool> {
        for link in self.endpoints.of(peer).links() {
            let is_draining = link.life.stage() == LifeStage::Draining;
            if is_draining && !link.is_drained(&mut *self.node)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Destroys the queue pairs of a lost peer, and forgets what they carried.
    fn end_links(&mut self, peer: usize) {
        let Rdma {
            endpoints,
            node,
            rails,
            srq_path,
            ..
        } = self;
        let endpoint = endpoints.of(peer);
        let mut messages: Vec<usize> = std::mem::take(&mut endpoint.lost_messages).into();
        for link in endpoint.links_mut() {
            messages.extend(link.forget());
            link.lost_pieces.clear();
            let rail = &mut rails[link.rail()];
            for role in [QpRole::Control, QpRole::Bulk] {
                rail.forget(link.queue_pair_mut(role).qp());
            }
            link.close(&mut **node);
            link.life.end();
        }
        messages
            .into_iter()
            .for_each(|number| srq_path.sent(number));
        endpoint.transfers = Default::default();
        for reserved in self.bulk.lose(peer) {
            if let Reserved::Rails(on) = reserved {
                on.iter().for_each(|rail| self.rails[rail].release_notice());
            }
        }
        self.attention.impaired.retain(|other| *other != peer);
    }

    /// Tells the user of an outage.
    pub(super) fn tell_outage(&mut self, peer: usize, is_cut_off: bool) {
        let name = self.name_of(peer);
        let what = match is_cut_off {
            true => format!("no path to {name} works ({})", self.failure_of(peer)),
            false => format!("{name} does not answer {}", self.place_here()),
        };
        let waits = match self.config.patience.silence {
            Some(nanos) => {
                let time = std::time::Duration::from_nanos(nanos);
                format!("this rank waits for the network for at most {time:?} (FISHPLATE_OUTAGE)")
            }
            None => "this rank waits for the network for ever (FISHPLATE_OUTAGE)".into(),
        };
        self.report(format!("outage-{peer}"), format!("{what}: {waits}"));
    }

    /// Tells the user of a peer whose host answers, though no path works.
    fn tell_answers(&mut self, peer: usize) {
        let limit = self.config.patience.silence.unwrap_or(0);
        let limit = std::time::Duration::from_nanos(limit);
        let text = format!(
            "no path to {} has worked for {limit:?}, and its host answers: the process computes, or the network \
             carries packets of the kernels only; this rank goes on waiting",
            self.name_of(peer)
        );
        self.report(format!("answers-{peer}"), text);
    }

    /// The error of a peer that is lost for this reason.
    pub(super) fn error_of(&mut self, peer: usize, loss: Loss) -> Error {
        let patience = self.config.patience.silence;
        let limit = patience.map_or(String::new(), |nanos| {
            let time = std::time::Duration::from_nanos(nanos);
            format!(" for {time:?}, the limit of FISHPLATE_OUTAGE")
        });
        let is_at_once = patience == Some(0);
        let endpoint = self.endpoints.of(peer);
        let failure = endpoint.last_path.failure;
        if !endpoint.has_been_made() {
            let why = format!(
                "{} gave no answer {}{limit}: are interfaces, cables, routes and firewalls between the two right \
                 (ip addr, ip route, ping)?",
                self.name_of(peer),
                self.place_here(),
            );
            return Fault::Unreachable { peer, why }.into();
        }
        if let (true, Some((rail, status))) = (is_at_once, failure) {
            return self.lost(peer, rail, status);
        }
        let status = match loss {
            Loss::Silent => format!("no sign of life{limit}; {}", self.failure_of(peer)),
            Loss::Unusable => format!("no link could be made{limit}; {}", self.failure_of(peer)),
            Loss::Dead => "its host says that the process is gone".to_string(),
        };
        let layer = self.layer_to(peer);
        Fault::Lost {
            peer,
            device: self.device_to(peer),
            status,
            check: complete::advice(Status::RetryExceeded, layer),
            may_be_death: loss == Loss::Dead,
        }
        .into()
    }

    /// The peer with its place.
    fn name_of(&mut self, peer: usize) -> String {
        match self.node.place_of(peer) {
            place if place.is_empty() => format!("rank {peer}"),
            place => format!("rank {peer} on {place}"),
        }
    }

    /// The place of this rank, for a sentence about another one.
    fn place_here(&mut self) -> String {
        match self.node.place_of(self.rank) {
            place if place.is_empty() => "this rank".into(),
            place => format!("this rank on {place}"),
        }
    }

    /// The last failure of a link to a peer, in words.
    fn failure_of(&mut self, peer: usize) -> String {
        let Some((rail, status)) = self.endpoints.of(peer).last_path.failure else {
            return "nothing has failed yet".into();
        };
        let name = self.node.rail(rail).attributes().name.clone();
        let notes = self.node.notes();
        match notes.last() {
            None => format!("rail {rail}, {name}: {}", status.words()),
            Some(last) => format!("rail {rail}, {name}: {}; {last}", status.words()),
        }
    }

    fn device_to(&mut self, peer: usize) -> String {
        let rail = self.endpoints.of(peer).home().rail();
        self.node.rail(rail).attributes().name.clone()
    }

    fn layer_to(&mut self, peer: usize) -> LinkLayer {
        self.endpoints.of(peer).home().network().link_layer
    }
}

/// The outages of a rank that have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outages {
    /// Their number.
    pub count: u64,
    /// Their time, in nanoseconds.
    pub nanos: u64,
}

impl Outages {
    fn add(&mut self, nanos: u64) {
        self.count += 1;
        self.nanos += nanos;
    }
}
