//! Communicators with process topologies, for neighbourhood collectives.

use std::ffi::c_int;

use anyhow::Result;

use super::{AbiHandle, Address, COMM_WORLD, INFO_NULL, Mpi};
use crate::operation::Topology;

/// The value of `MPI_UNWEIGHTED`.
const UNWEIGHTED: *const c_int = 0xa as *const c_int;

type DimsCreate = unsafe extern "C" fn(c_int, c_int, *mut c_int) -> c_int;
type CartCreate = unsafe extern "C" fn(
    AbiHandle,
    c_int,
    *const c_int,
    *const c_int,
    c_int,
    *mut AbiHandle,
) -> c_int;
type CartShift = unsafe extern "C" fn(AbiHandle, c_int, c_int, *mut c_int, *mut c_int) -> c_int;
type GraphCreate = unsafe extern "C" fn(
    AbiHandle,
    c_int,
    *const c_int,
    *const c_int,
    c_int,
    *const c_int,
    *const c_int,
    AbiHandle,
    c_int,
    *mut AbiHandle,
) -> c_int;

/// Makes a procedure of the library callable. The caller names the prototype of the standard ABI.
macro_rules! prototype {
    ($address:expr, $type:ty) => {{
        let address: Address = $address;
        // SAFETY: the standard ABI fixes the prototype behind the procedure's name.
        unsafe { std::mem::transmute::<Address, $type>(address) }
    }};
}

impl Mpi {
    /// A communicator of all ranks with this topology, and this rank's neighbours in the order of
    /// their blocks.
    pub(super) fn neighbourhood(&self, topology: Topology) -> Result<(AbiHandle, Vec<usize>)> {
        match topology {
            Topology::Grid(dimensions) => self.grid(dimensions),
            Topology::Graph => {
                let (mut grid, neighbours) = self.grid(2)?;
                self.free(&mut grid);
                Ok((self.graph(&neighbours)?, neighbours))
            }
        }
    }

    fn grid(&self, dimensions: usize) -> Result<(AbiHandle, Vec<usize>)> {
        let create_dims = prototype!(self.procedure("MPI_Dims_create")?, DimsCreate);
        let create = prototype!(self.procedure("MPI_Cart_create")?, CartCreate);
        let shift = prototype!(self.procedure("MPI_Cart_shift")?, CartShift);
        let count = dimensions as c_int;
        let (mut dims, periodic) = (vec![0; dimensions], vec![1; dimensions]);
        let mut comm = COMM_WORLD;
        // SAFETY: the arrays have `dimensions` elements.
        unsafe {
            let code = create_dims(self.size as c_int, count, dims.as_mut_ptr());
            self.check("MPI_Dims_create", code)?;
            let (dims, periodic) = (dims.as_ptr(), periodic.as_ptr());
            let code = create(COMM_WORLD, count, dims, periodic, 0, &mut comm);
            self.check("MPI_Cart_create", code)?;
        }
        let mut neighbours = Vec::new();
        for dimension in 0..count {
            let (mut below, mut above) = (0, 0);
            // SAFETY: a communicator of the library, and two integers.
            let code = unsafe { shift(comm, dimension, 1, &mut below, &mut above) };
            self.check("MPI_Cart_shift", code)?;
            neighbours.extend([below as usize, above as usize]);
        }
        Ok((comm, neighbours))
    }

    fn graph(&self, neighbours: &[usize]) -> Result<AbiHandle> {
        let create = prototype!(
            self.procedure("MPI_Dist_graph_create_adjacent")?,
            GraphCreate
        );
        let ranks: Vec<c_int> = neighbours.iter().map(|rank| *rank as c_int).collect();
        let (degree, ranks) = (ranks.len() as c_int, ranks.as_ptr());
        let mut comm = COMM_WORLD;
        // SAFETY: the array has `degree` elements, and constants of the ABI.
        let code = unsafe {
            create(
                COMM_WORLD, degree, ranks, UNWEIGHTED, degree, ranks, UNWEIGHTED, INFO_NULL, 0,
                &mut comm,
            )
        };
        self.check("MPI_Dist_graph_create_adjacent", code)?;
        Ok(comm)
    }

    /// Frees a communicator that [`neighbourhood`](Mpi::neighbourhood) has made.
    pub(super) fn free(&self, comm: &mut AbiHandle) {
        // SAFETY: a communicator of the library, which nothing uses any more. An error here would
        // come after the measurement.
        let _ = unsafe { (self.call.comm_free)(comm) };
    }
}
