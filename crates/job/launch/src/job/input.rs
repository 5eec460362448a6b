//! The launcher's standard input on its way to ranks that do not read it themselves: to one rank
//! on another host, through its agent, or to all ranks of this host.

use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use super::RunningJob;
use crate::Input;
use crate::agent::frame::{PIECE, ToAgent, WINDOW};

/// The launcher's standard input on its way to ranks.
#[derive(Default)]
pub(super) struct InputRelay {
    /// Bytes that the agent of the rank that reads has not confirmed.
    under_way: usize,
    at_end: bool,
}

impl InputRelay {
    /// The agent has passed on these bytes.
    pub(super) fn confirm(&mut self, bytes: usize) {
        self.under_way = self.under_way.saturating_sub(bytes);
    }

    /// The rank reads no more.
    pub(super) fn close(&mut self) {
        self.at_end = true;
    }
}

impl RunningJob<'_> {
    /// The descriptors to poll for input.
    pub(super) fn wanted_of_input(&self) -> Vec<PollFd<'_>> {
        let mut wanted = Vec::new();
        if self.wants_input() {
            let stdin = rustix::stdio::stdin();
            wanted.push(PollFd::from_borrowed_fd(stdin, PollFlags::IN));
        }
        let waiting = self.ranks.iter().filter(|rank| !rank.unread.is_empty());
        let pipes = waiting.filter_map(|rank| rank.input.as_ref());
        wanted.extend(pipes.map(|pipe| PollFd::new(pipe, PollFlags::OUT)));
        wanted
    }

    fn wants_input(&self) -> bool {
        if self.input.at_end || self.ending.is_some() {
            return false;
        }
        let has_room = match self.reading_agent() {
            Some(host) => self.agents.get(host).is_some_and(|agent| {
                let room = self.input.under_way < WINDOW && agent.link.backlog() < WINDOW;
                agent.session.has_started() && room
            }),
            None => {
                let mut pipes = self
                    .ranks
                    .iter()
                    .filter(|rank| rank.input.is_some())
                    .peekable();
                pipes.peek().is_some() && pipes.all(|rank| rank.unread.len() < WINDOW)
            }
        };
        has_room && may_read_input()
    }

    /// The agent of the rank that reads input.
    fn reading_agent(&self) -> Option<usize> {
        match self.options.input {
            Input::Rank(number) => self.ranks.get(number)?.host,
            Input::All | Input::None => None,
        }
    }

    /// Moves input that has arrived.
    pub(super) fn move_input(&mut self) {
        while self.wants_input() && is_readable(rustix::stdio::stdin()) {
            let mut bytes = vec![0; PIECE];
            match rustix::io::read(rustix::stdio::stdin(), &mut bytes) {
                Err(Errno::INTR | Errno::AGAIN) => break,
                Ok(0) | Err(_) => bytes.clear(),
                Ok(length) => bytes.truncate(length),
            }
            self.pass_input(bytes);
        }
        self.fill_pipes();
    }

    /// Passes on bytes of input; none are the end.
    fn pass_input(&mut self, bytes: Vec<u8>) {
        self.input.at_end |= bytes.is_empty();
        let Some(host) = self.reading_agent() else {
            let open = self.ranks.iter_mut().filter(|rank| rank.input.is_some());
            open.for_each(|rank| rank.unread.extend_from_slice(&bytes));
            return;
        };
        self.input.under_way += bytes.len();
        self.agents[host].session.sent_input(bytes.len());
        self.agents[host].link.post(&match bytes.is_empty() {
            true => ToAgent::EndOfInput,
            false => ToAgent::Input(bytes),
        });
    }

    /// Writes what the pipes of ranks have room for.
    fn fill_pipes(&mut self) {
        for rank in &mut self.ranks {
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
            if self.input.at_end && rank.unread.is_empty() {
                rank.input = None;
            }
        }
    }
}

/// Whether this process may read its standard input: not from a terminal while in the background.
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
