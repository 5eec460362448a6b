//! The rank that waits, as its waiter and its progress thread see it.

use crate::lock::Guard;
use crate::{Error, Router};

/// The rank that waits, as its waiter sees it: a small handle.
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
    /// State that the rank's lock protects.
    type State;
    /// The error of the rank's calls.
    type Error: From<Error>;

    /// Takes the rank's lock.
    fn lock(&self) -> Guard<'_, Self::State>;
    /// Several threads may call the library.
    fn has_threads(&self) -> bool;
    /// The rank's transports.
    fn router(state: &mut Self::State) -> &mut Router;
    /// One round of progress, without tasks. True if anything moved.
    fn progress(state: &mut Self::State) -> std::result::Result<bool, Self::Error>;
    /// Packets of this rank wait for room at a peer.
    fn needs_room(state: &Self::State) -> bool;
    /// Tasks are in progress.
    fn has_tasks(state: &Self::State) -> bool;
    /// Runs the tasks, without the lock. True if the condition of a wait may hold now, because
    /// something has changed since the last run, by a task or before it. A change is reported once,
    /// so a rank whose tasks only wait goes to sleep.
    fn run_tasks(&self) -> bool;
    /// The thread that works for this rank, and rings its doorbell, if there is one. A task takes
    /// its results.
    fn helper(_: &Self::State) -> Helper {
        Helper::Absent
    }
    /// The moment of virtual time at which a task or a call goes on, if one waits for nothing
    /// else.
    fn deadline(_: &Self::State) -> Option<u64> {
        None
    }
    /// Answers the launcher, if it has asked. An error if the launcher is gone.
    fn attend(&self) -> std::result::Result<(), Self::Error>;
    /// Names the peers that the rank waits for to the router, so that a dead path to one is noticed
    /// though the rank sends nothing. Called where a wait may never end otherwise.
    fn contact_awaited(state: &mut Self::State) -> std::result::Result<(), Self::Error>;
    /// A transport failed. Ok: the failure concerns one peer only, and the rank has taken note of
    /// it, so the wait goes on.
    fn contain(state: &mut Self::State, error: Error) -> std::result::Result<(), Self::Error>;
    /// All ranks of the modelled machine wait, and no event is due.
    fn deadlock(&self, state: &mut Self::State) -> Self::Error;
}

/// A rank, as its progress thread sees it. [`Party::progress`] is a round of this thread.
pub trait Assisted: Party {
    /// Takes the rank's lock, if nobody holds it.
    fn try_lock(&self) -> Option<Guard<'_, Self::State>>;
    /// A number that changes whenever a round has moved something.
    fn rounds(state: &Self::State) -> u64;
}

/// A thread that works for a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Helper {
    /// There is none.
    Absent,
    /// It has nothing for the rank at this moment.
    Works,
    /// It has results that the rank has not taken.
    HasResults,
}
