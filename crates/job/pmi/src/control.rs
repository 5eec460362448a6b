//! The rank's end of the control socket: the connection to our own launcher.
//!
//! A packet holds complete lines, each ended by a newline. A rank polls the socket only while it
//! waits, and reading never blocks. Writing blocks for at most a second, which happens only while
//! the launcher is stopped.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::protocol::{PACKET_LIMIT, packets};
use crate::{
    FromLauncher, FromRank, KvsError, LauncherGone, Notice, RankStatus, check_key, check_value,
};

/// The longest wait until a launcher reads and the socket can take a packet.
const SEND_PATIENCE: Duration = Duration::from_secs(1);

/// The connection to our own launcher.
#[derive(Debug)]
pub(crate) struct Control {
    socket: OwnedFd,
    arrived: Mutex<Arrived>,
}

/// Contents of received lines that have not been returned to a caller yet.
#[derive(Debug, Default)]
struct Arrived {
    status_requests: usize,
    values: VecDeque<(String, String)>,
    /// The number of completed fences that have not been returned yet.
    fences: usize,
    /// True if this rank has entered a fence whose end it has not returned yet.
    in_fence: bool,
}

impl Control {
    /// Makes a connection of a connected socket of type SEQPACKET.
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Control {
            socket,
            arrived: Mutex::default(),
        }
    }

    fn arrived(&self) -> MutexGuard<'_, Arrived> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what `take` finds among the received contents. Receives packets until it finds
    /// something or no more have arrived.
    fn next<T>(
        &self,
        mut take: impl FnMut(&mut Arrived) -> Option<T>,
    ) -> Result<Option<T>, LauncherGone> {
        let mut arrived = self.arrived();
        loop {
            if let Some(found) = take(&mut arrived) {
                return Ok(Some(found));
            }
            if !self.receive(&mut arrived)? {
                return Ok(None);
            }
        }
    }

    /// Receives a packet. Returns false if none has arrived.
    fn receive(&self, arrived: &mut Arrived) -> Result<bool, LauncherGone> {
        let mut packet = [0; PACKET_LIMIT];
        let length = loop {
            match recv(&self.socket, &mut packet[..], RecvFlags::DONTWAIT) {
                Ok((_, 0)) => return Err(LauncherGone::Dead),
                Ok((_, length)) => break length.min(packet.len()),
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return Ok(false),
                Err(why) => return Err(gone(why)),
            }
        };
        let text = String::from_utf8_lossy(&packet[..length]);
        for line in text.lines() {
            match line.parse() {
                Ok(FromLauncher::Report) => arrived.status_requests += 1,
                Ok(FromLauncher::Value { key, value }) => arrived.values.push_back((key, value)),
                Ok(FromLauncher::Fence) => arrived.fences += 1,
                // A newer launcher may send lines that this library does not know.
                Err(()) => {}
            }
        }
        Ok(true)
    }

    /// True once for each request of the launcher for the status of this rank.
    pub(crate) fn status_requested(&self) -> Result<bool, LauncherGone> {
        let request = self.next(|arrived| {
            arrived.status_requests = arrived.status_requests.checked_sub(1)?;
            Some(())
        })?;
        Ok(request.is_some())
    }

    pub(crate) fn abort(&self, code: i32, message: &str) -> Result<(), LauncherGone> {
        self.send(&[FromRank::Abort {
            code,
            message: message.to_string(),
        }])
    }

    pub(crate) fn notify(&self, notice: Notice<'_>) -> Result<(), LauncherGone> {
        match notice {
            Notice::Initialized => self.send(&[FromRank::Init {
                pid: std::process::id(),
            }]),
            Notice::Lock(address) => self.send(&[FromRank::Lock {
                address: address as u64,
            }]),
            Notice::Finalized => self.send(&[FromRank::Finalize]),
            Notice::Warning { topic, text } => self.send(&[FromRank::Warning {
                topic: topic.to_string(),
                text: text.to_string(),
            }]),
            Notice::Unsupported(procedure) => self.send(&[FromRank::Unsupported {
                procedure: procedure.to_string(),
            }]),
            Notice::Fault { code, text } => self.send(&[FromRank::Fault {
                code,
                text: text.to_string(),
            }]),
            Notice::Status(status) => self.send(&lines_of(status)),
            Notice::Deadlock(status) => {
                let mut lines = lines_of(status);
                lines.push(FromRank::Deadlock);
                self.send(&lines)
            }
        }
    }

    pub(crate) fn put(&self, key: &str, value: &str) -> Result<(), KvsError> {
        check_key(key)?;
        check_value(key, value)?;
        let (key, value) = (key.to_string(), value.to_string());
        Ok(self.send(&[FromRank::Put { key, value }])?)
    }

    pub(crate) fn get(&self, key: &str) -> Result<(), KvsError> {
        check_key(key)?;
        Ok(self.send(&[FromRank::Get { key: key.into() }])?)
    }

    pub(crate) fn next_value(&self) -> Result<Option<(String, String)>, KvsError> {
        Ok(self.next(|arrived| arrived.values.pop_front())?)
    }

    pub(crate) fn enter_fence(&self) -> Result<(), KvsError> {
        let mut arrived = self.arrived();
        if arrived.in_fence {
            return Err(KvsError::InFence);
        }
        self.send(&[FromRank::Fence])?;
        arrived.in_fence = true;
        Ok(())
    }

    pub(crate) fn fence_is_complete(&self) -> Result<bool, KvsError> {
        let end = self.next(|arrived| {
            arrived.fences = arrived.fences.checked_sub(1)?;
            arrived.in_fence = false;
            Some(())
        })?;
        Ok(end.is_some())
    }

    fn send(&self, lines: &[FromRank]) -> Result<(), LauncherGone> {
        packets(lines)
            .iter()
            .try_for_each(|packet| self.send_packet(packet.as_bytes()))
    }

    fn send_packet(&self, packet: &[u8]) -> Result<(), LauncherGone> {
        debug_assert!(packet.len() <= PACKET_LIMIT);
        let deadline = Instant::now() + SEND_PATIENCE;
        loop {
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match send(&self.socket, packet, flags) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.wait_for_room(deadline)?,
                Err(why) => return Err(gone(why)),
            }
        }
    }

    fn wait_for_room(&self, deadline: Instant) -> Result<(), LauncherGone> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(LauncherGone::Dead);
        }
        let left = Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: left.subsec_nanos().into(),
        };
        let wanted = &mut [PollFd::new(&self.socket, PollFlags::OUT)];
        match poll(wanted, Some(&left)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(why) => Err(gone(why)),
        }
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The reason why the socket failed. A program that closes the descriptor may then open another
/// file under the same number.
fn gone(why: Errno) -> LauncherGone {
    match why {
        Errno::BADF | Errno::NOTSOCK => LauncherGone::Closed,
        _ => LauncherGone::Dead,
    }
}

/// Encodes a status as lines of the protocol.
fn lines_of(status: &RankStatus) -> Vec<FromRank> {
    let text = status.to_string();
    let lines = text.lines().map(|line| FromRank::Status {
        text: line.to_string(),
    });
    lines.chain([FromRank::StatusEnd]).collect()
}
