//! The memory of buffers and elements that are not simply one run of the user's memory: elements
//! with gaps, scratch memory, and memory with an owner.

use std::alloc::{GlobalAlloc, Layout, System, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::types::Type;

/// The alignment of elements in bytes: a cache line, which is enough for every basic type.
const ALIGNMENT: usize = 64;
/// The size of the smallest piece of memory, in bytes.
pub(crate) const LEAST: usize = 4096;

/// Elements in memory that buffers share: the user's memory, or a scratch piece.
#[derive(Debug)]
pub(crate) struct Spread {
    /// The address of the elements. It may lie outside of the memory, depending on the type's
    /// bounds.
    pub base: usize,
    pub ty: Type,
    /// The address of the data, if they are one run.
    pub dense: Option<usize>,
    /// The memory of the elements, if it is scratch memory.
    pub memory: Option<Memory>,
    /// The owner of the memory, kept as long as a buffer in the memory is in use. `None`: the
    /// memory has no owner.
    pub _owner: Option<Owner>,
}

/// An object that keeps memory valid as long as any buffer in it is in use.
pub(crate) type Owner = Arc<dyn std::fmt::Debug + Send + Sync>;

/// A piece of scratch memory. All bytes are initialised: they are allocated as zeros.
#[derive(Debug)]
pub(crate) struct Memory {
    start: NonNull<u8>,
    layout: Layout,
    /// True if the memory is from the system's allocator, and not from the global one, which may
    /// end the process if memory is refused.
    is_systems: bool,
}

// SAFETY: the memory is owned, and the buffers that share it order the accesses to it.
unsafe impl Send for Memory {}
// SAFETY: a shared `Memory` returns addresses only, never references.
unsafe impl Sync for Memory {}

impl Spread {
    /// Elements in the user's memory, which are not one run.
    pub(crate) fn of_user(base: usize, ty: &Type) -> Spread {
        Spread {
            base,
            ty: ty.clone(),
            dense: None,
            memory: None,
            _owner: None,
        }
    }

    pub(crate) fn own(memory: Memory, room: &Room, count: usize, ty: &Type) -> Spread {
        let start = memory.start.as_ptr().expose_provenance() + room.shift;
        let base = start.wrapping_sub(room.true_lb as usize);
        let dense = ty.is_one_run(count);
        Spread {
            base,
            ty: ty.clone(),
            dense: dense.map(|offset| base.wrapping_add_signed(offset)),
            memory: Some(memory),
            _owner: None,
        }
    }

    /// Elements in memory that `owner` keeps; `dense`: the address of their data, if it is one run.
    pub(crate) fn kept(
        base: usize,
        ty: Type,
        dense: Option<usize>,
        owner: Option<Owner>,
    ) -> Spread {
        Spread {
            base,
            ty,
            dense,
            memory: None,
            _owner: owner,
        }
    }

    /// The size of the scratch memory in bytes; 0 for the user's memory.
    pub(crate) fn capacity(&self) -> usize {
        self.memory
            .as_ref()
            .map_or(0, |memory| memory.layout.size())
    }
}

impl Memory {
    pub(crate) fn new(capacity: usize) -> Memory {
        let layout = layout(capacity);
        // SAFETY: the capacity is at least LEAST, so the layout is not empty.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else {
            handle_alloc_error(layout)
        };
        Memory {
            start,
            layout,
            is_systems: false,
        }
    }

    /// Memory of `capacity` bytes; `None` if the system refuses it.
    pub(crate) fn granted(capacity: usize) -> Option<Memory> {
        let layout = systems_layout(capacity)?;
        // SAFETY: the layout is not empty.
        let start = NonNull::new(unsafe { System.alloc_zeroed(layout) })?;
        Some(Memory {
            start,
            layout,
            is_systems: true,
        })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let start = self.start.as_ptr();
        match self.is_systems {
            // SAFETY: allocated by `granted` with this layout.
            true => unsafe { System.dealloc(start, self.layout) },
            // SAFETY: allocated by `new` with this layout.
            false => unsafe { dealloc(start, self.layout) },
        }
    }
}

fn layout(capacity: usize) -> Layout {
    Layout::from_size_align(capacity, ALIGNMENT).expect("capacities are checked before")
}

/// The layout of memory from the system's allocator. For this alignment, the system has zeroed
/// pages without writing them, so untouched memory costs nothing.
pub(crate) fn systems_layout(capacity: usize) -> Option<Layout> {
    Layout::from_size_align(capacity.max(LEAST), align_of::<usize>()).ok()
}

/// The memory that elements of a datatype need.
pub(crate) struct Room {
    /// Size of that memory in bytes, alignment included.
    pub bytes: usize,
    true_lb: isize,
    /// The number of bytes before the first element that align the elements' address.
    shift: usize,
}

impl Room {
    pub(crate) fn of(count: usize, ty: &Type) -> Result<Room> {
        let (true_lb, span) = ty.span(count)?;
        let bytes = span
            .checked_add(ALIGNMENT)
            .filter(|&bytes| bytes <= isize::MAX as usize / 2);
        let bytes = bytes.ok_or(Error::TooLarge { what: "extent" })?;
        Ok(Room {
            bytes,
            true_lb,
            shift: true_lb.rem_euclid(ALIGNMENT as isize) as usize,
        })
    }
}
