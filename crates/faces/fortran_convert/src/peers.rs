//! The lengths of array arguments that follow from a communicator, such as its number of ranks.

use crate::abi::Abi;
use crate::handle::{Comm, from_integer};
use crate::standard;
use std::ffi::c_int;

/// The number of ranks with which a collective call exchanges data. 0 if the communicator is
/// invalid.
///
/// # Safety
/// The address is that of a handle.
pub unsafe fn ranks<A: Abi>(comm: *const c_int) -> i64 {
    let (mut size, mut inter) = (0, 0);
    // SAFETY: promised; the other addresses are those of integers.
    let code = unsafe {
        let comm = from_integer::<A, Comm>(*comm);
        let code = standard::comm_test_inter::<A, true>(comm, &mut inter);
        match inter != 0 && code == 0 {
            true => standard::comm_remote_size::<A, true>(comm, &mut size),
            false => standard::comm_size::<A, true>(comm, &mut size),
        }
    };
    count(code, size)
}

/// The number of ranks of this process's group in a communicator.
///
/// # Safety
/// The address is that of a handle.
pub unsafe fn size<A: Abi>(comm: *const c_int) -> i64 {
    let mut size = 0;
    // SAFETY: promised; the other address is that of an integer.
    let code = unsafe { standard::comm_size::<A, true>(from_integer::<A, Comm>(*comm), &mut size) };
    count(code, size)
}

/// The number of dimensions of a Cartesian communicator.
///
/// # Safety
/// The address is that of a handle.
pub unsafe fn dimensions<A: Abi>(comm: *const c_int) -> i64 {
    let mut dimensions = 0;
    // SAFETY: promised; the other address is that of an integer.
    let code = unsafe {
        standard::cartdim_get::<A, true>(from_integer::<A, Comm>(*comm), &mut dimensions)
    };
    count(code, dimensions)
}

/// The number of neighbours from which a collective call receives, or to which it sends.
///
/// # Safety
/// The address is that of a handle.
pub unsafe fn neighbours<A: Abi>(place: *const c_int, receives: bool) -> i64 {
    let (mut topology, mut first, mut second, mut weighted) = (0, 0, 0, 0);
    // SAFETY: promised; the other addresses are those of integers.
    unsafe {
        let comm = from_integer::<A, Comm>(*place);
        if standard::topo_test::<A, true>(comm, &mut topology) != 0 {
            return 0;
        }
        match topology {
            _ if topology == A::MPI_CART => 2 * dimensions::<A>(place),
            _ if topology == A::MPI_GRAPH => {
                let code = standard::comm_rank::<A, true>(comm, &mut second);
                if code != 0 {
                    return 0;
                }
                let code = standard::graph_neighbors_count::<A, true>(comm, second, &mut first);
                count(code, first)
            }
            _ if topology == A::MPI_DIST_GRAPH => {
                let (sources, destinations) = (&mut first, &mut second);
                let code = standard::dist_graph_neighbors_count::<A, true>(
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

/// The length of an array that is significant at the root only: 0 at other ranks.
///
/// # Safety
/// The address is that of a handle.
pub unsafe fn at_root<A: Abi>(comm: *const c_int, root: c_int, length: i64) -> i64 {
    let mut own = 0;
    // SAFETY: promised; the other address is that of an integer.
    let code = unsafe { standard::comm_rank::<A, true>(from_integer::<A, Comm>(*comm), &mut own) };
    if code == 0 && own == root { length } else { 0 }
}

/// True if this rank is the root of a collective call.
///
/// # Safety
/// The address is that of a handle.
pub unsafe fn is_root<A: Abi>(comm: *const c_int, root: c_int) -> bool {
    let mut inter = 0;
    // SAFETY: promised; the other address is that of an integer.
    unsafe {
        root == A::MPI_ROOT
            || at_root::<A>(comm, root, 1) == 1
                && standard::comm_test_inter::<A, true>(from_integer::<A, Comm>(*comm), &mut inter)
                    == 0
                && inter == 0
    }
}

fn count(code: c_int, count: c_int) -> i64 {
    if code == 0 { i64::from(count) } else { 0 }
}
