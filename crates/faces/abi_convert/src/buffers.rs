//! Buffers of buffered sends. Each message needs MPI_BSEND_OVERHEAD bytes in addition to its data,
//! and the standard ABI has a larger value than the program's. So the library gets a larger buffer
//! than the program attached, and a detach returns the program's buffer.

use crate::abi::Abi;
use crate::constants::standard;
use std::alloc::{Layout, alloc, dealloc};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard};

/// The buffers that the program has attached, by the address of the larger buffer.
static ATTACHED: Mutex<BTreeMap<usize, Users>> = Mutex::new(BTreeMap::new());

struct Users {
    address: usize,
    size: i64,
    layout: Layout,
}

/// The buffer that the library gets instead of the program's.
pub struct Attached {
    /// The address of the attached buffer.
    pub address: *mut c_void,
    /// The size of the attached buffer in bytes.
    pub size: i64,
}

impl Attached {
    /// Makes a buffer that holds as many messages as the program's.
    pub fn new<A: Abi>(buffer: *mut c_void, size: i64) -> Attached {
        if buffer as usize == A::MPI_BUFFER_AUTOMATIC as usize {
            let address = std::ptr::without_provenance_mut(standard::MPI_BUFFER_AUTOMATIC as usize);
            return Attached { address, size };
        }
        let own = Attached {
            address: buffer,
            size,
        };
        let more = standard::MPI_BSEND_OVERHEAD - A::MPI_BSEND_OVERHEAD;
        let messages = size / A::MPI_BSEND_OVERHEAD;
        let larger = size.saturating_add(messages.saturating_mul(more));
        let is_possible = !buffer.is_null() && messages > 0 && larger <= i64::from(i32::MAX);
        let Some(layout) = Layout::from_size_align(larger as usize, 64)
            .ok()
            .filter(|_| is_possible)
        else {
            return own;
        };
        // SAFETY: the layout is not empty.
        let memory = unsafe { alloc(layout) };
        if memory.is_null() {
            return own;
        }
        let users = Users {
            address: buffer as usize,
            size,
            layout,
        };
        attached().insert(memory as usize, users);
        Attached {
            address: memory.cast(),
            size: larger,
        }
    }

    /// Frees the larger buffer if the library has not accepted it: `code` is the result of its
    /// call.
    pub fn settle(&self, code: std::ffi::c_int) {
        if code != 0 {
            forget(self.address as usize);
        }
    }
}

/// Replaces the larger buffer, which the library has detached, by the program's.
///
/// # Safety
/// The arguments are those that MPI_Buffer_detach has written.
pub unsafe fn detach<A: Abi, N: TryFrom<i64>>(buffer: *mut *mut c_void, size: *mut N) {
    if buffer.is_null() {
        return;
    }
    // SAFETY: promised.
    unsafe {
        if *buffer as usize == standard::MPI_BUFFER_AUTOMATIC as usize {
            *buffer = std::ptr::without_provenance_mut(A::MPI_BUFFER_AUTOMATIC as usize);
        } else if let Some((address, bytes)) = forget(*buffer as usize) {
            *buffer = std::ptr::with_exposed_provenance_mut(address);
            if let Ok(bytes) = N::try_from(bytes)
                && !size.is_null()
            {
                *size = bytes;
            }
        }
    }
}

/// Frees a larger buffer, and returns the address and size of the program's buffer. `None`: no such
/// buffer is attached.
fn forget(larger: usize) -> Option<(usize, i64)> {
    let users = attached().remove(&larger)?;
    // SAFETY: `Attached::new` allocated it with this layout, and nothing uses it any more.
    unsafe { dealloc(std::ptr::with_exposed_provenance_mut(larger), users.layout) };
    Some((users.address, users.size))
}

fn attached() -> MutexGuard<'static, BTreeMap<usize, Users>> {
    ATTACHED
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
