//! Section 12.3: operations on windows.

use super::super::Done;
use crate::args::Out;
use crate::buffer::UserBuffer;
use crate::call_guard::Running;
use crate::constants::{MPI_ERR_OP, MPI_ERR_TYPE};
use crate::error::Error;
use crate::handle::{Datatype, Op, Request, Win};
use mpi::State;
use mpi::window::{Access, Place};
use std::ffi::{c_int, c_void};

/// The arguments that name elements at a target.
#[derive(Clone, Copy)]
struct Target {
    rank: c_int,
    disp: isize,
    count: i64,
    datatype: Datatype,
}

impl Target {
    fn place(self, state: &State) -> Result<Place, Error> {
        Ok(Place {
            rank: self.rank,
            disp: self.disp as i64,
            count: self.count as usize,
            ty: state.types.committed(self.datatype.id())?.clone(),
        })
    }
}

/// Starts an operation, with a request if there is a place for one.
fn start(
    call: &Running,
    win: Win,
    target: Target,
    request: Option<Out<Request>>,
    access: impl FnOnce(&State) -> Result<Access, Error>,
) -> Done {
    let mut state = call.rank.lock();
    state.windows.get(win.id())?;
    let (access, place) = (access(&state)?, target.place(&state)?);
    let wants_request = request.is_some();
    let id = state.access_window(win.id(), &access, &place, wants_request)?;
    if let (Some(request), Some(id)) = (request, id) {
        request.set(id.0);
    }
    Ok(())
}

fn predefined(op: Op) -> Result<datatype::Op, Error> {
    datatype::Op::from_handle(op.0).ok_or_else(|| {
        Error::new(
            MPI_ERR_OP,
            "an accumulate needs a predefined operation (MPI 5.0 §12.3.4)",
        )
    })
}

/// Declares both forms of an operation: with a request and without.
macro_rules! operations {
    ($($name:ident $rname:ident ($($argument:ident: $kind:ty),*)
        at($rank:ident, $disp:ident, $count:ident, $datatype:ident)
        |$state:ident| $access:expr;)*) => {
        $(
            /// # Safety
            /// The memory of the origin fulfils [`UserBuffer::new`]'s promise until the operation
            /// is complete at its origin.
            #[allow(clippy::too_many_arguments, reason = "the standard's")]
            pub unsafe fn $name(
                call: &Running,
                $($argument: $kind,)*
                win: Win,
            ) -> Done {
                let target = Target {
                    rank: $rank,
                    disp: $disp,
                    count: $count,
                    datatype: $datatype,
                };
                // SAFETY: the caller promises the memory until the operation is complete.
                start(call, win, target, None, |$state| unsafe { $access })
            }

            /// # Safety
            /// The memory of the origin fulfils [`UserBuffer::new`]'s promise until the request is
            /// complete.
            #[allow(clippy::too_many_arguments, reason = "the standard's")]
            pub unsafe fn $rname(
                call: &Running,
                $($argument: $kind,)*
                win: Win,
                request: Out<Request>,
            ) -> Done {
                let target = Target {
                    rank: $rank,
                    disp: $disp,
                    count: $count,
                    datatype: $datatype,
                };
                // SAFETY: the caller promises the memory until the request is complete.
                start(call, win, target, Some(request), |$state| unsafe { $access })
            }
        )*
    };
}

operations! {
    put rput (origin_addr: *const c_void, origin_count: i64, origin_datatype: Datatype,
        target_rank: c_int, target_disp: isize, target_count: i64, target_datatype: Datatype)
        at(target_rank, target_disp, target_count, target_datatype)
        |state| Ok(Access::Put(
            UserBuffer::new(origin_addr, origin_count, origin_datatype).buffer(state)?,
        ));
    get rget (origin_addr: *mut c_void, origin_count: i64, origin_datatype: Datatype,
        target_rank: c_int, target_disp: isize, target_count: i64, target_datatype: Datatype)
        at(target_rank, target_disp, target_count, target_datatype)
        |state| Ok(Access::Get(
            UserBuffer::new(origin_addr, origin_count, origin_datatype).buffer(state)?,
        ));
    accumulate raccumulate
        (origin_addr: *const c_void, origin_count: i64, origin_datatype: Datatype,
        target_rank: c_int, target_disp: isize, target_count: i64, target_datatype: Datatype, op: Op)
        at(target_rank, target_disp, target_count, target_datatype)
        |state| Ok(Access::Accumulate {
            op: predefined(op)?,
            origin: UserBuffer::new(origin_addr, origin_count, origin_datatype).elements(state)?,
        });
    get_accumulate rget_accumulate
        (origin_addr: *const c_void, origin_count: i64, origin_datatype: Datatype,
        result_addr: *mut c_void, result_count: i64, result_datatype: Datatype,
        target_rank: c_int, target_disp: isize, target_count: i64, target_datatype: Datatype, op: Op)
        at(target_rank, target_disp, target_count, target_datatype)
        |state| {
            let op = predefined(op)?;
            let origin = UserBuffer::new(origin_addr, origin_count, origin_datatype);
            let result = UserBuffer::new(result_addr, result_count, result_datatype);
            Ok(Access::GetAccumulate {
                op,
                origin: operands(state, origin, op)?,
                result: result.elements(state)?,
            })
        };
}

/// The operands of an operation, which `MPI_NO_OP` does not look at.
fn operands(
    state: &State,
    origin: UserBuffer,
    op: datatype::Op,
) -> Result<Option<datatype::Elements>, Error> {
    match op {
        datatype::Op::NoOp => Ok(None),
        _ => origin.elements(state).map(Some),
    }
}

/// # Safety
/// Both elements of the origin fulfil [`UserBuffer::new`]'s promise until the operation is complete
/// at its origin.
#[allow(clippy::too_many_arguments, reason = "the standard's")]
pub unsafe fn fetch_and_op(
    call: &Running,
    origin_addr: *const c_void,
    result_addr: *mut c_void,
    datatype: Datatype,
    target_rank: c_int,
    target_disp: isize,
    op: Op,
    win: Win,
) -> Done {
    let target = Target {
        rank: target_rank,
        disp: target_disp,
        count: 1,
        datatype,
    };
    // SAFETY: the caller promises one element at both addresses.
    let (origin, result) = unsafe {
        (
            UserBuffer::new(origin_addr, 1, datatype),
            UserBuffer::new(result_addr, 1, datatype),
        )
    };
    start(call, win, target, None, |state| {
        let op = predefined(op)?;
        single(state, datatype)?;
        Ok(Access::GetAccumulate {
            op,
            origin: operands(state, origin, op)?,
            result: result.elements(state)?,
        })
    })
}

/// # Safety
/// The elements of the origin fulfil [`UserBuffer::new`]'s promise until the operation is complete
/// at its origin.
#[allow(clippy::too_many_arguments, reason = "the standard's")]
pub unsafe fn compare_and_swap(
    call: &Running,
    origin_addr: *const c_void,
    compare_addr: *const c_void,
    result_addr: *mut c_void,
    datatype: Datatype,
    target_rank: c_int,
    target_disp: isize,
    win: Win,
) -> Done {
    let target = Target {
        rank: target_rank,
        disp: target_disp,
        count: 1,
        datatype,
    };
    // SAFETY: the caller promises one element at each address.
    let (origin, compare, result) = unsafe {
        (
            UserBuffer::new(origin_addr, 1, datatype),
            UserBuffer::new(compare_addr, 1, datatype),
            UserBuffer::new(result_addr, 1, datatype),
        )
    };
    start(call, win, target, None, |state| {
        single(state, datatype)?;
        Ok(Access::CompareAndSwap {
            compare: compare.elements(state)?,
            origin: origin.elements(state)?,
            result: result.elements(state)?,
        })
    })
}

/// An operation on one element needs a predefined type.
fn single(state: &State, datatype: Datatype) -> Done {
    match state.types.committed(datatype.id())?.predefined() {
        Some(_) => Ok(()),
        None => Err(Error::new(
            MPI_ERR_TYPE,
            "an operation on one element needs a predefined datatype (MPI 5.0 §12.3.4)",
        )),
    }
}
