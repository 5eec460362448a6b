//! Sections 5.2 and 5.3: packing and unpacking, in the native representation and in external32.
//!
//! Invariant: no lock is held while data moves.

use super::type_facts::supported;
use crate::args::OutCount;
use crate::arrays::null;
use crate::buffer::UserBuffer;
use crate::call_guard::Running;
use crate::constants::*;
use crate::error::{Done, Error};
use crate::handle::{Comm, Datatype};
use datatype::local_work::LocalWork;
use datatype::{Buffer, Type, external32};
use std::ffi::{CStr, c_void};
use std::slice;

/// `MPI_Pack` (MPI 5.0, chapter 5).
///
/// # Safety
/// The data fulfil [`UserBuffer::new`]'s promise until the call returns; `outbuf` has room for
/// `outsize` bytes.
#[allow(clippy::too_many_arguments, reason = "the standard's")]
pub unsafe fn pack(
    call: &Running,
    inbuf: *const c_void,
    incount: i64,
    datatype: Datatype,
    outbuf: *mut c_void,
    outsize: i64,
    position: OutCount,
    comm: Comm,
) -> Done {
    call.rank.objects().comms().get(comm.id())?;
    // SAFETY: the caller promises the memory of the data until the call returns.
    let (_, data) = data(call, unsafe { UserBuffer::new(inbuf, incount, datatype) })?;
    let window = Window::new("outsize", outsize, position)?;
    window.check(data.len())?;
    // SAFETY: the caller promises room for `outsize` bytes.
    let room = unsafe { window.writable("outbuf", outbuf) }?;
    let packed = data.pack(0, room);
    call.rank.worked(LocalWork::Copy, packed, packed);
    window.advance(data.len());
    Ok(())
}

/// `MPI_Unpack` (MPI 5.0, chapter 5).
///
/// # Safety
/// The data fulfil [`UserBuffer::new`]'s promise until the call returns; `inbuf` holds `insize`
/// bytes.
#[allow(clippy::too_many_arguments, reason = "the standard's")]
pub unsafe fn unpack(
    call: &Running,
    inbuf: *const c_void,
    insize: i64,
    position: OutCount,
    outbuf: *mut c_void,
    outcount: i64,
    datatype: Datatype,
    comm: Comm,
) -> Done {
    call.rank.objects().comms().get(comm.id())?;
    // SAFETY: the caller promises the memory of the data until the call returns.
    let (_, data) = data(call, unsafe { UserBuffer::new(outbuf, outcount, datatype) })?;
    let window = Window::new("insize", insize, position)?;
    window.check(data.len())?;
    // SAFETY: the caller promises `insize` bytes.
    let packed = unsafe { window.readable("inbuf", inbuf) }?;
    let unpacked = data.unpack(0, &packed[..data.len()]);
    call.rank.worked(LocalWork::Copy, unpacked, unpacked);
    window.advance(data.len());
    Ok(())
}

/// `MPI_Pack_size` (MPI 5.0, chapter 5).
pub fn pack_size(
    call: &Running,
    incount: i64,
    datatype: Datatype,
    comm: Comm,
    size: OutCount,
) -> Done {
    call.rank.objects().comms().get(comm.id())?;
    let ty = supported(call, datatype)?;
    // A size beyond 63 bits fits no result.
    let bytes = incount.checked_mul(ty.size() as i64);
    size.set(bytes.unwrap_or(MPI_UNDEFINED.into()));
    Ok(())
}

/// `MPI_Pack_external` (MPI 5.0, chapter 5).
///
/// # Safety
/// The data fulfil [`UserBuffer::new`]'s promise until the call returns; `outbuf` has room for
/// `outsize` bytes.
#[allow(clippy::too_many_arguments, reason = "the standard's")]
pub unsafe fn pack_external(
    call: &Running,
    datarep: &CStr,
    inbuf: *const c_void,
    incount: i64,
    datatype: Datatype,
    outbuf: *mut c_void,
    outsize: i64,
    position: OutCount,
) -> Done {
    check_representation(datarep)?;
    // SAFETY: the caller promises the memory of the data until the call returns.
    let (ty, data) = data(call, unsafe { UserBuffer::new(inbuf, incount, datatype) })?;
    let window = Window::new("outsize", outsize, position)?;
    window.check(external32::size(&ty, incount as usize)?)?;
    // SAFETY: the caller promises room for `outsize` bytes.
    let room = unsafe { window.writable("outbuf", outbuf) }?;
    window.advance(external32::pack(&ty, &data, room)?);
    call.rank.worked(LocalWork::Convert, data.len(), data.len());
    Ok(())
}

/// `MPI_Unpack_external` (MPI 5.0, chapter 5).
///
/// # Safety
/// The data fulfil [`UserBuffer::new`]'s promise until the call returns; `inbuf` holds `insize`
/// bytes.
#[allow(clippy::too_many_arguments, reason = "the standard's")]
pub unsafe fn unpack_external(
    call: &Running,
    datarep: &CStr,
    inbuf: *const c_void,
    insize: i64,
    position: OutCount,
    outbuf: *mut c_void,
    outcount: i64,
    datatype: Datatype,
) -> Done {
    check_representation(datarep)?;
    // SAFETY: the caller promises the memory of the data until the call returns.
    let (ty, data) = data(call, unsafe { UserBuffer::new(outbuf, outcount, datatype) })?;
    let window = Window::new("insize", insize, position)?;
    window.check(external32::size(&ty, outcount as usize)?)?;
    // SAFETY: the caller promises `insize` bytes.
    let packed = unsafe { window.readable("inbuf", inbuf) }?;
    window.advance(external32::unpack(&ty, packed, &data)?);
    call.rank.worked(LocalWork::Convert, data.len(), data.len());
    Ok(())
}

/// `MPI_Pack_external_size` (MPI 5.0, chapter 5).
pub fn pack_external_size(
    call: &Running,
    datarep: &CStr,
    incount: i64,
    datatype: Datatype,
    size: OutCount,
) -> Done {
    check_representation(datarep)?;
    let ty = supported(call, datatype)?;
    size.set(external32::size(&ty, incount as usize)? as i64);
    Ok(())
}

/// The datatype and the memory of the user's data, which are not packed.
fn data(call: &Running, buffer: UserBuffer) -> Result<(Type, Buffer), Error> {
    let state = call.rank.lock();
    let data = buffer.buffer(&state)?;
    let ty = state.objects().types().get(buffer.datatype().id())?.clone();
    Ok((ty, data))
}

/// The part of the packed buffer from the current position on.
struct Window<'a> {
    position: OutCount<'a>,
    start: usize,
    /// The number of bytes from `start` to the end of the buffer.
    room: usize,
}

impl<'a> Window<'a> {
    fn new(name: &str, size: i64, position: OutCount<'a>) -> Result<Window<'a>, Error> {
        let start = position.get();
        if (0..=size).contains(&start) {
            let (start, room) = (start as usize, (size - start) as usize);
            return Ok(Window {
                position,
                start,
                room,
            });
        }
        let detail = format!("position is {start}; valid is 0 to {name}, which is {size}");
        Err(Error::new(MPI_ERR_ARG, detail))
    }

    fn check(&self, needed: usize) -> Done {
        if needed <= self.room {
            return Ok(());
        }
        let detail = format!(
            "{needed} bytes are needed from position {} on, but the packed buffer has {} there",
            self.start, self.room
        );
        Err(Error::new(MPI_ERR_TRUNCATE, detail))
    }

    /// The window as memory that the call writes.
    ///
    /// # Safety
    /// `base` is NULL or the start of a buffer of the size given, which only this call writes to.
    unsafe fn writable(&self, name: &str, base: *mut c_void) -> Result<&'a mut [u8], Error> {
        if self.room == 0 {
            return Ok(&mut []);
        }
        if base.is_null() {
            return Err(null(name));
        }
        // SAFETY: the window lies within the buffer, which the caller promises to this call.
        Ok(unsafe { slice::from_raw_parts_mut(base.cast::<u8>().add(self.start), self.room) })
    }

    /// The window as memory that the call reads.
    ///
    /// # Safety
    /// `base` is NULL or the start of a buffer of the size given, which nothing writes to during
    /// the call.
    unsafe fn readable(&self, name: &str, base: *const c_void) -> Result<&'a [u8], Error> {
        if self.room == 0 {
            return Ok(&[]);
        }
        if base.is_null() {
            return Err(null(name));
        }
        // SAFETY: the window lies within the buffer, which the caller promises to this call.
        Ok(unsafe { slice::from_raw_parts(base.cast::<u8>().add(self.start), self.room) })
    }

    fn advance(&self, bytes: usize) {
        self.position.set((self.start + bytes) as i64);
    }
}

fn check_representation(datarep: &CStr) -> Done {
    if datarep == c"external32" {
        return Ok(());
    }
    let detail = format!(
        "datarep is `{}`; the only one to pack in is `external32`",
        datarep.to_bytes().escape_ascii()
    );
    Err(Error::new(MPI_ERR_ARG, detail))
}
