//! The forwarding of the launcher's standard input to ranks that do not read it themselves: to one
//! rank on another host, through its agent, or to all ranks of this host.

use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use super::agents::Agents;
use crate::Input;
use crate::agent::frame::{PIECE, ToAgent, WINDOW};
use crate::rank::RankProcess;

/// The state of forwarding the launcher's standard input.
pub(super) struct InputRelay {
    /// The ranks that read the launcher's standard input.
    readers: Input,
    /// The number of bytes in flight to the reading rank that its agent has not confirmed.
    under_way: usize,
    at_end: bool,
    /// True if the job is ending: no more input is read.
    has_stopped: bool,
}

impl InputRelay {
    pub(super) fn new(readers: Input) -> InputRelay {
        InputRelay {
            readers,
            under_way: 0,
            at_end: false,
            has_stopped: false,
        }
    }

    /// Records that the agent has passed on `bytes` bytes.
    pub(super) fn confirm(&mut self, bytes: usize) {
        self.under_way = self.under_way.saturating_sub(bytes);
    }

    /// Records that the reading rank has closed its standard input.
    pub(super) fn close(&mut self) {
        self.at_end = true;
    }

    /// Ends the reading of input, because the job is ending.
    pub(super) fn stop(&mut self) {
        self.has_stopped = true;
    }

    /// The descriptors to poll for reading and forwarding input.
    pub(super) fn wanted<'a>(
        &self,
        ranks: &'a [RankProcess],
        agents: &Agents<'_>,
    ) -> Vec<PollFd<'a>> {
        let mut wanted = Vec::new();
        if self.has_room(ranks, agents) {
            let stdin = rustix::stdio::stdin();
            wanted.push(PollFd::from_borrowed_fd(stdin, PollFlags::IN));
        }
        let waiting = ranks.iter().filter(|rank| !rank.unread.is_empty());
        let pipes = waiting.filter_map(|rank| rank.input.as_ref());
        wanted.extend(pipes.map(|pipe| PollFd::new(pipe, PollFlags::OUT)));
        wanted
    }

    /// True if more input can be read and queued.
    fn has_room(&self, ranks: &[RankProcess], agents: &Agents<'_>) -> bool {
        if self.at_end || self.has_stopped {
            return false;
        }
        let has_room = match self.reading_agent(ranks) {
            Some(host) => agents.get(host).is_some_and(|agent| {
                let room = self.under_way < WINDOW && agent.link.backlog() < WINDOW;
                agent.session.has_started() && room
            }),
            None => {
                let pipes = ranks.iter().filter(|rank| rank.input.is_some());
                let mut pipes = pipes.peekable();
                pipes.peek().is_some() && pipes.all(|rank| rank.unread.len() < WINDOW)
            }
        };
        has_room && may_read_input()
    }

    /// The number of the host whose agent serves the rank that reads input, if an agent does.
    fn reading_agent(&self, ranks: &[RankProcess]) -> Option<usize> {
        match self.readers {
            Input::Rank(number) => ranks.get(number)?.host,
            Input::All | Input::None => None,
        }
    }

    /// Reads the available input and passes it to the readers.
    pub(super) fn move_on(&mut self, ranks: &mut [RankProcess], agents: &mut Agents<'_>) {
        while self.has_room(ranks, agents) && is_readable(rustix::stdio::stdin()) {
            let mut bytes = vec![0; PIECE];
            match rustix::io::read(rustix::stdio::stdin(), &mut bytes) {
                Err(Errno::INTR | Errno::AGAIN) => break,
                Ok(0) | Err(_) => bytes.clear(),
                Ok(length) => bytes.truncate(length),
            }
            self.pass(bytes, ranks, agents);
        }
        self.fill_pipes(ranks);
    }

    /// Passes bytes of input to the readers. No bytes mean the end of input.
    fn pass(&mut self, bytes: Vec<u8>, ranks: &mut [RankProcess], agents: &mut Agents<'_>) {
        self.at_end |= bytes.is_empty();
        let Some(host) = self.reading_agent(ranks) else {
            let open = ranks.iter_mut().filter(|rank| rank.input.is_some());
            open.for_each(|rank| rank.unread.extend_from_slice(&bytes));
            return;
        };
        self.under_way += bytes.len();
        let agent = agents.get_mut(host);
        agent.session.sent_input(bytes.len());
        agent.link.post(&match bytes.is_empty() {
            true => ToAgent::EndOfInput,
            false => ToAgent::Input(bytes),
        });
    }

    /// Writes queued input to the ranks' pipes without blocking.
    fn fill_pipes(&self, ranks: &mut [RankProcess]) {
        for rank in ranks {
            while let Some(pipe) = rank.input.as_ref().filter(|_| !rank.unread.is_empty()) {
                match rustix::io::write(pipe, &rank.unread) {
                    Ok(length) => drop(rank.unread.drain(..length)),
                    Err(Errno::INTR) => {}
                    Err(Errno::AGAIN) => break,
                    Err(_) => {
                        rank.input = None;
                        rank.unread.clear();
                    }
                }
            }
            if self.at_end && rank.unread.is_empty() {
                rank.input = None;
            }
        }
    }
}

/// True if this process may read its standard input: not from a terminal while in the background.
fn may_read_input() -> bool {
    let stdin = rustix::stdio::stdin();
    match rustix::termios::tcgetpgrp(stdin) {
        Ok(foreground) => foreground == rustix::process::getpgrp(),
        Err(_) => true,
    }
}

fn is_readable(fd: impl AsFd) -> bool {
    let now = rustix::event::Timespec::default();
    let mut wanted = [PollFd::new(&fd, PollFlags::IN)];
    rustix::event::poll(&mut wanted, Some(&now)).is_ok_and(|ready| ready > 0)
}
