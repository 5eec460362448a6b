//! Sections 6.9.5 to 6.9.7: user-defined operations, and reduction without communication.

use crate::args::{Flag, Out};
use crate::buffer::UserBuffer;
use crate::call_guard::Running;
use crate::callback::{UserFunction, run_operation};
use crate::constants::{MPI_ERR_ARG, MPI_OP_NULL};
use crate::error::{Done, Error};
use crate::handle::{Datatype, Op};
use datatype::Type;
use datatype::reduce::Function;
use std::ffi::{c_int, c_void};

/// `MPI_Op_create` (MPI 5.0, chapter 6).
///
/// # Safety
/// `user_fn` is a C function of that type, which may be called until the operation is freed and no
/// reduction uses it any more.
pub unsafe fn op_create(call: &Running, user_fn: UserFunction, commute: bool, op: Out<Op>) -> Done {
    let rank = call.rank;
    let number = rank.objects().ops().made();
    // SAFETY: C promises that the function keeps to its vectors (MPI 5.0 §6.9.5).
    let function = unsafe {
        match user_fn {
            UserFunction::Small(Some(call)) => {
                Function::new(move |input, inout, count, ty, handle| {
                    run_operation(rank, number, count, || {
                        in_pieces(input, inout, count, ty, |input, inout, mut count| {
                            call(input, inout, &mut count, &mut Datatype(handle));
                        });
                    });
                })
            }
            UserFunction::Large(Some(call)) => {
                Function::new(move |input, inout, count, _, handle| {
                    let (input, inout) = (input.cast_mut().cast(), inout.cast());
                    run_operation(rank, number, count, || {
                        call(input, inout, &mut (count as i64), &mut Datatype(handle));
                    });
                })
            }
            UserFunction::Small(None) | UserFunction::Large(None) => {
                return Err(Error::new(
                    MPI_ERR_ARG,
                    "user_fn is NULL; it must be a function",
                ));
            }
        }
    };
    let id = call.rank.objects().ops_mut().create(function, commute)?;
    op.set(Op::from(id));
    Ok(())
}

/// Calls `each` on parts of the vectors, each of at most as many elements as an int can count.
fn in_pieces(
    input: *const u8,
    inout: *mut u8,
    count: usize,
    ty: &Type,
    mut each: impl FnMut(*mut c_void, *mut c_void, c_int),
) {
    let most = c_int::MAX as usize;
    for first in (0..count).step_by(most) {
        let offset = ty.extent().wrapping_mul(first as isize);
        let (input, inout) = (input.wrapping_offset(offset), inout.wrapping_offset(offset));
        each(
            input.cast_mut().cast(),
            inout.cast(),
            (count - first).min(most) as c_int,
        );
    }
}

/// `MPI_Op_free` (MPI 5.0, chapter 6).
pub fn op_free(call: &Running, op: &mut Op) -> Done {
    call.rank.objects().ops_mut().free(op.id())?;
    *op = MPI_OP_NULL;
    Ok(())
}

/// `MPI_Op_commutative` (MPI 5.0, chapter 6).
pub fn op_commutative(call: &Running, op: Op, commute: Out<Flag>) -> Done {
    commute.set(call.rank.objects().ops().get(op.id(), 0)?.is_commutative());
    Ok(())
}

/// `MPI_Reduce_local` (MPI 5.0, chapter 6).
///
/// # Safety
/// Both vectors fulfil [`UserBuffer::new`]'s promise until the call returns.
pub unsafe fn reduce_local(
    call: &Running,
    inbuf: *const c_void,
    inoutbuf: *mut c_void,
    count: i64,
    datatype: Datatype,
    op: Op,
) -> Done {
    // SAFETY: the caller promises both vectors until the call returns.
    let (input, inout) = unsafe {
        (
            UserBuffer::new(inbuf, count, datatype),
            UserBuffer::new(inoutbuf, count, datatype),
        )
    };
    let (input, inout, op) = {
        let state = call.rank.lock();
        (
            input.elements(&state)?,
            inout.elements(&state)?,
            state.objects().ops().get(op.id(), datatype.0)?,
        )
    };
    call.rank.reduce_local(&input, &inout, &op)
}
