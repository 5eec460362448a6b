//! Chapter 11: starting, ending and aborting MPI.

use crate::args::{Flag, Out};
use crate::bootstrap;
use crate::call_guard::{Call, Running};
use crate::call_trace::Watch;
use crate::constants::*;
use crate::error::{Done, Error};
use crate::handle::Comm;
use crate::object::Object;
use crate::process_environment;
use crate::state::{LIBRARY, Rank};
use crate::still_clock::StillClock;
use mpi::attributes::Holder;
use mpi::comm;
use pmi::{Bootstrap, Notice, Started};
use std::cell::Cell;
use std::ffi::{c_char, c_int};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Instant;

static PROVIDED: AtomicI32 = AtomicI32::new(MPI_THREAD_SINGLE);

thread_local! {
    /// True in the thread that has called MPI_Init.
    static IS_MAIN: Cell<bool> = const { Cell::new(false) };
}

/// `MPI_Init` (MPI 5.0, chapter 11). The arguments of `main` are not used: the launcher passes
/// everything in the environment.
pub fn init(call: &Call, _argc: Option<&mut c_int>, _argv: *mut *mut *mut c_char) -> Done {
    start(call, MPI_THREAD_SINGLE).map(drop)
}

/// `MPI_Init_thread` (MPI 5.0, chapter 11).
pub fn init_thread(
    call: &Call,
    _argc: Option<&mut c_int>,
    _argv: *mut *mut *mut c_char,
    required: c_int,
    provided: Out<c_int>,
) -> Done {
    provided.set(start(call, required)?);
    Ok(())
}

fn start(call: &Call, required: c_int) -> Result<c_int, Error> {
    crate::real_clock::find();
    let started = (call.procedure, Instant::now());
    if LIBRARY.initialised() {
        let why = if LIBRARY.finalised() {
            "MPI has been finalized and cannot start again"
        } else {
            "MPI is running already"
        };
        return Err(Error::new(MPI_ERR_OTHER, why));
    }
    let variables = || process_environment::variables().into_iter();
    let knobs = knobs::Knobs::parse(variables()).map_err(unusable)?;
    let job = pmi::start(variables(), &knobs).map_err(unusable)?;
    let launcher = job.reporter();
    let (is_launched, is_first) = match &job {
        Started::Ours(_) => (true, false),
        Started::Foreign(job) => (false, job.rank() == 0),
        Started::Alone => (false, true),
    };
    // Our launcher prints the notices once for all ranks.
    if is_first {
        for notice in knobs::notices(variables()) {
            crate::raise::say(&terminal_text::line(&notice));
        }
    }
    let wired = bootstrap::wiring(job, &knobs, started).map_err(unusable);
    let wired = wired.and_then(|(wiring, watch)| Ok((mpi::Rank::new(wiring, knobs)?, watch)));
    let (rank, watch) = match (wired, launcher) {
        (Ok(wired), _) => wired,
        // The other ranks may fail for the same reason, or wait for this rank.
        (Err(error), Some(launcher)) => crate::raise::end_start(&launcher, call.procedure, &error),
        (Err(error), None) => return Err(error),
    };
    let in_virtual_time = rank.virtual_time().is_some();
    let cost_cache = crate::kept_costs::begin(&rank, variables());
    let provided = thread_level(required, in_virtual_time);
    if provided == MPI_THREAD_MULTIPLE {
        rank.allow_threads();
    } else if required == MPI_THREAD_MULTIPLE
        && let Some(watch) = &watch
    {
        watch.lacks_threads();
    }
    PROVIDED.store(provided, Ordering::Relaxed);
    crate::raise::on_panic(Arc::clone(rank.bootstrap()));
    IS_MAIN.set(true);
    if is_launched {
        let bootstrap = &rank.bootstrap();
        bootstrap.notify(Notice::Initialized).map_err(unusable)?;
    }
    let modelled_host = in_virtual_time.then(|| {
        let bootstrap = &rank.bootstrap();
        bootstrap.hosts().of(bootstrap.rank())
    });
    // One rank reports for all, always the same one.
    let charges = watch.as_ref().is_some_and(Watch::charges_computing);
    let reports_still_clock = in_virtual_time && !charges && rank.rank() == 0;
    let rank = Arc::new(rank);
    // A launcher that has chosen the cores of this rank may remove its binding if it computes.
    let is_softly_bound =
        |(name, value): (String, String)| name == knobs::BINDING && value.starts_with("soft");
    if is_launched && variables().any(is_softly_bound) {
        let lock = Notice::Lock(rank.lock_address());
        rank.bootstrap().notify(lock).map_err(unusable)?;
    }
    publish(Rank {
        mpi: rank,
        in_virtual_time,
        modelled_host,
        watch,
        still_clock: reports_still_clock.then(StillClock::default),
        cost_cache,
        explains: is_launched && variables().any(|(name, _)| name == knobs::EXPLAIN),
        raise: crate::raise::raise,
    });
    Ok(provided)
}

/// Lets the library find the rank: MPI runs from now on, and so does virtual time.
fn publish(rank: Rank) {
    let in_virtual_time = rank.in_virtual_time;
    let charges = { rank.watch.as_ref() }.is_some_and(Watch::charges_computing);
    LIBRARY.start(Box::leak(Box::new(rank)));
    if in_virtual_time {
        crate::system_clocks::follow(charges);
    }
}

/// The thread level that a program gets if it requests `required`.
fn thread_level(required: c_int, in_virtual_time: bool) -> c_int {
    let levels = [
        MPI_THREAD_SINGLE,
        MPI_THREAD_FUNNELED,
        MPI_THREAD_SERIALIZED,
        MPI_THREAD_MULTIPLE,
    ];
    let level = levels.into_iter().find(|level| *level >= required);
    let level = level.unwrap_or(MPI_THREAD_MULTIPLE);
    // In virtual time, one thread of a rank runs at a time.
    match in_virtual_time {
        true => level.min(MPI_THREAD_SERIALIZED),
        false => level,
    }
}

fn unusable(why: impl std::fmt::Display) -> Error {
    Error::new(MPI_ERR_OTHER, terminal_text::line(&why.to_string()))
}

/// `MPI_Finalize` (MPI 5.0, chapter 11).
pub fn finalize(call: &Running) -> Done {
    // Attributes are deleted first, so that the delete functions may still use MPI (section 11.2.4
    // of MPI 5.0).
    call.rank.delete_attributes(Holder::Comm(comm::SELF))?;
    if call.rank.explains {
        let choices = call.rank.explain_choices();
        // If the launcher has gone, nobody reads the explanation.
        let _ = pmi::put_explanation(&**call.rank.bootstrap(), &choices);
    }
    call.rank.finish(call.procedure)?;
    if let Some(cache) = &call.rank.cost_cache {
        crate::kept_costs::keep(call.rank, cache);
    }
    // If the launcher has gone, nobody needs this message.
    let _ = call.rank.bootstrap().notify(Notice::Finalized);
    if let Some(watch) = &call.rank.watch {
        watch.finish(call.rank);
    }
    let end = call.rank.virtual_time().map_or(0, |time| time.now / 1000);
    call.rank.leave_machine();
    LIBRARY.stop();
    crate::system_clocks::stop(end);
    Ok(())
}

/// `MPI_Query_thread` (MPI 5.0, chapter 11).
pub fn query_thread(_: &Running, provided: Out<c_int>) -> Done {
    provided.set(PROVIDED.load(Ordering::Relaxed));
    Ok(())
}

/// `MPI_Is_thread_main` (MPI 5.0, chapter 11).
pub fn is_thread_main(_: &Running, flag: Out<Flag>) -> Done {
    flag.set(IS_MAIN.get());
    Ok(())
}

/// `MPI_Comm_get_parent` (MPI 5.0, chapter 11): always MPI_COMM_NULL, as spawning processes is not
/// supported yet.
pub fn comm_get_parent(_: &Running, parent: Out<Comm>) -> Done {
    parent.set(MPI_COMM_NULL);
    Ok(())
}

/// `MPI_Abort` (MPI 5.0, chapter 11).
pub fn abort(call: &Running, comm: Comm, code: c_int) -> Done {
    let _ = call;
    crate::raise::abort(call.rank, Object::Comm(comm), code)
}
