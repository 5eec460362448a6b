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
mod message;
mod operations;
mod registered;
mod schedule;
mod transit;
mod work;

use std::collections::{BTreeMap, VecDeque};
use std::hint::black_box;

use mpi::coll::carried::Key;

use crate::counts::Counts;
use crate::lines::{Line, Lines, MeasuredLines};
use crate::resources::Resources;
use crate::shared_memory::Memories;
use crate::slab::Slab;
use message::{Messages, Piece};
use operations::Operations;
use registered::Registered;
use schedule::Schedule;
pub(crate) use work::Command;
use work::Queue;

/// The processor time of a call that finds nothing, in picoseconds.
pub(crate) const CALL: u64 = 20_000;

/// The activity of a rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Doing {
    /// It runs, or computes until its next turn, whatever reaches it.
    #[default]
    Computing,
    /// It waits in MPI for what reaches it.
    Waiting,
}

/// An event of the schedule.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// The turn of a rank, unless a later one was scheduled instead (`ticket`).
    Turn { rank: u32, ticket: u32 },
    /// The first byte of a message that is not in pieces is at the last link of this rail.
    Reaches { message: u32, rail: u32 },
    /// The first byte of a piece of a message is at the last link.
    PieceReaches { piece: u32 },
    /// The first byte of a piece is at its next link between switches.
    Hops { piece: u32 },
    /// The next piece of a message leaves.
    Leaves { message: u32 },
}

/// The kind of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sending {
    /// A message whose sender waits for the match if it is long.
    Standard,
    /// A message whose sender waits for the match.
    Synchronous,
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

/// The state of a rank, the most used first: each line of a cache that an event does not read is
/// time saved.
#[derive(Debug, Default)]
#[repr(C, align(64))]
struct Rank {
    clock: u64,
    /// The time of the valid entry in the schedule, and its number.
    turn: u64,
    ticket: u32,
    doing: Doing,
    inbox: VecDeque<(u64, News)>,
    operations: Operations,
    posted: Vec<Posted>,
    /// The work that occupies it until a later event, and the calls that wait for that.
    work: Option<Box<Queue>>,
    /// The time of the last poll that found a message: it finds all that are there by then.
    polled: u64,
    /// Messages and announcements that no receive has taken.
    unexpected: VecDeque<u32>,
    /// The ranks with which connections exist or are being made.
    peers: BTreeMap<u32, Connection>,
    /// The number of connected ranks that have ended.
    ended: usize,
    registered: Registered,
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
    schedule: Schedule<Event>,
    ranks: Vec<Rank>,
    messages: Messages,
    pieces: Slab<Piece>,
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
        let ranks = hosts.iter().map(|_| Rank::default()).collect();
        let mut engine = Engine {
            now: 0,
            schedule: Schedule::new(),
            ranks,
            messages: Messages::default(),
            pieces: Slab::default(),
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
            let (at, event) = self.first()?;
            if let Event::Turn { rank, ticket } = event
                && self.ranks[rank as usize].ticket != ticket
            {
                continue;
            }
            self.now = at;
            return Some(event);
        }
    }

    /// Takes the first event and its time. What the next events need is read now, so that the
    /// processor waits for the memory of many at once.
    fn first(&mut self) -> Option<(u64, Event)> {
        let Engine {
            schedule,
            ranks,
            messages,
            resources,
            hosts,
            ..
        } = self;
        let of_message = |message: u32| {
            let to = messages[message].to;
            resources.touch(hosts[to as usize]);
            black_box(ranks[to as usize].inbox.back().map(|(at, _)| *at));
        };
        schedule.pop(|event| match event {
            Event::Turn { rank, .. } => {
                let own = &ranks[rank as usize];
                black_box(own.posted.first().map(|posted| posted.since));
                if let Some((_, News::Message(message))) = own.inbox.front() {
                    black_box(messages[*message].to);
                }
            }
            Event::Reaches { message, .. } | Event::Leaves { message } => of_message(message),
            Event::PieceReaches { .. } | Event::Hops { .. } => (),
        })
    }

    fn push(&mut self, at: u64, event: Event) {
        self.schedule.push(at, event);
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

    /// The operations of a rank.
    fn operations(&mut self, rank: u32) -> &mut Operations {
        &mut self.ranks[rank as usize].operations
    }

    /// True if an operation of a rank is complete; it is then forgotten.
    pub(crate) fn is_done(&mut self, rank: u32, operation: u32) -> bool {
        let all = self.operations(rank);
        let done = all.is_complete(operation);
        if done {
            all.forget(operation);
        }
        done
    }

    /// True if an operation of a rank is complete.
    pub(crate) fn is_complete(&self, rank: u32, operation: u32) -> bool {
        self.ranks[rank as usize].operations.is_complete(operation)
    }

    /// The ranks that wait, for a report of a deadlock.
    pub(crate) fn waiting(&self) -> usize {
        let waits = |rank: &&Rank| rank.doing == Doing::Waiting;
        self.ranks.iter().filter(waits).count()
    }
}
