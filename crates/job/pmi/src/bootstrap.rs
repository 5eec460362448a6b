//! The interface between a rank and the launcher that started it.
//!
//! Invariants under every launcher:
//! - a value that a rank put before a fence is visible to every rank after that fence;
//! - a value never changes once it was put;
//! - only [`Bootstrap::fence`] blocks for longer than a second.

use std::fmt;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use secret::Secret;

use crate::{Hosts, KvsError, RankStatus};

/// The longest sleep between two checks of a fence.
const FENCE_CHECK: Duration = Duration::from_millis(50);
/// The sleep between two checks of a fence if there is no descriptor that announces its end.
const FENCE_POLL: Duration = Duration::from_millis(1);

/// The reason why a rank has no launcher to report to: the connection has ended, or there was never
/// one. Such a rank must end itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LauncherGone {
    /// The launcher has died.
    Dead,
    /// The program has closed the descriptor of the connection.
    Closed,
    /// A rank has died, and the launcher, one of another MPI library, has not ended the job.
    Idle {
        /// The world rank of the rank that has died.
        dead: usize,
    },
}

impl fmt::Display for LauncherGone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LauncherGone::Dead => f.write_str("the launcher of this job has died"),
            LauncherGone::Closed => f.write_str(
                "the program has closed the descriptor of the connection to the launcher, which it did not open",
            ),
            LauncherGone::Idle { dead } => {
                write!(f, "rank {dead} has died, and the launcher goes on with the job")
            }
        }
    }
}

impl std::error::Error for LauncherGone {}

/// A fact that a rank reports to its launcher. A launcher without use for it ignores it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice<'a> {
    /// This rank has completed MPI_Init: from now on it must not end before MPI_Finalize.
    Initialized,
    /// The address of this rank's lock. Its 64-bit value is odd while the rank is in MPI; the
    /// launcher may read it to find out whether the rank computes.
    Lock(usize),
    /// This rank has completed MPI_Finalize: from now on its end is no failure of the job.
    Finalized,
    /// A warning for the user that no call returns to the program. Of several with the same topic
    /// the launcher prints only the first.
    Warning {
        /// The topic of the warning, without spaces.
        topic: &'a str,
        /// The text of the warning.
        text: &'a str,
    },
    /// The program has called this procedure, which the library lacks, and the error handler has
    /// returned. Each rank reports a procedure once.
    Unsupported(&'a str),
    /// A fatal error ends this rank. The launcher prints the text and ends the job.
    Fault {
        /// The exit code of the job.
        code: i32,
        /// The text of the error.
        text: &'a str,
    },
    /// The operation that this rank waits in: the reply to [`Bootstrap::status_requested`].
    Status(&'a RankStatus),
    /// The ranks of a modelled machine are in a deadlock: all of them wait and no event is due.
    /// Each rank reports it, with the operation that it waits in.
    Deadlock(&'a RankStatus),
}

/// The services of a launcher to one rank: identity, the job's key-value store (KVS), abort and
/// notices.
///
/// A rank uses them while it starts, during long waits, and when it ends; no MPI message passes
/// through here. All methods take `&self`, because the parts of a rank share one bootstrap:
/// `Arc<dyn Bootstrap>`.
///
/// A key ends with a dot and the number of the rank that puts it, because some launchers need that
/// rank to find the value. Keys and values are printable ASCII without spaces, at most
/// [`KEY_LIMIT`](crate::KEY_LIMIT) and [`VALUE_LIMIT`](crate::VALUE_LIMIT) bytes long;
/// [`hex`](crate::hex) turns other bytes into such a value.
///
/// An exchange of addresses:
///
/// ```
/// use pmi::{Bootstrap, Hosts, InProcess, KvsError};
///
/// fn address_of(job: &dyn Bootstrap, peer: usize, own: &str) -> Result<String, KvsError> {
///     job.put(&format!("address.{}", job.rank()), own)?;
///     job.fence()?;
///     job.get(&format!("address.{peer}"))?;
///     loop {
///         if let Some((_key, value)) = job.next_value()? {
///             return Ok(value);
///         }
///     }
/// }
///
/// let ranks = InProcess::job(Hosts::one(2));
/// std::thread::scope(|scope| {
///     for job in &ranks {
///         scope.spawn(move || {
///             let peer = 1 - job.rank();
///             let address = address_of(job, peer, &format!("10.0.0.{}", job.rank())).unwrap();
///             assert_eq!(address, format!("10.0.0.{peer}"));
///         });
///     }
/// });
/// ```
pub trait Bootstrap: fmt::Debug + Send + Sync {
    /// The world rank of this rank.
    fn rank(&self) -> usize;

    /// The host of each rank of the job.
    fn hosts(&self) -> &Hosts;

    /// The number of ranks in the job.
    fn size(&self) -> usize {
        self.hosts().ranks()
    }

    /// The index of this rank's program, from 0, in a job of several programs: `MPI_APPNUM`.
    fn program(&self) -> usize {
        0
    }

    /// Takes the file of the segment: memory of the job that the ranks of this host share, empty
    /// until a rank extends it. `None` if the launcher passed none, and from the second call on.
    fn take_segment(&self) -> Option<OwnedFd> {
        None
    }

    /// The secret that the launcher drew for this job, the same for all of its ranks. `None` if the
    /// launcher provides none; then processes on a network cannot authenticate each other.
    fn secret(&self) -> Option<Secret> {
        None
    }

    /// Stores `value` under `key` in the KVS. It is visible to every rank after the next fence,
    /// possibly earlier. A second value for the same key is an error of the job.
    fn put(&self, key: &str, value: &str) -> Result<(), KvsError>;

    /// Requests the value of `key`. [`Bootstrap::next_value`] returns it once, after it has
    /// arrived. Never blocks.
    fn get(&self, key: &str) -> Result<(), KvsError>;

    /// The next requested value that has arrived, with its key. Values arrive in any order. Never
    /// blocks.
    fn next_value(&self) -> Result<Option<(String, String)>, KvsError>;

    /// True if a request for a key that no rank has put yet is answered once a rank puts it.
    /// Otherwise such a request is an error, and a fence is needed between put and get.
    fn get_waits(&self) -> bool;

    /// Enters a fence: a collective operation of all ranks of the job. A rank may enter the next
    /// fence only after this one is complete. Never blocks.
    fn enter_fence(&self) -> Result<(), KvsError>;

    /// True if every rank has entered the fence that this rank entered last. Returns true only once
    /// for each fence. Never blocks.
    fn fence_is_complete(&self) -> Result<bool, KvsError>;

    /// Enters a fence, and blocks until every rank of the job has entered it. Then the values that
    /// all ranks put before it are visible to this rank.
    fn fence(&self) -> Result<(), KvsError> {
        self.enter_fence()?;
        while !self.fence_is_complete()? {
            sleep_until_readable(self.event_fd());
        }
        Ok(())
    }

    /// Ends the whole job with this exit code. An error means that no launcher received the
    /// message; then the caller prints it. In both cases this rank ends itself afterwards.
    fn abort(&self, code: i32, message: &str) -> Result<(), LauncherGone>;

    /// Ends the whole job with this exit code, after [`Bootstrap::abort`] or [`Notice::Fault`] has
    /// reported the reason. It is the last call of a rank before its process ends, as a launcher
    /// may kill it at once. Our own launcher needs no such call: it ends the job by that report.
    fn end_job(&self, _code: i32) {}

    /// True if the launcher ends the job when a rank on any host has died. Otherwise ranks have to
    /// detect a death themselves.
    fn reports_deaths(&self) -> bool {
        true
    }

    /// Sends a notice to the launcher. An error means that no launcher received it.
    fn notify(&self, notice: Notice<'_>) -> Result<(), LauncherGone>;

    /// True if the launcher has requested the status of this rank. Returns true once for each
    /// request; the reply is [`Notice::Status`]. An error means that the launcher is gone. Never
    /// blocks.
    fn status_requested(&self) -> Result<bool, LauncherGone> {
        Ok(false)
    }

    /// The descriptor that becomes readable when the launcher has sent a requested value, the end
    /// of a fence, or a request for the status. Check all three before a sleep on it, because a
    /// check for one may also receive the others.
    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

pub(crate) fn sleep_until_readable(fd: Option<BorrowedFd<'_>>) {
    match fd {
        None => std::thread::sleep(FENCE_POLL),
        Some(fd) => {
            let time = Timespec {
                tv_sec: 0,
                tv_nsec: FENCE_CHECK.subsec_nanos().into(),
            };
            // The result does not matter: the caller checks again.
            let _ = poll(
                &mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)],
                Some(&time),
            );
        }
    }
}
