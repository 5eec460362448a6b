//! The arithmetic of the predefined operations: inout\[i\] = input\[i\] op inout\[i\], over packed
//! elements at any alignment.

#[cfg(target_arch = "x86_64")]
mod extended;
mod kernel;

use crate::buffer::Buffer;
use crate::error::{Error, Result};
use crate::op::Op;
use crate::predefined::{Format, Predefined};
#[cfg(target_arch = "x86_64")]
use extended::F80;
use kernel::{complex, float, integer, located};

/// Combines packed elements; where the lengths differ, the whole elements that both have.
pub fn reduce_bytes(op: Op, ty: Predefined, input: &[u8], inout: &mut [u8]) -> Result<()> {
    if !op.permits(ty) {
        return Err(Error::Operation { op, ty });
    }
    let len = input.len().min(inout.len());
    let len = len - len % ty.bytes();
    let (input, inout) = (&input[..len], &mut inout[..len]);
    match op {
        Op::NoOp => {}
        Op::Replace => inout.copy_from_slice(input),
        _ => compute(op, ty, input, inout),
    }
    Ok(())
}

/// Combines packed elements into a buffer of any type whose basic type is `ty`, from `position`
/// on, which must be the start of an element.
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
    if let Some(result) = target.with_bytes_apart(input, |inout| reduce_bytes(op, ty, input, inout))
    {
        return result;
    }
    // Spread out in memory: chunk by chunk through a small packed copy.
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

/// Combines one buffer into another (MPI_Reduce_local, and the ends of a reduction).
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

/// Fits the first-level cache beside what it is combined with.
const CHUNK: usize = 8192;

fn compute(op: Op, ty: Predefined, input: &[u8], inout: &mut [u8]) {
    use Format::*;
    match ty.format() {
        I8 => integer::<i8>(op, input, inout),
        I16 => integer::<i16>(op, input, inout),
        I32 => integer::<i32>(op, input, inout),
        I64 => integer::<i64>(op, input, inout),
        I128 => integer::<i128>(op, input, inout),
        U8 => integer::<u8>(op, input, inout),
        U16 => integer::<u16>(op, input, inout),
        U32 => integer::<u32>(op, input, inout),
        U64 => integer::<u64>(op, input, inout),
        F32 => float::<f32>(op, input, inout),
        F64 => float::<f64>(op, input, inout),
        ComplexF32 => complex::<f32>(op, input, inout),
        ComplexF64 => complex::<f64>(op, input, inout),
        F32I32 => located::<f32, i32>(op, input, inout),
        F64I32 => located::<f64, i32>(op, input, inout),
        I64I32 => located::<i64, i32>(op, input, inout),
        I32I32 => located::<i32, i32>(op, input, inout),
        I16I32 => located::<i16, i32>(op, input, inout),
        F32F32 => located::<f32, f32>(op, input, inout),
        F64F64 => located::<f64, f64>(op, input, inout),
        #[cfg(target_arch = "x86_64")]
        LongDouble => float::<F80>(op, input, inout),
        #[cfg(target_arch = "x86_64")]
        ComplexLongDouble => complex::<F80>(op, input, inout),
        #[cfg(target_arch = "x86_64")]
        LongDoubleI32 => located::<F80, i32>(op, input, inout),
        #[cfg(not(target_arch = "x86_64"))]
        LongDouble | ComplexLongDouble | LongDoubleI32 => {
            unreachable!("`permits` refuses them here")
        }
        Unsupported => unreachable!("`permits` refuses types without a size"),
    }
}
