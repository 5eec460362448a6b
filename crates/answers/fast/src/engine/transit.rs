//! The transit of a message from host to host, piece by piece.

use crate::engine::message::{Kind, Long, Message, Piece};
use crate::engine::{Connection, Engine, Event};
use crate::resources::{Path, Resources};

impl Engine {
    /// Handles the arrival of a message that is not in pieces at the last link.
    pub(crate) fn reaches(&mut self, message: u32, rail: u32) {
        let bytes = self.messages[message].moved();
        let path = self.path(message, bytes);
        let waited = self.resources.arrive(path, rail, self.now);
        self.memories.transfers(path.to, bytes);
        let visible = self.messages[message].visible;
        self.lands(message, visible + waited);
    }

    /// Handles the arrival of a piece at the last link.
    pub(crate) fn piece_reaches(&mut self, piece: u32) {
        let Piece {
            message,
            bytes,
            left,
            is_last,
        } = self.pieces[piece];
        self.pieces.remove(piece);
        let path = self.path(message, bytes);
        let waited = self.resources.arrive(path, left.rail, self.now);
        self.memories.transfers(path.to, bytes);
        if is_last {
            let visible = self.messages[message].visible;
            self.lands(message, visible + left.waited + waited);
        }
    }

    /// The path of some bytes of a message.
    pub(super) fn path(&self, message: u32, bytes: u64) -> Path {
        let Message { from, to, .. } = self.messages[message];
        Path {
            from: self.hosts[from as usize],
            to: self.hosts[to as usize],
            bytes,
        }
    }

    /// Moves the body of a message: on an idle machine it is complete `moving` after `at`, and its
    /// send `release` later.
    pub(super) fn move_body(&mut self, message: u32, at: u64, moving: u64, release: u64) {
        let own = &mut self.messages[message];
        own.kind = Kind::Body;
        own.visible = at + moving;
        self.messages.long(message).release = release;
        self.launch(message, at);
    }

    /// Sends a message on its way at the time `at`.
    pub(super) fn launch(&mut self, message: u32, at: u64) {
        let Message {
            from, to, visible, ..
        } = self.messages[message];
        if self.are_beside(from, to) {
            return self.lands(message, visible);
        }
        let begins = self.engine_of(from, to, at);
        let bytes = self.messages[message].moved();
        if bytes > Resources::piece(bytes) {
            let long = self.messages.long(message);
            (long.gone, long.due) = (0, at);
            return self.leaves(message, begins);
        }
        let path = self.path(message, bytes);
        let left = self.resources.leave(path, begins);
        self.memories.transfers(path.from, bytes);
        self.messages[message].visible += left.waited + begins.saturating_sub(at);
        let rail = left.rail;
        self.push(left.reaches, Event::Reaches { message, rail });
    }

    /// Sends the next piece of a message on its way, now.
    pub(crate) fn leaves_now(&mut self, message: u32) {
        self.leaves(message, self.now);
    }

    /// Sends the next piece of a message on its way at the time `at`.
    fn leaves(&mut self, message: u32, at: u64) {
        let all = self.messages[message].moved();
        let Long { gone, due, .. } = *self.messages.long(message);
        let bytes = (all - gone).min(Resources::piece(all));
        let path = self.path(message, bytes);
        let mut left = self.resources.leave(path, at);
        self.memories.transfers(path.from, bytes);
        left.waited += at.saturating_sub(due);
        let is_last = gone + bytes >= all;
        let piece = self.pieces.insert(Piece {
            message,
            bytes,
            left,
            is_last,
        });
        self.push(left.reaches, Event::PieceReaches { piece });
        if !is_last {
            let long = self.messages.long(message);
            long.gone += bytes;
            long.due += left.time;
            self.push(left.next, Event::Leaves { message });
        }
    }

    /// Occupies the engine of a connection; returns the time from which on it is.
    pub(super) fn engine_of(&mut self, from: u32, to: u32, at: u64) -> u64 {
        let busy = self.resources.engine();
        match self.ranks[from as usize].peers.get_mut(&to) {
            Some(Connection::Exists(free)) => {
                let begins = at.max(*free);
                *free = begins + busy;
                begins
            }
            _ => at,
        }
    }
}
