//! The datatype of a section. It has the bytes that the program's count and datatype select from
//! the sequence of the section's elements, in the same order.

use super::errors::Problem;
use super::layout::Layout;
use super::section::{Prefix, Section};
use crate::abi::Abi;
use crate::handle::{Datatype, from_integer};
use crate::standard;
use std::ffi::c_int;

pub(crate) struct Made<H> {
    pub(crate) datatype: H,
    /// True if it consists of bytes, which the library cannot convert, although the program's
    /// datatype does not.
    pub(crate) is_of_bytes: bool,
}

/// Makes the datatype of a section. A message of one element of this type, at the address of the
/// section, transfers the section's data.
///
/// # Safety
/// The datatype is the library's; the count is positive.
pub(crate) unsafe fn describe<A: Abi>(
    section: &Section,
    count: i64,
    datatype: A::Handle,
) -> Result<Made<A::Handle>, Problem> {
    let count = count as usize;
    // SAFETY: promised.
    let layout = unsafe { Layout::of::<A>(datatype) }?;
    let ends = layout.runs.iter().map(|run| run.offset + run.bytes);
    let end = ends.max().unwrap_or(0);
    // A datatype without bytes may be applied to any section.
    if end > 0 && (count - 1) * layout.extent + end > section.bytes() {
        return Err(Problem::TooShort);
    }
    let mut builder = Builder::<A> { made: Vec::new() };
    let is_dense = layout.is_dense();
    // An element of the datatype may span runs of the section.
    let is_of_bytes =
        datatype != byte::<A>() && !(is_dense && section.run.is_multiple_of(layout.size));
    let result = match is_dense {
        true => builder.dense(section, count * layout.size, datatype, layout.size),
        false => builder.scattered(section, count, &layout),
    };
    let committed = result.and_then(|mut result| {
        // SAFETY: the datatype has just been made.
        ok(unsafe { standard::type_commit::<A, true>(&mut result) })?;
        builder.made.retain(|made| *made != result);
        Ok(Made {
            datatype: result,
            is_of_bytes,
        })
    });
    builder.free();
    committed
}

/// A builder of a datatype from intermediate ones, which it frees.
struct Builder<A: Abi> {
    made: Vec<A::Handle>,
}

impl<A: Abi> Builder<A> {
    /// Makes the datatype with the first `bytes` bytes of a section, in order. The program's
    /// datatype has `size` bytes and no gaps.
    fn dense(
        &mut self,
        section: &Section,
        bytes: usize,
        datatype: A::Handle,
        size: usize,
    ) -> Result<A::Handle, Problem> {
        // If an element of the datatype spans several runs, single bytes are described.
        let (unit, size) = match section.run % size {
            0 => (datatype, size),
            _ => (byte::<A>(), 1),
        };
        let Prefix {
            pieces,
            tail_offset,
            tail,
        } = section.prefix(bytes);
        let mut slabs = vec![self.contiguous(section.run / size, unit)?];
        let inner = pieces.first().map_or(0, |piece| piece.inner);
        for dimension in &section.dimensions()[..inner] {
            let below = slabs[slabs.len() - 1];
            slabs.push(self.vector(dimension.extent, dimension.stride, below)?);
        }
        let (mut places, mut types) = (Vec::new(), Vec::new());
        for piece in &pieces {
            places.push(piece.offset as i64);
            types.push(self.vector(piece.count, piece.stride, slabs[piece.inner])?);
        }
        if tail > 0 {
            places.push(tail_offset as i64);
            types.push(self.contiguous(tail / size, unit)?);
        }
        match (places.as_slice(), types.as_slice()) {
            ([0], [whole]) => self.copy_of_unit(*whole, unit),
            _ => self.structure(&places, &types),
        }
    }

    /// Makes the datatype for elements with gaps, or in an order of their own: single bytes at
    /// their offsets.
    fn scattered(
        &mut self,
        section: &Section,
        count: usize,
        layout: &Layout,
    ) -> Result<A::Handle, Problem> {
        let (mut places, mut lengths): (Vec<i64>, Vec<i64>) = (Vec::new(), Vec::new());
        for element in 0..count {
            for run in &layout.runs {
                let (mut byte, mut rest) = (element * layout.extent + run.offset, run.bytes);
                while rest > 0 {
                    let (place, follow) = section.place(byte);
                    let length = rest.min(follow);
                    let place = place as i64;
                    match (places.last(), lengths.last_mut()) {
                        (Some(last), Some(bytes)) if last + *bytes == place => {
                            *bytes += length as i64
                        }
                        _ => {
                            places.push(place);
                            lengths.push(length as i64);
                        }
                    }
                    byte += length;
                    rest -= length;
                }
            }
        }
        self.make(|made| {
            let (lengths, places, number) =
                (lengths.as_ptr(), places.as_ptr(), places.len() as i64);
            // SAFETY: both arrays have this length.
            unsafe {
                standard::type_create_hindexed_c::<A, true>(
                    number,
                    lengths,
                    places,
                    byte::<A>(),
                    made,
                )
            }
        })
    }

    fn contiguous(&mut self, count: usize, unit: A::Handle) -> Result<A::Handle, Problem> {
        if count == 1 {
            return Ok(unit);
        }
        // SAFETY: the datatype is the library's.
        self.make(|made| unsafe {
            standard::type_contiguous_c::<A, true>(count as i64, unit, made)
        })
    }

    fn vector(
        &mut self,
        count: usize,
        stride: isize,
        below: A::Handle,
    ) -> Result<A::Handle, Problem> {
        if count == 1 {
            return Ok(below);
        }
        let (count, stride) = (count as i64, stride as i64);
        self.make(|made| {
            // SAFETY: the datatype is the library's.
            unsafe { standard::type_create_hvector_c::<A, true>(count, 1, stride, below, made) }
        })
    }

    fn structure(&mut self, places: &[i64], types: &[A::Handle]) -> Result<A::Handle, Problem> {
        let (number, ones) = (types.len() as i64, vec![1i64; types.len()]);
        self.make(|made| {
            let (ones, places, types) = (ones.as_ptr(), places.as_ptr(), types.as_ptr());
            // SAFETY: all arrays have this length.
            unsafe { standard::type_create_struct_c::<A, true>(number, ones, places, types, made) }
        })
    }

    /// A copy of `datatype` if it is the unit itself, which may be the program's and must not be
    /// freed.
    fn copy_of_unit(&mut self, datatype: A::Handle, unit: A::Handle) -> Result<A::Handle, Problem> {
        if datatype != unit {
            return Ok(datatype);
        }
        // SAFETY: the datatype is the library's.
        self.make(|made| unsafe { standard::type_dup::<A, true>(unit, made) })
    }

    fn make(&mut self, make: impl FnOnce(*mut A::Handle) -> c_int) -> Result<A::Handle, Problem> {
        let mut made = A::Handle::default();
        ok(make(&mut made))?;
        self.made.push(made);
        Ok(made)
    }

    /// Frees the intermediate datatypes. Datatypes made from them stay valid.
    fn free(self) {
        for mut made in self.made {
            // SAFETY: this code has made the datatype.
            unsafe { standard::type_free::<A, true>(&mut made) };
        }
    }
}

fn byte<A: Abi>() -> A::Handle {
    from_integer::<A, Datatype>(A::MPI_BYTE)
}

fn ok(code: c_int) -> Result<(), Problem> {
    match code {
        0 => Ok(()),
        code => Err(Problem::OfLibrary(code)),
    }
}
