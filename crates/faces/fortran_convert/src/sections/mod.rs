//! Sections of arrays as choice buffers of `mpi_f08` (MPI 5.0 §19.1.12).
//!
//! A choice buffer is the sequence of the elements of the actual argument, in array element order,
//! as if they were contiguous; count and datatype apply to that sequence. An argument without gaps
//! is passed to the library unchanged. For others there are two methods, and the kind of the buffer
//! determines which is used (`choice` of `fortran_tables`):
//!
//! - A buffer with one count and one datatype is *described*: a datatype is made that has the bytes
//!   of the section in that order. Nothing is copied.
//! - A buffer of a reduction, and one with blocks for several ranks, is *packed*: the library gets
//!   a copy, whose changes are written to the section when the operation is complete.
//!
//! Invariant: no byte of a section is written that the operation has not changed.

mod datatype;
mod descriptor;
mod errors;
mod layout;
mod packed;
pub mod reach;
mod section;
#[cfg(test)]
mod tests;

pub use descriptor::Descriptor;
pub use errors::Object;
pub(crate) use packed::Packed;

use crate::abi::Abi;
use crate::handle::{Datatype, from_integer, to_integer};
use crate::requests;
use crate::standard;
use errors::Problem;
use reach::Integer;
use std::ffi::{c_int, c_void};

/// The choice buffers of one call of Fortran.
pub struct Sections<A: Abi> {
    /// Datatypes of described buffers, which are freed after the call.
    types: Vec<A::Handle>,
    /// True if one of `types` consists of bytes.
    has_bytes: bool,
    copies: Vec<Packed>,
    lifetime: Lifetime,
    problem: Option<Problem>,
}

/// The time during which a call uses its buffers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// The call alone uses the buffer.
    Call,
    /// The operation uses the buffer until its request is complete.
    Request,
    /// From each start of a persistent request until its completion.
    Starts,
}

/// A choice buffer with its count and its datatype, as arguments of the entry point without
/// sections.
pub struct Described<N> {
    /// The address of the first element.
    pub address: *mut c_void,
    /// The number of elements.
    pub count: N,
    /// Fortran's handle of the datatype.
    pub datatype: c_int,
}

impl<A: Abi> Sections<A> {
    /// The choice buffers of a call that uses them during `lifetime`; none yet.
    pub fn new(lifetime: Lifetime) -> Sections<A> {
        Sections {
            types: Vec::new(),
            has_bytes: false,
            copies: Vec::new(),
            lifetime,
            problem: None,
        }
    }

    /// Adds a buffer with one count and one datatype.
    ///
    /// # Safety
    /// The descriptor is a compiler's; the addresses are those of count and datatype.
    pub unsafe fn described<N: Integer>(
        &mut self,
        buffer: Descriptor,
        count: *const N,
        datatype: *const c_int,
    ) -> Described<N> {
        // SAFETY: promised.
        unsafe {
            let mut described = Described {
                address: buffer.address(),
                count: *count,
                datatype: *datatype,
            };
            if buffer.contiguous().is_some() || (*count).get() <= 0 {
                return described;
            }
            let standard = from_integer::<A, Datatype>(*datatype);
            match datatype::describe::<A>(&buffer.section(), (*count).get(), standard) {
                Ok(made) => {
                    described.count = N::ONE;
                    described.datatype = to_integer::<A, Datatype>(made.datatype);
                    self.types.push(made.datatype);
                    self.has_bytes |= made.is_of_bytes;
                }
                Err(problem) => self.problem = self.problem.or(Some(problem)),
            }
            described
        }
    }

    /// Adds a buffer of which the call uses the first `reach` bytes. `is_written`: true if it may
    /// change them.
    ///
    /// # Safety
    /// The descriptor is a compiler's.
    pub unsafe fn packed(
        &mut self,
        buffer: Descriptor,
        is_written: bool,
        reach: impl FnOnce() -> Result<i64, Problem>,
    ) -> *mut c_void {
        // SAFETY: promised.
        unsafe {
            if let Some(address) = buffer.contiguous() {
                return address;
            }
            let section = buffer.section();
            match reach() {
                // The count is not significant at this rank, or is 0.
                Ok(0) => return buffer.address(),
                Ok(bytes) if bytes as usize <= section.bytes() => {}
                Ok(_) => self.problem = Some(Problem::TooShort),
                Err(problem) => self.problem = Some(problem),
            }
            let mut copy = Packed::new(section, is_written);
            if self.problem.is_none() && self.lifetime != Lifetime::Starts {
                copy.gather();
            }
            let address = copy.address();
            self.copies.push(copy);
            address
        }
    }

    /// Adds a buffer that holds one element of the datatype.
    ///
    /// # Safety
    /// The descriptor is a compiler's; the other address is that of a datatype.
    pub unsafe fn element(&mut self, buffer: Descriptor, datatype: *const c_int) -> *mut c_void {
        // SAFETY: promised.
        unsafe {
            if buffer.contiguous().is_none() {
                let datatype = from_integer::<A, Datatype>(*datatype);
                match reach::blocks::<A, _>(1i64, datatype, 1) {
                    Ok(bytes) if bytes as usize <= buffer.section().run => {}
                    Ok(_) => self.problem = Some(Problem::Gaps),
                    Err(problem) => self.problem = Some(problem),
                }
            }
            buffer.address()
        }
    }

    /// Adds memory that the library keeps, which must have no gaps.
    ///
    /// # Safety
    /// The descriptor is a compiler's.
    pub unsafe fn memory(&mut self, buffer: Descriptor) -> *mut c_void {
        // SAFETY: promised.
        unsafe {
            if buffer.contiguous().is_none() {
                self.problem = Some(Problem::Gaps);
            }
            buffer.address()
        }
    }

    /// If a buffer cannot be used, frees everything, calls the error handler of the object, and
    /// returns the error code. `None`: all buffers can be used.
    ///
    /// # Safety
    /// The object's address is that of a handle.
    pub unsafe fn refused(&mut self, object: Object) -> Option<c_int> {
        // SAFETY: promised.
        if self.has_bytes && unsafe { object.converts::<A>() } {
            self.problem = self.problem.or(Some(Problem::Opaque));
        }
        let problem = self.problem?;
        self.free_types();
        self.copies.clear();
        // SAFETY: promised.
        Some(unsafe { problem.raise::<A>(object) })
    }

    /// Ends the use of the buffers by a call that returned `code` and the request, which is NULL if
    /// there is none.
    ///
    /// # Safety
    /// The program's arrays still exist; the address is that of a handle.
    pub unsafe fn end(mut self, code: c_int, request: *const c_int) {
        self.free_types();
        // SAFETY: promised; without an error there is a request.
        unsafe {
            match self.lifetime {
                _ if self.copies.is_empty() => {}
                Lifetime::Call => self.copies.iter_mut().for_each(|copy| copy.scatter()),
                _ if code != 0 => {}
                lifetime => {
                    let is_active = lifetime == Lifetime::Request;
                    requests::keep_copies::<A>(*request, self.copies, is_active);
                }
            }
        }
    }

    /// Frees the datatypes. The library keeps them as long as an operation needs them.
    fn free_types(&mut self) {
        for mut made in self.types.drain(..) {
            // SAFETY: this code has made the datatype.
            unsafe { standard::type_free::<A, true>(&mut made) };
        }
    }
}
