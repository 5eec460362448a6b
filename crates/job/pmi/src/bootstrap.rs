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

/// Longest sleep between two checks of a fence.
const FENCE_CHECK: Duration = Duration::from_millis(50);
/// Sleep between two checks of a fence where no descriptor announces its end.
const FENCE_POLL: Duration = Duration::from_millis(1);

/// The connection to the launcher is gone, or there never was one. A rank without a launcher has
/// nobody to report to and must end itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LauncherGone {
    /// The launcher has died.
    Dead,
    /// The program has closed the descriptor of the connection.
    Closed,
    /// A rank has died, and the launcher, another one than ours, has not ended the job.
    Idle {
        /// The rank that has died.
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

/// A fact that a rank reports to its launcher. A launcher that has no use for it ignores it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice<'a> {
    /// This rank has completed MPI_Init: from now on it must not end before MPI_Finalize.
    Initialized,
    /// The address of this rank's lock, whose word is odd while the rank is in MPI. The launcher
    /// may read it to learn whether the rank computes.
    Lock(usize),
    /// This rank has completed MPI_Finalize: from now on its end is no failure of the job.
    Finalized,
    /// Something that the user should know, and that no program sees. Of several with one topic, a
    /// word without spaces, the launcher prints the first.
    Warning {
        /// The topic.
        topic: &'a str,
        /// The text.
        text: &'a str,
    },
    /// The program has called this procedure, which the library lacks, and the error handler has
    /// returned. Each rank reports it once.
    Unsupported(&'a str),
    /// A fatal error ends this rank. The launcher prints the text and ends the job.
    Fault {
        /// The exit code of the job.
        code: i32,
        /// The error.
        text: &'a str,
    },
    /// The operation that this rank waits in: the answer to [`Bootstrap::status_requested`].
    Status(&'a RankStatus),
    /// All ranks of a modelled machine wait and no event is due. Every one of them reports it, with
    /// the operation that it waits in.
    Deadlock(&'a RankStatus),
}

/// The services of a launcher to one rank: identity, the job's key-value store (KVS), abort and
/// notices.
///
/// A rank uses them while it starts, where it waits for long, and when it ends; no message passes
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
    /// The number of this rank in the job, from 0.
    fn rank(&self) -> usize;

    /// The host of each rank of the job.
    fn hosts(&self) -> &Hosts;

    /// The number of ranks in the job.
    fn size(&self) -> usize {
        self.hosts().ranks()
    }

    /// The number of this rank's program in a job of several programs: `MPI_APPNUM`.
    fn program(&self) -> usize {
        0
    }

    /// Takes the file that the ranks of this host share: memory that belongs to the job, empty
    /// until a rank extends it. None if the launcher passed none, and from the second call on.
    fn take_segment(&self) -> Option<OwnedFd> {
        None
    }

    /// The secret that the launcher drew for this job, the same for all of its ranks. None if the
    /// launcher gives none, so that processes on a network cannot know each other.
    fn secret(&self) -> Option<Secret> {
        None
    }

    /// Stores `value` under `key` in the KVS. It is visible to every rank after the next fence, or
    /// before. A second value for one key is an error of the job.
    fn put(&self, key: &str, value: &str) -> Result<(), KvsError>;

    /// Requests the value of `key`. Each request gets one answer, from [`Bootstrap::next_value`].
    /// Never blocks.
    fn get(&self, key: &str) -> Result<(), KvsError>;

    /// The next answer that has arrived: a key and its value. Answers arrive in any order. Never
    /// blocks.
    fn next_value(&self) -> Result<Option<(String, String)>, KvsError>;

    /// True if a request for a key that no rank has put yet is answered later, with the put.
    /// Otherwise the request is an error, and a fence has to come between put and get.
    fn get_waits(&self) -> bool;

    /// Enters a fence: a collective operation of all ranks of the job. A rank enters the next one
    /// only after this one is complete. Never blocks.
    fn enter_fence(&self) -> Result<(), KvsError>;

    /// True if every rank has entered the fence that this rank entered last. True once for each
    /// fence. Never blocks.
    fn fence_is_complete(&self) -> Result<bool, KvsError>;

    /// Enters a fence and blocks until every rank of the job has entered it: until the values that
    /// all ranks put before it are visible to this rank.
    fn fence(&self) -> Result<(), KvsError> {
        self.enter_fence()?;
        while !self.fence_is_complete()? {
            sleep_until_readable(self.event_fd());
        }
        Ok(())
    }

    /// Ends the whole job with this exit code. An error means that nobody took the message, which
    /// the caller then shows itself. Either way this rank ends itself afterwards.
    fn abort(&self, code: i32, message: &str) -> Result<(), LauncherGone>;

    /// Ends the whole job with this exit code, after [`Bootstrap::abort`] or [`Notice::Fault`] has
    /// said why. This is the last call of a rank before its process ends: a launcher may kill at
    /// once. Our own launcher knows by then.
    fn end_job(&self, _code: i32) {}

    /// True if the launcher ends the job when a rank has died, on whichever host. Otherwise ranks
    /// have to notice it themselves.
    fn reports_deaths(&self) -> bool {
        true
    }

    /// Reports to the launcher. An error means that nobody took the notice.
    fn notify(&self, notice: Notice<'_>) -> Result<(), LauncherGone>;

    /// True if the launcher has asked for the status of this rank. True once for each request, to
    /// be answered with [`Notice::Status`]. An error means that the launcher is gone. Never blocks.
    fn status_requested(&self) -> Result<bool, LauncherGone> {
        Ok(false)
    }

    /// The descriptor that becomes readable when the launcher has sent something: an answer, the
    /// end of a fence, a request for the status. Before a sleep on it, all three have to be
    /// checked, because a check for one may receive another.
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
            // The caller checks again, whatever ended the sleep.
            let _ = poll(
                &mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)],
                Some(&time),
            );
        }
    }
}
