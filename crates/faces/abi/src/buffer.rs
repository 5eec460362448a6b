//! The user's buffer in C: an address, a count and a datatype.
//!
//! Invariant: a buffer of a predefined datatype costs one lookup of its size, and touches
//! neither the table of datatypes nor a reference count. Other datatypes and errors are out of
//! line.

use crate::constants::*;
use crate::error::Error;
use crate::handle::Datatype;
use datatype::{Buffer, Elements, Predefined, Type};
use mpi::file::FileMemory;
use mpi::types::Types;
use mpi::{MessageBuffer, State};
use std::ffi::{c_int, c_void};

/// The lowest address that a program can have: Linux maps no memory below it.
const FIRST_PAGE: usize = 4096;

/// The peer argument for a buffer that belongs to no message: any rank other than `MPI_PROC_NULL`.
const NO_MESSAGE: c_int = MPI_ANY_SOURCE;

/// The buffer arguments of a call: an address, a count and a datatype handle.
///
/// The value carries the caller's promise about the memory, so its methods are safe.
#[derive(Clone, Copy)]
pub struct UserBuffer {
    address: *const c_void,
    count: i64,
    datatype: Datatype,
}

impl UserBuffer {
    /// A buffer with these three arguments of a call.
    ///
    /// # Safety
    /// The standard's rule for message buffers (MPI 5.0 §3.2, §3.7.2): from the call until the
    /// operation is complete, the memory that `count` elements of `datatype` describe is readable,
    /// is writable if the operation receives, and has no conflicting accesses by others. Addresses
    /// that no program has (NULL, MPI_IN_PLACE) are allowed here; the methods reject or interpret
    /// them.
    #[inline(always)]
    pub unsafe fn new(address: *const c_void, count: i64, datatype: Datatype) -> UserBuffer {
        UserBuffer {
            address,
            count,
            datatype,
        }
    }

    /// The handle of the elements' datatype.
    #[inline(always)]
    pub fn datatype(self) -> Datatype {
        self.datatype
    }

    /// The number of elements in the buffer.
    #[inline(always)]
    pub fn count(self) -> i64 {
        self.count
    }

    /// True if the caller passed MPI_IN_PLACE as the address.
    #[inline(always)]
    pub fn is_in_place(self) -> bool {
        self.address == MPI_IN_PLACE.cast_const()
    }

    /// This buffer as that of a message to or from the rank `peer`.
    #[inline(always)]
    pub fn of_message(self, peer: c_int) -> MessageMemory {
        MessageMemory { buffer: self, peer }
    }

    /// The memory that address, count and datatype describe.
    #[inline(always)]
    pub fn buffer(self, state: &State) -> Result<Buffer, Error> {
        self.resolve(state.objects().types())
    }

    /// The memory of the buffer, if its datatype is predefined and has no gaps; `None` also for an
    /// address that needs further checks.
    #[inline(always)]
    pub fn run(self) -> Option<Buffer> {
        let bytes = dense(self.count, self.datatype)?;
        if self.address.addr() < FIRST_PAGE {
            return None;
        }
        // SAFETY: `new` was promised this memory: the bytes are exactly `count` elements of a
        // datatype without gaps.
        Some(unsafe { Buffer::dense(self.address.cast_mut().cast(), bytes) })
    }

    /// The memory of the buffer, or `None` if the address is MPI_IN_PLACE; count and datatype are
    /// then ignored.
    #[inline(always)]
    pub fn buffer_unless_in_place(self, state: &State) -> Result<Option<Buffer>, Error> {
        if self.is_in_place() {
            return Ok(None);
        }
        self.buffer(state).map(Some)
    }

    /// The elements of the buffer, as an operand of a reduction.
    #[inline]
    pub fn elements(self, state: &State) -> Result<Elements, Error> {
        let start = self.address.cast_mut().cast();
        let count = self.count as usize;
        if self.address.addr() >= FIRST_PAGE
            && dense(self.count, self.datatype).is_some()
            && let Some(basic) = Predefined::from_handle(self.datatype.0)
        {
            // SAFETY: `new` was promised the memory of `count` elements of this datatype.
            return Ok(unsafe { Elements::new(start, count, &Type::Predefined(basic)) });
        }
        self.any(state.objects().types(), NO_MESSAGE)?;
        let ty = state.objects().types().committed(self.datatype.id())?;
        // SAFETY: `new` was promised the memory of `count` elements of this datatype; `any` has
        // checked that they can lie at this address.
        Ok(unsafe { Elements::new(start, count, &ty) })
    }

    /// The elements of the buffer as an operand of a reduction, or `None` if the address is
    /// MPI_IN_PLACE.
    #[inline]
    pub fn elements_unless_in_place(self, state: &State) -> Result<Option<Elements>, Error> {
        if self.is_in_place() {
            return Ok(None);
        }
        self.elements(state).map(Some)
    }

    /// The memory of the buffer, for an access to a file.
    pub fn file_memory(self, state: &State) -> Result<FileMemory, Error> {
        let ty = state
            .objects()
            .types()
            .committed(self.datatype.id())?
            .clone();
        Ok(FileMemory {
            buffer: self.buffer(state)?,
            ty,
            count: self.count as usize,
            address: self.address.expose_provenance(),
            handle: self.datatype.id(),
        })
    }

    /// The memory of the buffer of a message to or from `peer`, or of no message.
    #[inline(always)]
    fn memory(self, types: &Types, peer: c_int) -> Result<Buffer, Error> {
        let bytes = if self.address.addr() >= FIRST_PAGE {
            dense(self.count, self.datatype)
        } else {
            None
        };
        // SAFETY: `new` was promised this memory: the bytes are exactly `count` elements of
        // a datatype without gaps.
        let mut buffer =
            unsafe { Buffer::dense(self.address.cast_mut().cast(), bytes.unwrap_or(0)) };
        if bytes.is_none() {
            buffer = self.any(types, peer)?;
        }
        Ok(buffer)
    }

    /// The memory of the buffer in all cases except the common one, which `memory` handles.
    #[inline(always)]
    fn any(self, types: &Types, peer: c_int) -> Result<Buffer, Error> {
        // SAFETY: `new` was promised the memory of `count` elements of this datatype.
        unsafe { any(types, self.address, self.count, self.datatype, peer) }
    }
}

/// The buffer of a message to or from a rank, which may be `MPI_PROC_NULL`.
#[derive(Clone, Copy)]
pub struct MessageMemory {
    buffer: UserBuffer,
    peer: c_int,
}

impl MessageMemory {
    /// The memory that address, count and datatype describe.
    #[inline(always)]
    pub fn buffer(self, state: &State) -> Result<Buffer, Error> {
        self.resolve(state.objects().types())
    }
}

impl MessageBuffer for MessageMemory {
    #[inline(always)]
    fn resolve(self, types: &Types) -> Result<Buffer, Error> {
        self.buffer.memory(types, self.peer)
    }
}

/// An empty buffer for no elements of `MPI_DATATYPE_NULL` and `MPI_PROC_NULL`, otherwise the error.
/// MPICH accepts such a message as well, and programs send it at the end of a line of ranks.
#[cold]
#[inline(never)]
fn nothing(count: i64, datatype: Datatype, peer: c_int, error: Error) -> Result<Buffer, Error> {
    match count == 0 && datatype == MPI_DATATYPE_NULL && peer == MPI_PROC_NULL {
        true => Ok(Buffer::empty()),
        false => Err(error),
    }
}

impl MessageBuffer for UserBuffer {
    #[inline(always)]
    fn resolve(self, types: &Types) -> Result<Buffer, Error> {
        self.memory(types, NO_MESSAGE)
    }
}

/// The length of the elements in bytes, if the datatype is predefined and has no gaps.
#[inline(always)]
fn dense(count: i64, datatype: Datatype) -> Option<usize> {
    let size = Predefined::dense_size(datatype.0)?;
    Some(count.checked_mul(size as i64)? as usize)
}

/// [`UserBuffer::any`] out of line. It checks the peer, which excuses some errors of the datatype.
/// It takes the fields one by one: a buffer that is passed out of line would need memory in every
/// call.
///
/// # Safety
/// The promise of [`UserBuffer::new`].
#[inline(never)]
unsafe fn any(
    types: &Types,
    address: *const c_void,
    count: i64,
    datatype: Datatype,
    peer: c_int,
) -> Result<Buffer, Error> {
    let ty = match types.committed(datatype.id()) {
        Ok(ty) => ty,
        Err(error) => return nothing(count, datatype, peer, error),
    };
    let bytes = count.checked_mul(ty.size() as i64);
    if bytes.ok_or_else(|| too_many(count, &ty))? == 0 {
        return Ok(Buffer::empty());
    }
    if address.addr() < FIRST_PAGE {
        check_low(address, count, &ty)?;
    }
    // SAFETY: the caller promises the memory of `count` elements of this datatype.
    Ok(unsafe { Buffer::new(address.cast_mut().cast(), count as usize, &ty) })
}

/// Rejects an address below the memory of every program, unless the datatype has absolute
/// addresses: NULL is then MPI_BOTTOM.
#[cold]
fn check_low(address: *const c_void, count: i64, ty: &Type) -> Result<(), Error> {
    let (start, _) = ty.span(count as usize)?;
    if start >= FIRST_PAGE as isize {
        return Ok(());
    }
    let detail = if address.is_null() {
        "the buffer is NULL but its elements hold data; \
         MPI_BOTTOM needs a datatype that is made of absolute addresses"
            .to_string()
    } else if address == MPI_IN_PLACE.cast_const() {
        "this buffer must not be MPI_IN_PLACE".to_string()
    } else {
        format!("the buffer is at {address:p}, where no memory of a program can be")
    };
    Err(Error::new(MPI_ERR_BUFFER, detail))
}

#[cold]
fn too_many(count: i64, ty: &Type) -> Error {
    let detail = format!(
        "{count} elements of {} bytes are more than any memory holds",
        ty.size()
    );
    Error::new(MPI_ERR_COUNT, detail)
}
