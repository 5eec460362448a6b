//! Making connections, and ending them.
//!
//! Whoever first has a packet tells the peer where its end is (`Hello`); the peer connects its own end, and says where
//! that is and that it is ready. If both begin at once, each takes the other's hello for the answer to its own, and says
//! `Ready` once its end is connected. So either may write as soon as it has heard that the other is ready. Where a device
//! needs both ends to tie queue pairs, the peer answers at once, and both say `Ready` when that is done.

use device::{Access, Remote, State};

use super::complete::LATE;
use super::credit::{self, EMPTY, MOST, Window};
use super::handshake::{Hello, Word};
use super::inbound::Inbound;
use super::outbound::Outbound;
use super::qp_link::{DEPTH, Link, QpRole, Queues};
use super::registered::Registered;
use super::srq_path;
use super::{Peer, RING, Rdma, bulk};
use crate::{Fault, Result};

/// Completions that one queue holds.
const CQ_DEPTH: usize = 1 << 14;

/// A peer whose hello has come.
#[derive(Clone, Copy)]
pub(super) struct Connecting {
    peer: usize,
    /// What it has said: it has memory for rings, its end is connected.
    rings: bool,
    ready: bool,
    /// It has not heard our hello yet.
    answer: bool,
}

impl Rdma {
    /// Begins a connection, or goes on with it.
    #[cold]
    #[inline(never)]
    pub(super) fn connect(&mut self, to: usize) -> Result<()> {
        if self.peers[to].is_none() {
            self.open(to)?;
            self.say_hello(to, false)?;
        }
        self.listen()
    }

    /// Makes this rank's end.
    fn open(&mut self, to: usize) -> Result<()> {
        let receives = self.receives();
        let messages = MOST as usize + EMPTY;
        let completions = 2 * DEPTH as usize + receives.max(messages);
        let cq = self.cq_for(completions)?;
        let has_memory = self.rings < self.config.rings;
        self.rings += usize::from(has_memory);
        let Rdma {
            node,
            shared,
            layout,
            ..
        } = self;
        let node = &mut **node;
        let (packets, pool, size) = match has_memory {
            true => {
                let own = Queues {
                    cq,
                    srq: None,
                    receives: receives.max(messages),
                };
                (own, 0, srq_path::fit(layout) as u32)
            }
            false => {
                let (pool, srq, size) = shared.admit(node, layout)?;
                let common = Queues {
                    cq,
                    srq: Some(srq),
                    receives: 0,
                };
                (common, pool, size)
            }
        };
        let notices = Queues {
            cq,
            srq: Some(self.srq),
            receives: 0,
        };
        let control = Link::open(node, 0, to, QpRole::Control, packets)?;
        let bulk = Link::open(node, 0, to, QpRole::Bulk, notices)?;
        self.bulk.belongs(bulk.qp, to);
        self.bulk.belongs(control.qp, to);
        let access = Access {
            remote_write: true,
            local_write: true,
            ..Access::default()
        };
        let memory = match has_memory {
            true => Some(Registered::new(
                node.rail(0),
                srq_path::room(layout),
                access,
            )?),
            false => None,
        };
        self.peers[to] = Some(Box::new(Peer {
            ready: false,
            receives_due: 0,
            said_bye: false,
            heard_bye: false,
            asked: None,
            control,
            bulk,
            out: Outbound::new(self.layout),
            inbound: Inbound::new(self.layout, RING, self.config.credit, self.by_completion),
            window: Window::new(size),
            allowed: 0,
            pool,
            memory,
            staging: None,
            remote: None,
        }));
        self.known.push(to);
        self.attention.connecting += 1;
        Ok(())
    }

    /// Writes with immediate that may have come from one peer since this rank last looked, at most. Packets: one a slot,
    /// for none is used again before its packet has been taken. Tails: each says of one more of our packets that it was
    /// taken, and none leaves before we have looked. And while a connection ends, a tail behind any of these may ask for a
    /// completion. Some that are used up may not have been posted again.
    fn receives(&self) -> usize {
        if self.by_completion {
            4 * self.layout.slots() + LATE as usize
        } else {
            0
        }
    }

    /// A completion queue that can hold so many more.
    fn cq_for(&mut self, completions: usize) -> Result<device::Cq> {
        self.reserved += completions;
        match self.cqs.last() {
            Some(last) if self.reserved <= CQ_DEPTH => Ok(*last),
            _ => {
                self.reserved = completions + bulk::NOTICES;
                let cq = self.node.rail(0).create_cq(CQ_DEPTH.max(self.reserved))?;
                self.cqs.push(cq);
                Ok(cq)
            }
        }
    }

    fn say_hello(&mut self, to: usize, ready: bool) -> Result<()> {
        let Rdma {
            peers,
            node,
            config,
            ..
        } = self;
        let Some(peer) = &peers[to] else {
            return Ok(());
        };
        let memory = peer.memory.as_ref().map(|memory| memory.region);
        let hello = Hello {
            config: *config,
            ready,
            rings: peer.memory.is_some(),
            credits: peer.window.size,
            address: memory.map_or(0, |region| region.address),
            rkey: memory.map_or(0, |region| region.rkey),
            control: peer.control.address(&mut **node)?,
            bulk: peer.bulk.address(&mut **node)?,
        };
        Ok(node.oob_send(to, &Word::Hello(Box::new(hello)).encode())?)
    }

    /// Hears what peers have told.
    pub(super) fn listen(&mut self) -> Result<()> {
        for connecting in std::mem::take(&mut self.attention.in_progress) {
            self.go_on(connecting)?;
        }
        while let Some((from, bytes)) = self.node.oob_recv()? {
            let heard = Word::decode(&bytes, &self.config).and_then(|word| match from {
                _ if from < self.peers.len() && from != self.rank => Ok(word),
                _ => Err("it is no peer".to_string()),
            });
            match heard {
                Ok(word) => self.hear(from, word)?,
                Err(what) => return Err(Fault::Broken { peer: from, what }.into()),
            }
        }
        Ok(())
    }

    fn hear(&mut self, from: usize, word: Word) -> Result<()> {
        let twice = |what: &str| {
            Fault::Broken {
                peer: from,
                what: what.to_string(),
            }
            .into()
        };
        match word {
            Word::Hello(hello) => {
                let answer = self.peers[from].is_none();
                if answer {
                    self.open(from)?;
                }
                if self.peer(from).remote.is_some() {
                    return Err(twice("it said hello twice"));
                }
                self.tie(from, &hello)?;
                self.go_on(Connecting {
                    peer: from,
                    rings: hello.rings,
                    ready: hello.ready,
                    answer,
                })
            }
            Word::Ready if self.peers[from].is_some() => {
                let mut connecting = self.attention.in_progress.iter_mut();
                match connecting.find(|connecting| connecting.peer == from) {
                    Some(connecting) => {
                        connecting.ready = true;
                        Ok(())
                    }
                    None => self.now_ready(from),
                }
            }
            Word::Bye if self.peers[from].is_some() => {
                self.peer(from).heard_bye = true;
                Ok(())
            }
            Word::Ready | Word::Bye => Err(twice("it speaks of a connection that was not made")),
        }
    }

    /// Ties this end to the peer's, or begins to.
    fn tie(&mut self, to: usize, hello: &Hello) -> Result<()> {
        let Rdma { peers, node, .. } = self;
        let Some(peer) = &mut peers[to] else {
            return Ok(());
        };
        for (link, address) in [(&peer.control, hello.control), (&peer.bulk, hello.bulk)] {
            node.rail(link.rail).connect(link.qp, Some(address))?;
        }
        peer.allowed = credit::heard(0, 0, hello.credits).ok_or_else(|| Fault::Broken {
            peer: to,
            what: format!("it lets {} messages come", hello.credits),
        })?;
        peer.remote = Some(Remote {
            address: hello.address,
            rkey: hello.rkey,
        });
        Ok(())
    }

    /// Tells the peer that this end is connected, once it is.
    fn go_on(&mut self, connecting: Connecting) -> Result<()> {
        let Connecting {
            peer,
            rings,
            ready,
            answer,
        } = connecting;
        if !self.is_tied(peer)? {
            if answer {
                self.say_hello(peer, false)?;
            }
            let waits = Connecting {
                answer: false,
                ..connecting
            };
            self.attention.in_progress.push(waits);
            return Ok(());
        }
        self.furnish(peer, rings)?;
        match answer {
            true => self.say_hello(peer, true)?,
            false => self.node.oob_send(peer, &Word::Ready.encode())?,
        }
        match ready {
            true => self.now_ready(peer),
            false => Ok(()),
        }
    }

    fn is_tied(&mut self, to: usize) -> Result<bool> {
        let Rdma { peers, node, .. } = self;
        let Some(peer) = &peers[to] else {
            return Ok(false);
        };
        for link in [&peer.control, &peer.bulk] {
            let state = node.rail(link.rail).state(link.qp);
            let why = |why| Fault::Unreachable { peer: to, why };
            if state.map_err(why)? == State::Connecting {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes what a peer needs who may write.
    fn furnish(&mut self, to: usize, rings: bool) -> Result<()> {
        let receives = self.receives();
        let Rdma {
            peers,
            node,
            layout,
            shared,
            ringed,
            ..
        } = self;
        let Some(peer) = &mut peers[to] else {
            return Ok(());
        };
        match (&peer.memory, rings) {
            (Some(_), true) => {
                let access = Access::default();
                ringed.push(to);
                peer.staging = Some(Registered::new(node.rail(0), layout.bytes, access)?);
                for _ in 0..receives {
                    peer.control.post_receive(&mut **node)?;
                }
            }
            (Some(memory), false) => shared.adopt(&mut **node, layout, &peer.control, memory)?,
            (None, _) => {}
        }
        Ok(())
    }

    /// The peer's end is connected: it has said so, or written to us.
    pub(super) fn now_ready(&mut self, peer: usize) -> Result<()> {
        if !std::mem::replace(&mut self.peer(peer).ready, true) {
            self.attention.connecting -= 1;
            self.post_transfers(peer)?;
        }
        Ok(())
    }

    /// All that was put is in the peers' memory, and they have been told so far as they must be. To be called again until
    /// it says true; only then may this end go away.
    pub(super) fn end_connections(&mut self) -> Result<bool> {
        self.listen()?;
        self.poll()?;
        let mut all = true;
        for at in 0..self.known.len() {
            let to = self.known[at];
            if !self.peer(to).ready {
                all = false;
                continue;
            }
            if self.peer(to).out.gathering.is_some() {
                self.close_gathering(to)?;
            }
            if !self.peer(to).said_bye && self.is_settled(to)? {
                self.peer(to).said_bye = true;
                self.node.oob_send(to, &Word::Bye.encode())?;
            }
            all &= self.peer(to).said_bye && self.peer(to).heard_bye;
        }
        Ok(all)
    }

    /// Every request to this peer is known to be done. Asks for what is needed to know it.
    fn is_settled(&mut self, to: usize) -> Result<bool> {
        let peer = self.peer(to);
        let idle = peer.control.held() == 0 && peer.bulk.held() == 0;
        if idle || !peer.control.untold() {
            let out = &peer.out;
            return Ok(idle && out.gathering.is_none() && out.head_due.is_none());
        }
        // A request that asks for a completion says of those before it that they are done.
        self.send_tail(to, true)?;
        Ok(false)
    }
}
