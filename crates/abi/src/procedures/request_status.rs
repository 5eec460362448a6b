//! Section 3.7.6: the status of operations without completing them. The requests stay unchanged.

use super::Done;
use super::completion::{id, peek};
use crate::args::{Flag, Out, Statuses};
use crate::call_guard::Running;
use crate::constants::*;
use crate::error::Error;
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
    if let (Some(status), Some(found)) = (status, found) {
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
    for (at, status) in found.into_iter().flatten().enumerate() {
        if let Some(place) = statuses.get(at) {
            place.fill(status.into());
        }
    }
    Ok(())
}

fn is_active(state: &State, request: Request) -> Result<bool, Error> {
    Ok(request != MPI_REQUEST_NULL && state.messages.requests.is_active(id(request))?)
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
        (Some(status), Some((_, found))) => status.fill(found.into()),
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
    let count = call.rank.poll_for(call.procedure, |state| {
        let (mut count, mut any_active) = (0, false);
        for (at, request) in requests.iter().enumerate() {
            if !is_active(state, *request)? {
                continue;
            }
            any_active = true;
            if let Some(found) = peek(state, *request)? {
                indices[count].write(at as c_int);
                if let Some(status) = statuses.get(count) {
                    status.fill(found.into());
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
    outcount.set(count.unwrap_or(0));
    Ok(())
}
