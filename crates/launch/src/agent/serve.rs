//! The agent: what runs on each host of a job on several.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use nix::sys::signal::Signal;
use pmi::Hosts;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::process::{WaitOptions, wait};

use super::frame::{Down, HELLO, Link, Order, PIECE, Up, WINDOW};
use crate::kill_sequence::Steps;
use crate::output::{Piece, Target};
use crate::rank::Rank;
use crate::signals::Signals;
use crate::start::{self, Share};
use crate::{Error, Options, library_directory, limits, processes, timespec};

/// How the launcher calls the agent: `fishplate agent`.
pub const NAME: &str = "agent";

/// Serves one launcher over the standard streams, until the ranks of this host have ended. Returns the exit code.
pub fn serve() -> Result<u8, Error> {
    if io::stdin().is_terminal() {
        return Err(Error::AgentByHand);
    }
    let mut link = take_streams().map_err(|why| Error::System {
        what: "take the agent's streams",
        why,
    })?;
    link.post_line(HELLO);
    // The launcher gives its order, or has changed its mind.
    let order = loop {
        let mut wanted = polled(&link);
        poll(&mut wanted, None).map_err(Error::system("wait for the launcher"))?;
        link.flush();
        link.pull();
        match link.next::<Down>() {
            Ok(Some(Down::Start(order))) => break order,
            Ok(None) if !link.is_at_end() => {}
            Ok(_) => return Ok(0),
            Err(why) => return Err(Error::BadFrame { why }),
        }
    };
    Served::start(link, order)?.watch()
}

/// The streams become the link; whatever else writes to standard output is sent to standard error.
fn take_streams() -> io::Result<Link> {
    let reader = fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let writer = fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    Link::new(reader, writer)
}

fn polled(link: &Link) -> Vec<PollFd<'_>> {
    let wanted = link.wanted();
    wanted
        .map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags))
        .collect()
}

/// The ranks of this host, and what is on its way to and from them.
struct Served {
    link: Link,
    signals: Signals,
    /// The number of the first.
    first: usize,
    ranks: Vec<Rank>,
    ending: Option<Steps>,
    /// Output is not waited for.
    hurry: bool,
    childless: bool,
    /// Output that the launcher has not taken yet.
    under_way: [usize; 2],
    input: Input,
}

/// What rank 0 is to read.
#[derive(Default)]
struct Input {
    pending: Vec<u8>,
    at_end: bool,
    pipe: Option<OwnedFd>,
}

impl Served {
    fn start(mut link: Link, order: Order) -> Result<Self, Error> {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(Error::system("become the reaper of orphans"))?;
        let signals = Signals::take()?;
        let first = order.first;
        let (mut ranks, outcome) = start_ranks(order, &signals);
        let refused = outcome.is_err();
        match outcome {
            Ok(()) => {
                let pids = ranks.iter().filter_map(|rank| rank.pid);
                let pids = pids.map(|pid| pid.as_raw_nonzero().get()).collect();
                link.post(&Up::Started(pids));
            }
            Err(error) => link.post(&Up::Refused {
                why: error.to_string(),
                code: error.exit_code(),
            }),
        }
        let pipe = ranks.iter_mut().find_map(|rank| rank.input.take());
        let mut served = Served {
            link,
            signals,
            first,
            ranks,
            ending: None,
            hurry: false,
            childless: false,
            under_way: [0; 2],
            input: Input {
                pipe,
                ..Input::default()
            },
        };
        if refused {
            served.end(vec![Signal::SIGKILL], true);
        }
        Ok(served)
    }

    fn watch(mut self) -> Result<u8, Error> {
        while !self.is_over() {
            self.sleep()?;
            self.take_signals();
            self.obey()?;
            self.relay();
            self.reap();
            self.move_output();
            self.move_input();
            self.take_steps();
            self.link.flush();
        }
        self.link.post(&Up::Done);
        Ok(0)
    }

    fn is_over(&self) -> bool {
        let mut streams = self.ranks.iter().flat_map(|rank| &rank.streams);
        let quiet = streams.all(|stream| stream.reader().is_none()) && self.link.has_sent_all();
        self.childless && (quiet || self.hurry)
    }

    fn sleep(&self) -> Result<(), Error> {
        let mut wanted = polled(&self.link);
        wanted.push(PollFd::new(&self.signals, PollFlags::IN));
        for rank in &self.ranks {
            wanted.extend(rank.wanted());
            let streams = rank
                .streams
                .iter()
                .filter(|stream| self.under_way[stream.target as usize] < WINDOW);
            let readers = streams.filter_map(|stream| stream.reader());
            wanted.extend(readers.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        }
        let pipe = self.input.pipe.as_ref();
        let pipe = pipe.filter(|_| !self.input.pending.is_empty());
        wanted.extend(pipe.map(|pipe| PollFd::new(pipe, PollFlags::OUT)));
        let time = self.ending.as_ref().and_then(Steps::next);
        match poll(&mut wanted, time.map(timespec).as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(Error::system("wait for the ranks")(errno)),
        }
    }

    /// Whoever ends the agent ends its ranks.
    fn take_signals(&mut self) {
        while let Some(received) = self.signals.read() {
            if matches!(
                received.signal,
                Signal::SIGINT | Signal::SIGTERM | Signal::SIGHUP
            ) {
                self.leave(format!("was ended by {}", received.signal));
            }
        }
    }

    fn leave(&mut self, why: String) {
        self.link.post(&Up::Leaving(why));
        self.end(vec![Signal::SIGKILL], true);
    }

    fn obey(&mut self) -> Result<(), Error> {
        self.link.pull();
        loop {
            match self.link.next() {
                Ok(Some(frame)) => self.take(frame),
                Ok(None) => break,
                Err(why) => {
                    self.end(vec![Signal::SIGKILL], true);
                    return Err(Error::BadFrame { why });
                }
            }
        }
        // Nobody is left to serve. That there is still somebody to hear it is possible.
        if self.link.is_at_end() && !self.hurry {
            self.leave("does not hear the launcher any more".into());
        }
        Ok(())
    }

    fn take(&mut self, frame: Down) {
        match frame {
            Down::Start(_) => {}
            Down::Ask(rank) => {
                if let Some(rank) = self.rank(rank) {
                    rank.ask();
                }
            }
            Down::Tell(rank, packet) => {
                if let Some(rank) = self.rank(rank) {
                    rank.tell(packet);
                }
            }
            Down::Input(bytes) => self.input.pending.extend_from_slice(&bytes),
            Down::EndOfInput => self.input.at_end = true,
            Down::Taken(target, bytes) => {
                let under_way = &mut self.under_way[target as usize];
                *under_way = under_way.saturating_sub(bytes);
            }
            Down::Deaf(target) => {
                let streams = self.ranks.iter_mut().flat_map(|rank| &mut rank.streams);
                streams
                    .filter(|stream| stream.target == target)
                    .for_each(|stream| stream.stop_reading());
            }
            Down::Signal(number) => {
                if let Ok(signal) = Signal::try_from(number) {
                    processes::to_ranks(&self.ranks, signal, false);
                }
            }
            Down::End { signals, hurry } => {
                let signals = signals.into_iter();
                let signals = signals.filter_map(|number| Signal::try_from(number).ok());
                self.end(signals.collect(), hurry);
            }
        }
    }

    fn rank(&mut self, number: usize) -> Option<&mut Rank> {
        self.ranks.get_mut(number.checked_sub(self.first)?)
    }

    fn end(&mut self, signals: Vec<Signal>, hurry: bool) {
        self.hurry |= hurry;
        self.ending = Some(Steps::new(signals, Instant::now()));
        self.take_steps();
    }

    fn take_steps(&mut self) {
        let now = Instant::now();
        let Some(steps) = &mut self.ending else {
            return;
        };
        while let Some(signal) = steps.take(now) {
            if self.childless {
                continue;
            }
            processes::to_all(&self.ranks, signal, false);
            if signal == Signal::SIGKILL {
                steps.repeat(signal, now);
            }
        }
    }

    fn relay(&mut self) {
        for rank in &mut self.ranks {
            let gone = rank.program_has_ended();
            for packet in rank.relay() {
                self.link.post(&Up::Said(rank.number, packet));
            }
            rank.flush();
            let gone = gone || rank.program_is_gone;
            if gone && rank.program_ended().is_some() {
                self.link.post(&Up::ProgramGone(rank.number));
            }
        }
    }

    fn reap(&mut self) {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    let mut ranks = self.ranks.iter_mut();
                    let Some(rank) = ranks.find(|rank| rank.pid == Some(pid) && rank.is_running())
                    else {
                        continue;
                    };
                    for packet in rank.relay() {
                        self.link.post(&Up::Said(rank.number, packet));
                    }
                    rank.exit = Some(status.into());
                    rank.program = None;
                    self.link.post(&Up::Ended(rank.number, status.into()));
                }
                Ok(None) => return,
                Err(Errno::INTR) => {}
                Err(_) => {
                    self.childless = true;
                    return;
                }
            }
        }
    }

    fn move_output(&mut self) {
        for rank in &mut self.ranks {
            for stream in &mut rank.streams {
                let target: Target = stream.target;
                let under_way = &mut self.under_way[target as usize];
                while *under_way < WINDOW {
                    match stream.read(PIECE) {
                        Piece::Bytes(bytes) => {
                            *under_way += bytes.len();
                            self.link.post(&Up::Output(rank.number, target, bytes));
                        }
                        Piece::Nothing => break,
                        Piece::End => {
                            stream.stop_reading();
                            self.link.post(&Up::EndOfOutput(rank.number, target));
                            break;
                        }
                    }
                }
            }
        }
    }

    fn move_input(&mut self) {
        let Input {
            pending,
            at_end,
            pipe,
        } = &mut self.input;
        while let Some(file) = pipe.as_ref().filter(|_| !pending.is_empty()) {
            match rustix::io::write(file.as_fd(), pending) {
                Ok(length) => {
                    pending.drain(..length);
                    self.link.post(&Up::InputTaken(length));
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => {
                    *pipe = None;
                    self.link.post(&Up::InputClosed);
                }
            }
        }
        if *at_end && pending.is_empty() {
            *pipe = None;
        }
    }
}

fn start_ranks(order: Order, signals: &Signals) -> (Vec<Rank>, Result<(), Error>) {
    let hosts = match Hosts::parse(&order.hosts, order.ranks) {
        Ok(hosts) => hosts,
        Err(why) => {
            let why = why.to_string();
            return (Vec::new(), Err(Error::BadFrame { why }));
        }
    };
    let options = Options {
        ranks: order.ranks,
        program: order.program,
        arguments: order.arguments,
        variables: order.variables,
        directory: order.directory.map(Into::into),
        tag_output: true,
        library: std::env::current_exe()
            .ok()
            .and_then(|command| library_directory(&command)),
        ..Options::default()
    };
    let share = Share {
        first: order.first,
        count: order.count,
        hosts,
        input: true,
    };
    match limits::make_room(order.count, true) {
        Ok(descriptors) => start::start(&options, share, descriptors, signals.before()),
        Err(error) => (Vec::new(), Err(error)),
    }
}

/// An agent that fails says so where its launcher's user sees it.
pub fn main() -> u8 {
    match serve() {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(io::stderr(), "fishplate: {error}");
            error.exit_code()
        }
    }
}
