//! Ranks of one process: each is a coroutine on a modelled machine that makes the calls of a trace,
//! without a program. A call goes through the entry point of its procedure, as a program's does.
//!
//! Invariant: the library finds the rank that began the last call. A call searches its rank when
//! it begins, so several ranks may be inside calls at a time, but only in one thread.

use crate::call_profile::CallProfile;
use crate::call_trace::{Time, Watch};
use crate::entry::CALLED;
use crate::error::Error;
use crate::handle::Request;
use crate::object::Object;
use crate::recording::Own;
use crate::state::{LIBRARY, Rank};
use mpi::ProgramCall;
use profile::RankProfile;
pub use recording::RECORDED;
use recording::View;
use std::ffi::c_int;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Instant;

/// A rank of this process that runs on a modelled machine.
pub struct Hosted(NonNull<Rank>);

impl Hosted {
    /// Makes a rank that runs on a modelled machine, and records its profile if there is one.
    /// `has_rates`: the times of work inside MPI are known, those of the program's reductions among
    /// them. `functions`: the measured times of those reductions, in picoseconds, each with the
    /// number of calls in a row that took it. `is_checked`: the rank notes its messages.
    pub fn new(
        rank: Arc<mpi::Rank>,
        profile: Option<RankProfile>,
        has_rates: bool,
        functions: Vec<(u64, u64)>,
        is_checked: bool,
    ) -> Hosted {
        let profile =
            profile.map(|own| CallProfile::new(Arc::new(own), "MPI_Init", Instant::now()));
        let watch = Watch::new(Time::Given(0, has_rates), profile, None).checking(is_checked);
        let rank = Rank {
            mpi: rank,
            in_virtual_time: true,
            modelled_host: None,
            watch: Some(watch.with_functions(functions)),
            still_clock: None,
            explains: false,
            cost_cache: None,
            raise: returned,
        };
        let hosted = Hosted(NonNull::from(Box::leak(Box::new(rank))));
        hosted.watch().begin(hosted.rank());
        hosted
    }

    /// Makes the call of an announced procedure, after `nanos` nanoseconds of computing. Returns
    /// the code of the call.
    ///
    /// # Safety
    /// The words are arguments of that procedure, with what the standard requires of them.
    pub unsafe fn call(&self, procedure: usize, words: &[u64], nanos: u64) -> c_int {
        let recorded = &RECORDED[procedure];
        self.enter(recorded.name, recorded.constructs, nanos);
        // SAFETY: the caller's promise.
        let code = unsafe { self.made(procedure, words) };
        self.watch().leave(self.rank(), || ());
        code
    }

    /// Makes a call that moves nothing, after `nanos` nanoseconds of computing.
    pub fn pass(&self, name: &'static str, reads_clock: bool, nanos: u64) {
        self.enter(name, false, nanos);
        if reads_clock {
            // A reading takes time.
            self.mpi().now();
        }
        self.watch().leave(self.rank(), || ());
    }

    /// Lets the rank sleep for `nanos` nanoseconds of virtual time. No MPI call is recorded.
    pub fn sleep(&self, nanos: u64) {
        self.mpi().enter(ProgramCall::after(nanos, "sleep"));
    }

    /// The length that the communicator, or another array, gives to the array at `at`; `None` if
    /// the call does not read it.
    ///
    /// # Safety
    /// As for [`Hosted::call`], but arrays without a parameter for their length may be of any.
    ///
    /// # Errors
    /// The communicator does not fit the call.
    pub unsafe fn length(
        &self,
        procedure: usize,
        words: &[u64],
        at: usize,
    ) -> Result<Option<usize>, String> {
        // SAFETY: the caller's promise.
        unsafe { View::length_of(&Own(self.mpi()), procedure, words, at) }
    }

    /// Waits for a request outside a call of the trace. Returns its handle, which is null unless
    /// the operation is persistent.
    ///
    /// # Errors
    /// The wait failed.
    pub fn wait(&self, request: usize) -> Result<usize, String> {
        let mut request = Request(request);
        LIBRARY.seat(self.rank());
        let words = [
            std::ptr::from_mut(&mut request).expose_provenance() as u64,
            0,
        ];
        // SAFETY: the address of a handle, and a status that is not wanted.
        match unsafe { self.made(number_of("MPI_Wait"), &words) } {
            0 => Ok(request.0),
            code => Err(format!("the wait for a request returned error {code}")),
        }
    }

    /// Leaves MPI, after `nanos` nanoseconds of computing. Returns the virtual time, in
    /// picoseconds.
    ///
    /// # Errors
    /// Progress failed.
    pub fn finish(&self, nanos: u64) -> Result<u64, Error> {
        const NAME: &str = "MPI_Finalize";
        self.enter(NAME, false, nanos);
        if let Some(notes) = self.watch().messages() {
            // SAFETY: the procedure has no arguments.
            unsafe { notes.begin(self.mpi(), number_of(NAME), &[]) };
        }
        self.rank().mpi.finish(NAME)?;
        self.watch().finish(self.rank());
        let end = self.mpi().virtual_time().map_or(0, |time| time.now);
        self.mpi().leave_machine();
        Ok(end)
    }

    /// Leaves the machine without an end of MPI, after an error. The rank stays in memory: ranks
    /// that wait for it report their errors.
    pub fn abandon(self) {
        self.mpi().leave_machine();
        std::mem::forget(self);
    }

    /// The rank of crate `mpi`.
    pub fn mpi(&self) -> &Arc<mpi::Rank> {
        &self.rank().mpi
    }

    /// Makes a call, whose messages are noted if they are checked.
    ///
    /// # Safety
    /// As for [`Hosted::call`].
    unsafe fn made(&self, procedure: usize, words: &[u64]) -> c_int {
        // SAFETY: the caller's promise; other arguments differ by valid memory for statuses.
        unsafe {
            let Some(notes) = self.watch().messages() else {
                return CALLED[procedure](words);
            };
            let begun = notes.begin(self.mpi(), procedure, words);
            let code = CALLED[procedure](&begun.words);
            notes.end(self.mpi(), &begun, code);
            code
        }
    }

    fn enter(&self, name: &'static str, constructs: bool, nanos: u64) {
        self.watch().give(nanos);
        let rank = self.rank();
        let seat = || LIBRARY.seat(rank);
        self.watch().enter(rank, name, constructs, seat);
    }

    fn rank(&self) -> &'static Rank {
        // SAFETY: `new` has leaked the rank, and only `drop` frees it, after which no call is made.
        unsafe { self.0.as_ref() }
    }

    fn watch(&self) -> &'static Watch {
        let watch = self.rank().watch.as_ref();
        watch.expect("`new` makes the watch")
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        LIBRARY.unseat(self.rank());
        // SAFETY: `new` has leaked the rank, and the library does not find it any more.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// The number of a procedure that is recorded.
fn number_of(name: &str) -> usize {
    let found = RECORDED.iter().position(|one| one.name == name);
    found.expect("the table has the procedure")
}

/// The error handler of hosted ranks: it prints the error, and the call returns its code.
#[cold]
fn returned(_: &mpi::Rank, _: Object, procedure: &str, error: &Error) -> c_int {
    crate::raise::say(&format!("{procedure}: {error}"));
    error.class.0
}
