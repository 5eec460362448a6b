//! Statuses: 32 bytes in the standard ABI, of which the library alone reads 20, and those of the
//! program's ABI, where the number of bytes is a field. Functions of the standard carry that number
//! across.

use crate::abi::Abi;
use crate::array::Array;
use crate::constants::standard;
use crate::convert::{error_in, error_out, rank_in, rank_out, tag_in, tag_out};
use crate::program_status::Status;
use crate::types::StandardStatus;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU8, Ordering};

const BYTE: usize = standard::MPI_BYTE as usize;

/// The value of a field that the library has not written: no rank, no tag, no error.
const UNSET: c_int = c_int::MIN;

impl StandardStatus {
    /// A status in which every field that the library writes can be seen.
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
    // MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE; NULL is what the standard ABI ignores.
    status as usize <= A::MPI_STATUS_IGNORE as usize
}

/// The argument for a status that is written.
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

/// Writes the caller's status, if the library has written one. `CANCELLABLE`: the request may have
/// been cancelled.
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

/// A status without an error whose number of bytes can be read is copied.
#[inline(always)]
fn write<A: Abi, const CANCELLABLE: bool>(caller: &mut A::Status, status: &StandardStatus) {
    // One load for a word: a wider one would wait for the library's stores, which are narrower.
    // SAFETY: the addresses are those of words of the status.
    let word = |at: usize| unsafe { (&raw const status.internal[at]).read_volatile() };
    let count = word(0);
    // Of an unset error nothing but the sign is left, as of none.
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
    // An unset error leaves the caller's.
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

/// The layout of the library's status, as a trial shows. It is plain if the library's functions
/// show, for a status whose first internal word is a number of bytes with zeros behind, that number
/// and no cancellation.
static LAYOUT: AtomicU8 = AtomicU8::new(UNTRIED);

const UNTRIED: u8 = 0;
const PLAIN: u8 = 1;
const OPAQUE: u8 = 2;

/// The number of bytes where it can be read without a call: in a library whose functions have been
/// seen to read this word, of a status that has nothing else.
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

/// Asks the library for the numbers of such statuses. They have been received but for the words.
#[cold]
fn try_layout(received: &StandardStatus) -> u8 {
    let is_plain = |count: &c_int| {
        let status = StandardStatus {
            internal: [*count, 0, 0, 0, 0],
            ..*received
        };
        let (mut bytes, mut cancelled) = (-1, 1);
        // SAFETY: the arguments are a status of the library, but for a number, and integers.
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

/// A status for the library to read, with what the caller's says.
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

/// Fills an array of statuses for the library to write.
#[inline(always)]
pub fn unset<A: Abi>(array: &mut Array<StandardStatus>, caller: *const A::Status, length: i64) {
    if !is_ignored::<A>(caller) {
        array.fill(length, |_| StandardStatus::unset());
    }
}

/// Writes those of the caller's statuses that the library has written.
///
/// # Safety
/// The caller's pointer is MPI_STATUSES_IGNORE or that of so many statuses.
#[inline(always)]
pub unsafe fn give_all<A: Abi>(caller: *mut A::Status, statuses: &[StandardStatus]) {
    for (at, status) in statuses.iter().enumerate() {
        // SAFETY: promised; an ignored array is empty here.
        unsafe { give::<A, true>(caller.add(at), status) };
    }
}
