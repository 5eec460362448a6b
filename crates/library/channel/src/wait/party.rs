//! The traits by which the waiter and the progress thread of a rank use the rank.

use crate::lock::Guard;
use crate::{Error, Router};

/// The interface of a rank for its waiter: a small handle of the rank.
///
/// ```
/// use channel::lock::{Guard, RankLock};
/// use channel::{Error, More, Party, Put, Result, Router, Transport};
/// use channel::{WaitSettings, Waiter};
/// use knobs::Wait;
///
/// struct State {
///     router: Router,
///     packets: usize,
/// }
///
/// #[derive(Clone, Copy)]
/// struct Rank<'a>(&'a RankLock<State>);
///
/// impl Party for Rank<'_> {
///     type State = State;
///     type Error = Error;
///     fn lock(&self) -> Guard<'_, State> {
///         self.0.lock()
///     }
///     fn has_threads(&self) -> bool {
///         false
///     }
///     fn router(state: &mut State) -> &mut Router {
///         &mut state.router
///     }
///     fn progress(state: &mut State) -> Result<bool> {
///         let packets = state.router.poll(|_, _, _| More::Wanted)?;
///         state.packets += packets;
///         Ok(packets > 0)
///     }
///     fn needs_room(_: &State) -> bool {
///         false
///     }
///     fn has_tasks(_: &State) -> bool {
///         false
///     }
///     fn run_tasks(&self) -> bool {
///         false
///     }
///     fn attend(&self) -> Result<()> {
///         Ok(())
///     }
///     fn contact_awaited(_: &mut State) -> Result<()> {
///         Ok(())
///     }
///     fn contain(_: &mut State, error: Error) -> Result<()> {
///         Err(error)
///     }
///     fn deadlock(&self, _: &mut State) -> Error {
///         unreachable!("only a modelled machine has deadlocks")
///     }
/// }
///
/// let mut router = Router::alone();
/// let settings = WaitSettings { mode: Wait::Auto, spin_ns: 1000 };
/// let waiter = Waiter::new(&mut router, &settings);
/// assert_eq!(router.put(0, [1, 2, 3], 0, |_| ())?, Put::Accepted);
/// let lock = RankLock::new(State { router, packets: 0 }, "call from one thread at a time");
/// let packets = waiter.wait_until(&Rank(&lock), |state| {
///     Ok((state.packets > 0).then_some(state.packets))
/// })?;
/// assert_eq!(packets, 1);
/// # Ok::<(), Error>(())
/// ```
pub trait Party: Copy {
    /// The state of the rank that its lock protects.
    type State;
    /// The error of the rank's calls.
    type Error: From<Error>;

    /// Takes the rank's lock.
    fn lock(&self) -> Guard<'_, Self::State>;
    /// True if several threads may call the library.
    fn has_threads(&self) -> bool;
    /// The transports of the rank, in its locked state.
    fn router(state: &mut Self::State) -> &mut Router;
    /// Makes progress once, without running tasks. True if something moved.
    fn progress(state: &mut Self::State) -> std::result::Result<bool, Self::Error>;
    /// True if packets of this rank wait for room in a peer's memory.
    fn needs_room(state: &Self::State) -> bool;
    /// True if tasks of this rank (nonblocking collectives and the like) are in progress.
    fn has_tasks(state: &Self::State) -> bool;
    /// Runs the tasks, without holding the lock. True if the condition of a wait may be true now,
    /// because a task or progress before it has changed something since the last call. Each change
    /// is reported once, so that a rank whose tasks only wait goes to sleep.
    fn run_tasks(&self) -> bool;
    /// The state of the thread that works for this rank and rings its doorbell, if there is one. A
    /// task receives the thread's results.
    fn helper(_: &Self::State) -> Helper {
        Helper::Absent
    }
    /// The virtual time at which a task or a call continues, if one waits for that time only.
    fn deadline(_: &Self::State) -> Option<u64> {
        None
    }
    /// Answers a request of the launcher, if there is one. An error if the launcher has ended.
    fn attend(&self) -> std::result::Result<(), Self::Error>;
    /// Calls [`Transport::contact`](crate::Transport::contact) for the peers that the rank waits
    /// for, so that a dead path to one of them is detected even though the rank sends nothing.
    /// Called where a wait may never end otherwise.
    fn contact_awaited(state: &mut Self::State) -> std::result::Result<(), Self::Error>;
    /// Handles the failure of a transport. Ok: the failure concerns only one peer, and is recorded,
    /// so that the wait continues.
    fn contain(state: &mut Self::State, error: Error) -> std::result::Result<(), Self::Error>;
    /// The error of a deadlock: all ranks of the modelled machine wait, and no event is due.
    fn deadlock(&self, state: &mut Self::State) -> Self::Error;
}

/// The interface by which the progress thread uses the rank that it helps.
pub trait Assisted: Party {
    /// Takes the rank's lock. `None`: it is held.
    fn try_lock(&self) -> Option<Guard<'_, Self::State>>;
    /// A number that changes whenever progress has moved something.
    fn rounds(state: &Self::State) -> u64;
}

/// The state of a thread that works for a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Helper {
    /// No thread works for the rank.
    Absent,
    /// The thread works and has no results for the rank now.
    Works,
    /// The thread has results that the rank has not received.
    HasResults,
}
