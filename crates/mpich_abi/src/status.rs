//! Statuses: 32 bytes in the standard ABI, of which the library alone reads 20, and 20 in MPICH's,
//! where the number of bytes is a field. Functions of the standard carry that number across.

use crate::array::Array;
use crate::constants::{mpich, standard};
use crate::convert::{error_in, error_out, rank_in, rank_out, tag_in, tag_out};
use crate::types::{MpichStatus, StandardStatus};
use std::ffi::c_int;

const BYTE: usize = standard::MPI_BYTE as usize;

/// The value of a field that the library has not written: no rank, no tag, no error.
const UNSET: c_int = c_int::MIN;

impl StandardStatus {
    /// A status in which every field that the library writes can be seen.
    #[inline(always)]
    pub(crate) fn unset() -> StandardStatus {
        StandardStatus {
            source: UNSET,
            tag: UNSET,
            error: UNSET,
            internal: [0; 5],
        }
    }
}

#[inline(always)]
fn is_ignored(status: *const MpichStatus) -> bool {
    // MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE; NULL is what the standard ABI ignores.
    status as usize <= mpich::MPI_STATUS_IGNORE as usize
}

/// The argument for a status that is written.
#[inline(always)]
pub(crate) fn argument(
    caller: *mut MpichStatus,
    status: &mut StandardStatus,
) -> *mut StandardStatus {
    if is_ignored(caller) {
        std::ptr::null_mut()
    } else {
        status
    }
}

/// Writes the caller's status, if the library has written one. `CANCELLABLE`: the request may have
/// been cancelled.
///
/// # Safety
/// The caller's pointer is MPI_STATUS_IGNORE or that of a status.
#[inline(always)]
pub(crate) unsafe fn give<const CANCELLABLE: bool>(
    caller: *mut MpichStatus,
    status: &StandardStatus,
) {
    if is_ignored(caller) {
        return;
    }
    // SAFETY: promised.
    let caller = unsafe { &mut *caller };
    if status.error != UNSET {
        caller.error = error_out(status.error);
    }
    if status.source == UNSET {
        return;
    }
    caller.source = rank_out(status.source);
    caller.tag = tag_out(status.tag);
    let (mut bytes, mut cancelled) = (0, 0);
    // SAFETY: the arguments are a status that the library has written, and integers.
    unsafe {
        if crate::standard::get_count_c(status, BYTE, &mut bytes) != 0 || bytes < 0 {
            bytes = 0;
        }
        if CANCELLABLE && crate::standard::test_cancelled(status, &mut cancelled) != 0 {
            cancelled = 0;
        }
    }
    caller.set_count(bytes, cancelled != 0);
}

/// A status for the library to read, with what the caller's says.
///
/// # Safety
/// The caller's pointer is NULL or that of a status.
pub(crate) unsafe fn standard(caller: *const MpichStatus) -> StandardStatus {
    let mut status = StandardStatus {
        source: 0,
        tag: 0,
        error: 0,
        internal: [0; 5],
    };
    if is_ignored(caller) {
        return status;
    }
    // SAFETY: promised.
    let caller = unsafe { *caller };
    // SAFETY: the status is valid for these functions.
    unsafe {
        crate::standard::status_set_elements_c(&mut status, BYTE, caller.count());
        if caller.is_cancelled() {
            crate::standard::status_set_cancelled(&mut status, 1);
        }
    }
    status.source = rank_in(caller.source);
    status.tag = tag_in(caller.tag);
    status.error = error_in(caller.error);
    status
}

/// Statuses for the library to write.
pub(crate) fn unset_array(caller: *const MpichStatus, length: i64) -> Array<StandardStatus> {
    if is_ignored(caller) {
        return Array::null();
    }
    Array::filled(length, StandardStatus::unset())
}

/// Writes those of the caller's statuses that the library has written.
///
/// # Safety
/// The caller's pointer is MPI_STATUSES_IGNORE or that of so many statuses.
pub(crate) unsafe fn give_all(caller: *mut MpichStatus, statuses: &[StandardStatus]) {
    for (at, status) in statuses.iter().enumerate() {
        // SAFETY: promised; an ignored array is empty here.
        unsafe { give::<true>(caller.add(at), status) };
    }
}

impl MpichStatus {
    pub(crate) fn set_count(&mut self, bytes: i64, cancelled: bool) {
        self.count_lo = bytes as c_int;
        self.count_hi_and_cancelled = (((bytes >> 32) as c_int) << 1) | c_int::from(cancelled);
    }

    pub(crate) fn count(&self) -> i64 {
        i64::from(self.count_hi_and_cancelled >> 1) << 32 | i64::from(self.count_lo as u32)
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.count_hi_and_cancelled & 1 != 0
    }
}
