//! The memory of a world, and its allocator.
//!
//! The memory is one mapping. Pieces are allocated in sizes that are powers of two, and reused for
//! the same size. Ranks that are processes map the same file at the same address, so pointers into
//! it are valid in all of them. Only the rank whose turn it is allocates.

use std::alloc::Layout;
use std::cell::Cell;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

use allocator_api2::alloc::{AllocError, Allocator};

use crate::log::{SLOTS, Slot};

/// A vector in the memory of a world.
pub type Vec<T> = allocator_api2::vec::Vec<T, WorldMemory>;
/// A box in the memory of a world.
pub type Box<T> = allocator_api2::boxed::Box<T, WorldMemory>;

/// The address at which processes map a world: far from all addresses that the system chooses.
const ADDRESS: usize = 0x1000_0000_0000;
/// The largest size of a world, in bytes. Only touched pages take physical memory.
pub(crate) const ROOM: usize = 64 << 30;
/// The size of the smallest piece of a world's memory, in bytes.
const LEAST: usize = 16;
const CLASSES: usize = 40;

/// The header at the beginning of a world's memory.
#[repr(C)]
pub(crate) struct Header {
    /// The progress of building the world: 0, not begun; 1, begun; 2, done.
    pub(crate) built: AtomicU32,
    /// The core to which all processes of the world are pinned.
    pub(crate) core: Cell<u32>,
    /// The contents of the memory: a `JobMemory` of `process`. Unused for coroutines.
    pub(crate) root: Cell<*mut u8>,
    next: Cell<usize>,
    end: usize,
    free: [Cell<*mut Free>; CLASSES],
    pub(crate) logs: [Slot; SLOTS],
}

struct Free {
    next: *mut Free,
}

/// A handle to the memory of a world, which stays mapped until the process ends or its [`Memory`]
/// is dropped.
#[derive(Clone, Copy)]
pub struct WorldMemory(NonNull<Header>);

impl WorldMemory {
    pub(crate) fn header(&self) -> &Header {
        // SAFETY: the header exists as long as the memory is mapped.
        unsafe { self.0.as_ref() }
    }

    /// The address at an offset from the beginning of the memory, in bytes; `offset` is the
    /// inverse.
    pub(crate) fn at(&self, offset: u64) -> *mut u64 {
        self.0
            .as_ptr()
            .cast::<u8>()
            .wrapping_add(offset as usize)
            .cast()
    }

    pub(crate) fn offset(&self, place: *const u64) -> u64 {
        (place as usize - self.0.as_ptr() as usize) as u64
    }
}

/// The mapping of a world's memory. It is removed on drop.
pub struct Memory {
    shared: WorldMemory,
}

impl Memory {
    /// The length of the file that processes map, in bytes. Only touched pages take physical
    /// memory.
    pub const BYTES: u64 = ROOM as u64;

    /// Memory for the ranks of this process, which are coroutines.
    pub fn private() -> io::Result<Memory> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let base = map(0, flags, -1)?;
        prefer_huge_pages(base.as_ptr().cast(), ROOM);
        Ok(Memory::begin(base))
    }

    /// Maps an anonymous file of [`BYTES`](Memory::BYTES) zeros at the address that all processes
    /// use. Fails if something else is mapped there.
    pub fn open(file: &OwnedFd) -> io::Result<Memory> {
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
        let base = map(ADDRESS, flags, file.as_raw_fd())?;
        if base.as_ptr() as usize != ADDRESS {
            // SAFETY: mapped just now, and unused.
            unsafe { libc::munmap(base.as_ptr().cast(), ROOM) };
            let what = format!("memory at {ADDRESS:#x}, where all ranks must have it, is in use");
            return Err(io::Error::new(io::ErrorKind::AddrInUse, what));
        }
        Ok(Memory {
            shared: WorldMemory(base),
        })
    }

    fn begin(base: NonNull<Header>) -> Memory {
        let shared = WorldMemory(base);
        shared.prepare();
        Memory { shared }
    }

    /// A handle to this memory.
    pub fn shared(&self) -> WorldMemory {
        self.shared
    }
}

impl WorldMemory {
    /// Prepares fresh memory for allocation. Called once, by the builder of the world.
    pub(crate) fn prepare(&self) {
        let base = self.0.as_ptr();
        // SAFETY: fresh memory is all zeroes, which is an empty header; it has no other user yet.
        unsafe {
            let first = (base as usize + size_of::<Header>()).next_multiple_of(64);
            (*base).next.set(first);
            (*base).end = base as usize + ROOM;
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: mapped by us with this length; the worlds in it have ended, or belong to later
        // users.
        unsafe { libc::munmap(self.shared.0.as_ptr().cast(), ROOM) };
    }
}

fn map(address: usize, flags: i32, fd: i32) -> io::Result<NonNull<Header>> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the address is 0, or protected by MAP_FIXED_NOREPLACE, so no existing mapping is
    // changed.
    let base = unsafe { libc::mmap(address as *mut _, ROOM, protection, flags, fd, 0) };
    if base == libc::MAP_FAILED {
        return Err(refused(io::Error::last_os_error()));
    }
    NonNull::new(base.cast()).ok_or(io::Error::from_raw_os_error(libc::ENOMEM))
}

/// The error of a refused mapping. It names a limit on the address space, if there is one: that is
/// the usual reason, which users do not expect because the mapping takes little physical memory.
#[cold]
fn refused(why: io::Error) -> io::Error {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the structure is ours, to be written.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) } == 0;
    let is_limited = known && limit.rlim_cur != libc::RLIM_INFINITY;
    if !is_limited || why.raw_os_error() != Some(libc::ENOMEM) {
        return why;
    }
    let what = format!(
        "the memory of a modelled machine spans {} GiB of addresses, of which only what is touched takes memory, and the \
         limit on the address space (ulimit -v, {} KiB) is too low for it: raise it, or set it to unlimited",
        ROOM >> 30,
        limit.rlim_cur >> 10
    );
    io::Error::new(io::ErrorKind::OutOfMemory, what)
}

/// Asks for huge pages: ranks touch little memory each, in many pages, so that most of the time of
/// a large world would pass in walks of page tables. A refusal is ignored.
pub(crate) fn prefer_huge_pages(base: *mut u8, bytes: usize) {
    // SAFETY: advice about a mapping, which keeps its contents.
    unsafe { libc::madvise(base.cast(), bytes, libc::MADV_HUGEPAGE) };
}

fn class(layout: Layout) -> Option<usize> {
    let bytes = layout.size().max(layout.align()).max(LEAST);
    let class = bytes.checked_next_power_of_two()?.trailing_zeros() as usize;
    (class < CLASSES).then_some(class)
}

// SAFETY: pieces come from one bump pointer or from the list of freed pieces of their size class,
// so no two live pieces overlap; they are aligned to their size up to a cache line, which is at
// least the alignment asked for (checked).
unsafe impl Allocator for WorldMemory {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        let class = class(layout).ok_or(AllocError)?;
        let header = self.header();
        let bytes = 1 << class;
        let free = header.free[class].get();
        let piece = if free.is_null() {
            let align = bytes.min(4096).max(layout.align());
            let start = header.next.get().next_multiple_of(align);
            if start + bytes > header.end {
                return Err(AllocError);
            }
            header.next.set(start + bytes);
            start as *mut u8
        } else {
            // SAFETY: a piece in the list was freed and holds the link.
            header.free[class].set(unsafe { (*free).next });
            free.cast()
        };
        let piece = NonNull::new(piece).ok_or(AllocError)?;
        Ok(NonNull::slice_from_raw_parts(piece, layout.size()))
    }

    unsafe fn deallocate(&self, piece: NonNull<u8>, layout: Layout) {
        let Some(class) = class(layout) else { return };
        let list = &self.header().free[class];
        let piece = piece.cast::<Free>().as_ptr();
        // SAFETY: the piece has been given back; it is aligned, and large enough for the link.
        unsafe { (*piece).next = list.get() };
        list.set(piece);
    }
}
