//! Scratch memory for intermediate results, with the layout of the user's elements.
//!
//! Scratch memory is reference-counted: it lives while any buffer in it is in use. A [`Pool`] keeps
//! a few pieces, so a repeated operation allocates nothing.

use std::alloc::{GlobalAlloc, System};
use std::hint::black_box;
use std::sync::Arc;

use crate::buffer::Buffer;
use crate::elements::Elements;
use crate::error::Result;
use crate::predefined::Predefined;
use crate::spread::{LEAST, Memory, Room, Spread, systems_layout};
use crate::types::Type;

/// The size of the largest piece that a pool keeps, in bytes.
const KEPT: usize = 4 << 20;
/// The number of pieces of memory that a pool keeps for reuse.
const PIECES: usize = 8;

/// Memory of `bytes` bytes, all 0, which exists as long as a buffer in it. `None`: the system
/// refuses it. For lengths that a peer or a program chooses.
pub fn granted(bytes: usize) -> Option<Buffer> {
    let byte = Predefined::BYTE.into();
    let room = Room::of(bytes, &byte).ok()?;
    let memory = Memory::granted(room.bytes)?;
    let scratch = Arc::new(Spread::own(memory, &room, bytes, &byte));
    Some(Elements::in_scratch(scratch, bytes, &byte).buffer())
}

/// True if the system would grant `bytes` bytes now.
pub fn is_granted(bytes: usize) -> bool {
    let Some(layout) = systems_layout(bytes) else {
        return false;
    };
    // SAFETY: the layout is not empty, and the memory is given back unused.
    unsafe {
        // `black_box`, because a compiler may remove an unused allocation and assume that it
        // succeeds.
        let start = black_box(System.alloc(layout));
        if !start.is_null() {
            System.dealloc(start, layout);
        }
        !start.is_null()
    }
}

/// A pool of scratch memory for reuse.
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
