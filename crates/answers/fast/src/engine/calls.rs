//! The sends and receives that a rank starts.

use mpi::coll::carried::Key;

use crate::engine::{Connection, Engine, Kind, Message, NONE, News, Posted};

impl Engine {
    /// Starts a send; returns its operation. `waits`: the sender
    /// waits for the match, however short the message is.
    pub(crate) fn send(&mut self, from: u32, to: u32, key: Key, bytes: u64, waits: bool) -> u32 {
        self.counts.add(bytes);
        let is_eager = bytes <= self.lines(from, to).eager && !waits;
        let begun = self.clock(from);
        let send = self.operations.insert(false);
        let message = self.messages.insert(Message {
            key,
            from,
            to,
            bytes,
            send,
            receive: NONE,
            gone: 0,
            due: 0,
            visible: 0,
            release: 0,
            waits,
            kind: match is_eager {
                true => Kind::Eager,
                false => Kind::Announced,
            },
        });
        if from == to {
            self.messages[message].kind = Kind::Eager;
            self.operations[send] = true;
            self.lands(message, begun);
            return send;
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
                self.spend(from, opening);
                self.post_letter(from, to, News::Hello(from));
            }
        }
        send
    }

    /// Starts a message to a rank with which a connection exists.
    pub(super) fn start_message(&mut self, message: u32) {
        let Message {
            key,
            from,
            to,
            bytes,
            send,
            kind,
            waits,
            ..
        } = self.messages[message];
        let (line, begun) = (self.line(from, to, bytes), self.clock(from));
        if kind == Kind::Eager {
            self.copy(from, line.sent, bytes);
            let sent = self.clock(from);
            let late = sent - (begun + line.sent);
            // The receiver's own work comes after.
            let visible = begun + line.received.saturating_sub(line.taken) + late;
            self.messages[message].visible = visible.max(sent);
            self.operations[send] = true;
            return self.launch(message, sent);
        }
        self.spend(from, line.started);
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
        let receive = self.operations.insert(false);
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
        receive
    }
}
