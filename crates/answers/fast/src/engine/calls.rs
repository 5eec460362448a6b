//! The sends and receives that a rank starts.

use mpi::coll::carried::Key;

use crate::engine::message::{Kind, Message, NONE};
use crate::engine::work::{Command, Then};
use crate::engine::{Connection, Engine, News, Posted, Sending};
use crate::shared_memory::TRAILER;

impl Engine {
    /// Starts a send; returns its operation.
    pub(crate) fn send(&mut self, from: u32, to: u32, key: Key, bytes: u64, kind: Sending) -> u32 {
        let waits = kind == Sending::Synchronous;
        self.counts.add(bytes);
        let is_eager = bytes <= self.lines(from, to).eager && !waits;
        let send = self.operations(from).begin();
        let message = self.messages.insert(Message {
            key,
            from,
            to,
            bytes,
            send,
            receive: NONE,
            visible: 0,
            long: NONE,
            waits,
            kind: match is_eager {
                true => Kind::Eager,
                false => Kind::Announced,
            },
        });
        self.command(from, Command::Send(message));
        send
    }

    /// Sends a message, over a connection that is made now if there is none.
    pub(super) fn send_now(&mut self, message: u32) {
        let Message { from, to, send, .. } = self.messages[message];
        if from == to {
            self.messages[message].kind = Kind::Eager;
            self.operations(from).complete(send);
            let now = self.clock(from);
            return self.lands(message, now);
        }
        match self.ranks[from as usize].peers.get_mut(&to) {
            Some(Connection::Exists(_)) => self.start_message(message),
            Some(Connection::Asked { waiting, .. }) => waiting.push(message),
            None => {
                let asked = Connection::Asked {
                    waiting: vec![message],
                    joined: false,
                };
                self.ranks[from as usize].peers.insert(to, asked);
                let opening = self.lines(from, to).opening;
                self.charge(from, opening);
                self.post_letter(from, to, News::Hello(from));
            }
        }
    }

    /// Starts a message to a rank with which a connection exists.
    pub(super) fn start_message(&mut self, message: u32) {
        let Message {
            key,
            from,
            to,
            bytes,
            kind,
            waits,
            ..
        } = self.messages[message];
        let (line, begun) = (self.line(from, to, bytes), self.clock(from));
        if kind == Kind::Eager {
            let then = Then::Leave(message, begun);
            // The part of the time that grows with the length is copying.
            let copying = line.sent.saturating_sub(self.line(from, to, 0).sent);
            return self.work(from, line.sent, (copying, bytes + TRAILER), then);
        }
        self.register(from, to, message);
        self.charge(from, line.started);
        if !waits
            && !self.are_beside(from, to)
            && let Some(receive) = self.known_receive(from, to, &key, begun)
        {
            self.messages[message].receive = receive;
            let release = line.sent.saturating_sub(line.received);
            return self.move_body(message, begun, line.received, release);
        }
        let short = self.line(from, to, 0);
        self.messages[message].visible = begun + short.received.saturating_sub(short.taken);
        self.launch(message, begun + short.sent);
    }

    /// Registers the buffer of a long message to or from a peer on another host.
    pub(super) fn register(&mut self, rank: u32, peer: u32, message: u32) {
        if self.are_beside(rank, peer) {
            return;
        }
        let bytes = self.messages[message].bytes;
        let pages = self.resources.pages(bytes);
        if self.ranks[rank as usize].registered.take(pages) {
            let time = self.resources.registration(bytes);
            self.charge(rank, time);
        }
    }

    /// Gives back the registrations of the buffers of a long message.
    pub(super) fn give_back(&mut self, message: u32) {
        let Message {
            from, to, bytes, ..
        } = self.messages[message];
        let pages = self.resources.pages(bytes);
        self.ranks[from as usize].registered.give_back(pages);
        if self.messages.long(message).is_registered_there {
            self.ranks[to as usize].registered.give_back(pages);
        }
    }

    /// Lets a message leave whose bytes were copied from the time `begun` on.
    pub(super) fn leave_copied(&mut self, message: u32, begun: u64) {
        let Message {
            from,
            to,
            bytes,
            send,
            ..
        } = self.messages[message];
        let (line, sent) = (self.line(from, to, bytes), self.clock(from));
        let late = sent.saturating_sub(begun + line.sent);
        // The receiver's own work comes after.
        let visible = begun + line.received.saturating_sub(line.taken) + late;
        self.messages[message].visible = visible.max(sent);
        self.operations(from).complete(send);
        self.launch(message, sent);
    }

    /// The receive that a sender knows of at the time `at`, because it was announced before.
    pub(super) fn known_receive(&mut self, from: u32, to: u32, key: &Key, at: u64) -> Option<u32> {
        let short = self.line(from, to, 0);
        let flight = short.received;
        let own = &mut self.ranks[to as usize];
        let known = |posted: &Posted| posted.key == *key && posted.since + flight <= at;
        let place = own.posted.iter().position(known)?;
        Some(own.posted.remove(place).receive)
    }

    /// Posts a receive; returns its operation.
    pub(crate) fn receive(&mut self, rank: u32, key: Key) -> u32 {
        let receive = self.operations(rank).begin();
        self.command(rank, Command::Receive(receive, key));
        receive
    }

    /// Posts a receive, unless its message is there.
    pub(super) fn receive_now(&mut self, rank: u32, receive: u32, key: Key) {
        let own = &self.ranks[rank as usize];
        let takes = |message: &u32| key.takes(&self.messages[*message].key);
        let found = own.unexpected.iter().position(takes);
        let own = &mut self.ranks[rank as usize];
        match found.and_then(|at| own.unexpected.remove(at)) {
            Some(message) => self.give(rank, message, receive),
            None => own.posted.push(Posted {
                key,
                receive,
                since: own.clock,
            }),
        }
    }
}
