//! The work of ranks in its order: what their calls ask for, copies and computing among it.
//!
//! A call is done at once if its rank is idle. A long copy and computing occupy the rank until a
//! later event, and further calls wait behind them; so what the ranks of a host copy at the same
//! time is known when a piece of a copy ends.

use std::collections::VecDeque;

use mpi::coll::carried::Key;

use crate::engine::{Doing, Engine};
use crate::shared_memory::{PIECE, SHORT};

/// A call of a rank that waits until the rank is idle.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Command {
    /// Sends a message.
    Send(u32),
    /// Starts a message whose connection exists now.
    Start(u32),
    /// Posts the receive with this number.
    Receive(u32, Key),
    /// Occupies the processor for this time.
    Spend(u64),
    /// Computes for this time, which ends the operation.
    Compute(u64, u32),
    /// Handles what has reached the rank by its time, without waiting.
    Poll,
    /// Notes the time at which a marked step begins.
    Step,
    /// Takes leave of the ranks that it has connected with.
    End,
}

/// The continuation of work that occupies a rank.
#[derive(Clone, Copy, Debug)]
pub(super) enum Then {
    /// An operation is complete.
    Complete(u32),
    /// A message, begun at this time, leaves.
    Leave(u32, u64),
    /// A message that was handled meets its receive.
    Match(u32),
    /// The body of a message is in the memory of its receive.
    Copied(u32, u32),
}

/// The work of a rank that is not idle.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// The work that occupies it until a later event.
    busy: Option<Busy>,
    /// Its calls that wait for that.
    commands: VecDeque<Command>,
}

/// Work that occupies a rank until a later event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Busy {
    /// The bytes of the copy that have not begun, of all of them, and its time on an idle host.
    left: u64,
    all: u64,
    time: u64,
    /// The time of the piece in progress on an idle host, and the count of the host's memory at its
    /// beginning. `None`: the next piece has not begun.
    piece: Option<(u64, u64)>,
    then: Then,
}

impl Engine {
    /// True if a rank has nothing to do but to wait, or to make its next call.
    pub(crate) fn is_idle(&self, rank: u32) -> bool {
        let work = self.ranks[rank as usize].work.as_ref();
        work.is_none_or(|work| work.busy.is_none() && work.commands.is_empty())
    }

    fn queue(&mut self, rank: u32) -> &mut Queue {
        self.ranks[rank as usize].work.get_or_insert_default()
    }

    /// Makes a call of a rank, at once if the rank is idle.
    pub(crate) fn command(&mut self, rank: u32, command: Command) {
        match self.is_idle(rank) {
            true => self.execute(rank, command),
            false => self.queue(rank).commands.push_back(command),
        }
    }

    /// Lets a rank compute for `time`; returns the operation that ends then.
    pub(crate) fn compute(&mut self, rank: u32, time: u64) -> u32 {
        let operation = self.operations(rank).begin();
        self.command(rank, Command::Compute(time, operation));
        operation
    }

    /// Continues the work of a rank. True: the rank is idle. False: its next turn is scheduled.
    pub(crate) fn advance(&mut self, rank: u32) -> bool {
        loop {
            let Some(work) = &mut self.ranks[rank as usize].work else {
                return true;
            };
            if let Some(busy) = work.busy {
                if !self.go_on(rank, busy) {
                    return false;
                }
            } else if let Some(command) = work.commands.pop_front() {
                self.execute(rank, command);
            } else {
                self.ranks[rank as usize].work = None;
                return true;
            }
        }
    }

    fn execute(&mut self, rank: u32, command: Command) {
        match command {
            Command::Send(message) => self.send_now(message),
            Command::Start(message) => self.start_message(message),
            Command::Receive(receive, key) => self.receive_now(rank, receive, key),
            Command::Spend(time) => self.charge(rank, time),
            Command::Compute(time, operation) => {
                self.charge(rank, time);
                self.occupy(rank, Then::Complete(operation));
            }
            Command::Poll => {
                let own = &mut self.ranks[rank as usize];
                if let Some(&(at, news)) = own.inbox.front()
                    && at <= own.clock
                {
                    own.inbox.pop_front();
                    self.queue(rank).commands.push_front(Command::Poll);
                    self.handle(rank, at, news);
                }
            }
            Command::Step => {
                let now = self.clock(rank);
                self.steps[rank as usize].push(now);
            }
            Command::End => self.say_goodbye(rank),
        }
    }

    /// Makes calls of a rank before those that wait already, in this order.
    pub(super) fn command_first(
        &mut self,
        rank: u32,
        commands: impl DoubleEndedIterator<Item = Command>,
    ) {
        let own = self.queue(rank);
        for command in commands.rev() {
            own.commands.push_front(command);
        }
    }

    /// Occupies a rank until its own time has come.
    fn occupy(&mut self, rank: u32, then: Then) {
        self.queue(rank).busy = Some(Busy {
            left: 0,
            all: 0,
            time: 0,
            piece: Some((0, u64::MAX)),
            then,
        });
        self.continue_at_own_time(rank);
    }

    /// Work on a rank's processor that takes `time` on an idle host, of which `copying` is the time
    /// of copies, in pieces of up to `piece` bytes.
    pub(super) fn work(&mut self, rank: u32, time: u64, (copying, piece): (u64, u64), then: Then) {
        let copying = copying.min(time);
        let host = self.hosts[rank as usize];
        if !self.memories.is_shared(host) {
            self.charge(rank, time);
            return self.follow(rank, then);
        }
        let bytes = self.memories.copied_in(copying);
        if piece <= SHORT || bytes == 0 {
            self.memories.copies(host, bytes);
            self.charge(rank, time);
            return self.follow(rank, then);
        }
        // The other work is done before the copy.
        self.charge(rank, time - copying);
        self.queue(rank).busy = Some(Busy {
            left: bytes,
            all: bytes,
            time: copying,
            piece: None,
            then,
        });
        // The others come up to this time before the copy begins.
        match self.ranks[rank as usize].clock > self.now {
            true => self.continue_at_own_time(rank),
            false => self.begin_piece(rank),
        }
    }

    fn continue_at_own_time(&mut self, rank: u32) {
        let own = &mut self.ranks[rank as usize];
        own.doing = Doing::Computing;
        let at = own.clock;
        self.turn_at(rank, at);
    }

    /// Begins the next piece of a copy.
    fn begin_piece(&mut self, rank: u32) {
        let host = self.hosts[rank as usize];
        let before = self.memories.moved(host);
        let Some(busy) = &mut self.queue(rank).busy else {
            return;
        };
        let piece = busy.left.min(PIECE);
        let part = u128::from(busy.time) * u128::from(piece) / u128::from(busy.all.max(1));
        busy.left -= piece;
        busy.piece = Some((part as u64, before));
        self.memories.copies(host, piece);
        self.charge(rank, part as u64);
        self.continue_at_own_time(rank);
    }

    /// Continues work that occupies a rank, at the time of its turn. True: it has ended.
    fn go_on(&mut self, rank: u32, busy: Busy) -> bool {
        if self.ranks[rank as usize].clock > self.now {
            // The turn came for another reason.
            self.continue_at_own_time(rank);
            return false;
        }
        let Some((part, before)) = busy.piece else {
            self.begin_piece(rank);
            return false;
        };
        let moved = self.memories.moved(self.hosts[rank as usize]);
        let late = moved.saturating_sub(before).saturating_sub(part);
        self.charge(rank, late);
        if busy.left == 0 {
            self.queue(rank).busy = None;
            self.follow(rank, busy.then);
            return true;
        }
        match late {
            0 => self.begin_piece(rank),
            _ => {
                if let Some(busy) = &mut self.queue(rank).busy {
                    busy.piece = None;
                }
                self.continue_at_own_time(rank);
            }
        }
        false
    }

    fn follow(&mut self, rank: u32, then: Then) {
        match then {
            Then::Complete(operation) => self.operations(rank).complete(operation),
            Then::Leave(message, begun) => self.leave_copied(message, begun),
            Then::Match(message) => self.match_message(rank, message),
            Then::Copied(message, receive) => self.body_copied(rank, message, receive),
        }
    }
}
