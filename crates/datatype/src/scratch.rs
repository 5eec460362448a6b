//! Memory of the library's own for steps in between, laid out like the user's.
//!
//! Scratch memory is counted: it stays while any buffer in it is in use, wherever that buffer went. A [`Pool`] keeps a
//! few pieces, so that an operation that is called again and again allocates nothing.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::elements::Elements;
use crate::error::{Error, Result};
use crate::types::Type;

/// Where elements may begin: good for every basic type, and a line of the cache.
const ALIGNMENT: usize = 64;
/// The smallest piece of memory.
const LEAST: usize = 4096;
/// The largest piece that a pool keeps.
const KEPT: usize = 4 << 20;
/// Pieces that a pool keeps.
const PIECES: usize = 8;

/// Elements in memory that buffers share: the user's, or a piece of the library's own.
#[derive(Debug)]
pub(crate) struct Spread {
    /// The address of the elements, which their type's bounds may put outside the memory.
    pub base: usize,
    pub ty: Type,
    /// Where their data begins, if it is one run.
    pub dense: Option<usize>,
    /// The memory, if it is the library's own.
    memory: Option<Memory>,
}

/// A piece of memory. The bytes were zero once.
#[derive(Debug)]
struct Memory {
    start: NonNull<u8>,
    capacity: usize,
}

// SAFETY: the memory is nobody else's, and who may touch it when is settled by the buffers that share it.
unsafe impl Send for Memory {}
// SAFETY: as above; it gives out addresses, never references.
unsafe impl Sync for Memory {}

impl Spread {
    /// Elements of the user's that are not one run.
    pub(crate) fn of_user(base: usize, ty: &Type) -> Spread {
        Spread {
            base,
            ty: ty.clone(),
            dense: None,
            memory: None,
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
        }
    }

    /// Bytes of memory of the library's own.
    fn capacity(&self) -> usize {
        self.memory.as_ref().map_or(0, |memory| memory.capacity)
    }
}

impl Memory {
    fn new(capacity: usize) -> Memory {
        let layout = layout(capacity);
        // SAFETY: the layout is not empty.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else {
            handle_alloc_error(layout)
        };
        Memory { start, capacity }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated by `new` with this layout.
        unsafe { dealloc(self.start.as_ptr(), layout(self.capacity)) };
    }
}

fn layout(capacity: usize) -> Layout {
    Layout::from_size_align(capacity, ALIGNMENT).expect("capacities are checked before")
}

/// What elements need: so many bytes, and where among them they begin.
struct Room {
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

/// Pieces of memory that are used again.
#[derive(Default)]
pub struct Pool {
    pieces: Vec<Arc<Spread>>,
}

impl Pool {
    /// Room for `count` elements, with whatever is in it.
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
            // Of the small ones that are free one goes, because the new one can do all that they can.
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
