//! The socket between a rank and its launcher, at the rank's end.
//!
//! A packet holds whole lines, each ended by a newline. A rank looks at the socket only where it waits, so reading
//! never blocks; writing waits for at most a second, which only matters when the launcher is stopped.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::line::{PACKET_LIMIT, packets};
use crate::{FromLauncher, FromRank, Space, SpaceError, Status, check_key, check_value};

/// The launcher is no more: the rank has nobody to tell and must end itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone;

impl std::fmt::Display for Gone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the launcher of this job has died")
    }
}

impl std::error::Error for Gone {}

/// The rank's end of the socket. Clones share it.
#[derive(Debug, Clone)]
pub struct Control {
    socket: Arc<OwnedFd>,
    arrived: Arc<Mutex<Arrived>>,
}

/// What has come and has not been taken.
#[derive(Debug, Default)]
struct Arrived {
    /// Requests for a report.
    reports: usize,
    /// Answers.
    values: VecDeque<(String, String)>,
}

impl Control {
    /// For a connected socket that keeps packets apart.
    pub fn new(socket: OwnedFd) -> Self {
        Control {
            socket: Arc::new(socket),
            arrived: Arc::default(),
        }
    }

    fn arrived(&self) -> MutexGuard<'_, Arrived> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does the launcher want to know what this rank is doing? True once for each time it asked. Never blocks.
    pub fn report_asked(&mut self) -> Result<bool, Gone> {
        let mut arrived = self.arrived();
        while arrived.reports == 0 {
            if !self.receive(&mut arrived)? {
                return Ok(false);
            }
        }
        arrived.reports -= 1;
        Ok(true)
    }

    /// Takes a packet, if there is one.
    fn receive(&self, arrived: &mut Arrived) -> Result<bool, Gone> {
        let mut packet = [0; PACKET_LIMIT];
        let length = loop {
            match recv(&*self.socket, &mut packet[..], RecvFlags::DONTWAIT) {
                Ok((_, 0)) => return Err(Gone),
                Ok((_, length)) => break length.min(packet.len()),
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return Ok(false),
                Err(_) => return Err(Gone),
            }
        };
        let text = String::from_utf8_lossy(&packet[..length]);
        for line in text.lines() {
            match line.parse() {
                Ok(FromLauncher::Report) => arrived.reports += 1,
                Ok(FromLauncher::Value { key, value }) => arrived.values.push_back((key, value)),
                // A line of a newer launcher that means nothing to us is passed over.
                Err(()) => {}
            }
        }
        Ok(true)
    }

    /// This rank has come through MPI_Init.
    pub fn init(&self) -> Result<(), Gone> {
        self.send(&[FromRank::Init {
            pid: std::process::id(),
        }])
    }

    /// This rank has come through MPI_Finalize: from now on its end is no failure of the job.
    pub fn finalize(&self) -> Result<(), Gone> {
        self.send(&[FromRank::Finalize])
    }

    /// End the job with this exit code.
    pub fn abort(&self, code: i32, message: &str) -> Result<(), Gone> {
        self.send(&[FromRank::Abort {
            code,
            message: message.to_string(),
        }])
    }

    /// A fatal error is about to end this rank; the launcher prints the text when it has.
    pub fn fault(&self, text: &str) -> Result<(), Gone> {
        self.send(&[FromRank::Fault {
            text: text.to_string(),
        }])
    }

    /// The answer to [`FromLauncher::Report`].
    pub fn status(&self, status: &Status) -> Result<(), Gone> {
        let text = status.to_string();
        let mut lines: Vec<FromRank> = text
            .lines()
            .map(|line| FromRank::Status {
                text: line.to_string(),
            })
            .collect();
        lines.push(FromRank::StatusEnd);
        self.send(&lines)
    }

    fn send(&self, lines: &[FromRank]) -> Result<(), Gone> {
        packets(lines)
            .iter()
            .try_for_each(|packet| self.send_packet(packet.as_bytes()))
    }

    fn send_packet(&self, packet: &[u8]) -> Result<(), Gone> {
        debug_assert!(packet.len() <= PACKET_LIMIT);
        let patience = Instant::now() + Duration::from_secs(1);
        loop {
            match send(
                &*self.socket,
                packet,
                SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
            ) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait_for_room(patience)?,
                Err(_) => return Err(Gone),
            }
        }
    }

    fn wait_for_room(&self, patience: Instant) -> Result<(), Gone> {
        let left = patience.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Gone);
        }
        let left = Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: left.subsec_nanos().into(),
        };
        match poll(
            &mut [PollFd::new(&*self.socket, PollFlags::OUT)],
            Some(&left),
        ) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(_) => Err(Gone),
        }
    }
}

/// The launcher keeps the space.
impl Space for Control {
    fn put(&mut self, key: &str, value: &str) -> Result<(), SpaceError> {
        check_key(key)?;
        check_value(key, value)?;
        let (key, value) = (key.to_string(), value.to_string());
        Ok(self.send(&[FromRank::Put { key, value }])?)
    }

    fn ask(&mut self, key: &str) -> Result<(), SpaceError> {
        check_key(key)?;
        Ok(self.send(&[FromRank::Get { key: key.into() }])?)
    }

    fn answer(&mut self) -> Result<Option<(String, String)>, SpaceError> {
        let mut arrived = self.arrived();
        while arrived.values.is_empty() {
            if !self.receive(&mut arrived)? {
                return Ok(None);
            }
        }
        Ok(arrived.values.pop_front())
    }
}

/// To sleep until the launcher says something or is gone. Whoever takes a request may find answers beside it, and the other
/// way round: look at both before sleeping.
impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
