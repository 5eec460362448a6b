//! The memory of a window that all of its ranks have mapped: a part for each rank, and the locks
//! that order accesses to it.
//!
//! A part is divided into *stripes* of equal length. Accumulates take the locks of the stripes that
//! they change, so accumulates to different stripes proceed concurrently. A rank also has a *window
//! lock*, which an epoch of `MPI_Win_lock` holds at its target. All locks are zero while free, as
//! new memory is.
//!
//! Invariants:
//! - locks of stripes are taken in ascending order of their numbers, so no two ranks wait for each
//!   other;
//! - a window lock is granted in the order of the requests, so shared locks starve no request;
//! - a rank's state is written by that rank only, except its locks.

use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use datatype::Buffer;

use crate::stripe_lock::StripeLock;
use crate::{Error, Fault, Result, SharedMemory};

/// Number of stripe locks of a part: one for each bit of a [`Stripes`]. Stripes share locks.
const STRIPES: u32 = u64::BITS;
/// Bytes of a page. Parts that need not be contiguous begin on pages.
const PAGE: usize = 4096;
/// The default length of a stripe, in bytes.
const USUAL_STRIPE: u64 = 4096;
/// The least and the greatest length of a stripe, in bytes.
const STRIPE_LIMITS: (u64, u64) = (64, 1 << 30);

/// The window lock of one rank, for lock epochs: a ticket lock with shared and exclusive holders.
#[repr(C, align(64))]
struct TicketLock {
    /// The number that the next request for the lock gets.
    next: AtomicU32,
    /// Number of tickets whose shared holders have acquired the lock, or whose exclusive holders
    /// have released it.
    shared: AtomicU32,
    /// Number of tickets whose holders have released the lock.
    exclusive: AtomicU32,
    /// Number of ranks that wait for the lock, and may sleep.
    waiting: AtomicU32,
}

/// The state of one member of the window, in memory of all members.
#[repr(C, align(64))]
struct Member {
    stripes: [StripeLock; STRIPES as usize],
    lock: TicketLock,
    /// The member whose window lock this member waits for, plus one; zero: none.
    awaits: AtomicU32,
    /// The process ID of this member, in its PID namespace.
    process: AtomicU32,
    /// The PID namespace of this member, by its inode number.
    space: AtomicU64,
}

/// The kind of a window lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowLock {
    /// Other members may have the lock at the same time, if their requests are shared as well.
    Shared,
    /// The lock excludes all other members.
    Exclusive,
}

/// A request for a window lock, granted or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    target: usize,
    number: u32,
    kind: WindowLock,
}

/// The offsets of the parts of a window in its memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowLayout {
    parts: Box<[Range<usize>]>,
    bytes: usize,
}

impl WindowLayout {
    /// The layout of parts of these sizes, in bytes. Each begins where the one before ends, or,
    /// with `on_pages`, on the next page. `None`: they do not fit into memory.
    pub fn new(sizes: impl ExactSizeIterator<Item = usize>, on_pages: bool) -> Option<Self> {
        let mut end = sizes.len().checked_mul(size_of::<Member>())?;
        end = end.checked_next_multiple_of(PAGE)?;
        let mut parts = Vec::with_capacity(sizes.len());
        for size in sizes {
            let start = end;
            end = start.checked_add(size)?;
            parts.push(start..end);
            if on_pages {
                end = end.checked_next_multiple_of(PAGE)?;
            }
        }
        Some(WindowLayout {
            parts: parts.into(),
            bytes: end,
        })
    }

    /// Number of bytes of the whole memory.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// The memory of a window, as one member has mapped it.
#[derive(Debug)]
pub struct WindowMemory {
    memory: SharedMemory,
    parts: Box<[Buffer]>,
    /// The address of each part in this process.
    starts: Box<[usize]>,
    /// The world ranks of the window's members.
    worlds: Box<[usize]>,
    me: usize,
    /// The number of this member in the stripe locks that it holds.
    holder: u32,
    /// The binary logarithm of a stripe's length in bytes.
    shift: u32,
}

/// A set of stripe locks of a member's part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stripes(u64);

/// Held stripe locks of one member's part; released when dropped.
#[must_use]
pub struct HeldStripes<'a> {
    member: &'a Member,
    stripes: u64,
}

/// The held lock of one stripe; released when dropped.
#[must_use]
pub struct HeldStripe<'a> {
    lock: &'a StripeLock,
}

impl Drop for HeldStripe<'_> {
    #[inline]
    fn drop(&mut self) {
        self.lock.give();
    }
}

impl WindowMemory {
    /// The memory of a window with this layout, for member `me` of the members with the world ranks
    /// `worlds`. `stripe`: the requested length of a stripe in bytes, zero for the default.
    ///
    /// # Panics
    /// If the memory is shorter than the layout.
    pub fn new(
        memory: SharedMemory,
        layout: &WindowLayout,
        (worlds, me): (Box<[usize]>, usize),
        stripe: u64,
    ) -> Self {
        let whole = memory.buffer();
        assert!(whole.len() >= layout.bytes && me < layout.parts.len());
        let (base, _) = whole.as_dense().expect("a mapping is one run");
        let (least, most) = STRIPE_LIMITS;
        let stripe = match stripe {
            0 => USUAL_STRIPE,
            wish => wish.clamp(least, most).next_power_of_two(),
        };
        let part = |range: &Range<usize>| whole.slice(range.start, range.len());
        let made = WindowMemory {
            parts: layout.parts.iter().map(part).collect(),
            starts: layout.parts.iter().map(|part| base + part.start).collect(),
            memory,
            worlds,
            me,
            holder: me as u32 + 1,
            shift: stripe.trailing_zeros(),
        };
        let own = made.member(me);
        own.space.store(name_space(), Ordering::Relaxed);
        own.process.store(std::process::id(), Ordering::Release);
        made
    }

    /// True if the process of a member that has held a stripe lock has ended. A process in another
    /// PID namespace, where its number has another meaning, counts as running.
    fn has_ended(&self, holder: u32) -> bool {
        let member = holder as usize - 1;
        if member >= self.parts.len() {
            return false;
        }
        let member = self.member(member);
        let process = member.process.load(Ordering::Acquire);
        member.space.load(Ordering::Relaxed) == name_space() && has_ended(process)
    }

    #[inline(always)]
    fn take(&self, lock: &StripeLock) -> Result<()> {
        let taken = lock.take(self.holder, |holder| self.has_ended(holder));
        taken.map_err(|holder| self.abandoned(holder))
    }

    /// The error for a lock whose holder has ended during an accumulate: the state of the memory is
    /// unknown.
    #[cold]
    fn abandoned(&self, holder: u32) -> Error {
        let peer = self.worlds[holder as usize - 1];
        Fault::Gone { peer }.into()
    }

    /// The number of members of the window.
    #[inline]
    pub fn members(&self) -> usize {
        self.parts.len()
    }

    /// The length of the window's stripes in bytes.
    pub fn stripe(&self) -> u64 {
        1 << self.shift
    }

    /// The part of a member, as a buffer.
    #[inline]
    pub fn part(&self, member: usize) -> &Buffer {
        &self.parts[member]
    }

    /// The address of a member's part in this process.
    #[inline]
    pub fn start(&self, member: usize) -> usize {
        self.starts[member]
    }

    #[inline]
    fn member(&self, member: usize) -> &Member {
        assert!(member < self.parts.len());
        // SAFETY: the layout begins with as many members, which are atomics only; the mapping is
        // aligned to a page, and is kept by `memory`.
        unsafe { &*self.memory.base().cast::<Member>().add(member) }
    }

    /// The locks of the stripes that contain the `len` bytes from the offset `first` of a part.
    #[inline]
    pub fn stripes(&self, first: usize, len: usize) -> Stripes {
        let (from, to) = (
            first >> self.shift,
            (first + len.saturating_sub(1)) >> self.shift,
        );
        if from == to {
            return Stripes(lock_of(from));
        }
        if to - from >= STRIPES as usize {
            return Stripes(u64::MAX);
        }
        Stripes((from..=to).fold(0, |set, stripe| set | lock_of(stripe)))
    }

    /// Number of bytes from the offset `first` to the end of its stripe.
    #[inline]
    pub fn left_in_stripe(&self, first: usize) -> usize {
        let stripe = 1usize << self.shift;
        stripe - (first & (stripe - 1))
    }

    /// Takes stripe locks of a member's part, and waits for their holders.
    ///
    /// # Errors
    /// A process that held one of the locks has ended.
    #[inline]
    pub fn hold(&self, member: usize, stripes: Stripes) -> Result<HeldStripes<'_>> {
        let member = self.member(member);
        let mut held = HeldStripes { member, stripes: 0 };
        let mut left = stripes.0;
        while left != 0 {
            let lock = &member.stripes[left.trailing_zeros() as usize];
            self.take(lock)?;
            held.stripes |= left & left.wrapping_neg();
            left &= left - 1;
        }
        Ok(held)
    }

    /// Takes the lock of the stripe that contains the byte at `offset` of a member's part.
    ///
    /// # Errors
    /// A process that held the lock has ended.
    #[inline(always)]
    pub fn hold_one(&self, member: usize, offset: usize) -> Result<HeldStripe<'_>> {
        let lock = &self.member(member).stripes[number_of(offset >> self.shift)];
        self.take(lock)?;
        Ok(HeldStripe { lock })
    }

    /// Requests the window lock of a member.
    pub fn request(&self, target: usize, kind: WindowLock) -> Ticket {
        let number = self.member(target).lock.next.fetch_add(1, Ordering::SeqCst);
        Ticket {
            target,
            number,
            kind,
        }
    }

    /// True if the lock has been granted. Call this until it is true, and not again. A granted
    /// shared lock lets the next shared request in, so the caller then wakes the waiting members.
    pub fn is_granted(&self, ticket: &Ticket) -> bool {
        let lock = &self.member(ticket.target).lock;
        match ticket.kind {
            WindowLock::Exclusive => lock.exclusive.load(Ordering::SeqCst) == ticket.number,
            WindowLock::Shared => {
                let granted = lock.shared.load(Ordering::SeqCst) == ticket.number;
                if granted {
                    lock.shared.fetch_add(1, Ordering::SeqCst);
                }
                granted
            }
        }
    }

    /// Releases a window lock that this rank holds. The caller then wakes the waiting members.
    pub fn release(&self, target: usize, kind: WindowLock) {
        let lock = &self.member(target).lock;
        if kind == WindowLock::Exclusive {
            lock.shared.fetch_add(1, Ordering::SeqCst);
        }
        lock.exclusive.fetch_add(1, Ordering::SeqCst);
    }

    /// Records that this rank waits for the window lock of a member, so that others ring this
    /// rank's doorbell when the lock changes.
    pub fn begin_wait(&self, target: usize) {
        self.member(self.me)
            .awaits
            .store(target as u32 + 1, Ordering::SeqCst);
        self.member(target)
            .lock
            .waiting
            .fetch_add(1, Ordering::SeqCst);
    }

    /// Records that this rank does not wait for the lock any more.
    pub fn end_wait(&self, target: usize) {
        self.member(self.me).awaits.store(0, Ordering::SeqCst);
        self.member(target)
            .lock
            .waiting
            .fetch_sub(1, Ordering::SeqCst);
    }

    /// The members that wait for the window lock of a member, which has just changed.
    pub fn waiting(&self, target: usize) -> impl Iterator<Item = usize> {
        let some = self.member(target).lock.waiting.load(Ordering::SeqCst) > 0;
        let members = if some { self.parts.len() } else { 0 };
        let awaits = move |member: &usize| {
            self.member(*member).awaits.load(Ordering::SeqCst) == target as u32 + 1
        };
        (0..members).filter(awaits)
    }
}

impl Stripes {
    /// The union of two sets of stripes.
    #[inline]
    pub fn and(self, others: Stripes) -> Stripes {
        Stripes(self.0 | others.0)
    }
}

impl Drop for HeldStripes<'_> {
    #[inline]
    fn drop(&mut self) {
        let mut left = self.stripes;
        while left != 0 {
            self.member.stripes[left.trailing_zeros() as usize].give();
            left &= left - 1;
        }
    }
}

/// The lock of a stripe, as a set. Adjacent stripes, and stripes at a distance of a power of two,
/// have different locks.
#[inline]
fn lock_of(stripe: usize) -> u64 {
    1 << number_of(stripe)
}

/// The number of the lock of stripe `stripe`: its bit in a [`Stripes`].
#[inline]
fn number_of(stripe: usize) -> usize {
    let spread = (stripe as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (spread >> (64 - STRIPES.ilog2())) as usize
}

/// True if no process has this process ID.
fn has_ended(process: u32) -> bool {
    let Ok(process) = libc::pid_t::try_from(process) else {
        return false;
    };
    // SAFETY: signal 0 only checks whether the process exists.
    let refused = process > 0 && unsafe { libc::kill(process, 0) } != 0;
    refused && std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
}

/// The inode number of this process's PID namespace, which a process never leaves. Zero: it is
/// unknown.
fn name_space() -> u64 {
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |space| space.ino())
}

#[cfg(test)]
mod tests;
