//! Section 3.7: completion of operations.
//!
//! All procedures *finish* a request that is complete: they return its status, and set the handle
//! to null unless the operation is persistent.

use super::failures::{Failures, blame};
use super::receive::deliver;
use crate::args::{Flag, Out, Statuses};
use crate::call_guard::Running;
use crate::constants::*;
use crate::error::{Done, Error};
use crate::handle::Request;
use crate::status::Status;
use mpi::request::{Finished, RequestId};
use mpi::{Answer, Class, State, Waiting};
use std::ffi::c_int;
use std::mem::MaybeUninit;

pub(super) fn id(request: Request) -> RequestId {
    RequestId(request.id())
}

/// Finishes a request if its operation is complete. The null request counts as complete.
#[inline(always)]
fn finish(state: &mut State, request: &mut Request) -> Result<Option<Finished>, Error> {
    if *request == MPI_REQUEST_NULL {
        return Ok(Some(Finished::NULL));
    }
    let finished = state.requests_mut().finish(id(*request))?;
    if finished.is_some_and(|finished| finished.gone) {
        *request = MPI_REQUEST_NULL;
    }
    Ok(finished)
}

/// `MPI_Wait` (MPI 5.0, chapter 3).
#[inline]
pub fn wait(call: &Running, request: &mut Request, status: Option<Out<Status>>) -> Done {
    let finished = wait_for(call, request)?;
    finish_one(call, finished, status)
}

#[inline]
fn wait_for(call: &Running, request: &mut Request) -> Result<Finished, Error> {
    if *request == MPI_REQUEST_NULL {
        return Ok(Finished::NULL);
    }
    let finished = call.rank.wait_request(call.procedure, id(*request))?;
    if finished.gone {
        *request = MPI_REQUEST_NULL;
    }
    Ok(finished)
}

#[inline]
fn finish_one(call: &Running, finished: Finished, status: Option<Out<Status>>) -> Done {
    if finished.status.error != Class::SUCCESS {
        if finished.status.is_by_query() {
            return answer_one(call.rank.end_generalized(finished.status), status);
        }
        blame(call, finished.context);
    }
    deliver(call, finished.status, status)
}

/// Writes the status that the functions of a generalized request have set, and returns their error.
#[cold]
pub(super) fn answer_one(answer: Answer, status: Option<Out<Status>>) -> Done {
    if let Some(status) = status {
        status.fill(answer.status.into());
    }
    answer.error.map_or(Ok(()), Err)
}

/// `MPI_Test` (MPI 5.0, chapter 3).
pub fn test(
    call: &Running,
    request: &mut Request,
    flag: Out<Flag>,
    status: Option<Out<Status>>,
) -> Done {
    let finished = call
        .rank
        .poll_for(call.procedure, |state| finish(state, request))?;
    flag.set(finished.is_some());
    match finished {
        Some(finished) => finish_one(call, finished, status),
        None => Ok(()),
    }
}

/// `MPI_Waitall` (MPI 5.0, chapter 3).
#[inline]
pub fn waitall(
    call: &Running,
    _count: usize,
    requests: &mut [Request],
    statuses: Statuses,
) -> Done {
    let mut failed = Failures::default();
    let mut at = 0;
    loop {
        at = finish_in_order(call, requests, at, statuses, &failed);
        if at == requests.len() {
            return failed.result(call, requests.len());
        }
        let waited = match failed.is_loss() {
            // With a lost peer, the other requests may never complete: a peer may wait for what
            // this rank does next.
            true => Ok(None),
            false => wait_in_order(call, requests, at),
        };
        match waited {
            Ok(Some(finished)) => {
                let is_good = finished.status.error == Class::SUCCESS;
                if finished.gone {
                    requests[at] = MPI_REQUEST_NULL;
                }
                match is_good {
                    true => failed.write_status(at, finished.status, statuses),
                    false => failed.note_one(call, at, finished, statuses),
                }
                at += 1;
            }
            Ok(None) => {
                finish_the_rest(call, requests, at, statuses, &mut failed)?;
                return failed.result(call, requests.len());
            }
            Err(error) => return failed.broken(call, (at, requests.len()), error, statuses),
        }
    }
}

/// Waits for the request at index `at`. `None`: it is not complete, but a later one has failed
/// because of a lost peer.
fn wait_in_order(
    call: &Running,
    requests: &[Request],
    at: usize,
) -> Result<Option<Finished>, Error> {
    let first = id(requests[at]);
    let waited = [first];
    let waiting = Waiting {
        operation: call.procedure,
        requests: &waited,
    };
    call.rank.wait_until(&waiting, |state| {
        if let Some(finished) = state.requests_mut().finish(first)? {
            return Ok(Some(Some(finished)));
        }
        let lost = state.has_losses() && requests[at + 1..].iter().any(|&of| has_lost(state, of));
        Ok(lost.then_some(None))
    })
}

/// True if a request has failed because of a lost peer.
#[cold]
fn has_lost(state: &State, request: Request) -> bool {
    let status = match request == MPI_REQUEST_NULL {
        true => None,
        false => state.requests().peek(id(request)).ok().flatten(),
    };
    status.is_some_and(|status| state.is_loss(status.error))
}

/// Finishes those requests from index `at` on that are complete. The others stay active, with the
/// error MPI_ERR_PENDING in their statuses (MPI 5.0 §3.7.5).
#[cold]
fn finish_the_rest(
    call: &Running,
    requests: &mut [Request],
    at: usize,
    statuses: Statuses,
    failed: &mut Failures,
) -> Done {
    let mut state = call.rank.lock();
    let (mut pending, mut by_query) = (Vec::new(), Vec::new());
    for (at, request) in requests.iter_mut().enumerate().skip(at) {
        match finish(&mut state, request)? {
            Some(finished) if finished.status.is_by_query() => by_query.push((at, finished.status)),
            Some(finished) => failed.note(&mut state, at, finished, statuses),
            None => pending.push(at),
        }
    }
    drop(state);
    let answers = by_query.into_iter();
    let answers = answers.map(|(at, status)| (at, call.rank.end_generalized(status)));
    answers.for_each(|(at, answer)| failed.note_answer(at, answer, statuses));
    // At the first failure, all statuses before it were set to MPI_SUCCESS.
    let pending = pending.into_iter();
    pending.for_each(|at| failed.pending(at, statuses));
    Ok(())
}

/// Finishes the requests from index `at` on, up to the first one that is not complete or has
/// failed. Returns the index of that one.
#[inline(always)]
fn finish_in_order(
    call: &Running,
    requests: &mut [Request],
    mut at: usize,
    statuses: Statuses,
    failed: &Failures,
) -> usize {
    let mut state = call.rank.lock();
    while let Some(request) = requests.get_mut(at)
        && let Some(status) = finish_well(&mut state, request)
    {
        failed.write_status(at, status, statuses);
        at += 1;
    }
    at
}

/// Finishes a request that is complete and has not failed; `None` for other requests.
#[inline(always)]
fn finish_well(state: &mut State, request: &mut Request) -> Option<mpi::Status> {
    if *request == MPI_REQUEST_NULL {
        return Some(mpi::Status::EMPTY);
    }
    let status = state.requests_mut().finish_well(id(*request))?;
    *request = MPI_REQUEST_NULL;
    Some(status)
}

/// `MPI_Testall` (MPI 5.0, chapter 3).
pub fn testall(
    call: &Running,
    _count: usize,
    requests: &mut [Request],
    flag: Out<Flag>,
    statuses: Statuses,
) -> Done {
    let complete = call.rank.poll_for(call.procedure, |state| {
        // As in MPI_Waitall, the other requests may never complete after a loss.
        if state.has_losses() && requests.iter().any(|&of| has_lost(state, of)) {
            return Ok(Some(()));
        }
        for request in requests.iter() {
            if peek(state, *request)?.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(()))
    })?;
    flag.set(complete.is_some());
    match complete {
        Some(()) => waitall(call, requests.len(), requests, statuses),
        None => Ok(()),
    }
}

/// The index of a finished request among those of the call, and its result.
type Chosen = (usize, Finished);

/// Finishes the first complete request among the active ones. `None`: none is complete;
/// `Some(None)`: none is active.
fn finish_any(
    state: &mut State,
    requests: &mut [Request],
) -> Result<Option<Option<Chosen>>, Error> {
    let mut none_active = true;
    for (at, request) in requests.iter_mut().enumerate() {
        if *request == MPI_REQUEST_NULL || !state.requests().is_active(id(*request))? {
            continue;
        }
        none_active = false;
        if let Some(finished) = finish(state, request)? {
            return Ok(Some(Some((at, finished))));
        }
    }
    Ok(none_active.then_some(None))
}

/// `MPI_Waitany` (MPI 5.0, chapter 3).
pub fn waitany(
    call: &Running,
    _count: usize,
    requests: &mut [Request],
    index: Out<c_int>,
    status: Option<Out<Status>>,
) -> Done {
    let waited: Vec<RequestId> = requests.iter().map(|request| id(*request)).collect();
    let waiting = Waiting {
        operation: call.procedure,
        requests: &waited,
    };
    let found = call
        .rank
        .wait_until(&waiting, |state| finish_any(state, requests))?;
    one_of_many(call, found, index, status)
}

fn one_of_many(
    call: &Running,
    found: Option<Chosen>,
    index: Out<c_int>,
    status: Option<Out<Status>>,
) -> Done {
    match found {
        Some((at, finished)) => {
            index.set(at as c_int);
            finish_one(call, finished, status)
        }
        None => {
            index.set(MPI_UNDEFINED);
            if let Some(status) = status {
                status.set(Status::empty());
            }
            Ok(())
        }
    }
}

/// `MPI_Testany` (MPI 5.0, chapter 3).
pub fn testany(
    call: &Running,
    _count: usize,
    requests: &mut [Request],
    index: Out<c_int>,
    flag: Out<Flag>,
    status: Option<Out<Status>>,
) -> Done {
    let found = call
        .rank
        .poll_for(call.procedure, |state| finish_any(state, requests))?;
    flag.set(found.is_some());
    match found {
        Some(found) => one_of_many(call, found, index, status),
        None => {
            index.set(MPI_UNDEFINED);
            Ok(())
        }
    }
}

/// The requests that `MPI_Waitsome` or `MPI_Testsome` has finished.
struct Gathered {
    /// The number of complete requests, or `None` if no request is active.
    count: Option<usize>,
    failures: Failures,
    /// Generalized requests whose functions are still to be called, with the indices of their
    /// statuses.
    by_query: Vec<(usize, mpi::Status)>,
}

impl Gathered {
    /// Writes the outcome to the caller's results. The count is set even if an operation failed
    /// (§3.7.5).
    fn report(mut self, call: &Running, outcount: Out<c_int>, statuses: Statuses) -> Done {
        outcount.set(self.count.map_or(MPI_UNDEFINED, |count| count as c_int));
        let count = self.count.unwrap_or(0);
        let answers = self.by_query.into_iter();
        let answers = answers.map(|(at, status)| (at, call.rank.end_generalized(status)));
        self.failures.note_answers(answers, count, statuses);
        self.failures.result(call, count)
    }
}

/// Finishes all complete requests. `None`: requests are active, but none is complete.
fn finish_some(
    state: &mut State,
    requests: &mut [Request],
    indices: &mut [MaybeUninit<c_int>],
    statuses: Statuses,
) -> Result<Option<Gathered>, Error> {
    let mut count = 0;
    let mut any_active = false;
    let mut failures = Failures::default();
    let mut by_query = Vec::new();
    for (at, request) in requests.iter_mut().enumerate() {
        if *request == MPI_REQUEST_NULL || !state.requests().is_active(id(*request))? {
            continue;
        }
        any_active = true;
        if let Some(finished) = finish(state, request)? {
            indices[count].write(at as c_int);
            match finished.status.is_by_query() {
                true => by_query.push((count, finished.status)),
                false => failures.note(state, count, finished, statuses),
            }
            count += 1;
        }
    }
    Ok((!any_active || count > 0).then_some(Gathered {
        count: any_active.then_some(count),
        failures,
        by_query,
    }))
}

/// `MPI_Waitsome` (MPI 5.0, chapter 3).
pub fn waitsome(
    call: &Running,
    _incount: usize,
    requests: &mut [Request],
    outcount: Out<c_int>,
    indices: &mut [MaybeUninit<c_int>],
    statuses: Statuses,
) -> Done {
    let waited: Vec<RequestId> = requests.iter().map(|request| id(*request)).collect();
    let waiting = Waiting {
        operation: call.procedure,
        requests: &waited,
    };
    let found = call.rank.wait_until(&waiting, |state| {
        finish_some(state, requests, indices, statuses)
    })?;
    found.report(call, outcount, statuses)
}

/// `MPI_Testsome` (MPI 5.0, chapter 3).
pub fn testsome(
    call: &Running,
    _incount: usize,
    requests: &mut [Request],
    outcount: Out<c_int>,
    indices: &mut [MaybeUninit<c_int>],
    statuses: Statuses,
) -> Done {
    let found = call.rank.poll_for(call.procedure, |state| {
        finish_some(state, requests, indices, statuses)
    })?;
    match found {
        Some(found) => found.report(call, outcount, statuses),
        None => {
            outcount.set(0);
            Ok(())
        }
    }
}

/// `MPI_Request_free` (MPI 5.0, chapter 3).
pub fn request_free(call: &Running, request: &mut Request) -> Done {
    let freed = call.rank.lock().requests_mut().free(id(*request))?;
    *request = MPI_REQUEST_NULL;
    freed.map_or(Ok(()), |functions| functions.free())
}

/// The status of a request, if it is complete. The null request is complete.
pub(super) fn peek(state: &State, request: Request) -> Result<Option<mpi::Status>, Error> {
    if request == MPI_REQUEST_NULL {
        return Ok(Some(mpi::Status::EMPTY));
    }
    state.requests().peek(id(request))
}
