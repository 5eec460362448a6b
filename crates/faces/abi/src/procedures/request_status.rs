//! Section 3.7.6: the status of operations without their completion. The requests stay unchanged.

use super::completion::{answer_one, id, peek};
use super::failures::Failures;
use crate::args::{Flag, Out, Statuses};
use crate::call_guard::Running;
use crate::constants::*;
use crate::error::{Done, Error};
use crate::handle::Request;
use crate::status::Status;
use mpi::State;
use std::ffi::c_int;
use std::mem::MaybeUninit;

/// `MPI_Request_get_status` (MPI 5.0, chapter 3).
pub fn request_get_status(
    call: &Running,
    request: Request,
    flag: Out<Flag>,
    status: Option<Out<Status>>,
) -> Done {
    let found = call
        .rank
        .poll_for(call.procedure, |state| peek(state, request))?;
    flag.set(found.is_some());
    found.map_or(Ok(()), |found| show(call, found, status))
}

/// Writes the status of a complete operation, whose request remains.
fn show(call: &Running, found: mpi::Status, status: Option<Out<Status>>) -> Done {
    if found.is_by_query() {
        return answer_one(call.rank.query_generalized(found), status);
    }
    if let Some(status) = status {
        status.fill(found.into());
    }
    Ok(())
}

/// `MPI_Request_get_status_all` (MPI 5.0, chapter 3).
pub fn request_get_status_all(
    call: &Running,
    _count: usize,
    requests: &[Request],
    flag: Out<Flag>,
    statuses: Statuses,
) -> Done {
    let found = call.rank.poll_for(call.procedure, |state| {
        requests
            .iter()
            .map(|request| peek(state, *request))
            .collect::<Result<Option<Vec<_>>, Error>>()
    })?;
    flag.set(found.is_some());
    let mut failures = Failures::default();
    for (at, status) in found.into_iter().flatten().enumerate() {
        match status.is_by_query() {
            true => failures.note_answer(at, call.rank.query_generalized(status), statuses),
            false => failures.write_status(at, status, statuses),
        }
    }
    failures.result(call, requests.len())
}

fn is_active(state: &State, request: Request) -> Result<bool, Error> {
    Ok(request != MPI_REQUEST_NULL && state.requests().is_active(id(request))?)
}

/// `MPI_Request_get_status_any` (MPI 5.0, chapter 3).
pub fn request_get_status_any(
    call: &Running,
    _count: usize,
    requests: &[Request],
    index: Out<c_int>,
    flag: Out<Flag>,
    status: Option<Out<Status>>,
) -> Done {
    let found = call.rank.poll_for(call.procedure, |state| {
        let mut none_active = true;
        for (at, request) in requests.iter().enumerate() {
            if !is_active(state, *request)? {
                continue;
            }
            none_active = false;
            if let Some(found) = peek(state, *request)? {
                return Ok(Some(Some((at, found))));
            }
        }
        Ok(none_active.then_some(None))
    })?;
    flag.set(found.is_some());
    let chosen = found.flatten();
    index.set(chosen.map_or(MPI_UNDEFINED, |(at, _)| at as c_int));
    match (status, chosen) {
        (status, Some((_, found))) => return show(call, found, status),
        (Some(status), None) if found.is_some() => status.set(Status::empty()),
        _ => {}
    }
    Ok(())
}

/// `MPI_Request_get_status_some` (MPI 5.0, chapter 3).
pub fn request_get_status_some(
    call: &Running,
    _incount: usize,
    requests: &[Request],
    outcount: Out<c_int>,
    indices: &mut [MaybeUninit<c_int>],
    statuses: Statuses,
) -> Done {
    let mut by_query = Vec::new();
    let count = call.rank.poll_for(call.procedure, |state| {
        by_query.clear();
        let (mut count, mut any_active) = (0, false);
        for (at, request) in requests.iter().enumerate() {
            if !is_active(state, *request)? {
                continue;
            }
            any_active = true;
            if let Some(found) = peek(state, *request)? {
                indices[count].write(at as c_int);
                match statuses.get(count) {
                    _ if found.is_by_query() => by_query.push((count, found)),
                    Some(status) => status.fill(found.into()),
                    None => {}
                }
                count += 1;
            }
        }
        Ok(match (any_active, count) {
            (false, _) => Some(MPI_UNDEFINED),
            (true, 0) => None,
            (true, count) => Some(count as c_int),
        })
    })?;
    let count = count.unwrap_or(0);
    outcount.set(count);
    let of = count.max(0) as usize;
    let mut failures = Failures::default();
    let answers = by_query.into_iter();
    let answers = answers.map(|(at, found)| (at, call.rank.query_generalized(found)));
    failures.note_answers(answers, of, statuses);
    failures.result(call, of)
}
