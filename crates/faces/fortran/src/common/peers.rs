//! The lengths of arrays that a communicator determines.

use crate::common::constants::*;
use crate::common::handle::{Comm, from_integer};
use crate::common::standard;
use std::ffi::c_int;

/// The ranks with which a collective call exchanges. 0 if the library knows no such communicator.
///
/// # Safety
/// The address is that of a handle.
pub(crate) unsafe fn ranks(comm: *const c_int) -> i64 {
    let (mut size, mut inter) = (0, 0);
    // SAFETY: promised; the other addresses are those of integers.
    let code = unsafe {
        let comm = from_integer::<Comm>(*comm);
        let code = standard::comm_test_inter::<true>(comm, &mut inter);
        match inter != 0 && code == 0 {
            true => standard::comm_remote_size::<true>(comm, &mut size),
            false => standard::comm_size::<true>(comm, &mut size),
        }
    };
    count(code, size)
}

/// The ranks of this process's group.
///
/// # Safety
/// The address is that of a handle.
pub(crate) unsafe fn size(comm: *const c_int) -> i64 {
    let mut size = 0;
    // SAFETY: promised; the other address is that of an integer.
    let code = unsafe { standard::comm_size::<true>(from_integer::<Comm>(*comm), &mut size) };
    count(code, size)
}

/// The dimensions of a Cartesian communicator.
///
/// # Safety
/// The address is that of a handle.
pub(crate) unsafe fn dimensions(comm: *const c_int) -> i64 {
    let mut dimensions = 0;
    // SAFETY: promised; the other address is that of an integer.
    let code =
        unsafe { standard::cartdim_get::<true>(from_integer::<Comm>(*comm), &mut dimensions) };
    count(code, dimensions)
}

/// The neighbours from which a call receives, or to which it sends.
///
/// # Safety
/// The address is that of a handle.
pub(crate) unsafe fn neighbours(place: *const c_int, receives: bool) -> i64 {
    let (mut topology, mut first, mut second, mut weighted) = (0, 0, 0, 0);
    // SAFETY: promised; the other addresses are those of integers.
    unsafe {
        let comm = from_integer::<Comm>(*place);
        if standard::topo_test::<true>(comm, &mut topology) != 0 {
            return 0;
        }
        match topology {
            MPI_CART => 2 * dimensions(place),
            MPI_GRAPH => {
                let code = standard::comm_rank::<true>(comm, &mut second);
                if code != 0 {
                    return 0;
                }
                let code = standard::graph_neighbors_count::<true>(comm, second, &mut first);
                count(code, first)
            }
            MPI_DIST_GRAPH => {
                let (sources, destinations) = (&mut first, &mut second);
                let code = standard::dist_graph_neighbors_count::<true>(
                    comm,
                    sources,
                    destinations,
                    &mut weighted,
                );
                count(code, if receives { first } else { second })
            }
            _ => 0,
        }
    }
}

/// The length of an array that is significant at the root alone.
///
/// # Safety
/// The address is that of a handle.
pub(crate) unsafe fn at_root(comm: *const c_int, root: c_int, length: i64) -> i64 {
    let mut own = 0;
    // SAFETY: promised; the other address is that of an integer.
    let code = unsafe { standard::comm_rank::<true>(from_integer::<Comm>(*comm), &mut own) };
    if code == 0 && own == root { length } else { 0 }
}

/// Whether this rank is the root of a collective call.
///
/// # Safety
/// The address is that of a handle.
pub(crate) unsafe fn is_root(comm: *const c_int, root: c_int) -> bool {
    let mut inter = 0;
    // SAFETY: promised; the other address is that of an integer.
    unsafe {
        root == MPI_ROOT
            || at_root(comm, root, 1) == 1
                && standard::comm_test_inter::<true>(from_integer::<Comm>(*comm), &mut inter) == 0
                && inter == 0
    }
}

fn count(code: c_int, count: c_int) -> i64 {
    if code == 0 { i64::from(count) } else { 0 }
}
