//! The arithmetic of the predefined operations on packed elements at any alignment: inout\[i\] =
//! input\[i\] op inout\[i\].

#[cfg(target_arch = "x86_64")]
mod extended;
mod kernel;
mod long_double;
#[cfg(target_arch = "aarch64")]
mod quad;
mod word;

use crate::buffer::Buffer;
use crate::elements::Elements;
use crate::error::{Error, Result};
use crate::op::Op;
use crate::predefined::{Format, Predefined};
use crate::types::Type;
use kernel::{Apart, InPlace, Operands, complex, float, integer, located};
use long_double::LongDouble as CLongDouble;
pub use word::{add_atomically, reduce_word, swap_atomically, swap_word};

/// Combines packed elements, as many whole ones as both slices have.
pub fn reduce_bytes(op: Op, ty: Predefined, input: &[u8], inout: &mut [u8]) -> Result<()> {
    if !op.permits(ty) {
        return Err(Error::Operation { op, ty });
    }
    let len = input.len().min(inout.len());
    let len = match ty.bytes() {
        one if one == len => len,
        one => len - len % one,
    };
    let (input, inout) = (&input[..len], &mut inout[..len]);
    match op {
        Op::NoOp => {}
        Op::Replace => inout.copy_from_slice(input),
        _ => compute(op, ty, InPlace { input, inout }),
    }
    Ok(())
}

/// Combines packed elements into a buffer, whose type may have gaps but has only the basic type
/// `ty`, from its byte `position` on, which is the start of an element.
pub fn reduce_into(
    op: Op,
    ty: Predefined,
    input: &[u8],
    inout: &Buffer,
    position: usize,
) -> Result<()> {
    if !op.permits(ty) {
        return Err(Error::Operation { op, ty });
    }
    let target = inout.slice(position, input.len());
    if op == Op::Replace {
        let len = target.len() - target.len() % ty.bytes();
        target.unpack(0, &input[..len]);
        return Ok(());
    }
    if let Some(result) =
        target.with_bytes_apart([input], |inout| reduce_bytes(op, ty, input, inout))
    {
        return result;
    }
    // The target is not one run: combine chunk by chunk through a small packed copy.
    let mut chunk = [0; CHUNK];
    let room = CHUNK - CHUNK % ty.bytes();
    let mut done = 0;
    while target.len() - done >= ty.bytes() {
        let len = target.pack(done, &mut chunk[..room]);
        reduce_bytes(op, ty, &input[done..done + len], &mut chunk[..len])?;
        target.unpack(done, &chunk[..len]);
        done += len;
    }
    Ok(())
}

/// Combines the packed elements of a buffer into another buffer from its byte `position` on.
/// `None`, without a change, if one of the two is not one run, or if they overlap.
#[inline]
pub fn reduce_run(
    op: Op,
    ty: Predefined,
    input: &Buffer,
    inout: &Buffer,
    position: usize,
) -> Option<Result<()>> {
    input.with_both_at(inout, position, |input, inout| {
        reduce_bytes(op, ty, input, inout)
    })
}

/// Combines two vectors of packed elements into a buffer, whose type may have gaps but has only the
/// basic type `ty`: result\[i\] = first\[i\] op second\[i\], as far as all three have whole
/// elements.
pub fn reduce_pair(
    op: Op,
    ty: Predefined,
    first: &[u8],
    second: &[u8],
    result: &Buffer,
) -> Result<()> {
    if !op.permits(ty) {
        return Err(Error::Operation { op, ty });
    }
    let len = first.len().min(second.len()).min(result.len());
    let len = len - len % ty.bytes();
    let (first, second, result) = (&first[..len], &second[..len], result.slice(0, len));
    let computed = !matches!(op, Op::NoOp | Op::Replace);
    let done = computed.then(|| {
        result.with_bytes_apart([first, second], |result| {
            let operands = Apart {
                first,
                second,
                result,
            };
            compute(op, ty, operands);
        })
    });
    if let Some(Some(())) = done {
        return Ok(());
    }
    result.unpack(0, second);
    reduce_into(op, ty, first, &result, 0)
}

/// Combines elements: inout\[i\] = input\[i\] op inout\[i\], up to the end of the shorter operand.
#[inline]
pub fn reduce_elements(op: Op, input: &Elements, inout: &Elements) -> Result<()> {
    let ty = input.ty().predefined().ok_or(Error::Derived { op })?;
    let (input, inout) = (input.buffer(), inout.buffer());
    if let Some(done) = input.with_both(&inout, |input, inout| reduce_bytes(op, ty, input, inout)) {
        return done;
    }
    reduce_buffers(op, ty, &input, &inout)
}

/// The signature of a user's operation. Its arguments are the addresses of input and inout, the
/// number of elements, their type, and the user's handle of the type.
type Call = dyn Fn(*const u8, *mut u8, usize, &Type, usize) + Send + Sync;

/// A user-defined operation (`MPI_Op_create`).
pub struct Function(Box<Call>);

impl Function {
    /// An operation that calls a function of the user.
    ///
    /// # Safety
    /// `call` may be called on any thread; it accesses only the given number of elements at the two
    /// addresses, and its own data.
    pub unsafe fn new(
        call: impl Fn(*const u8, *mut u8, usize, &Type, usize) + Send + Sync + 'static,
    ) -> Function {
        Function(Box::new(call))
    }

    /// Combines elements by the user's operation, up to the end of the shorter operand: inout\[i\]
    /// = input\[i\] op inout\[i\]. `handle` is the user's handle of their type.
    pub fn combine(&self, input: &Elements, inout: &Elements, handle: usize) {
        let count = input.count().min(inout.count());
        if count > 0 {
            let at = std::ptr::with_exposed_provenance_mut;
            (self.0)(
                at(input.address()),
                at(inout.address()),
                count,
                input.ty(),
                handle,
            );
        }
    }
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Function")
    }
}

/// Combines the elements of one buffer into another (MPI_Reduce_local, and the last step of a
/// reduction).
pub fn reduce_buffers(op: Op, ty: Predefined, input: &Buffer, inout: &Buffer) -> Result<()> {
    if !op.permits(ty) {
        return Err(Error::Operation { op, ty });
    }
    let mut chunk = [0; CHUNK];
    let room = CHUNK - CHUNK % ty.bytes();
    let mut done = 0;
    loop {
        let len = input.pack(done, &mut chunk[..room]);
        if len == 0 {
            return Ok(());
        }
        reduce_into(op, ty, &chunk[..len], inout, done)?;
        done += len;
    }
}

/// The size in bytes of the memory through which elements with gaps are combined piece by piece:
/// two such pieces fit the first-level cache.
const CHUNK: usize = 8192;

fn compute(op: Op, ty: Predefined, operands: impl Operands) {
    use Format::*;
    match ty.format() {
        I8 => integer::<i8>(op, operands),
        I16 => integer::<i16>(op, operands),
        I32 => integer::<i32>(op, operands),
        I64 => integer::<i64>(op, operands),
        I128 => integer::<i128>(op, operands),
        U8 => integer::<u8>(op, operands),
        U16 => integer::<u16>(op, operands),
        U32 => integer::<u32>(op, operands),
        U64 => integer::<u64>(op, operands),
        F32 => float::<f32>(op, operands),
        F64 => float::<f64>(op, operands),
        ComplexF32 => complex::<f32>(op, operands),
        ComplexF64 => complex::<f64>(op, operands),
        F32I32 => located::<f32, i32>(op, operands),
        F64I32 => located::<f64, i32>(op, operands),
        I64I32 => located::<i64, i32>(op, operands),
        I32I32 => located::<i32, i32>(op, operands),
        I16I32 => located::<i16, i32>(op, operands),
        F32F32 => located::<f32, f32>(op, operands),
        F64F64 => located::<f64, f64>(op, operands),
        LongDouble => float::<CLongDouble>(op, operands),
        ComplexLongDouble => complex::<CLongDouble>(op, operands),
        LongDoubleI32 => located::<CLongDouble, i32>(op, operands),
        Unsupported => unreachable!("`permits` refuses types without a size"),
    }
}
