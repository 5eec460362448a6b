//! The memory that the ranks of a host share: one anonymous file, whose descriptor the launcher
//! passes on. So nothing is left behind however a rank dies, and /dev/shm is never touched.
//!
//! The launcher makes the file empty; the ranks give it its size and its header, in any order: each
//! extends the file to the same size and agrees on each word of the header by compare-and-swap from
//! zero.
//!
//! The file is sparse. A page takes memory once a rank writes to it, so a pair of ranks costs
//! nothing until it talks. Layout: the header, one board for each rank, one table of exposed memory
//! for each rank, then a ring for each ordered pair at an offset that follows from the two ranks,
//! then the collective buffers.

use std::cell::UnsafeCell;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use datatype::Buffer;

use super::affinity::Affinity;
use super::collective_buffer::{self, AREA, BUFFERS};
use super::exposures::Table;
use crate::cells::{CellSize, Cells, Half};
use crate::core_counts::{CoreCounts, CoreWatch};
use crate::doorbell::{Bell, Doorbell};
use crate::piece_counter::PieceCounter;
use crate::ring::{self, Arenas, Contents, INLINE, Memory, Which};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::{Fault, Head, Result};

const PAGE: usize = 4096;
/// Bytes of the file for one ring. They take memory only where the ring is used.
const RING_ROOM: usize = 4 << 20;
/// Bytes of the cells of a pair of ranks, at the end of the room of one of its rings.
pub(super) const CELLS_ROOM: usize =
    (CellSize::Long.bytes() + CellSize::Short.bytes()).next_multiple_of(PAGE);
const MAGIC: u64 = 0x4649_5348_504c_5405;

/// The shape of every ring of a job, on which all ranks must agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Slots of a ring, a power of two.
    pub(crate) slots: u32,
    /// Bytes of both arenas of a ring.
    pub(crate) arena: usize,
}

impl Shape {
    /// The shape with `slots` rounded up to a power of two and `arena` to whole pages.
    pub(crate) fn new(slots: usize, arena: usize) -> Result<Shape> {
        let shape = Shape {
            slots: slots.clamp(4, 1 << 15).next_power_of_two() as u32,
            arena: arena.next_multiple_of(PAGE),
        };
        if shape.arena == 0 || shape.bytes() > RING_ROOM - CELLS_ROOM {
            return Err(Fault::Mismatch(format!(
                "a ring of {slots} slots and {arena} bytes does not fit: at least one byte, and at most {} bytes with its slots",
                RING_ROOM - CELLS_ROOM
            )).into());
        }
        Ok(shape)
    }

    /// Bytes of a ring.
    pub(super) fn bytes(&self) -> usize {
        PAGE + self.slots as usize * 64 + self.arena
    }

    /// The two arenas.
    pub(crate) fn arenas(&self) -> Arenas {
        Arenas::of(self.arena)
    }
}

/// Words on which all ranks agree; zero until the first rank has written them.
#[repr(C)]
struct Header {
    magic: AtomicU64,
    ranks: AtomicU64,
    /// The shape, packed.
    shape: AtomicU64,
    core_counts: CoreCounts,
}

const _: () = assert!(size_of::<Header>() <= PAGE);

/// The words of a rank that all others can read.
#[repr(C)]
pub(crate) struct Board {
    pub(crate) doorbell: Doorbell,
    /// Number of peers that have opened a ring to this rank.
    pub(crate) arrivals: AtomicU32,
    pub(crate) pid: AtomicU32,
    /// Address of a secret in this rank's memory. A peer that can read the secret can read the
    /// rest.
    pub(crate) token_address: AtomicU64,
    pub(crate) token: AtomicU64,
    pub(crate) affinity: Affinity,
}

/// The shared memory of the ranks of a host.
pub(crate) struct Segment {
    file: File,
    pub(crate) ranks: usize,
    pub(crate) shape: Shape,
    header: Arc<Mapping>,
    /// The boards, and the tables behind them.
    boards: Arc<Mapping>,
}

impl Segment {
    /// Maps what every rank needs of the memory that `ranks` ranks share. The first rank gives the
    /// file its size.
    pub(crate) fn open(fd: OwnedFd, ranks: usize, shape: Shape) -> Result<Segment> {
        let file = File::from(fd);
        let expected = (buffers_at(ranks) + collective_buffer::file_bytes(ranks)) as u64;
        let len = |file: &File| file.metadata().map(|data| data.len());
        let failed = |why| Fault::System("cannot size the job's shared memory", why);
        let mut found = len(&file).map_err(failed)?;
        if found < expected {
            let extended = memory_file::set_len(&file, expected);
            found = len(&file).map_err(failed)?;
            // A file that others have made longer meanwhile cannot shrink, and is refused below; so
            // is one that others have sealed at a smaller length.
            match extended {
                Err(why) if found < expected && !is_sealed(&file) => return Err(failed(why).into()),
                _ => {}
            }
        }
        let first_page = Arc::new(Mapping::new(&file, 0, PAGE)?);
        // SAFETY: the mapping is a page long and page-aligned; the header is all atomics.
        let header = unsafe { &*first_page.base.cast::<Header>() };
        let agree = |word: &AtomicU64, value: u64| match word.compare_exchange(
            0,
            value,
            Ordering::AcqRel,
            Ordering::Acquire,
        ) {
            Ok(_) => Ok(()),
            Err(other) if other == value => Ok(()),
            Err(other) => Err(other),
        };
        let agreed = agree(&header.magic, MAGIC).and_then(|()| agree(&header.ranks, ranks as u64));
        if agreed.is_err() || found != expected {
            return Err(Fault::Mismatch(
                "another rank of this host shaped the job's shared memory differently: all ranks of a job have to load the \
                 same version of the library"
                    .into(),
            )
            .into());
        }
        seal(&file);
        let packed = (shape.slots as u64) << 32 | shape.arena as u64;
        if let Err(other) = agree(&header.shape, packed) {
            return Err(Fault::Mismatch(format!(
                "rings here would have {} slots and {} bytes, but the first rank of the job made them with {} and {}: set FISHPLATE_RING_SLOTS and FISHPLATE_RING_BYTES alike on all ranks",
                shape.slots,
                shape.arena,
                other >> 32,
                other as u32
            )).into());
        }
        let boards = Arc::new(Mapping::new(&file, PAGE, rings_at(ranks) - PAGE)?);
        Ok(Segment {
            file,
            ranks,
            shape,
            header: first_page,
            boards,
        })
    }

    #[inline(always)]
    pub(crate) fn board(&self, rank: usize) -> &Board {
        assert!(rank < self.ranks);
        // SAFETY: the mapping holds one board room for each rank; a board is all atomics.
        unsafe {
            &*self
                .boards
                .base
                .add(rank * board_room(self.ranks))
                .cast::<Board>()
        }
    }

    /// The words in which peers mark that they have opened a ring to `rank`.
    pub(crate) fn callers(&self, rank: usize) -> &[AtomicU64] {
        assert!(rank < self.ranks);
        // SAFETY: the words lie behind the board, within its room (see `board_room`).
        unsafe {
            let first = self
                .boards
                .base
                .add(rank * board_room(self.ranks) + size_of::<Board>())
                .cast::<AtomicU64>();
            std::slice::from_raw_parts(first, self.ranks.div_ceil(64))
        }
    }

    /// The memory that a rank exposes.
    pub(super) fn exposed(&self, rank: usize) -> &Table {
        assert!(rank < self.ranks);
        let at = tables_at(self.ranks) - PAGE + rank * size_of::<Table>();
        // SAFETY: the mapping begins behind the first page and holds one table for each rank,
        // aligned by its page; a table is all atomics.
        unsafe { &*self.boards.base.add(at).cast::<Table>() }
    }

    /// The doorbell of a rank, which stays mapped as long as the answer.
    pub(crate) fn bell(&self, rank: usize) -> Bell {
        // SAFETY: the board lies in the mapping.
        unsafe { Bell::new(&self.board(rank).doorbell, self.boards.clone()) }
    }

    /// The watch of a rank over its core.
    pub(crate) fn core_watch(&self) -> CoreWatch {
        let header = self.header.base.cast::<Header>();
        // SAFETY: the mapping holds the header, and the watch keeps the mapping.
        unsafe { CoreWatch::new(&raw const (*header).core_counts, self.header.clone()) }
    }

    /// The board of a rank, which stays mapped as long as the answer.
    pub(crate) fn board_ref(&self, rank: usize) -> BoardRef {
        BoardRef {
            board: self.board(rank),
            _boards: self.boards.clone(),
        }
    }

    /// Maps the ring by which `from` sends to `to`, and the cells of the two ranks unless this rank
    /// has mapped them for the other direction.
    pub(crate) fn ring(
        &self,
        from: usize,
        to: usize,
        cells: Option<CellMemory>,
    ) -> Result<SharedRing> {
        let cells = match cells {
            Some(cells) => cells,
            None => self.cells(from, to)?,
        };
        let mapping = Mapping::new(&self.file, self.ring_at(from, to), self.shape.bytes())?;
        let half = match from < to {
            true => Half::First,
            false => Half::Second,
        };
        // SAFETY: the mapping has the bytes of the shape; ranks use this part of the file as a ring
        // only.
        let ring = unsafe { SharedRing::over(mapping.base, self.shape, Arc::new(mapping)) };
        Ok(ring.with_cells(cells, half))
    }

    /// Maps the cells of two ranks.
    fn cells(&self, one: usize, other: usize) -> Result<CellMemory> {
        let room = self.ring_at(one.min(other), one.max(other));
        let mapping = Mapping::new(&self.file, room + RING_ROOM - CELLS_ROOM, CELLS_ROOM)?;
        // SAFETY: the mapping has the bytes of the cells; ranks use this part of the file as cells
        // only.
        Ok(unsafe { CellMemory::over(mapping.base, Arc::new(mapping)) })
    }

    /// The offset in the file of the ring by which `from` sends to `to`.
    fn ring_at(&self, from: usize, to: usize) -> usize {
        rings_at(self.ranks) + (to * self.ranks + from) * RING_ROOM
    }

    /// Maps a collective buffer: an area for each rank.
    pub(super) fn collective_buffer(&self, index: usize) -> Result<Mapping> {
        assert!(index < BUFFERS);
        let len = self.ranks * AREA;
        Mapping::new(&self.file, buffers_at(self.ranks) + index * len, len)
    }

    /// The mapping of all boards.
    pub(super) fn board_mapping(&self) -> Arc<Mapping> {
        self.boards.clone()
    }
}

/// The seals of a file whose length is final: no rank takes memory away from another, or adds any.
const SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// Seals the length of the file. A file that cannot be sealed stays as it is.
fn seal(file: &File) {
    // SAFETY: the call takes numbers.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, SEALS) };
}

fn is_sealed(file: &File) -> bool {
    // SAFETY: the call takes numbers.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) & SEALS == SEALS }
}

/// A rank's board, kept mapped.
pub(crate) struct BoardRef {
    board: *const Board,
    _boards: Arc<Mapping>,
}

// SAFETY: a board is all atomics, and the mapping goes along.
unsafe impl Send for BoardRef {}

impl std::ops::Deref for BoardRef {
    type Target = Board;
    #[inline(always)]
    fn deref(&self) -> &Board {
        // SAFETY: the board lies in the mapping, which lives as long as `self`.
        unsafe { &*self.board }
    }
}

fn board_room(ranks: usize) -> usize {
    (size_of::<Board>() + ranks.div_ceil(64) * 8).next_multiple_of(128)
}

fn tables_at(ranks: usize) -> usize {
    PAGE + (ranks * board_room(ranks)).next_multiple_of(PAGE)
}

fn rings_at(ranks: usize) -> usize {
    tables_at(ranks) + ranks * size_of::<Table>()
}

const _: () = assert!(size_of::<Table>().is_multiple_of(PAGE));

fn buffers_at(ranks: usize) -> usize {
    rings_at(ranks) + ranks * ranks * RING_ROOM
}

/// The cells of a pair of ranks in shared memory, kept mapped.
#[derive(Clone)]
pub(crate) struct CellMemory {
    base: *mut u8,
    _memory: Arc<dyn Send + Sync>,
}

impl CellMemory {
    /// The cells at `base`, in memory that `memory` keeps.
    ///
    /// # Safety
    /// The memory has [`CELLS_ROOM`] bytes, begins at a page, and is used as the cells of one pair
    /// only.
    pub(super) unsafe fn over(base: *mut u8, memory: Arc<dyn Send + Sync>) -> CellMemory {
        CellMemory {
            base,
            _memory: memory,
        }
    }
}

/// A ring in shared memory: one page with the tail, the slots, the arenas.
pub(crate) struct SharedRing {
    tail: *const AtomicU64,
    slots: *const Slot,
    /// One less than the slots.
    mask: u32,
    /// Begin of each arena, and of the cells of each size.
    bases: [*mut u8; 4],
    arenas: Arenas,
    /// The cells that the sender owns at first.
    first_cells: Cells,
    _memory: Arc<dyn Send + Sync>,
    cells: Option<CellMemory>,
}

// SAFETY: the pointers lead into memory that goes along; the ring's protocol decides who may touch
// what.
unsafe impl Send for SharedRing {}

#[repr(C, align(64))]
pub(crate) struct Slot {
    flag: AtomicU32,
    contents: UnsafeCell<Contents>,
}

const _: () = assert!(size_of::<Slot>() == 64 && size_of::<PieceCounter>() <= PAGE / 2);

impl SharedRing {
    /// The ring at `base`, in memory that `memory` keeps.
    ///
    /// # Safety
    /// The memory has the bytes of the shape, begins at a page, was zero at first, and is used as a
    /// ring only.
    pub(super) unsafe fn over(
        base: *mut u8,
        shape: Shape,
        memory: Arc<dyn Send + Sync>,
    ) -> SharedRing {
        let arenas = shape.arenas();
        // SAFETY: the memory holds a page, the slots, the arenas, by the caller's promise.
        let (slots, bases) = unsafe {
            let slots = base.add(PAGE);
            let small = slots.add(shape.slots as usize * 64);
            let wide = small.add(arenas.len(Which::Small));
            let none = std::ptr::null_mut();
            (slots.cast(), [small, wide, none, none])
        };
        SharedRing {
            tail: base.cast(),
            slots,
            mask: shape.slots - 1,
            bases,
            arenas,
            first_cells: Cells::default(),
            _memory: memory,
            cells: None,
        }
    }

    /// The ring with the cells of its pair, of which the sender owns one half at first.
    pub(super) fn with_cells(self, cells: CellMemory, half: Half) -> SharedRing {
        let [small, wide, ..] = self.bases;
        // SAFETY: the memory holds the cells of both sizes.
        let short = unsafe { cells.base.add(CellSize::Long.bytes()) };
        SharedRing {
            bases: [small, wide, short, cells.base],
            arenas: self.arenas.with_cells(),
            first_cells: Cells::of(half),
            cells: Some(cells),
            ..self
        }
    }

    /// The cells of this ring's pair of ranks.
    pub(crate) fn cell_memory(&self) -> Option<CellMemory> {
        self.cells.clone()
    }

    /// The piece counter of cooperative copies from this ring's sender to its receiver.
    pub(crate) fn piece_counter(&self) -> &PieceCounter {
        // SAFETY: the first page of the mapping holds the tail's line and, from its middle on, the
        // counter; it is all atomics, aligned by the page.
        unsafe { &*self.tail.byte_add(PAGE / 2).cast::<PieceCounter>() }
    }
}

impl Memory for SharedRing {
    type Slot = Slot;

    #[inline(always)]
    fn slots(&self) -> u32 {
        self.mask + 1
    }

    #[inline(always)]
    fn arenas(&self) -> Arenas {
        self.arenas
    }

    fn first_cells(&self) -> Cells {
        self.first_cells
    }

    #[inline(always)]
    fn tail(&self) -> &AtomicU64 {
        // SAFETY: within the mapping, which lives as long as we do.
        unsafe { &*self.tail }
    }

    #[inline(always)]
    fn slot(&self, packets: u32) -> &Slot {
        // SAFETY: there are a power of two of them, so the masked index is within; a slot is an
        // atomic and a cell.
        unsafe { &*self.slots.add((packets & self.mask) as usize) }
    }

    #[cfg(not(test))]
    fn now() -> u64 {
        let mut now = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: the structure is ours, to be written.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    }

    #[cfg(test)]
    fn now() -> u64 {
        ring::test_clock::now()
    }

    #[cold]
    fn own_copy() -> u64 {
        const LEN: usize = 8 << 10;
        let (mut from, mut to) = ([1; LEN], [0; LEN]);
        // SAFETY: the bytes are ours, and stay as long as the buffer.
        let buffer = unsafe { Buffer::dense(from.as_mut_ptr(), LEN) };
        // The first copy fills the caches, and the least is without an interruption.
        let times = (0..4).map(|_| {
            let begun = Self::now();
            buffer.pack(0, std::hint::black_box(&mut to));
            Self::now().saturating_sub(begun)
        });
        times.min().unwrap_or(0) * 1000 / LEN as u64
    }

    #[inline(always)]
    fn arena<R>(
        &self,
        which: Which,
        offset: usize,
        len: usize,
        access: impl FnOnce(&mut [u8]) -> R,
    ) -> R {
        assert!(offset + len <= self.arenas.len(which));
        let base = self.bases[which as usize];
        // SAFETY: within the arena or the cells; turns are taken as for slots, and bytes have no
        // invalid values.
        access(unsafe { std::slice::from_raw_parts_mut(base.add(offset), len) })
    }

    #[inline(always)]
    fn body<R>(
        &self,
        slot: &Slot,
        at: Option<(Which, usize)>,
        len: usize,
        access: impl FnOnce(&[u8]) -> R,
    ) -> R {
        let start = match at {
            None => {
                assert!(len <= INLINE);
                // SAFETY: an address within the slot; nothing is read yet.
                unsafe { (&raw const (*slot.contents.get()).inline).cast::<u8>() }
            }
            Some((which, offset)) => {
                assert!(offset + len <= self.arenas.len(which));
                // SAFETY: within the arena or the cells.
                unsafe { self.bases[which as usize].add(offset) }
            }
        };
        // SAFETY: within the slot's bytes, the arena or the cells, as asserted; turns are taken as
        // for slots.
        access(unsafe { std::slice::from_raw_parts(start, len) })
    }
}

impl ring::Slot for Slot {
    #[inline(always)]
    fn flag(&self) -> &AtomicU32 {
        &self.flag
    }

    #[inline(always)]
    fn write(&self, head: Head, len: usize, inline: usize, fill: impl FnOnce(&mut [u8])) {
        // SAFETY: as for `contents`.
        unsafe { (*self.contents.get()).write(head, len, inline, fill) }
    }

    #[inline(always)]
    fn contents<R>(&self, access: impl FnOnce(&mut Contents) -> R) -> R {
        // SAFETY: sender and receiver take turns by flag and tail, so an honest peer is not inside.
        // Any bit pattern is a valid `Contents`.
        access(unsafe { &mut *self.contents.get() })
    }

    #[inline(always)]
    fn will_be_written(&self) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: a prefetch never faults.
        unsafe {
            std::arch::asm!("prefetchw [{}]", in(reg) self, options(nostack, preserves_flags))
        };
    }
}

/// A part of the job's file in this process's address space.
pub(crate) struct Mapping {
    base: *mut u8,
    len: usize,
}

// SAFETY: the mapping is plain shared memory; the ring's protocol decides who may touch what.
unsafe impl Send for Mapping {}
// SAFETY: as for `Send`.
unsafe impl Sync for Mapping {}

impl Mapping {
    #[inline(always)]
    pub(crate) fn base(&self) -> *mut u8 {
        self.base
    }

    fn new(file: &File, offset: usize, len: usize) -> Result<Mapping> {
        // SAFETY: a new mapping at an address of the kernel's choice, of a file that stays as long
        // as it is.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                offset as libc::off_t,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(Fault::System(
                "cannot map the job's shared memory",
                io::Error::last_os_error(),
            )
            .into());
        }
        Ok(Mapping {
            base: base.cast(),
            len,
        })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length, and nobody holds a reference beyond the owner.
        unsafe { libc::munmap(self.base.cast(), self.len) };
    }
}
