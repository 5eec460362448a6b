//! Section 12.3: operations on windows.

use crate::args::Out;
use crate::buffer::UserBuffer;
use crate::call_guard::Running;
use crate::constants::{MPI_ERR_OP, MPI_ERR_TYPE};
use crate::error::{Done, Error};
use crate::handle::{Datatype, Op, Request, Win};
use datatype::{Buffer, Predefined};
use mpi::State;
use mpi::window::{Access, NearPlace, Place};
use std::ffi::{c_int, c_void};

/// The arguments of a call that specify elements in a target's window.
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
            ty: state
                .objects()
                .types()
                .committed(self.datatype.id())?
                .clone(),
        })
    }
}

/// The short path of an operation: elements of one predefined type without gaps on both sides, at a
/// target whose memory this rank maps. `None`: the operation cannot use it, or has an error.
#[inline(always)]
fn near<'a>(
    state: &'a mut State,
    win: Win,
    target: Target,
    origin: UserBuffer,
) -> Option<(NearPlace<'a>, Buffer)> {
    if origin.datatype() != target.datatype || origin.count() != target.count {
        return None;
    }
    let data = origin.run()?;
    let place =
        state
            .objects_mut()
            .windows_mut()
            .near(win.id(), target.rank, target.disp, data.len())?;
    Some((place, data))
}

/// The short path of an accumulate. `None`: the operation cannot use it, or has an error.
#[inline(always)]
fn accumulate_near(
    state: &mut State,
    win: Win,
    target: Target,
    (origin, result): (UserBuffer, Option<UserBuffer>),
    op: Op,
) -> Option<Done> {
    let op = datatype::Op::from_handle(op.0)?;
    let ty = Predefined::from_handle(target.datatype.0)?;
    let origin = match (op, result) {
        // The operation does not read the origin buffer, which may be anything.
        (datatype::Op::NoOp, Some(result)) => result,
        (datatype::Op::NoOp, None) => return None,
        _ => origin,
    };
    let result = match result {
        Some(result) if result.datatype() != target.datatype => return None,
        Some(result) if result.count() != target.count => return None,
        Some(result) => Some(result.run()?),
        None => None,
    };
    let (mut place, data) = near(state, win, target, origin)?;
    if let Some(done) = place.accumulate_word((op, ty), &data, result.as_ref()) {
        return Some(done);
    }
    let operands = (op != datatype::Op::NoOp).then_some(data);
    Some(place.accumulate((op, ty), operands, result))
}

/// Starts an operation, with a request if `request` is present.
fn start(
    call: &Running,
    win: Win,
    target: Target,
    request: Option<Out<Request>>,
    access: impl FnOnce(&State) -> Result<Access, Error>,
) -> Done {
    let state = call.rank.lock();
    state.objects().windows().get(win.id())?;
    let (access, place) = (access(&state)?, target.place(&state)?);
    let id = call.rank.access_window(
        state,
        call.procedure,
        win.id(),
        (&access, &place),
        request.is_some(),
    )?;
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

/// Declares both forms of each operation: without a request and with one.
macro_rules! operations {
    ($($name:ident $rname:ident ($($argument:ident: $kind:ty),*)
        at($rank:ident, $disp:ident, $count:ident, $datatype:ident)
        near |$held:ident, $win:ident, $target:ident| $near:expr,
        |$state:ident| $access:expr;)*) => {
        $(
            /// The form of the operation without a request.
            ///
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
                let short = {
                    let ($held, $win, $target) = (&mut *call.rank.lock(), win, target);
                    // SAFETY: the caller promises the memory until the operation is complete.
                    unsafe { $near }
                };
                if let Some(done) = short {
                    return done;
                }
                // SAFETY: the caller promises the memory until the operation is complete.
                start(call, win, target, None, |$state| unsafe { $access })
            }

            /// The form of the operation with a request.
            ///
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
        near |state, win, target| {
            let origin = UserBuffer::new(origin_addr, origin_count, origin_datatype);
            let found = near(state, win, target, origin);
            found.and_then(|(place, data)| place.put(&data).then_some(Ok(())))
        },
        |state| Ok(Access::Put(
            UserBuffer::new(origin_addr, origin_count, origin_datatype).buffer(state)?,
        ));
    get rget (origin_addr: *mut c_void, origin_count: i64, origin_datatype: Datatype,
        target_rank: c_int, target_disp: isize, target_count: i64, target_datatype: Datatype)
        at(target_rank, target_disp, target_count, target_datatype)
        near |state, win, target| {
            let origin = UserBuffer::new(origin_addr, origin_count, origin_datatype);
            let found = near(state, win, target, origin);
            found.and_then(|(place, data)| place.get(&data).then_some(Ok(())))
        },
        |state| Ok(Access::Get(
            UserBuffer::new(origin_addr, origin_count, origin_datatype).buffer(state)?,
        ));
    accumulate raccumulate
        (origin_addr: *const c_void, origin_count: i64, origin_datatype: Datatype,
        target_rank: c_int, target_disp: isize, target_count: i64, target_datatype: Datatype, op: Op)
        at(target_rank, target_disp, target_count, target_datatype)
        near |state, win, target| {
            let origin = UserBuffer::new(origin_addr, origin_count, origin_datatype);
            accumulate_near(state, win, target, (origin, None), op)
        },
        |state| Ok(Access::Accumulate {
            op: predefined(op)?,
            origin: UserBuffer::new(origin_addr, origin_count, origin_datatype).elements(state)?,
        });
    get_accumulate rget_accumulate
        (origin_addr: *const c_void, origin_count: i64, origin_datatype: Datatype,
        result_addr: *mut c_void, result_count: i64, result_datatype: Datatype,
        target_rank: c_int, target_disp: isize, target_count: i64, target_datatype: Datatype, op: Op)
        at(target_rank, target_disp, target_count, target_datatype)
        near |state, win, target| {
            let origin = UserBuffer::new(origin_addr, origin_count, origin_datatype);
            let result = UserBuffer::new(result_addr, result_count, result_datatype);
            accumulate_near(state, win, target, (origin, Some(result)), op)
        },
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

/// The operands of an operation; `None` for `MPI_NO_OP`, which reads none.
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

/// `MPI_Fetch_and_op` (MPI 5.0, chapter 12).
///
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
    let sides = (origin, Some(result));
    if let Some(done) = accumulate_near(&mut call.rank.lock(), win, target, sides, op) {
        return done;
    }
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

/// `MPI_Compare_and_swap` (MPI 5.0, chapter 12).
///
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
    if let (Some(compare), Some(result)) = (compare.run(), result.run())
        && let Some(ty) = Predefined::from_handle(datatype.0)
        && let Some((place, origin)) = near(&mut call.rank.lock(), win, target, origin)
    {
        return place.compare_and_swap(ty, [compare, origin, result]);
    }
    start(call, win, target, None, |state| {
        single(state, datatype)?;
        Ok(Access::CompareAndSwap {
            compare: compare.elements(state)?,
            origin: origin.elements(state)?,
            result: result.elements(state)?,
        })
    })
}

/// Returns an error unless the datatype of an operation on one element is predefined.
fn single(state: &State, datatype: Datatype) -> Done {
    match state
        .objects()
        .types()
        .committed(datatype.id())?
        .predefined()
    {
        Some(_) => Ok(()),
        None => Err(Error::new(
            MPI_ERR_TYPE,
            "an operation on one element needs a predefined datatype (MPI 5.0 §12.3.4)",
        )),
    }
}
