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

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use super::affinity::Affinity;
use super::collective_buffer::{self, AREA, BUFFERS};
use super::exposures::Table;
use super::shared_ring::{CELLS_ROOM, CellMemory, PAGE, RING_ROOM, Shape, SharedRing};
use crate::cells::Half;
use crate::core_counts::{CoreCounts, CoreWatch};
use crate::doorbell::{Bell, Doorbell};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::{Fault, Result};

const MAGIC: u64 = 0x4649_5348_504c_5405;

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
