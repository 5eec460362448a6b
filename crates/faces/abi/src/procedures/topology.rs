//! Chapter 8: Cartesian topologies.

use super::comms::set_new;
use crate::args::{CommArray, Out, fill};
use crate::call_guard::Running;
use crate::constants::MPI_ERR_DIMS;
use crate::error::{Done, Error};
use crate::handle::Comm;
use crate::making::arguments;
use std::ffi::c_int;
use std::mem::MaybeUninit;

/// `MPI_Dims_create` (MPI 5.0, chapter 8).
pub fn dims_create(_: &Running, nodes: c_int, _ndims: usize, dims: &mut [c_int]) -> Done {
    mpi::dims_create(nodes, dims)
}

/// `MPI_Cart_create` (MPI 5.0, chapter 8).
pub fn cart_create(
    call: &Running,
    comm: Comm,
    _ndims: usize,
    dims: &[c_int],
    periods: &[c_int],
    reorder: bool,
    new: Out<Comm>,
) -> Done {
    set_new(
        new,
        call.rank
            .cart_create(call.procedure, comm.id(), dims, &flags(periods), reorder),
    )
}

/// `MPI_Cart_sub` (MPI 5.0, chapter 8).
pub fn cart_sub(call: &Running, comm: Comm, remain_dims: CommArray<c_int>, new: Out<Comm>) -> Done {
    let dimensions = call.rank.objects().cartesian(comm.id())?.0.dims().len();
    // SAFETY: C promises one flag for each dimension.
    let remain_dims = unsafe { remain_dims.with_len(dimensions) };
    let remain = flags(arguments(call.procedure, comm, remain_dims)?);
    set_new(new, call.rank.cart_sub(call.procedure, comm.id(), &remain))
}

/// `MPI_Cart_map` (MPI 5.0, chapter 8).
pub fn cart_map(
    call: &Running,
    comm: Comm,
    _ndims: usize,
    dims: &[c_int],
    periods: &[c_int],
    rank: Out<c_int>,
) -> Done {
    rank.set(call.rank.cart_map(comm.id(), dims, &flags(periods))?);
    Ok(())
}

/// `MPI_Cartdim_get` (MPI 5.0, chapter 8).
pub fn cartdim_get(call: &Running, comm: Comm, ndims: Out<c_int>) -> Done {
    ndims.set(call.rank.objects().cartesian(comm.id())?.0.dims().len() as c_int);
    Ok(())
}

/// `MPI_Cart_get` (MPI 5.0, chapter 8).
pub fn cart_get(
    call: &Running,
    comm: Comm,
    maxdims: usize,
    dims: &mut [MaybeUninit<c_int>],
    periods: &mut [MaybeUninit<c_int>],
    coords: &mut [MaybeUninit<c_int>],
) -> Done {
    let state = call.rank.lock();
    let (grid, rank) = state.objects().cartesian(comm.id())?;
    enough(maxdims, grid.dims().len())?;
    fill(dims, grid.dims().iter().copied());
    fill(
        periods,
        grid.periodic()
            .iter()
            .map(|&periodic| c_int::from(periodic)),
    );
    fill(coords, grid.coords(rank)?);
    Ok(())
}

/// `MPI_Cart_rank` (MPI 5.0, chapter 8).
pub fn cart_rank(call: &Running, comm: Comm, coords: CommArray<c_int>, rank: Out<c_int>) -> Done {
    let state = call.rank.lock();
    let (grid, _) = state.objects().cartesian(comm.id())?;
    // SAFETY: C promises one coordinate for each dimension.
    let coords = unsafe { coords.with_len(grid.dims().len()) }?;
    rank.set(grid.rank(coords)?);
    Ok(())
}

/// `MPI_Cart_coords` (MPI 5.0, chapter 8).
pub fn cart_coords(
    call: &Running,
    comm: Comm,
    rank: c_int,
    maxdims: usize,
    coords: &mut [MaybeUninit<c_int>],
) -> Done {
    let state = call.rank.lock();
    let (grid, _) = state.objects().cartesian(comm.id())?;
    enough(maxdims, grid.dims().len())?;
    fill(coords, grid.coords(rank)?);
    Ok(())
}

/// `MPI_Cart_shift` (MPI 5.0, chapter 8).
pub fn cart_shift(
    call: &Running,
    comm: Comm,
    direction: c_int,
    disp: c_int,
    source: Out<c_int>,
    dest: Out<c_int>,
) -> Done {
    let state = call.rank.lock();
    let (grid, rank) = state.objects().cartesian(comm.id())?;
    let (from, to) = grid.shift(rank, direction, disp)?;
    source.set(from);
    dest.set(to);
    Ok(())
}

/// `MPI_Topo_test` (MPI 5.0, chapter 8).
pub fn topo_test(call: &Running, comm: Comm, status: Out<c_int>) -> Done {
    status.set(call.rank.objects().topology(comm.id())?);
    Ok(())
}

fn flags(flags: &[c_int]) -> Vec<bool> {
    flags.iter().map(|&flag| flag != 0).collect()
}

fn enough(room: usize, dimensions: usize) -> Done {
    if room >= dimensions {
        return Ok(());
    }
    let detail = format!("maxdims is {room}, but the grid has {dimensions} dimensions");
    Err(Error::new(MPI_ERR_DIMS, detail))
}
