//! The transit of a message from host to host, piece by piece.

use crate::engine::message::{Kind, Long, Message, Piece};
use crate::engine::{Connection, Engine, Event};
use crate::resources::{Left, Path, Resources};

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

    /// Handles the arrival of a piece at its next link between switches.
    pub(crate) fn hops(&mut self, piece: u32) {
        let now = self.now;
        let Piece {
            bytes, left, train, ..
        } = &mut self.pieces[piece];
        let Some(train) = train else { return };
        let step = self.resources.enter(train, left.rail, *bytes, now);
        let waited = match step.is_last {
            true => step.starts - now + train.longer,
            false => step.starts - now,
        };
        left.waited += waited;
        left.reaches += waited;
        let (next, event) = match step.is_last {
            true => (left.reaches, Event::PieceReaches { piece }),
            false => (step.next, Event::Hops { piece }),
        };
        self.push(next, event);
    }

    /// Handles the arrival of a piece at the last link.
    pub(crate) fn piece_reaches(&mut self, piece: u32) {
        let Piece {
            message,
            bytes,
            left,
            rest,
            ..
        } = self.pieces[piece];
        self.pieces.remove(piece);
        let path = self.path(message, bytes);
        let waited = self.resources.arrive(path, left.rail, self.now);
        self.memories.transfers(path.to, bytes);
        let all = self.messages[message].moved();
        let long = self.messages.long(message);
        long.in_transit -= 1;
        long.late = long.late.max((left.waited + waited).saturating_sub(rest));
        // The last piece to arrive need not be the last that left.
        if long.in_transit == 0 && long.gone >= all {
            let late = long.late;
            let visible = self.messages[message].visible;
            self.lands(message, visible + late);
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
        if bytes > Resources::piece(bytes) || self.resources.is_striped(bytes) {
            let long = self.messages.long(message);
            (long.gone, long.due) = (0, at);
            return self.leaves(message, begins);
        }
        let path = self.path(message, bytes);
        let mut left = self.resources.leave(path, begins);
        self.memories.transfers(path.from, bytes);
        left.waited += begins.saturating_sub(at);
        if self.resources.crosses(path, left.rail) {
            self.messages.long(message).gone = bytes;
            return self.departs(message, path, left, 0);
        }
        self.messages[message].visible += left.waited;
        let rail = left.rail;
        self.push(left.reaches, Event::Reaches { message, rail });
    }

    /// Sends the next piece of a message on its way, now.
    pub(crate) fn leaves_now(&mut self, message: u32) {
        self.leaves(message, self.now);
    }

    /// Sends the next piece of a message on its way at the time `at`, in shares of all rails if it
    /// is striped.
    fn leaves(&mut self, message: u32, at: u64) {
        let all = self.messages[message].moved();
        let Long { gone, due, .. } = *self.messages.long(message);
        let bytes = (all - gone).min(Resources::piece(all));
        let path = self.path(message, bytes);
        self.memories.transfers(path.from, bytes);
        let rails = match self.resources.is_striped(bytes) {
            true => self.resources.rails(),
            false => 1,
        };
        let share = Path {
            bytes: bytes.div_ceil(rails as u64),
            ..path
        };
        let rest = |left: &Left| (all - gone - bytes).div_ceil(bytes.max(1)) * left.time;
        let (mut next, mut time) = (at, 0);
        self.messages.long(message).gone += bytes;
        for rail in 0..rails {
            let mut left = match rails {
                1 => self.resources.leave(share, at),
                _ => self.resources.leave_by(share, rail, at),
            };
            left.waited += at.saturating_sub(due);
            (next, time) = (next.max(left.next), time.max(left.time));
            self.departs(message, share, left, rest(&left));
        }
        if gone + bytes < all {
            self.messages.long(message).due += time;
            self.push(next, Event::Leaves { message });
        }
    }

    /// Sends a piece, which has left its host, on its way. `rest`: the time from its end to that of
    /// its message where nothing waits.
    fn departs(&mut self, message: u32, path: Path, left: Left, rest: u64) {
        self.messages.long(message).in_transit += 1;
        let train = self.resources.train(path, &left);
        let first = train.map(|(_, first)| first);
        let piece = self.pieces.insert(Piece {
            message,
            bytes: path.bytes,
            left,
            rest,
            train: train.map(|(train, _)| train),
        });
        match first {
            Some(first) => self.push(first, Event::Hops { piece }),
            None => self.push(left.reaches, Event::PieceReaches { piece }),
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
