//! The cost lines of messages on a machine, measured where the protocols run: two ranks of an
//! exact replay exchange messages of some lengths, and the times of their steps are kept.
//!
//! So a line contains whatever the library does for a message: its protocol, its rails, the copies
//! and the posts. Nothing of it is known here.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use channel::Peers;
use datatype::Buffer;
use knobs::Knobs;
use model::config::MachineConfig;
use model::{MachineModel, ModelNode};
use mpi::algorithms::Network;
use mpi::comm::WORLD;
use mpi::{Mode, Rank, Wiring, WorkTimes};
use pmi::{Hosts, Standalone};
use sim::Turn;
use sim::coroutines::{Plan, run};

use crate::memory::Addresses;

/// The size of a rank's stack, in bytes.
const STACK: usize = 512 << 10;
/// The time for which one rank lets the other go first, in picoseconds: longer than any exchange of
/// packets without a body.
const AHEAD: u64 = 500_000_000;
/// The number of exchanges of one length. The last is kept: by then connections exist, and the
/// ranks know how the other behaves.
const ROUNDS: usize = 4;
/// The number of messages that are sent in a row.
const ROW: u64 = 4;
/// The longest message that is measured, in bytes. Lines of longer ones go on as straight lines.
const LONGEST: usize = 4 << 20;

/// The times of a message of one length, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    /// The length in bytes.
    pub bytes: u64,
    /// The receiver waits already: from the send to the end of the send.
    pub sent: u64,
    /// The receiver waits already: from the send to the end of the receive.
    pub received: u64,
    /// The message is there already, or its announcement: from the receive to its end.
    pub taken: u64,
    /// As `taken`: from the receive to the end of the send. 0: the send does not wait.
    pub released: u64,
    /// As `taken`: the time of a call that starts a send.
    pub started: u64,
    /// Several messages are there: the time by which one more of them lengthens the receives.
    pub further: u64,
}

/// The lines of messages between two ranks.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    /// The lines, by length.
    lines: Vec<Line>,
    /// The longest message that its sender sends without waiting for the receiver, in bytes.
    pub eager: u64,
    /// The processor time in which a rank opens its end of a connection.
    pub opening: u64,
    /// The processor time in which it connects that end with the other.
    pub joining: u64,
    /// The time of a message beside all connections, by which ranks connect and end.
    pub letter: u64,
}

impl Lines {
    /// The times of a message of `bytes` bytes.
    pub(crate) fn of(&self, bytes: u64) -> Line {
        let is_eager = bytes <= self.eager;
        let class = |line: &&Line| (line.bytes <= self.eager) == is_eager;
        let after = self.lines.partition_point(|line| line.bytes < bytes);
        let upper = self.lines.get(after).filter(class);
        let lower = self.lines[..after].iter().rev().find(class);
        match (lower, upper) {
            (_, Some(line)) if line.bytes == bytes => *line,
            (Some(lower), Some(upper)) => between(lower, upper, bytes),
            (None, Some(line)) => Line { bytes, ..*line },
            (Some(last), None) => {
                let before = self.lines[..after - 1].iter().rev().find(class);
                before.map_or(*last, |before| between(before, last, bytes))
            }
            (None, None) => Line::default(),
        }
    }
}

/// The straight line through two lines, at another length.
fn between(one: &Line, other: &Line, bytes: u64) -> Line {
    let (from, to) = (one.bytes as i128, other.bytes as i128);
    let at = |one: u64, other: u64| {
        let rise = (i128::from(other) - i128::from(one)) * (i128::from(bytes) - from);
        (i128::from(one) + rise / (to - from).max(1)).max(0) as u64
    };
    Line {
        bytes,
        sent: at(one.sent, other.sent),
        received: at(one.received, other.received),
        taken: at(one.taken, other.taken),
        released: at(one.released, other.released),
        started: at(one.started, other.started),
        further: at(one.further, other.further),
    }
}

/// The lines of a machine.
#[derive(Clone, Debug)]
pub(crate) struct MeasuredLines {
    /// Between two hosts.
    pub across: Lines,
    /// Within one host.
    pub inside: Lines,
    /// Of a rank with itself, all of whose time is that of its processor.
    pub alone: Lines,
    /// The network that ranks of the machine see.
    pub network: Network,
}

/// Measures the lines of a machine whose ranks have these settings.
///
/// # Errors
/// The machine cannot run two ranks.
pub(crate) fn measure(scene: &MachineConfig, knobs: &Knobs) -> Result<MeasuredLines, String> {
    let (across, _, network) = between_two(scene, vec![0, 1], knobs)?;
    let (inside, alone, _) = between_two(scene, vec![0, 0], knobs)?;
    Ok(MeasuredLines {
        across,
        inside,
        alone,
        network,
    })
}

/// The kind of an exchange.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Exchange {
    /// The receiver waits for the message.
    Awaited,
    /// The message waits for the receiver.
    Late,
    /// Several messages wait for the receiver.
    Row,
}

/// The times of one exchange, as its two ranks note them.
#[derive(Clone, Copy, Default)]
struct Noted {
    start: [u64; 2],
    end: [u64; 2],
    started: u64,
}

/// The notes of both ranks.
#[derive(Default)]
struct Notes {
    /// The length, the kind and the times of each exchange.
    exchanges: Vec<(u64, Exchange, Noted)>,
    /// The time of the end of each rank.
    ends: [u64; 2],
}

fn between_two(
    scene: &MachineConfig,
    hosts: Vec<u32>,
    knobs: &Knobs,
) -> Result<(Lines, Lines, Network), String> {
    let scene = MachineConfig {
        hosts: hosts.clone(),
        traced: false,
        keeps_notes: false,
        notes_messages: false,
        ..scene.clone()
    };
    let plan = Plan {
        ranks: 2,
        seed: scene.seed,
        stack: STACK,
    };
    let is_inside = hosts[0] == hosts[1];
    let addresses = Addresses::new().map_err(|why| format!("memory: {why}"))?;
    let addresses = Rc::new(RefCell::new(addresses));
    let room = addresses.borrow_mut().buffer(2 * LONGEST);
    let room = room.ok_or("no memory for the longest message")?;
    let result = Rc::new(RefCell::new(None));
    let (knobs, placement) = (knobs.clone(), Hosts::new(hosts));
    let shared = Rc::new(RefCell::new(Notes::default()));
    let (notes, kept) = (shared.clone(), result.clone());
    let body = move |turn: Turn<MachineModel>| -> Result<(), String> {
        let number = turn.rank() as usize;
        let wiring = Wiring {
            peers: Peers {
                node: Some(Box::new(ModelNode::new(turn))),
                ..Peers::new(number, 2)
            },
            bootstrap: Arc::new(Standalone::new(number, placement.clone())),
            work: WorkTimes::default(),
            choices: None,
        };
        let rank = Rank::new(Some(wiring), knobs.clone()).map_err(|why| why.to_string())?;
        let network = rank.own_network();
        let eager = match is_inside {
            true => network.inside.eager,
            false => network.across.eager,
        };
        let measured = Measured {
            rank: &rank,
            number,
            room: &room,
            notes: &notes,
        };
        let alone = measured.alone().map_err(|why| why.to_string())?;
        measured.all(eager).map_err(|why| why.to_string())?;
        let before = measured.now();
        rank.finish("MPI_Finalize").map_err(|why| why.to_string())?;
        notes.borrow_mut().ends[number] = measured.now() - before;
        if number == 0 {
            *kept.borrow_mut() = Some((eager, alone, network));
        }
        Ok(())
    };
    let model = move |memory| MachineModel::of(memory, &scene);
    let (ends, _) = run(plan, model, body).map_err(|why| why.to_string())?;
    ends.into_iter().collect::<Result<(), String>>()?;
    let (eager, alone, network) = result.borrow_mut().take().ok_or("no rank has ended")?;
    let Notes { exchanges, ends } = &*shared.borrow();
    // At the end both ranks exchange one.
    let lines = lines_of(exchanges, eager, ends[0].min(ends[1]));
    Ok((lines, alone, network))
}

/// The lines by the times of all exchanges.
fn lines_of(notes: &[(u64, Exchange, Noted)], eager: u64, letter: u64) -> Lines {
    let mut lines: Vec<Line> = Vec::new();
    let mut first = Noted::default();
    for (number, &(bytes, kind, noted)) in notes.iter().enumerate() {
        if lines.last().is_none_or(|line| line.bytes != bytes) {
            lines.push(Line {
                bytes,
                ..Line::default()
            });
        }
        let Some(line) = lines.last_mut() else {
            continue;
        };
        let [sender, receiver] = noted.end;
        match kind {
            Exchange::Awaited => {
                line.sent = sender - noted.start[0];
                line.received = receiver - noted.start[0];
            }
            Exchange::Late => {
                line.taken = receiver - noted.start[1];
                line.released = match bytes <= eager {
                    true => 0,
                    false => sender.saturating_sub(noted.start[1]),
                };
                line.started = noted.started;
            }
            Exchange::Row => {
                let all = receiver - noted.start[1];
                line.further = all.saturating_sub(line.taken) / (ROW - 1);
            }
        }
        if number == 0 {
            first = noted;
        }
    }
    let steady = lines.first().copied().unwrap_or_default();
    // Two letters go back and forth, and both ends open and join.
    let later = (first.end[1] - first.start[0]).saturating_sub(steady.received);
    let connecting = (later / 2).saturating_sub(letter);
    let opening = first.started.saturating_sub(steady.started).min(connecting);
    Lines {
        lines,
        eager,
        opening,
        joining: connecting - opening,
        letter,
    }
}

/// One of the two ranks.
struct Measured<'a> {
    rank: &'a Rank,
    number: usize,
    /// The memory of all messages.
    room: &'a Buffer,
    notes: &'a RefCell<Notes>,
}

impl Measured<'_> {
    fn now(&self) -> u64 {
        self.rank.virtual_time().map_or(0, |time| time.now)
    }

    /// Lets the other rank go first.
    fn work(&self) {
        if let Some(meter) = self.rank.meter() {
            meter.add_measured(0, 1, AHEAD);
        }
        // The machine charges the work before anything else.
        self.now();
    }

    /// The lines of messages of this rank to itself.
    fn alone(&self) -> mpi::Result<Lines> {
        let mut lines = Vec::new();
        for length in lengths(u64::MAX) {
            let body = self.room.slice(0, length);
            let mut line = Line::default();
            for _ in 0..ROUNDS {
                let start = self.now();
                let own = self.number as i32;
                let id = {
                    let mut state = self.rank.lock();
                    state.send(Mode::Standard, &body, own, 0, WORLD)?
                };
                let into = self.room.slice(length, length);
                self.rank.receive("MPI_Recv", into, own, 0, WORLD)?;
                self.rank.wait("MPI_Send", id)?;
                let time = self.now() - start;
                line = Line {
                    bytes: length as u64,
                    taken: time,
                    further: time,
                    ..line
                };
            }
            lines.push(line);
        }
        Ok(Lines {
            lines,
            eager: u64::MAX,
            opening: 0,
            joining: 0,
            letter: 0,
        })
    }

    fn all(&self, eager: u64) -> mpi::Result<()> {
        for length in lengths(eager) {
            let body = self.room.slice(0, length);
            for kind in [Exchange::Awaited, Exchange::Late, Exchange::Row] {
                if kind != Exchange::Row || length as u64 <= eager {
                    for _ in 0..ROUNDS {
                        self.exchange(&body, kind)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// A message from rank 0 to rank 1, and an answer that ends the exchange.
    fn exchange(&self, body: &Buffer, kind: Exchange) -> mpi::Result<()> {
        let mut noted = Noted::default();
        let own = self.number;
        if (own == 0) == (kind == Exchange::Awaited) {
            self.work();
        }
        noted.start[own] = self.now();
        if own == 0 {
            let id = {
                let mut state = self.rank.lock();
                state.send(Mode::Standard, body, 1, 0, WORLD)?
            };
            noted.started = self.now() - noted.start[0];
            self.rank.wait("MPI_Send", id)?;
        } else {
            self.rank.receive("MPI_Recv", body.clone(), 0, 0, WORLD)?;
        }
        if kind == Exchange::Row {
            for _ in 1..ROW {
                match own {
                    0 => (self.rank).send("MPI_Send", Mode::Standard, body.clone(), 1, 0, WORLD)?,
                    _ => (self.rank)
                        .receive("MPI_Recv", body.clone(), 0, 0, WORLD)
                        .map(drop)?,
                }
            }
        }
        noted.end[own] = self.now();
        let none = Buffer::empty();
        if own == 0 {
            self.rank.receive("MPI_Recv", none, 1, 1, WORLD)?;
        } else {
            self.rank
                .send("MPI_Send", Mode::Standard, none, 0, 1, WORLD)?;
        }
        let notes = &mut self.notes.borrow_mut().exchanges;
        let bytes = body.len() as u64;
        match own {
            // The receiver has noted its times before its answer reaches the sender.
            1 => notes.push((bytes, kind, noted)),
            _ => {
                if let Some((_, _, last)) = notes.last_mut() {
                    last.start[0] = noted.start[0];
                    last.end[0] = noted.end[0];
                    last.started = noted.started;
                }
            }
        }
        Ok(())
    }
}

/// The lengths that are measured, in bytes, where messages up to `eager` bytes do not wait.
fn lengths(eager: u64) -> Vec<usize> {
    let mut lengths = vec![0, 1];
    let powers = (3..).map(|power| 1usize << power);
    lengths.extend(powers.take_while(|length| *length <= LONGEST));
    let limit = usize::try_from(eager).unwrap_or(LONGEST);
    lengths.extend([limit, limit.saturating_add(1)]);
    lengths.retain(|length| *length <= LONGEST);
    lengths.sort_unstable();
    lengths.dedup();
    lengths
}
