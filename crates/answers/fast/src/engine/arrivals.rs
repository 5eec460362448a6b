//! The arrivals at a rank, and their handling.

use crate::engine::message::{Kind, Message};
use crate::engine::work::{Command, Then};
use crate::engine::{Connection, Doing, Engine, News};
use crate::shared_memory::TRAILER;

impl Engine {
    /// Puts a message, which is visible at `at`, into the inbox of its receiver.
    pub(super) fn lands(&mut self, message: u32, at: u64) {
        let Message {
            from,
            to,
            send,
            receive,
            kind,
            ..
        } = self.messages[message];
        match kind {
            Kind::Eager | Kind::Announced => self.tell(to, at, News::Message(message)),
            Kind::Body => {
                let release = self.messages.release(message);
                self.give_back(message);
                self.messages.remove(message);
                self.tell(to, at, News::Received(receive));
                self.tell(from, at + release, News::Sent(send));
            }
        }
    }

    /// Adds what reaches a rank, which continues then if it waits.
    pub(super) fn tell(&mut self, rank: u32, at: u64, news: News) {
        let own = &mut self.ranks[rank as usize];
        let after = own.inbox.iter().rev().take_while(|(other, _)| *other > at);
        let place = own.inbox.len() - after.count();
        own.inbox.insert(place, (at, news));
        let turn = own.clock.max(at);
        if own.doing == Doing::Waiting && turn < own.turn {
            self.turn_at(rank, turn);
        }
    }

    pub(super) fn handle(&mut self, rank: u32, at: u64, news: News) {
        match news {
            News::Received(receive) => self.operations(rank).complete(receive),
            News::Sent(send) => self.operations(rank).complete(send),
            News::Message(message) => self.take(rank, at, message),
            News::Hello(peer) => {
                let (opening, joining) = {
                    let lines = self.lines(rank, peer);
                    (lines.opening, lines.joining)
                };
                let peers = &mut self.ranks[rank as usize].peers;
                let own = match peers.get_mut(&peer) {
                    Some(Connection::Asked { joined, .. }) => {
                        *joined = true;
                        joining
                    }
                    Some(Connection::Exists(_)) => 0,
                    None => {
                        peers.insert(peer, Connection::Exists(0));
                        opening + joining
                    }
                };
                self.charge(rank, own);
                self.post_letter(rank, peer, News::Welcome(rank));
            }
            News::Welcome(peer) => {
                let joining = self.lines(rank, peer).joining;
                let peers = &mut self.ranks[rank as usize].peers;
                let before = peers.insert(peer, Connection::Exists(0));
                if let Some(Connection::Asked { waiting, joined }) = before {
                    if !joined {
                        self.charge(rank, joining);
                    }
                    self.command_first(rank, waiting.into_iter().map(Command::Start));
                }
            }
            News::Bye => self.ranks[rank as usize].ended += 1,
        }
    }

    /// Sends a rank a message beside all connections.
    pub(super) fn post_letter(&mut self, from: u32, to: u32, letter: News) {
        let at = self.clock(from) + self.lines(from, to).letter;
        self.tell(to, at, letter);
    }

    /// Takes leave of the ranks that a rank has connected with.
    pub(super) fn say_goodbye(&mut self, rank: u32) {
        let peers: Vec<u32> = self.ranks[rank as usize].peers.keys().copied().collect();
        for peer in peers {
            self.post_letter(rank, peer, News::Bye);
        }
    }

    /// True if all ranks that a rank has connected with have ended, too.
    pub(crate) fn may_end(&self, rank: u32) -> bool {
        let own = &self.ranks[rank as usize];
        own.ended >= own.peers.len()
    }

    /// Handles a message or an announcement.
    pub(super) fn take(&mut self, rank: u32, at: u64, message: u32) {
        let Message {
            from, bytes, kind, ..
        } = self.messages[message];
        let line = match kind {
            _ if from == rank => self.lines.alone.of(bytes),
            Kind::Eager => self.line(from, rank, bytes),
            _ => self.line(from, rank, 0),
        };
        let own = &mut self.ranks[rank as usize];
        let is_further = at <= own.polled;
        let handling = match is_further {
            true => line.further,
            false => {
                own.polled = own.clock;
                line.taken
            }
        };
        let copying = match kind {
            Kind::Eager if from != rank => {
                let short = self.line(from, rank, 0);
                handling.saturating_sub(match is_further {
                    true => short.further,
                    false => short.taken,
                })
            }
            _ => 0,
        };
        self.work(
            rank,
            handling,
            (copying, bytes + TRAILER),
            Then::Match(message),
        );
    }

    /// Gives a message that has been handled to its receive, if there is one.
    pub(super) fn match_message(&mut self, rank: u32, message: u32) {
        let key = self.messages[message].key;
        let own = &mut self.ranks[rank as usize];
        let found = own.posted.iter().position(|posted| posted.key.takes(&key));
        match found {
            Some(at) => {
                let posted = own.posted.remove(at);
                self.give(rank, message, posted.receive);
            }
            None => own.unexpected.push_back(message),
        }
    }

    /// Gives a message that has been handled to a receive.
    pub(super) fn give(&mut self, rank: u32, message: u32, receive: u32) {
        if self.messages[message].kind == Kind::Eager {
            self.messages.remove(message);
            self.operations(rank).complete(receive);
            return;
        }
        let Message { from, bytes, .. } = self.messages[message];
        let line = self.line(from, rank, bytes);
        let announcement = self.lines(from, rank).of(0).taken;
        let moving = line.taken.saturating_sub(announcement);
        self.messages[message].receive = receive;
        let release = line.released.saturating_sub(line.taken);
        if self.are_beside(from, rank) {
            // The receiver's processor copies the body.
            self.messages.long(message).release = release;
            return self.work(
                rank,
                moving,
                (moving, bytes),
                Then::Copied(message, receive),
            );
        }
        self.register(rank, from, message);
        self.messages.long(message).is_registered_there = true;
        let from_now = self.clock(rank);
        self.move_body(message, from_now, moving, release);
    }

    /// Ends a message within a host, whose body has been copied.
    pub(super) fn body_copied(&mut self, rank: u32, message: u32, receive: u32) {
        let Message { from, send, .. } = self.messages[message];
        let release = self.messages.release(message);
        self.operations(rank).complete(receive);
        self.messages.remove(message);
        let done = self.clock(rank);
        self.tell(from, done + release, News::Sent(send));
    }
}
