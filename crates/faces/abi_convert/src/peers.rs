//! The lengths of array arguments that follow from a communicator: its number of ranks or of
//! neighbours.

use crate::abi::Abi;
use crate::constants::standard::*;
use crate::convert::rank_in;
use crate::handle::Handles;
use crate::standard;
use std::ffi::c_int;

/// The number of ranks with which a collective call exchanges data. 0 if the communicator is
/// invalid.
pub fn ranks(comm: usize) -> usize {
    let (mut size, mut inter) = (0, 0);
    // SAFETY: the arguments are integers.
    let code = unsafe {
        let code = standard::comm_test_inter(comm, &mut inter);
        match inter != 0 && code == 0 {
            true => standard::comm_remote_size(comm, &mut size),
            false => standard::comm_size(comm, &mut size),
        }
    };
    count(code, size)
}

/// The number of neighbours from which a collective call receives, or to which it sends.
pub fn neighbours(comm: usize, receives: bool) -> usize {
    let mut topology = 0;
    // SAFETY: the arguments are integers.
    unsafe {
        if standard::topo_test(comm, &mut topology) != 0 {
            return 0;
        }
        let (mut first, mut second, mut weighted) = (0, 0, 0);
        match i64::from(topology) {
            MPI_CART => {
                let code = standard::cartdim_get(comm, &mut first);
                2 * count(code, first)
            }
            MPI_GRAPH => {
                let code = standard::comm_rank(comm, &mut second);
                if code != 0 {
                    return 0;
                }
                let code = standard::graph_neighbors_count(comm, second, &mut first);
                count(code, first)
            }
            MPI_DIST_GRAPH => {
                let code = standard::dist_graph_neighbors_count(
                    comm,
                    &mut first,
                    &mut second,
                    &mut weighted,
                );
                count(code, if receives { first } else { second })
            }
            _ => 0,
        }
    }
}

/// True if `rank` is the rank of this process in the communicator.
pub fn is_rank<A: Abi>(comm: A::Handle, rank: c_int) -> bool {
    let mut own = 0;
    // SAFETY: the arguments are integers.
    let code = unsafe { standard::comm_rank(A::classes().comm.standard(comm), &mut own) };
    code == 0 && own == rank_in::<A>(rank)
}

/// The sum of the positive ones of `length` integers; 0 if the address is NULL.
///
/// # Safety
/// The address is NULL or that of `length` integers.
pub unsafe fn sum(numbers: *const c_int, length: c_int) -> i64 {
    if numbers.is_null() {
        return 0;
    }
    let numbers = (0..usize::try_from(length).unwrap_or(0)).map(|at| {
        // SAFETY: promised.
        i64::from(unsafe { *numbers.add(at) }.max(0))
    });
    numbers.sum()
}

fn count(code: c_int, count: c_int) -> usize {
    if code == 0 {
        usize::try_from(count).unwrap_or(0)
    } else {
        0
    }
}
