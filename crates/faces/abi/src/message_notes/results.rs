//! Notes of what calls have done: messages that were received, requests that are complete.

use message_check::{End, Event};
use std::ffi::c_int;
use trace::Access;

use super::{Begun, Inner, note};
use crate::constants::*;
use crate::status::Status;

impl Inner {
    /// Notes what a call has done.
    ///
    /// # Safety
    /// The words are the arguments of the procedure, as C promises them, after the call.
    pub(super) unsafe fn results(&mut self, rank: &mpi::Rank, begun: &Begun) {
        let name = begun.signature.name.as_str();
        if begun.at("datatype", Access::Out).is_some()
            || begun.at("datatype", Access::InOut).is_some()
        {
            self.types.clear();
        }
        let first = |at: usize| {
            // SAFETY: C promises the address of a value, which the call has set.
            unsafe { begun.array(at, 1) }.first().copied().unwrap_or(0)
        };
        let comm = begun.word("comm").map_or(0, |comm| comm as u32);
        if let Some(at) = begun.at("comm", Access::Out)
            && !name.contains("idup")
        {
            let _ = self.comm(rank, first(at) as u32);
        }
        if let Some(at) = begun.at("request", Access::Out) {
            let handle = first(at) as u64;
            let is_persistent = name.contains("_init");
            self.receives.insert(handle, comm);
            match is_persistent {
                true => _ = self.persistent.insert(handle),
                false => _ = self.persistent.remove(&handle),
            }
            let request = handle as u32;
            note(
                rank,
                Event::Request {
                    request,
                    is_persistent,
                },
            );
        } else if begun.signature.position("source").is_some() {
            self.received(rank, begun, comm, &first);
        } else if name.starts_with("MPI_Mrecv") {
            let (request, end) = (0, End::Complete);
            note(
                rank,
                Event::Done {
                    request,
                    met: None,
                    end,
                },
            );
        }
        // Types of Fortran's kinds are not freed (MPI 5.0 §19.1.9).
        if !name.contains("_f90_") {
            let made = begun.objects(Access::Out).into_iter();
            made.for_each(|(_, kind, handle)| note(rank, Event::Made { kind, handle }));
        }
        for &(at, kind, handle) in &begun.objects {
            if first(at) != i64::from(handle) {
                note(rank, Event::Freed { kind, handle });
            }
        }
        // SAFETY: the caller's promise.
        unsafe { self.completions(rank, begun) };
    }

    /// Notes the message of a blocking receive, or of a matched probe.
    fn received(
        &mut self,
        rank: &mpi::Rank,
        begun: &Begun,
        comm: u32,
        first: &impl Fn(usize) -> i64,
    ) {
        let is_found = begun
            .signature
            .position("flag")
            .is_none_or(|at| first(at) as c_int == 1);
        let Some((comm, core)) = self
            .comm(rank, comm)
            .filter(|_| is_found && begun.statuses != 0)
        else {
            return;
        };
        // SAFETY: the call has set its status, in the program's memory or in ours.
        let status = unsafe { (begun.statuses as usize as *const Status).read() };
        let from = core
            .peers()
            .world(status.source as usize)
            .filter(|_| status.source >= 0);
        let met = from.map(|from| (from as u32, status.tag));
        match (begun.at("message", Access::Out), met) {
            (Some(at), Some((from, tag))) => {
                let message = first(at) as u32;
                note(
                    rank,
                    Event::Claimed {
                        comm,
                        from,
                        tag,
                        message,
                    },
                );
            }
            (None, Some(_)) if !begun.signature.name.contains("robe") => {
                let (request, end) = (0, End::Complete);
                note(rank, Event::Done { request, met, end });
            }
            _ => {}
        }
    }

    /// Notes the requests that a failed call has ended: those that are null now.
    ///
    /// # Safety
    /// The words are the arguments of the procedure, as C promises them, after the call.
    pub(super) unsafe fn ended(&mut self, rank: &mpi::Rank, begun: &Begun) {
        let Some(at) = begun.at("request", Access::InOut) else {
            return;
        };
        // SAFETY: the caller's promise.
        let after = unsafe { begun.array(at, begun.requests.len()) };
        let null = MPI_REQUEST_NULL.0 as u64;
        for (before, after) in begun.requests.iter().zip(after) {
            if *before != null && after as u64 == null {
                let (request, met, end) = (*before as u32, None, End::Complete);
                note(rank, Event::Done { request, met, end });
            }
        }
    }

    /// Notes the requests that a call has completed or freed.
    ///
    /// # Safety
    /// The words are the arguments of the procedure, as C promises them, after the call.
    unsafe fn completions(&mut self, rank: &mpi::Rank, begun: &Begun) {
        let name = begun.signature.name.as_str();
        let Some(at) = begun
            .at("request", Access::InOut)
            .filter(|_| !name.starts_with("MPI_Start") && name != "MPI_Cancel")
        else {
            return;
        };
        let int = |name: &str| {
            let at = begun.signature.position(name)?;
            // SAFETY: the caller's promise.
            unsafe { begun.array(at, 1) }
                .first()
                .map(|one| *one as c_int)
        };
        if int("flag") == Some(0) {
            return;
        }
        // SAFETY: the caller's promise.
        let after = unsafe { begun.array(at, begun.requests.len()) };
        let places: Vec<usize> = match (
            int("indx"),
            int("outcount"),
            begun.signature.position("array_of_indices"),
        ) {
            (Some(index), ..) => usize::try_from(index).into_iter().collect(),
            // SAFETY: the caller's promise: as many indices are set.
            (_, Some(count), Some(at)) => unsafe { begun.array(at, count.max(0) as usize) }
                .into_iter()
                .map(|one| one as c_int as usize)
                .collect(),
            _ => (0..begun.requests.len()).collect(),
        };
        let is_one = int("indx").is_some();
        for (place, index) in places.into_iter().enumerate() {
            let (Some(before), Some(now)) = (begun.requests.get(index), after.get(index)) else {
                continue;
            };
            let is_kept = self.persistent.contains(before);
            if *before == MPI_REQUEST_NULL.0 as u64 || *now as u64 == *before && !is_kept {
                continue;
            }
            let request = *before as u32;
            let (mut met, mut end) = (None, End::Complete);
            let is_cancelled = self.cancelled.remove(before);
            if name == "MPI_Request_free" {
                // Whether a message is cancelled is not known without its status.
                end = if is_cancelled {
                    End::Cancelled
                } else {
                    End::Freed
                };
            } else if begun.statuses != 0 {
                let place = if is_one { 0 } else { place };
                // SAFETY: the caller's promise: there is a status for each completed request.
                let status =
                    unsafe { (begun.statuses as usize as *const Status).add(place).read() };
                let comm = self.receives.get(before).copied();
                let core = comm.and_then(|comm| self.comm(rank, comm));
                let from = core.and_then(|(_, core)| core.peers().world(status.source as usize));
                met = from
                    .filter(|_| status.source >= 0)
                    .map(|from| (from as u32, status.tag));
                if status.cancelled() {
                    end = End::Cancelled;
                }
            }
            note(rank, Event::Done { request, met, end });
        }
    }
}
