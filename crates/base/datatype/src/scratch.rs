//! Scratch memory for intermediate results, laid out like the user's.
//!
//! Scratch memory is reference-counted: it lives while any buffer in it is in use. A [`Pool`] keeps
//! a few pieces, so a repeated operation allocates nothing.

use std::alloc::{GlobalAlloc, Layout, System, alloc_zeroed, dealloc, handle_alloc_error};
use std::hint::black_box;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::buffer::Buffer;
use crate::elements::Elements;
use crate::error::{Error, Result};
use crate::predefined::Predefined;
use crate::types::Type;

/// The alignment of elements in bytes: a cache line, which is enough for every basic type.
const ALIGNMENT: usize = 64;
/// The size of the smallest piece of memory, in bytes.
const LEAST: usize = 4096;
/// The size of the largest piece that a pool keeps, in bytes.
const KEPT: usize = 4 << 20;
/// The number of pieces that a pool keeps.
const PIECES: usize = 8;

/// Elements in memory that buffers share: the user's memory, or a scratch piece.
#[derive(Debug)]
pub(crate) struct Spread {
    /// The address of the elements. It may lie outside the memory, depending on the type's bounds.
    pub base: usize,
    pub ty: Type,
    /// The address of the data, if it is one run.
    pub dense: Option<usize>,
    /// The memory, if it is scratch memory.
    memory: Option<Memory>,
    /// The owner of the memory, if the buffers in it keep it.
    pub _owner: Option<Owner>,
}

/// An object that keeps memory as long as any buffer in it is in use.
pub(crate) type Owner = Arc<dyn std::fmt::Debug + Send + Sync>;

/// A piece of scratch memory. All bytes are initialised: it is allocated as zeros.
#[derive(Debug)]
struct Memory {
    start: NonNull<u8>,
    layout: Layout,
    /// It comes from the system itself: an allocator that ends the process where memory is refused
    /// has no part in it.
    is_systems: bool,
}

// SAFETY: the memory is owned, and the buffers that share it order the accesses to it.
unsafe impl Send for Memory {}
// SAFETY: a shared `Memory` gives out addresses only, never references.
unsafe impl Sync for Memory {}

impl Spread {
    /// The user's elements, which are not one run.
    pub(crate) fn of_user(base: usize, ty: &Type) -> Spread {
        Spread {
            base,
            ty: ty.clone(),
            dense: None,
            memory: None,
            _owner: None,
        }
    }

    fn own(memory: Memory, room: &Room, count: usize, ty: &Type) -> Spread {
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
    fn capacity(&self) -> usize {
        self.memory
            .as_ref()
            .map_or(0, |memory| memory.layout.size())
    }
}

impl Memory {
    fn new(capacity: usize) -> Memory {
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

    /// Memory that the system may refuse.
    fn granted(capacity: usize) -> Option<Memory> {
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

/// The layout of memory from the system itself. The system has zeros for this alignment without
/// writing them, so memory that nobody touches costs nothing.
fn systems_layout(capacity: usize) -> Option<Layout> {
    Layout::from_size_align(capacity.max(LEAST), align_of::<usize>()).ok()
}

/// The memory that elements need.
struct Room {
    /// Size in bytes, alignment included.
    bytes: usize,
    true_lb: isize,
    /// Bytes before the first, so that the elements' address is aligned.
    shift: usize,
}

impl Room {
    fn of(count: usize, ty: &Type) -> Result<Room> {
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

/// Memory of `bytes` bytes, all 0, which lives as long as a buffer in it. `None`: the system
/// refuses it. For lengths that a peer or a program chooses.
pub fn granted(bytes: usize) -> Option<Buffer> {
    let byte = Predefined::BYTE.into();
    let room = Room::of(bytes, &byte).ok()?;
    let memory = Memory::granted(room.bytes)?;
    let scratch = Arc::new(Spread::own(memory, &room, bytes, &byte));
    Some(Elements::in_scratch(scratch, bytes, &byte).buffer())
}

/// True if the system would grant this many bytes now.
pub fn is_granted(bytes: usize) -> bool {
    let Some(layout) = systems_layout(bytes) else {
        return false;
    };
    // SAFETY: the layout is not empty, and the memory is given back unused.
    unsafe {
        // A compiler may leave out memory that nobody uses, and answer for the system.
        let start = black_box(System.alloc(layout));
        if !start.is_null() {
            System.dealloc(start, layout);
        }
        !start.is_null()
    }
}

/// Pieces of scratch memory for reuse.
#[derive(Default)]
pub struct Pool {
    pieces: Vec<Arc<Spread>>,
}

impl Pool {
    /// Scratch memory for `count` elements; its contents are arbitrary.
    ///
    /// # Errors
    /// The elements do not fit in the address space.
    pub fn elements(&mut self, count: usize, ty: &Type) -> Result<Elements> {
        let room = Room::of(count, ty)?;
        for piece in &mut self.pieces {
            if piece.capacity() >= room.bytes
                && let Some(free) = Arc::get_mut(piece)
                && let Some(memory) = free.memory.take()
            {
                *free = Spread::own(memory, &room, count, ty);
                return Ok(Elements::in_scratch(piece.clone(), count, ty));
            }
        }
        self.more(&room, count, ty)
    }

    #[cold]
    fn more(&mut self, room: &Room, count: usize, ty: &Type) -> Result<Elements> {
        let capacity = room
            .bytes
            .max(LEAST)
            .checked_next_power_of_two()
            .unwrap_or(room.bytes);
        let capacity = if capacity > KEPT {
            room.bytes
        } else {
            capacity
        };
        let scratch = Arc::new(Spread::own(Memory::new(capacity), room, count, ty));
        if capacity <= KEPT {
            // The new piece can replace any smaller one, so an idle smaller one is dropped.
            let idle =
                |piece: &Arc<Spread>| Arc::strong_count(piece) == 1 && piece.capacity() < capacity;
            match self.pieces.iter().position(idle) {
                Some(at) if self.pieces.len() == PIECES => self.pieces[at] = scratch.clone(),
                _ if self.pieces.len() < PIECES => self.pieces.push(scratch.clone()),
                _ => {}
            }
        }
        Ok(Elements::in_scratch(scratch, count, ty))
    }
}
