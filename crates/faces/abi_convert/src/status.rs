//! Statuses: those of the standard ABI have 32 bytes, of which 20 are private to the library; those
//! of the program's ABI have the number of bytes as a field. Functions of the standard convert that
//! number.

use crate::abi::Abi;
use crate::array::Array;
use crate::constants::standard;
use crate::convert::{error_in, error_out, rank_in, rank_out, tag_in, tag_out};
use crate::program_status::Status;
use crate::types::StandardStatus;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU8, Ordering};

const BYTE: usize = standard::MPI_BYTE as usize;

/// The value of a field that the library has not written. It is no valid rank, tag or error.
const UNSET: c_int = c_int::MIN;

impl StandardStatus {
    /// A status whose fields show whether the library has written them.
    #[inline(always)]
    pub fn unset() -> StandardStatus {
        StandardStatus {
            source: UNSET,
            tag: UNSET,
            error: UNSET,
            internal: [0; 5],
        }
    }
}

#[inline(always)]
fn is_ignored<A: Abi>(status: *const A::Status) -> bool {
    // This covers MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE, and NULL, which the standard ABI
    // ignores.
    status as usize <= A::MPI_STATUS_IGNORE as usize
}

/// The argument that the library gets for a status that it writes.
#[inline(always)]
pub fn argument<A: Abi>(
    caller: *mut A::Status,
    status: &mut StandardStatus,
) -> *mut StandardStatus {
    if is_ignored::<A>(caller) {
        std::ptr::null_mut()
    } else {
        status
    }
}

/// Writes the caller's status if the library has written its own. `CANCELLABLE`: the request may
/// have been cancelled.
///
/// # Safety
/// The caller's pointer is MPI_STATUS_IGNORE or that of a status.
#[inline(always)]
pub unsafe fn give<A: Abi, const CANCELLABLE: bool>(
    caller: *mut A::Status,
    status: &StandardStatus,
) {
    if !is_ignored::<A>(caller) {
        // SAFETY: promised.
        unsafe { write::<A, CANCELLABLE>(&mut *caller, status) };
    }
}

/// Copies a status directly if it has no error and its number of bytes can be read; others by
/// `write_any`.
#[inline(always)]
fn write<A: Abi, const CANCELLABLE: bool>(caller: &mut A::Status, status: &StandardStatus) {
    // One load for each int: a wider load would wait for the library's stores, which are narrower.
    // SAFETY: the addresses are those of ints of the status.
    let word = |at: usize| unsafe { (&raw const status.internal[at]).read_volatile() };
    let count = word(0);
    // The mask removes the sign of the error: an unset error becomes 0, as no error does.
    let error = status.error & c_int::MAX;
    let more = error | count & c_int::MIN | word(1) | word(2) | word(3) | word(4);
    let is_plain = more == 0 && LAYOUT.load(Ordering::Relaxed) == PLAIN;
    if !is_plain || status.source == UNSET {
        return write_any::<A>(caller, status, CANCELLABLE);
    }
    caller.set_count(count.into(), false);
    let fields = caller.fields();
    fields.source = rank_out::<A>(status.source);
    fields.tag = tag_out::<A>(status.tag);
    // An unset error does not change the caller's.
    fields.error &= status.error >> 31;
}

#[cold]
#[inline(never)]
fn write_any<A: Abi>(caller: &mut A::Status, status: &StandardStatus, is_cancellable: bool) {
    let fields = caller.fields();
    if status.error != UNSET {
        fields.error = error_out::<A>(status.error);
    }
    if status.source == UNSET {
        return;
    }
    fields.source = rank_out::<A>(status.source);
    fields.tag = tag_out::<A>(status.tag);
    if let Some(bytes) = plain_count(status) {
        caller.set_count(bytes.into(), false);
        return;
    }
    let (mut bytes, mut cancelled) = (0, 0);
    // SAFETY: the arguments are a status that the library has written, and integers.
    unsafe {
        if crate::standard::get_count_c(status, BYTE, &mut bytes) != 0 || bytes < 0 {
            bytes = 0;
        }
        if is_cancellable && crate::standard::test_cancelled(status, &mut cancelled) != 0 {
            cancelled = 0;
        }
    }
    caller.set_count(bytes, cancelled != 0);
}

/// The layout of the library's status, found by a trial. It is plain if the library's functions
/// read the first private int as the number of bytes, and no cancellation, provided that the other
/// private ints are 0.
static LAYOUT: AtomicU8 = AtomicU8::new(UNTRIED);

const UNTRIED: u8 = 0;
const PLAIN: u8 = 1;
const OPAQUE: u8 = 2;

/// The number of bytes, if it can be read without a call: the layout is plain, and the other
/// private ints are 0. `None` otherwise.
fn plain_count(status: &StandardStatus) -> Option<c_int> {
    let [count, rest @ ..] = status.internal;
    if count < 0 || rest != [0; 4] {
        return None;
    }
    let layout = match LAYOUT.load(Ordering::Relaxed) {
        UNTRIED => try_layout(status),
        layout => layout,
    };
    (layout == PLAIN).then_some(count)
}

/// Tries the library's functions on statuses like `received` with other private ints.
#[cold]
fn try_layout(received: &StandardStatus) -> u8 {
    let is_plain = |count: &c_int| {
        let status = StandardStatus {
            internal: [*count, 0, 0, 0, 0],
            ..*received
        };
        let (mut bytes, mut cancelled) = (-1, 1);
        // SAFETY: the arguments are a status of the library except for a number, and integers.
        let codes = unsafe {
            [
                crate::standard::get_count_c(&status, BYTE, &mut bytes),
                crate::standard::test_cancelled(&status, &mut cancelled),
            ]
        };
        codes == [0; 2] && bytes == i64::from(*count) && cancelled == 0
    };
    let samples = [0, 1, 8, 0x1234, 0x0765_4321, c_int::MAX];
    let layout = match samples.iter().all(is_plain) {
        true => PLAIN,
        false => OPAQUE,
    };
    LAYOUT.store(layout, Ordering::Relaxed);
    layout
}

/// Makes a status for the library to read, with the contents of the caller's.
///
/// # Safety
/// The caller's pointer is NULL or that of a status.
pub unsafe fn standard<A: Abi>(caller: *const A::Status) -> StandardStatus {
    let mut status = StandardStatus {
        source: 0,
        tag: 0,
        error: 0,
        internal: [0; 5],
    };
    if is_ignored::<A>(caller) {
        return status;
    }
    // SAFETY: promised.
    let mut caller = unsafe { *caller };
    // SAFETY: the status is valid for these functions.
    unsafe {
        crate::standard::status_set_elements_c(&mut status, BYTE, caller.count());
        if caller.is_cancelled() {
            crate::standard::status_set_cancelled(&mut status, 1);
        }
    }
    let fields = caller.fields();
    status.source = rank_in::<A>(fields.source);
    status.tag = tag_in::<A>(fields.tag);
    status.error = error_in::<A>(fields.error);
    status
}

/// Fills an array with unset statuses for the library to write, unless statuses are ignored.
#[inline(always)]
pub fn unset<A: Abi>(array: &mut Array<StandardStatus>, caller: *const A::Status, length: i64) {
    if !is_ignored::<A>(caller) {
        array.fill(length, |_| StandardStatus::unset());
    }
}

/// Writes those of the caller's statuses that the library has written.
///
/// # Safety
/// The caller's pointer is MPI_STATUSES_IGNORE or that of as many statuses.
#[inline(always)]
pub unsafe fn give_all<A: Abi>(caller: *mut A::Status, statuses: &[StandardStatus]) {
    for (at, status) in statuses.iter().enumerate() {
        // SAFETY: promised; an ignored array is empty here.
        unsafe { give::<A, true>(caller.add(at), status) };
    }
}
