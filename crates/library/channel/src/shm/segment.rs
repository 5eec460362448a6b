//! The memory that the ranks of a host share: one anonymous file, whose descriptor the launcher
//! passes to the ranks. So nothing is left behind however a rank dies, and /dev/shm is never used.
//!
//! The launcher creates an empty file; the ranks set its length and write its header, in any order:
//! each extends the file to the same length and writes each word of the header by a
//! compare-and-swap from zero. A word that another rank has written with a different value is an
//! error.
//!
//! The file is sparse: a page takes memory once a rank writes to it, so a pair of ranks costs
//! nothing until it communicates. Layout: the header, one board for each rank, the words of the
//! host, one table of exposed memory for each rank, a ring for each ordered pair of ranks at an
//! offset computed from the two local ranks, the collective buffers.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use super::affinity::Affinity;
use super::collective_area::AREA;
use super::collective_buffer::{self, BUFFERS};
use super::exposures::Table;
use super::shared_ring::{CELLS_ROOM, CellMemory, PAGE, RING_ROOM, Shape, SharedRing};
use crate::cells::Half;
use crate::core_counts::{CoreCounts, CoreWatch};
use crate::doorbell::{Bell, Doorbell};
use crate::host_words::{HostWords, Words};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::{Fault, Result};

const MAGIC: u64 = 0x4649_5348_504c_5406;

/// The header of the file: values on which all ranks agree. Each is zero until the first rank has
/// written it.
#[repr(C)]
struct Header {
    magic: AtomicU64,
    ranks: AtomicU64,
    /// The shape of the rings: slots in the upper 32 bits, bytes of the arenas in the lower.
    shape: AtomicU64,
    core_counts: CoreCounts,
}

const _: () = assert!(size_of::<Header>() <= PAGE);

/// The fields of one rank that all ranks of the host can read.
#[repr(C)]
pub(crate) struct Board {
    pub(crate) doorbell: Doorbell,
    /// Number of peers that have opened a ring to this rank.
    pub(crate) arrivals: AtomicU32,
    pub(crate) pid: AtomicU32,
    /// Address of a secret value in this rank's memory. A peer that can read it there can read the
    /// rest of the memory as well.
    pub(crate) token_address: AtomicU64,
    pub(crate) token: AtomicU64,
    /// 1 once the rank receives nothing any more; 0 before.
    pub(crate) has_left: AtomicU32,
    pub(crate) affinity: Affinity,
}

/// The shared memory of the ranks of one host.
pub(crate) struct Segment {
    file: File,
    pub(crate) ranks: usize,
    pub(crate) shape: Shape,
    header: Arc<Mapping>,
    /// The mapping of all boards, and of the words of the host and the tables of exposed memory
    /// behind them.
    boards: Arc<Mapping>,
}

impl Segment {
    /// Maps the header, boards and tables of the memory that `ranks` ranks share. Rings are mapped
    /// later. The first rank to call extends the file to its length.
    pub(crate) fn open(fd: OwnedFd, ranks: usize, shape: Shape) -> Result<Segment> {
        let file = File::from(fd);
        let expected = (buffers_at(ranks) + collective_buffer::file_bytes(ranks)) as u64;
        let len = |file: &File| file.metadata().map(|data| data.len());
        let failed = |why| Fault::System("cannot size the job's shared memory", why);
        let mut found = len(&file).map_err(failed)?;
        if found < expected {
            let extended = memory_file::set_len(&file, expected);
            found = len(&file).map_err(failed)?;
            // A file that another rank has meanwhile extended further cannot shrink, and is refused
            // below; so is one that another rank has sealed at a smaller length.
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

    /// The bitmap in which peers mark, by local rank, that they have opened a ring to `rank`.
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

    /// The table of memory that a rank exposes.
    pub(super) fn exposed(&self, rank: usize) -> &Table {
        assert!(rank < self.ranks);
        let at = tables_at(self.ranks) - PAGE + rank * size_of::<Table>();
        // SAFETY: the mapping begins behind the first page and holds one table for each rank,
        // aligned by its page; a table is all atomics.
        unsafe { &*self.boards.base.add(at).cast::<Table>() }
    }

    /// The doorbell of a rank; the `Bell` keeps it mapped.
    pub(crate) fn bell(&self, rank: usize) -> Bell {
        // SAFETY: the board lies in the mapping.
        unsafe { Bell::new(&self.board(rank).doorbell, self.boards.clone()) }
    }

    /// The watch that counts how many ranks use each core. It keeps the counts mapped.
    pub(crate) fn core_watch(&self) -> CoreWatch {
        let header = self.header.base.cast::<Header>();
        // SAFETY: the mapping holds the header, and the watch keeps the mapping.
        unsafe { CoreWatch::new(&raw const (*header).core_counts, self.header.clone()) }
    }

    /// The words that the ranks of the host share.
    pub(crate) fn host_words(&self) -> HostWords {
        let at = words_at(self.ranks) - PAGE;
        // SAFETY: the mapping begins behind the first page and holds the page of words, which are
        // atomics; the value keeps the mapping.
        unsafe { HostWords::new(self.boards.base.add(at).cast(), self.boards.clone()) }
    }

    /// The board of a rank; the `BoardRef` keeps it mapped.
    pub(crate) fn board_ref(&self, rank: usize) -> BoardRef {
        BoardRef {
            board: self.board(rank),
            _boards: self.boards.clone(),
        }
    }

    /// Maps the ring from `from` to `to`, both local ranks. `cells`: the cells of the two ranks, if
    /// this rank has mapped them for the ring of the other direction; otherwise this maps them.
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

    /// Maps the cells that the two rings of a pair of ranks share.
    fn cells(&self, one: usize, other: usize) -> Result<CellMemory> {
        let room = self.ring_at(one.min(other), one.max(other));
        let mapping = Mapping::new(&self.file, room + RING_ROOM - CELLS_ROOM, CELLS_ROOM)?;
        // SAFETY: the mapping has the bytes of the cells; ranks use this part of the file as cells
        // only.
        Ok(unsafe { CellMemory::over(mapping.base, Arc::new(mapping)) })
    }

    /// The offset in the file of the ring from `from` to `to`.
    fn ring_at(&self, from: usize, to: usize) -> usize {
        rings_at(self.ranks) + (to * self.ranks + from) * RING_ROOM
    }

    /// Maps collective buffer `index`: [`AREA`] bytes for each rank.
    pub(super) fn collective_buffer(&self, index: usize) -> Result<Mapping> {
        assert!(index < BUFFERS);
        let len = self.ranks * AREA;
        Mapping::new(&self.file, buffers_at(self.ranks) + index * len, len)
    }

    /// The mapping that contains the boards of all ranks.
    pub(super) fn board_mapping(&self) -> Arc<Mapping> {
        self.boards.clone()
    }
}

/// The seals of a file whose length is final: no rank can shrink or extend it.
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

/// A rank's board, whose mapping stays as long as this value exists.
pub(crate) struct BoardRef {
    board: *const Board,
    _boards: Arc<Mapping>,
}

// SAFETY: a board is all atomics, and the value owns a share of the mapping.
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

fn words_at(ranks: usize) -> usize {
    PAGE + (ranks * board_room(ranks)).next_multiple_of(PAGE)
}

fn tables_at(ranks: usize) -> usize {
    words_at(ranks) + PAGE
}

const _: () = assert!(size_of::<Words>() == PAGE);

fn rings_at(ranks: usize) -> usize {
    tables_at(ranks) + ranks * size_of::<Table>()
}

const _: () = assert!(size_of::<Table>().is_multiple_of(PAGE));

fn buffers_at(ranks: usize) -> usize {
    rings_at(ranks) + ranks * ranks * RING_ROOM
}

/// A part of the job's file, mapped into this process's address space.
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
        // SAFETY: a new mapping at an address of the kernel's choice; it outlives the descriptor of
        // the file.
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
        datatype::double::ask(|double| double.shares(base.addr(), len));
        Ok(Mapping {
            base: base.cast(),
            len,
        })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length, and no reference outlives the owner of the
        // mapping.
        unsafe { libc::munmap(self.base.cast(), self.len) };
    }
}
