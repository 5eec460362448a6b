//! Tracing of a program's MPI calls and of its computing between them. On a modelled machine,
//! computing may take virtual time, and a trace records the begin and end of each call. On every
//! machine a profile may sum up the calls (`call_profile`).
//!
//! While a traced program computes, the library's pointer to the rank is null (`state`). An entry
//! point that finds null announces the call here and retries it. An untraced rank pays nothing.
//!
//! If several threads call at the same time, the pointer stays set while one of them is in an
//! announced call, and calls of other threads that begin meanwhile are not announced.

use crate::call_profile::CallProfile;
use crate::compute_clock::{ComputeClock, processor_time};
use crate::error::Error;
use crate::message_notes::MessageNotes;
use crate::raise;
use crate::recording::Own;
use crate::state::Rank;

use datatype::local_work::{LocalWork, Meter};
use fabric::System;
use model::check_cores;
use mpi::ProgramCall;
use recording::{RECORDED, Recorder, StatusMemory};
use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// The trace of this rank's calls of procedures and its computing between them.
pub struct Watch(Mutex<Inner>);

struct Inner {
    time: Time,
    profile: Option<CallProfile>,
    /// The number of announced calls that have begun and not returned.
    depth: u32,
    /// The clock of the computing since the last call returned.
    clock: ComputeClock,
    /// The processor time of functions that MPI has called back since the last call began, in
    /// nanoseconds.
    called_back: u64,
    /// The modelled host of the rank, if computing is timed.
    host: Option<ModelledHost>,
    /// The number of threads of the program that has been reported to the user.
    threads_said: usize,
    /// The recorder of the rank's calls, if the job is recorded.
    recorder: Option<Recorder>,
    /// The writer of notes about messages, if they are checked.
    messages: Option<Arc<MessageNotes>>,
    /// The times of the program's reduction functions in a trace that is replayed, in picoseconds,
    /// each with the number of calls in a row that took it; the next one last.
    functions: Vec<(u64, u64)>,
}

/// The modelled host on which a rank runs.
pub struct ModelledHost {
    /// The modelled machine.
    pub system: System,
    /// The number of ranks on the host.
    pub ranks: usize,
}

/// The source of the time that the program's computing takes.
pub enum Time {
    /// Computing takes no virtual time.
    None,
    /// Measured processor time, scaled by this many thousandths.
    Measured(u64),
    /// The nanoseconds before the next call, from a trace that is replayed without its program; and
    /// true if the times of the program's reductions are known.
    Given(u64, bool),
}

impl Watch {
    /// A trace before the first call. `profile`, if it is given, counts the calls. `host` is the
    /// host of a rank whose computing is timed.
    pub fn new(time: Time, profile: Option<CallProfile>, host: Option<ModelledHost>) -> Watch {
        Watch(Mutex::new(Inner {
            time,
            profile,
            depth: 0,
            clock: ComputeClock::new(),
            called_back: 0,
            host,
            threads_said: 1,
            recorder: None,
            messages: None,
            functions: Vec::new(),
        }))
    }

    /// This trace, with a recorder of its calls if there is one.
    pub(crate) fn recorded_by(self, recorder: Option<Recorder>) -> Watch {
        self.lock().recorder = recorder;
        self
    }

    /// This trace, which notes messages and collective calls if they are checked.
    pub(crate) fn checking(self, is_wanted: bool) -> Watch {
        self.lock().messages = is_wanted.then(Arc::default);
        self
    }

    /// The writer of notes about messages, if they are checked and the present call is not inside
    /// another one.
    pub(crate) fn messages(&self) -> Option<Arc<MessageNotes>> {
        let inner = self.lock();
        inner.messages.clone().filter(|_| inner.depth <= 1)
    }

    /// The trace, in which the program's reduction functions take these times, in picoseconds, each
    /// with the number of calls in a row that took it.
    pub(crate) fn with_functions(self, mut functions: Vec<(u64, u64)>) -> Watch {
        functions.reverse();
        self.lock().functions = functions;
        self
    }

    /// Sets the computing time before the next call, for a replay.
    pub(crate) fn give(&self, nanos: u64) {
        if let Time::Given(next, _) = &mut self.lock().time {
            *next = nanos;
        }
    }

    /// Passes the arguments of a call that has begun to the recorder, if there is one. Returns
    /// memory for statuses if the recorder needs some.
    ///
    /// # Safety
    /// The words are the arguments of the procedure with this number, as C promises them.
    pub(crate) unsafe fn arguments(
        &self,
        rank: &Rank,
        procedure: usize,
        words: &[u64],
    ) -> Option<StatusMemory> {
        let mut inner = self.lock();
        let is_alone = inner.depth == 1;
        match &mut inner.recorder {
            // SAFETY: the caller's promise.
            Some(recorder) if is_alone => unsafe {
                recorder.arguments(&Own(rank), procedure, words)
            },
            Some(recorder) => {
                let name = RECORDED[procedure].name;
                recorder.refuse(name, "calls of several threads overlap");
                None
            }
            None => None,
        }
    }

    /// Passes the results of a call to the recorder, if there is one.
    ///
    /// # Safety
    /// As for [`Watch::arguments`].
    pub(crate) unsafe fn results(&self, rank: &Rank, words: &[u64], code: c_int) {
        if let Some(recorder) = &mut self.lock().recorder {
            // SAFETY: the caller's promise.
            unsafe { recorder.results(&Own(rank), words, code) }
        }
    }

    /// Records that the program has slept for `nanos` nanoseconds before a reading of the clock.
    pub(crate) fn slept(&self, nanos: u64) {
        if let Some(recorder) = &mut self.lock().recorder {
            recorder.slept(nanos);
        }
    }

    /// True if computing takes virtual time.
    pub fn charges_computing(&self) -> bool {
        !matches!(self.lock().time, Time::None)
    }

    /// Begins a call. `constructs`: it makes or frees an object that ranks share. `publish` lets
    /// the library find the rank.
    pub fn enter(&self, rank: &Rank, call: &'static str, constructs: bool, publish: impl FnOnce()) {
        self.lock().begin(rank, call, constructs, publish);
    }

    /// Begins a call. `None`: another call is changing the trace, so no call was begun; a signal
    /// handler must not wait for that.
    pub fn try_enter(&self, rank: &Rank, call: &'static str, publish: impl FnOnce()) -> Option<()> {
        let mut inner = match self.0.try_lock() {
            Ok(inner) => inner,
            Err(TryLockError::Poisoned(inner)) => inner.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        inner.begin(rank, call, false, publish);
        Some(())
    }

    /// Ends a call. `withdraw` hides the rank from the library.
    pub fn leave(&self, rank: &Rank, withdraw: impl FnOnce()) {
        let mut inner = self.lock();
        inner.depth = inner.depth.saturating_sub(1);
        if inner.depth == 0 {
            withdraw();
            inner.leave(rank);
        }
    }

    /// Runs a function of the program that MPI calls back. Its time is added to the computing
    /// before the next call; in a replay, the recorded computing already contains it.
    pub fn called_back<R>(&self, function: impl FnOnce() -> R) -> R {
        if self.lock().measured().is_none() {
            return function();
        }
        let before = processor_time();
        let result = function();
        let mut inner = self.lock();
        inner.called_back += inner.clock.since(before);
        result
    }

    /// Runs the program's reduction operation with this number on `elements` elements. It takes the
    /// measured time, or that of the recording.
    pub fn operation(&self, meter: &Meter, number: u32, elements: usize, function: impl FnOnce()) {
        let (measured, is_replayed) = {
            let inner = self.lock();
            (inner.measured(), matches!(inner.time, Time::Given(_, true)))
        };
        let before = measured.map(|_| processor_time());
        function();
        if let (Some(scale), Some(before)) = (measured, before) {
            let mut inner = self.lock();
            // A thousandth of a nanosecond is a picosecond.
            let picos = inner.clock.since(before).saturating_mul(scale);
            if let Some(recorder) = &mut inner.recorder {
                recorder.function(picos);
            }
            meter.add_measured(number, elements, picos);
        } else if let Some(picos) = self.lock().next_function() {
            meter.add_measured(number, elements, picos);
        } else if is_replayed {
            meter.add(LocalWork::Function(number), elements, elements);
        }
    }

    /// Records that the program requested MPI_THREAD_MULTIPLE, and gets a lower level.
    pub fn lacks_threads(&self) {
        if let Some(profile) = &self.lock().profile {
            profile.lacks_threads();
        }
    }

    /// Records that MPI has started: the program computes from now on.
    pub fn begin(&self, rank: &Rank) {
        let mut inner = self.lock();
        if let Some(profile) = &inner.profile {
            profile.begin(rank);
        }
        inner.computes();
    }

    /// Keeps the level of the call of MPI_Pcontrol that has begun, if the rank is recorded.
    pub(crate) fn level(&self, level: c_int) {
        if let Some(recorder) = &mut self.lock().recorder {
            recorder.level(level);
        }
    }

    /// Records that the rank leaves MPI with the present call.
    pub fn finish(&self, rank: &Rank) {
        let mut inner = self.lock();
        if let Some(recorder) = &mut inner.recorder {
            recorder.finish();
        }
        if inner.measured().is_some() && rank.in_virtual_time {
            rank.mpi.keep_local_work(processor_time);
        }
        if let Some(profile) = &inner.profile {
            profile.finish(rank);
            if inner.measured().is_some() {
                let (switches, computed) = inner.clock.interruptions();
                profile.computed(switches, computed, inner.clock.most_threads());
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn begin(&mut self, rank: &Rank, call: &'static str, constructs: bool, publish: impl FnOnce()) {
        self.depth += 1;
        if self.depth == 1 {
            self.enter(rank, call, constructs);
            publish();
        }
    }

    fn enter(&mut self, rank: &Rank, call: &'static str, constructs: bool) {
        let computed = match &mut self.time {
            Time::None => 0,
            Time::Given(nanos, _) => std::mem::take(nanos),
            Time::Measured(scale) => {
                let time = self.clock.computed() + std::mem::take(&mut self.called_back);
                (u128::from(time) * u128::from(*scale) / 1000) as u64
            }
        };
        self.say_threads(rank, call);
        if let Some(recorder) = &mut self.recorder {
            recorder.enter(call, computed);
        }
        if rank.in_virtual_time {
            rank.mpi.enter(ProgramCall {
                name: call,
                computed,
                constructs,
            });
        }
        if let Some(profile) = &self.profile {
            profile.enter(rank, call);
        }
    }

    fn leave(&mut self, rank: &Rank) {
        if rank.in_virtual_time {
            rank.mpi.leave();
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.leave();
        }
        if let Some(profile) = &self.profile {
            profile.leave(rank);
        }
        self.computes();
    }

    /// The factor in thousandths by which measured times are scaled; `None` if times are not
    /// measured.
    fn measured(&self) -> Option<u64> {
        match self.time {
            Time::Measured(scale) => Some(scale),
            Time::None | Time::Given(..) => None,
        }
    }

    /// The time of the next call of a reduction function in a trace that is replayed.
    fn next_function(&mut self) -> Option<u64> {
        let (picos, run) = self.functions.last_mut()?;
        let picos = *picos;
        *run -= 1;
        if *run == 0 {
            self.functions.pop();
        }
        Some(picos)
    }

    /// Records that the program computes from now on.
    fn computes(&mut self) {
        if let Time::Measured(_) = self.time {
            self.clock.start();
        }
    }

    /// Rank 0 reports once that the program has threads, and how they are charged. More threads
    /// than the host has cores are an error.
    #[inline]
    fn say_threads(&mut self, rank: &Rank, call: &'static str) {
        let threads = self.clock.most_threads();
        if threads <= self.threads_said {
            return;
        }
        if let Some(host) = &self.host
            && let Err(why) = check_cores(&host.system, host.ranks, threads)
        {
            let why = format!("rank {} computes with threads: {why}", rank.rank());
            raise::fatal(rank, call, &Error::new(mpi::Class::OTHER, why));
        }
        if self.threads_said == 1 && rank.rank() == 0 {
            say_threads(threads);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.threads(threads);
        }
        self.threads_said = threads;
    }
}

#[cold]
fn say_threads(threads: usize) {
    raise::say(&format!(
        "rank 0 computes with {threads} threads side by side: the longest time of one thread counts, as if each had a core; \
         idle threads should sleep, for which OMP_WAIT_POLICY=passive is set unless you set it (docs/user/modelled.md)"
    ));
}
