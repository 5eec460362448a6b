//! The messages of all ranks in virtual time: what was sent, what was received, and when.
//!
//! A rank runs until it waits, or until long work occupies it (`work`). What reaches it lies in its
//! inbox, and is handled when the rank is in MPI: it costs the rank's processor its time, and
//! completes a send or a receive. So a rank that computes answers nobody.
//!
//! A message that its sender may send at once costs one event. A longer one is announced: it moves
//! once the receiver has handled the announcement and has a receive for it. If the receive was
//! there first, and its sender could know, the message moves at once.

mod arrivals;
mod calls;
mod transit;
mod work;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use mpi::coll::carried::Key;

use crate::counts::Counts;
use crate::lines::{Line, Lines, MeasuredLines};
use crate::resources::{Left, Resources};
use crate::shared_memory::Memories;
use crate::slab::Slab;
use work::{Busy, Command};

/// A number that names no message and no operation.
pub(crate) const NONE: u32 = u32::MAX;
/// The processor time of a call that finds nothing, in picoseconds.
pub(crate) const CALL: u64 = 20_000;

/// The activity of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    /// It runs, or computes until its next turn, whatever reaches it.
    Computing,
    /// It waits in MPI for what reaches it.
    Waiting,
}

/// An event of the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// The turn of a rank, unless a later one was scheduled instead (`ticket`).
    Turn { rank: u32, ticket: u32 },
    /// The first byte of a piece of a message is at the last link.
    Reaches { piece: u32 },
    /// The next piece of a message leaves.
    Leaves { message: u32 },
}

/// The state of a message.
#[derive(Clone, Copy, Debug)]
struct Message {
    key: Key,
    from: u32,
    to: u32,
    bytes: u64,
    /// The send of a message that its sender waits for.
    send: u32,
    /// The receive that takes the message, once it is known.
    receive: u32,
    /// The bytes that have left.
    gone: u64,
    /// The time at which the next piece would leave if nothing had waited.
    due: u64,
    /// The time at which it is visible, or complete, on an idle machine.
    visible: u64,
    /// The time from there to the end of the send.
    release: u64,
    /// True if the sender waits for the match, however short the message is.
    waits: bool,
    /// True for a message of a collective operation.
    is_part: bool,
    kind: Kind,
}

/// The kind of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sending {
    /// A message of a collective operation.
    Part,
    /// A message of the program.
    Standard,
    /// A message of the program whose sender waits for the match.
    Synchronous,
}

/// A piece of a message on its way.
#[derive(Clone, Copy, Debug)]
struct Piece {
    message: u32,
    bytes: u64,
    left: Left,
    is_last: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A message that is sent at once.
    Eager,
    /// The announcement of a long message.
    Announced,
    /// The body of a long message.
    Body,
}

/// An arrival at a rank.
#[derive(Clone, Copy, Debug)]
enum News {
    /// A rank asks for a connection.
    Hello(u32),
    /// A rank has agreed to a connection.
    Welcome(u32),
    /// A rank that has connected with this one ends.
    Bye,
    /// A message, or the announcement of one.
    Message(u32),
    /// The end of the receive with this number.
    Received(u32),
    /// The end of the send with this number.
    Sent(u32),
}

/// A receive that waits for its message.
#[derive(Clone, Copy, Debug)]
struct Posted {
    key: Key,
    receive: u32,
    since: u64,
}

#[derive(Debug)]
struct Rank {
    clock: u64,
    doing: Doing,
    /// The number of the valid entry in the schedule, and its time.
    ticket: u32,
    turn: u64,
    inbox: VecDeque<(u64, News)>,
    /// The time of the last poll that found a message: it finds all that are there by then.
    polled: u64,
    posted: Vec<Posted>,
    /// Messages and announcements that no receive has taken.
    unexpected: VecDeque<u32>,
    /// The ranks with which connections exist or are being made.
    peers: BTreeMap<u32, Connection>,
    /// The number of connected ranks that have ended.
    ended: usize,
    /// The longest message to and from each peer whose buffer is registered.
    registered: BTreeMap<(u32, bool), u64>,
    /// The work that occupies it until a later event.
    busy: Option<Busy>,
    /// Its calls that wait for that.
    commands: VecDeque<Command>,
}

/// A connection, as one end sees it.
#[derive(Debug)]
enum Connection {
    /// It has asked, and these messages wait. `joined`: the other end has asked, too, so that this
    /// end is connected already.
    Asked { waiting: Vec<u32>, joined: bool },
    /// It exists. Its engine is free from this time on.
    Exists(u64),
}

/// All ranks and messages.
pub(crate) struct Engine {
    now: u64,
    schedule: BinaryHeap<Reverse<(u64, u64, Event)>>,
    scheduled: u64,
    ranks: Vec<Rank>,
    messages: Slab<Message>,
    pieces: Slab<Piece>,
    /// True for each operation that is complete.
    operations: Slab<bool>,
    lines: MeasuredLines,
    resources: Resources,
    memories: Memories,
    hosts: Vec<u32>,
    /// For each rank, the times at which its marked steps began, in picoseconds.
    pub steps: Vec<Vec<u64>>,
    pub counts: Counts,
}

impl Engine {
    pub(crate) fn new(
        lines: MeasuredLines,
        resources: Resources,
        memories: Memories,
        hosts: Vec<u32>,
    ) -> Engine {
        let rank = || Rank {
            clock: 0,
            doing: Doing::Computing,
            ticket: 0,
            turn: 0,
            inbox: VecDeque::new(),
            polled: 0,
            posted: Vec::new(),
            unexpected: VecDeque::new(),
            peers: BTreeMap::new(),
            ended: 0,
            registered: BTreeMap::new(),
            busy: None,
            commands: VecDeque::new(),
        };
        let ranks = hosts.iter().map(|_| rank()).collect();
        let mut engine = Engine {
            now: 0,
            schedule: BinaryHeap::new(),
            scheduled: 0,
            ranks,
            messages: Slab::default(),
            pieces: Slab::default(),
            operations: Slab::default(),
            lines,
            resources,
            memories,
            steps: vec![Vec::new(); hosts.len()],
            hosts,
            counts: Counts::default(),
        };
        for rank in 0..engine.ranks.len() as u32 {
            engine.turn_at(rank, 0);
        }
        engine
    }

    /// The time of a rank.
    pub(crate) fn clock(&self, rank: u32) -> u64 {
        self.ranks[rank as usize].clock
    }

    /// Adds time to the clock of a rank.
    fn charge(&mut self, rank: u32, time: u64) {
        self.ranks[rank as usize].clock += time;
    }

    /// True if two ranks are on one host.
    fn are_beside(&self, one: u32, other: u32) -> bool {
        self.hosts[one as usize] == self.hosts[other as usize]
    }

    /// The lines between two ranks.
    fn lines(&self, one: u32, other: u32) -> &Lines {
        match self.are_beside(one, other) {
            true => &self.lines.inside,
            false => &self.lines.across,
        }
    }

    /// The line of a message, with the flight between these hosts.
    fn line(&self, from: u32, to: u32, bytes: u64) -> Line {
        let line = self.lines(from, to).of(bytes);
        let (here, there) = (self.hosts[from as usize], self.hosts[to as usize]);
        if here == there {
            return line;
        }
        let farther = self.resources.farther(here, there);
        let later = |time: u64, flights: i64| match time {
            0 => 0,
            time => time.saturating_add_signed(flights * farther),
        };
        let waits = line.released > 0;
        Line {
            sent: if waits {
                later(line.sent, 2)
            } else {
                line.sent
            },
            received: later(line.received, 1),
            taken: if waits {
                later(line.taken, 2)
            } else {
                line.taken
            },
            released: later(line.released, 3),
            ..line
        }
    }

    pub(crate) fn network(&self) -> mpi::algorithms::Network {
        self.lines.network
    }

    pub(crate) fn host_of(&self, rank: usize) -> u32 {
        self.hosts[rank]
    }

    /// The next event, whose time is then the present.
    pub(crate) fn next(&mut self) -> Option<Event> {
        loop {
            let Reverse((at, _, event)) = self.schedule.pop()?;
            if let Event::Turn { rank, ticket } = event
                && self.ranks[rank as usize].ticket != ticket
            {
                continue;
            }
            self.now = at;
            return Some(event);
        }
    }

    fn push(&mut self, at: u64, event: Event) {
        self.scheduled += 1;
        self.schedule.push(Reverse((at, self.scheduled, event)));
    }

    /// Schedules the next turn of a rank.
    fn turn_at(&mut self, rank: u32, at: u64) {
        let own = &mut self.ranks[rank as usize];
        own.ticket = own.ticket.wrapping_add(1);
        own.turn = at;
        let ticket = own.ticket;
        self.push(at, Event::Turn { rank, ticket });
    }

    /// Begins the turn of a rank.
    pub(crate) fn begin_turn(&mut self, rank: u32) {
        let now = self.now;
        let own = &mut self.ranks[rank as usize];
        own.clock = own.clock.max(now);
        (own.turn, own.doing) = (u64::MAX, Doing::Computing);
    }

    /// Goes on with a rank that waits in MPI. True: something has changed for it. False: its next
    /// turn is scheduled, or comes with what reaches it next.
    pub(crate) fn wait(&mut self, rank: u32) -> bool {
        let own = &mut self.ranks[rank as usize];
        let (clock, now) = (own.clock, self.now);
        own.doing = Doing::Waiting;
        let Some(&(at, _)) = own.inbox.front() else {
            return false;
        };
        if clock > now || at > clock {
            self.turn_at(rank, clock.max(at));
            return false;
        }
        if let Some((at, news)) = own.inbox.pop_front() {
            self.handle(rank, at, news);
        }
        self.advance(rank)
    }

    /// True if an operation is complete; it is then forgotten.
    pub(crate) fn is_done(&mut self, operation: u32) -> bool {
        let done = self.operations[operation];
        if done {
            self.operations.remove(operation);
        }
        done
    }

    /// True if an operation is complete.
    pub(crate) fn is_complete(&self, operation: u32) -> bool {
        self.operations[operation]
    }

    /// The ranks that wait, for a report of a deadlock.
    pub(crate) fn waiting(&self) -> usize {
        let waits = |rank: &&Rank| rank.doing == Doing::Waiting;
        self.ranks.iter().filter(waits).count()
    }
}
