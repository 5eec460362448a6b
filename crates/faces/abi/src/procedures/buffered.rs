//! Section 3.6: memory for buffered sends.

use crate::args::{Out, OutCount};
use crate::call_guard::Running;
use crate::error::Done;
use crate::handle::{Comm, Request};
use mpi::buffered::Owner;
use std::ffi::c_void;

fn attach(call: &Running, owner: Owner, buffer: *mut c_void, size: i64) -> Done {
    call.rank.attach_buffer(owner, buffer.addr(), size as usize)
}

fn detach(call: &Running, owner: Owner, address: Out<*mut c_void>, size: OutCount) -> Done {
    let (at, bytes) = call.rank.detach_buffer(call.procedure, owner)?;
    address.set(std::ptr::with_exposed_provenance_mut::<c_void>(at));
    size.set(bytes as i64);
    Ok(())
}

/// `MPI_Buffer_attach` (MPI 5.0, chapter 3).
pub fn buffer_attach(call: &Running, buffer: *mut c_void, size: i64) -> Done {
    buffer.expose_provenance();
    attach(call, None, buffer, size)
}

/// `MPI_Buffer_detach` (MPI 5.0, chapter 3).
pub fn buffer_detach(call: &Running, buffer_addr: Out<*mut c_void>, size: OutCount) -> Done {
    detach(call, None, buffer_addr, size)
}

/// `MPI_Buffer_flush` (MPI 5.0, chapter 3).
pub fn buffer_flush(call: &Running) -> Done {
    call.rank.flush_buffer(call.procedure, None)
}

/// `MPI_Buffer_iflush` (MPI 5.0, chapter 3).
pub fn buffer_iflush(call: &Running, request: Out<Request>) -> Done {
    request.set(call.rank.start_flush_buffer(None)?.0);
    Ok(())
}

/// `MPI_Comm_attach_buffer` (MPI 5.0, chapter 3).
pub fn comm_attach_buffer(call: &Running, comm: Comm, buffer: *mut c_void, size: i64) -> Done {
    buffer.expose_provenance();
    attach(call, Some(comm.id()), buffer, size)
}

/// `MPI_Comm_detach_buffer` (MPI 5.0, chapter 3).
pub fn comm_detach_buffer(
    call: &Running,
    comm: Comm,
    buffer_addr: Out<*mut c_void>,
    size: OutCount,
) -> Done {
    detach(call, Some(comm.id()), buffer_addr, size)
}

/// `MPI_Comm_flush_buffer` (MPI 5.0, chapter 3).
pub fn comm_flush_buffer(call: &Running, comm: Comm) -> Done {
    call.rank.flush_buffer(call.procedure, Some(comm.id()))
}

/// `MPI_Comm_iflush_buffer` (MPI 5.0, chapter 3).
pub fn comm_iflush_buffer(call: &Running, comm: Comm, request: Out<Request>) -> Done {
    request.set(call.rank.start_flush_buffer(Some(comm.id()))?.0);
    Ok(())
}
