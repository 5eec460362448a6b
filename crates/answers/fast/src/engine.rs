//! The messages of all ranks in virtual time: what was sent, what was received, and when.
//!
//! A rank runs until it waits. What reaches it lies in its inbox, and is handled when the rank is
//! in MPI: it costs the rank's processor its time, and completes a send or a receive. So a rank that
//! computes answers nobody.
//!
//! A message that its sender may send at once costs one event. A longer one is announced: it moves
//! once the receiver has handled the announcement and has a receive for it. If the receive was there
//! first, and its sender could know, the message moves at once.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use mpi::coll::Key;

use crate::lines::{Line, Lines, MeasuredLines};
use crate::resources::{Left, Path, Resources};
use crate::slab::Slab;

/// A number that names no message and no operation.
pub(crate) const NONE: u32 = u32::MAX;
/// The processor time of a call that finds nothing, in picoseconds.
pub(crate) const CALL: u64 = 20_000;

/// What a rank does.
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
    kind: Kind,
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

/// What reaches a rank.
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
}

/// A connection, as one end sees it.
#[derive(Debug)]
enum Connection {
    /// It has asked, and these messages wait.
    Asked(Vec<u32>),
    /// It exists. Its engine is free from this time on.
    Exists(u64),
}

/// The counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub messages: u64,
    pub bytes: u64,
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
    hosts: Vec<u32>,
    pub counts: Counts,
}

impl Engine {
    pub(crate) fn new(lines: MeasuredLines, resources: Resources, hosts: Vec<u32>) -> Engine {
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
            hosts,
            counts: Counts::default(),
        };
        for rank in 0..engine.ranks.len() as u32 {
            engine.compute_until(rank, 0);
        }
        engine
    }

    /// The time of a rank.
    pub(crate) fn clock(&self, rank: u32) -> u64 {
        self.ranks[rank as usize].clock
    }

    /// Occupies the processor of a rank for `time`.
    pub(crate) fn spend(&mut self, rank: u32, time: u64) {
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

    /// Lets a rank compute until the time `at`.
    pub(crate) fn compute_until(&mut self, rank: u32, at: u64) {
        self.ranks[rank as usize].doing = Doing::Computing;
        self.turn_at(rank, at);
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
        true
    }

    /// Handles what has reached a rank by its time, without waiting.
    pub(crate) fn poll(&mut self, rank: u32) {
        loop {
            let own = &mut self.ranks[rank as usize];
            match own.inbox.front() {
                Some(&(at, news)) if at <= own.clock => {
                    own.inbox.pop_front();
                    self.handle(rank, at, news);
                }
                _ => return,
            }
        }
    }

    /// Handles the arrival of a piece at the last link.
    pub(crate) fn reaches(&mut self, piece: u32) {
        let Piece {
            message,
            bytes,
            left,
            is_last,
        } = self.pieces[piece];
        self.pieces.remove(piece);
        let path = self.path(message, bytes);
        let waited = self.resources.arrive(path, left);
        if is_last {
            let visible = self.messages[message].visible;
            self.lands(message, visible + left.waited + waited);
        }
    }

    /// The path of some bytes of a message.
    fn path(&self, message: u32, bytes: u64) -> Path {
        let Message { from, to, .. } = self.messages[message];
        Path {
            from: self.hosts[from as usize],
            to: self.hosts[to as usize],
            bytes,
        }
    }

    /// Puts a message, which is visible at `at`, into the inbox of its receiver.
    fn lands(&mut self, message: u32, at: u64) {
        let Message {
            from,
            to,
            send,
            receive,
            release,
            kind,
            ..
        } = self.messages[message];
        match kind {
            Kind::Eager | Kind::Announced => self.tell(to, at, News::Message(message)),
            Kind::Body => {
                self.messages.remove(message);
                self.tell(to, at, News::Received(receive));
                self.tell(from, at + release, News::Sent(send));
            }
        }
    }

    /// Adds news of a rank, which continues then if it waits.
    fn tell(&mut self, rank: u32, at: u64, news: News) {
        let own = &mut self.ranks[rank as usize];
        let after = own.inbox.iter().rev().take_while(|(other, _)| *other > at);
        let place = own.inbox.len() - after.count();
        own.inbox.insert(place, (at, news));
        let turn = own.clock.max(at);
        if own.doing == Doing::Waiting && turn < own.turn {
            self.turn_at(rank, turn);
        }
    }

    fn handle(&mut self, rank: u32, at: u64, news: News) {
        match news {
            News::Received(receive) => self.operations[receive] = true,
            News::Sent(send) => self.operations[send] = true,
            News::Message(message) => self.take(rank, at, message),
            News::Hello(peer) => {
                let asked = self.ranks[rank as usize].peers.contains_key(&peer);
                if !asked {
                    let own = self.lines(rank, peer).connecting;
                    self.spend(rank, own);
                    let peers = &mut self.ranks[rank as usize].peers;
                    peers.insert(peer, Connection::Exists(0));
                }
                self.post_letter(rank, peer, News::Welcome(rank));
            }
            News::Welcome(peer) => {
                let peers = &mut self.ranks[rank as usize].peers;
                if let Some(Connection::Asked(messages)) = peers.insert(peer, Connection::Exists(0))
                {
                    for message in messages {
                        self.start_message(message);
                    }
                }
            }
            News::Bye => self.ranks[rank as usize].ended += 1,
        }
    }

    /// Sends a rank a message beside all connections.
    fn post_letter(&mut self, from: u32, to: u32, letter: News) {
        let at = self.clock(from) + self.lines(from, to).letter;
        self.tell(to, at, letter);
    }

    /// Begins the end of a rank: it takes leave of the ranks that it has connected with.
    pub(crate) fn begin_end(&mut self, rank: u32) {
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
    fn take(&mut self, rank: u32, at: u64, message: u32) {
        let Message {
            key,
            from,
            bytes,
            kind,
            ..
        } = self.messages[message];
        let line = match kind {
            _ if from == rank => self.lines.alone.of(bytes),
            Kind::Eager => self.line(from, rank, bytes),
            _ => self.line(from, rank, 0),
        };
        let own = &mut self.ranks[rank as usize];
        let handling = match at <= own.polled {
            true => line.further,
            false => {
                own.polled = own.clock;
                line.taken
            }
        };
        self.spend(rank, handling);
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
    fn give(&mut self, rank: u32, message: u32, receive: u32) {
        if self.messages[message].kind == Kind::Eager {
            self.messages.remove(message);
            self.operations[receive] = true;
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
            self.spend(rank, moving);
            self.operations[receive] = true;
            let send = self.messages[message].send;
            self.messages.remove(message);
            let done = self.clock(rank);
            return self.tell(from, done + release, News::Sent(send));
        }
        let from_now = self.clock(rank);
        self.move_body(message, from_now, moving, release);
    }

    /// Moves the body of a message: on an idle machine it is complete `moving` after `at`, and its
    /// send `release` later.
    fn move_body(&mut self, message: u32, at: u64, moving: u64, release: u64) {
        let own = &mut self.messages[message];
        own.kind = Kind::Body;
        own.visible = at + moving;
        own.release = release;
        self.launch(message, at);
    }

    /// Sends a message on its way at the time `at`.
    fn launch(&mut self, message: u32, at: u64) {
        let Message {
            from, to, visible, ..
        } = self.messages[message];
        if self.are_beside(from, to) {
            return self.lands(message, visible);
        }
        let begins = self.engine_of(from, to, at);
        let own = &mut self.messages[message];
        (own.gone, own.due) = (0, at);
        self.leaves(message, begins);
    }

    /// Sends the next piece of a message on its way, now.
    pub(crate) fn leaves_now(&mut self, message: u32) {
        self.leaves(message, self.now);
    }

    /// Sends the next piece of a message on its way at the time `at`.
    fn leaves(&mut self, message: u32, at: u64) {
        let Message {
            kind,
            bytes,
            gone,
            due,
            ..
        } = self.messages[message];
        let all = match kind {
            Kind::Announced => 0,
            _ => bytes,
        };
        let bytes = (all - gone).min(Resources::piece(all));
        let mut left = self.resources.leave(self.path(message, bytes), at);
        left.waited += at.saturating_sub(due);
        let is_last = gone + bytes >= all;
        let piece = self.pieces.insert(Piece {
            message,
            bytes,
            left,
            is_last,
        });
        self.push(left.reaches, Event::Reaches { piece });
        if !is_last {
            let own = &mut self.messages[message];
            own.gone += bytes;
            own.due += left.time;
            self.push(left.next, Event::Leaves { message });
        }
    }

    /// Occupies the engine of a connection; returns the time from which on it is.
    fn engine_of(&mut self, from: u32, to: u32, at: u64) -> u64 {
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

    /// Starts a send; returns its operation. `waits`: the sender
    /// waits for the match, however short the message is.
    pub(crate) fn send(&mut self, from: u32, to: u32, key: Key, bytes: u64, waits: bool) -> u32 {
        self.counts.messages += 1;
        self.counts.bytes += bytes;
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
            Some(Connection::Asked(messages)) => messages.push(message),
            None => {
                let asked = Connection::Asked(vec![message]);
                self.ranks[from as usize].peers.insert(to, asked);
                let own = self.lines(from, to).connecting;
                self.spend(from, own);
                self.post_letter(from, to, News::Hello(from));
            }
        }
        send
    }

    /// Starts a message to a rank with which a connection exists.
    fn start_message(&mut self, message: u32) {
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
            self.spend(from, line.sent);
            // What the receiver does with it comes after.
            let visible = begun + line.received.saturating_sub(line.taken);
            self.messages[message].visible = visible.max(begun + line.sent);
            self.operations[send] = true;
            return self.launch(message, begun + line.sent);
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
    fn known_receive(&mut self, from: u32, to: u32, key: &Key, at: u64) -> Option<u32> {
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
