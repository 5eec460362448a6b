//! One-sided communication: every kind of window, operation and synchronisation, over every
//! transport.

mod data;
mod kinds;
mod paths;
mod synchronisation;
mod wrong_use;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{gapped, out, pattern, room, run, run_remote, run_shared, run_with};
use crate::intercommunicators::halves;
use datatype::{Buffer, Elements, Op, Predefined, Type};
use mpi::comm::{SELF, WORLD};
use mpi::errhandler::RETURN;
use mpi::window::{Access, Flavor, Place, WayCounts};
use mpi::{Class, PROC_NULL, Rank, Result, WindowSpec, group};
use testdevice::strict::Setup;

pub(super) const LOCK_EXCLUSIVE: i32 = 301;
pub(super) const LOCK_SHARED: i32 = 302;
pub(super) const NOCHECK: i32 = 1024;
pub(super) const NOSUCCEED: i32 = 16384;

/// Settings that take every message through each of its paths.
pub(super) const SETTINGS: [&[(&str, &str)]; 2] = [
    &[],
    &[
        ("FISHPLATE_RING_SLOTS", "4"),
        ("FISHPLATE_RING_BYTES", "8K"),
        ("FISHPLATE_WAIT", "sleep"),
    ],
];

pub(super) fn window(rank: &Arc<Rank>, memory: &mut [u8], disp_unit: i64) -> u32 {
    window_of(rank, Flavor::Create, room(memory), disp_unit, &[])
}

pub(super) fn window_of(
    rank: &Arc<Rank>,
    flavor: Flavor,
    memory: Buffer,
    disp_unit: i64,
    info: &[(String, String)],
) -> u32 {
    let spec = WindowSpec {
        memory,
        disp_unit,
        info,
    };
    let win = rank
        .window_create("MPI_Win_create", WORLD, flavor, spec)
        .unwrap();
    rank.objects().set_window_errhandler(win, RETURN).unwrap();
    win
}

pub(super) fn free(rank: &Arc<Rank>, win: u32) {
    rank.window_free("MPI_Win_free", win).unwrap();
}

pub(super) fn place(rank: i32, disp: i64, count: usize, ty: impl Into<Type>) -> Place {
    Place {
        rank,
        disp,
        count,
        ty: ty.into(),
    }
}

pub(super) fn access(rank: &Rank, win: u32, access: Access, place: Place) -> Result<()> {
    let request = rank.lock().access_window(win, &access, &place, false)?;
    assert_eq!(request, None);
    Ok(())
}

pub(super) fn put(rank: &Rank, win: u32, bytes: &[u8], at: Place) -> Result<()> {
    access(rank, win, Access::Put(out(bytes)), at)
}

pub(super) fn get(rank: &Rank, win: u32, bytes: &mut [u8], at: Place) -> Result<()> {
    access(rank, win, Access::Get(room(bytes)), at)
}

pub(super) fn operand(values: &mut [i64]) -> Elements {
    let long = Predefined::INT64_T.into();
    // SAFETY: the tests keep the values until the operation is complete.
    unsafe { Elements::new(values.as_mut_ptr().cast(), values.len(), &long) }
}

pub(super) fn accumulate(
    rank: &Rank,
    win: u32,
    values: &mut [i64],
    op: Op,
    at: Place,
) -> Result<()> {
    let origin = operand(values);
    access(rank, win, Access::Accumulate { origin, op }, at)
}

pub(super) fn fence(rank: &Rank, win: u32) {
    rank.window_fence("MPI_Win_fence", win, 0).unwrap();
}

pub(super) fn longs(bytes: &[u8]) -> Vec<i64> {
    let words = bytes.chunks_exact(8);
    words
        .map(|word| i64::from_ne_bytes(word.try_into().unwrap()))
        .collect()
}

pub(super) const LONG: Predefined = Predefined::INT64_T;

pub(super) fn me(rank: &Rank) -> (i32, i32) {
    (rank.rank() as i32, rank.size() as i32)
}
