//! One rank, as the launcher sees it.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use pmi::{FromLauncher, FromRank, Status};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::agent::frame::Exit;
use crate::output::{Stream, Target};
use crate::verdict::Cause;

/// Packets taken from one rank before others get their turn.
const PACKETS_AT_ONCE: usize = 64;

/// What a rank said that concerns the job.
pub(crate) enum News {
    /// Why the job has to end.
    Failure(Cause),
    Put {
        key: String,
        value: String,
    },
    Get {
        key: String,
    },
    Fence,
}

/// Lines of a status that are kept.
const STATUS_LINES: usize = 4096;

pub(crate) struct Rank {
    pub number: usize,
    /// None until an agent has started it.
    pub pid: Option<Pid>,
    /// The host it is on, by its place among the agents; None is this one.
    pub host: Option<usize>,
    /// Where what it is to read is written, if that is not the launcher's own input.
    pub input: Option<OwnedFd>,
    /// It leads a process group; otherwise it is in the launcher's, where the terminal lets it read.
    pub own_group: bool,
    /// None once the rank has closed it.
    pub control: Option<OwnedFd>,
    /// Packets for it that its socket had no room for.
    outbox: VecDeque<String>,
    pub streams: Vec<Stream>,
    /// The process that came through MPI_Init: this rank's own, or one that a wrapper started.
    pub init: Option<Pid>,
    /// To learn of the death of that process when it is below a wrapper.
    pub program: Option<OwnedFd>,
    /// That process had died before we could watch it.
    pub program_is_gone: bool,
    pub finalized: bool,
    /// How the process ended.
    pub exit: Option<Exit>,
    /// Nobody will say how it ended: its agent is gone.
    pub lost: bool,
    /// What it waits for, as it answered to the last request.
    pub answer: Option<Status>,
    fault: Option<String>,
    lines: Vec<String>,
}

impl Rank {
    pub fn new(
        number: usize,
        pid: Pid,
        own_group: bool,
        control: OwnedFd,
        streams: Vec<Stream>,
    ) -> Self {
        Rank {
            pid: Some(pid),
            own_group,
            control: Some(control),
            ..Rank::at(number, streams)
        }
    }

    /// One that an agent is to start.
    pub fn remote(number: usize, host: usize, tag_output: bool) -> Self {
        let streams = [Target::Stdout, Target::Stderr]
            .map(|target| Stream::remote(number, target, tag_output));
        Rank {
            host: Some(host),
            own_group: true,
            ..Rank::at(number, streams.into())
        }
    }

    /// One of which nothing has been heard.
    fn at(number: usize, streams: Vec<Stream>) -> Self {
        Rank {
            number,
            pid: None,
            host: None,
            input: None,
            own_group: false,
            control: None,
            outbox: VecDeque::new(),
            streams,
            init: None,
            program: None,
            program_is_gone: false,
            finalized: false,
            exit: None,
            lost: false,
            answer: None,
            fault: None,
            lines: Vec::new(),
        }
    }

    /// It has not ended, as far as anybody knows.
    pub fn is_running(&self) -> bool {
        self.exit.is_none() && !self.lost
    }

    /// What to poll to hear of it, its output left out.
    pub fn wanted(&self) -> impl Iterator<Item = PollFd<'_>> {
        let flags = match self.outbox.is_empty() {
            true => PollFlags::IN,
            false => PollFlags::IN | PollFlags::OUT,
        };
        let control = self.control.iter().map(move |fd| PollFd::new(fd, flags));
        let program = self.program.iter();
        control.chain(program.map(|fd| PollFd::new(fd, PollFlags::IN)))
    }

    /// What it was doing when it ended by a fault, if it said so before.
    pub fn last_words(&self) -> Option<&Status> {
        self.fault.as_ref().and(self.answer.as_ref())
    }

    /// Between MPI_Init and MPI_Finalize.
    pub fn is_in_mpi(&self) -> bool {
        self.is_running() && self.init.is_some() && !self.finalized
    }

    /// Asks what it waits for.
    pub fn ask(&mut self) {
        if self.fault.is_none() {
            self.answer = None;
        }
        self.lines.clear();
        if let Some(control) = &self.control {
            let line = format!("{}\n", FromLauncher::Report);
            // A rank that has not read earlier requests has no room for this one, and will answer those.
            let _ = send(
                control,
                line.as_bytes(),
                SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
            );
        }
    }

    /// Tells it something that it has to hear: what its socket has no room for now is sent later.
    pub fn tell(&mut self, packet: String) {
        self.outbox.push_back(packet);
        self.flush();
    }

    /// Sends what its socket has room for.
    pub fn flush(&mut self) {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        while let (Some(control), Some(packet)) = (&self.control, self.outbox.front()) {
            match send(control, packet.as_bytes(), flags) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                // Or it is gone, and will hear nothing any more.
                _ => drop(self.outbox.pop_front()),
            }
        }
        if self.control.is_none() {
            self.outbox.clear();
        }
    }

    /// Takes what the rank said.
    pub fn listen(&mut self) -> Vec<News> {
        let mut news = Vec::new();
        for _ in 0..PACKETS_AT_ONCE {
            let Some(text) = self.receive() else { break };
            news.extend(self.hear(&text));
        }
        news
    }

    /// Takes one packet of what it said.
    pub fn hear(&mut self, packet: &str) -> Vec<News> {
        packet.lines().filter_map(|line| self.take(line)).collect()
    }

    /// What the rank said, for somebody else to judge.
    pub fn relay(&mut self) -> Vec<String> {
        let packets = std::iter::from_fn(|| self.receive()).take(PACKETS_AT_ONCE);
        let packets: Vec<String> = packets.collect();
        for packet in &packets {
            self.hear(packet);
        }
        packets
    }

    /// A packet from the rank, if there is one.
    fn receive(&mut self) -> Option<String> {
        let mut packet = [0; 16 << 10];
        loop {
            let control = self.control.as_ref()?;
            match recv(control, &mut packet[..], RecvFlags::DONTWAIT) {
                Ok((_, 0)) => self.control = None,
                Ok((_, length)) => {
                    let packet = &packet[..length.min(packet.len())];
                    return Some(String::from_utf8_lossy(packet).into_owned());
                }
                // A rank that ended without reading our last request: what it had said is still to be read.
                Err(Errno::INTR | Errno::CONNRESET) => {}
                Err(Errno::AGAIN) => return None,
                Err(_) => self.control = None,
            }
        }
    }

    fn take(&mut self, line: &str) -> Option<News> {
        // A line that means nothing is passed over: a program may write to a descriptor that it does not know.
        match line.parse::<FromRank>().ok()? {
            FromRank::Init { pid } => return self.enter_mpi(pid).map(News::Failure),
            FromRank::Finalize => {
                self.finalized = true;
                self.program = None;
            }
            FromRank::Abort { code, message } => {
                return Some(News::Failure(Cause::Abort { code, message }));
            }
            FromRank::Fault { text } => self.fault = Some(text),
            FromRank::Status { text } if self.lines.len() < STATUS_LINES => self.lines.push(text),
            FromRank::Status { .. } => {}
            FromRank::StatusEnd => {
                self.answer = self.lines.join("\n").parse().ok();
                self.lines.clear();
            }
            FromRank::Put { key, value } => return Some(News::Put { key, value }),
            FromRank::Get { key } => return Some(News::Get { key }),
            FromRank::Fence => return Some(News::Fence),
        }
        None
    }

    fn enter_mpi(&mut self, pid: u32) -> Option<Cause> {
        let pid = Pid::from_raw(pid.try_into().ok()?)?;
        if self.init.is_some() {
            return Some(Cause::SecondProgram { pid });
        }
        self.init = Some(pid);
        // Its agent watches it on another host.
        if self.host.is_none() && self.pid != Some(pid) {
            let watched = pidfd_open(pid, PidfdFlags::empty());
            self.program_is_gone = matches!(watched, Err(Errno::SRCH));
            self.program = watched.ok();
        }
        None
    }

    /// Takes note of the end of the process. Returns what was wrong with it; `others_in_mpi` says whether other ranks
    /// wait for this one.
    pub fn ended(&mut self, exit: Exit, others_in_mpi: bool) -> Option<Cause> {
        self.exit = Some(exit);
        self.program = None;
        let code = match exit {
            Exit::Code(code) => code,
            Exit::Signal(signal) => {
                let fault = self.fault.take();
                return Some(Cause::Signal { signal, fault });
            }
        };
        match code {
            0 if self.init.is_some() && !self.finalized => Some(Cause::NoFinalize {
                fault: self.fault.take(),
            }),
            0 if self.init.is_none() && others_in_mpi => Some(Cause::NoInit),
            0 => None,
            code => Some(Cause::Exit {
                code,
                fault: self.fault.take(),
            }),
        }
    }

    /// The program below a wrapper is gone. What it said before is still to be heard.
    pub fn program_has_ended(&self) -> bool {
        let readable = |fd| {
            let now = Timespec::default();
            poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
        };
        self.program.as_ref().is_some_and(readable)
    }

    /// The program below a wrapper is gone, and the wrapper is not.
    pub fn program_ended(&mut self) -> Option<Cause> {
        self.program = None;
        self.program_is_gone = false;
        let pid = self.init.filter(|_| !self.finalized)?;
        Some(Cause::ProgramGone {
            pid,
            fault: self.fault.take(),
        })
    }
}
