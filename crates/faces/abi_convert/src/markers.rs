//! MPI_LB and MPI_UB, the datatypes of MPI 1 that mark the bounds of a structure. The standard
//! replaces them by MPI_Type_create_resized.

use crate::abi::Abi;
use crate::constants::standard as constants;
use crate::standard;
use std::ffi::c_int;

/// Makes a structure that may have MPI_LB and MPI_UB among its members.
///
/// # Safety
/// The promises of MPI_Type_create_struct; `handles` are the program's handles of `types`.
pub unsafe fn type_create_struct<A: Abi>(
    handles: *const A::Handle,
    count: c_int,
    lengths: *const c_int,
    displacements: *const isize,
    types: *const usize,
    newtype: *mut usize,
) -> c_int {
    let is_readable = count > 0
        && !(handles.is_null() || lengths.is_null() || displacements.is_null() || types.is_null())
        && !newtype.is_null();
    // SAFETY: the arrays have `count` values.
    unsafe {
        let is_mark = |at: usize| A::markers().contains(&*handles.add(at));
        if is_readable && (0..count as usize).any(is_mark) {
            let member = |at: usize| Member {
                handle: *handles.add(at),
                length: *lengths.add(at),
                displacement: *displacements.add(at),
                datatype: *types.add(at),
            };
            return with_marks::<A>((0..count as usize).map(member).collect(), newtype);
        }
        standard::type_create_struct(count, lengths, displacements, types, newtype)
    }
}

struct Member<H> {
    handle: H,
    length: c_int,
    displacement: isize,
    datatype: usize,
}

/// Makes a structure of the members except MPI_LB and MPI_UB, which set its bounds.
///
/// # Safety
/// The address is that of a handle.
#[cold]
unsafe fn with_marks<A: Abi>(members: Vec<Member<A::Handle>>, newtype: *mut usize) -> c_int {
    let [lower, upper] = A::markers();
    let marks = |mark: A::Handle| {
        let marks = members.iter().filter(move |member| member.handle == mark);
        marks
            .filter(|member| member.length > 0)
            .map(|member| member.displacement)
    };
    let bounds = (marks(lower).min(), marks(upper).max());
    let others = || {
        let is_mark = |member: &&Member<A::Handle>| A::markers().contains(&member.handle);
        members.iter().filter(move |member| !is_mark(member))
    };
    let lengths: Vec<c_int> = others().map(|member| member.length).collect();
    let displacements: Vec<isize> = others().map(|member| member.displacement).collect();
    let types: Vec<usize> = others().map(|member| member.datatype).collect();
    let count = types.len() as c_int;
    let mut plain = constants::MPI_DATATYPE_NULL as usize;
    // SAFETY: the arrays have `count` values, and the addresses are those of variables.
    unsafe {
        let (lengths, displacements) = (lengths.as_ptr(), displacements.as_ptr());
        let code =
            standard::type_create_struct(count, lengths, displacements, types.as_ptr(), &mut plain);
        if code != 0 {
            return code;
        }
        let (mut start, mut extent) = (0, 0);
        let mut code = standard::type_get_extent(plain, &mut start, &mut extent);
        if code == 0 {
            let end = bounds.1.unwrap_or(start + extent);
            let start = bounds.0.unwrap_or(start);
            code = standard::type_create_resized(plain, start, end - start, newtype);
        }
        let freed = standard::type_free(&mut plain);
        if code == 0 { freed } else { code }
    }
}
