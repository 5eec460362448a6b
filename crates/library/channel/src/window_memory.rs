//! The memory of a window that all of its ranks map: the part of each, and the locks that order
//! accesses to it.
//!
//! A part is divided into *stripes*. Accumulates take the locks of the stripes that they change,
//! so those to other stripes run beside them. A rank also has a *window lock*, which an epoch of
//! `MPI_Win_lock` holds at its target. All locks are zero while free, as new memory is.
//!
//! Invariants:
//! - locks of stripes are taken in rising order of their numbers, so no two ranks wait for each
//!   other;
//! - a window lock is granted in the order of the requests, so shared locks starve nobody;
//! - the word of a rank is written by that rank only, except its locks.

use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use datatype::Buffer;

use crate::stripe_lock::StripeLock;
use crate::{Error, Fault, Result, SharedMemory};

/// Number of locks of stripes in a part: one for each bit of a set.
const STRIPES: u32 = u64::BITS;
/// Bytes of a page, on which parts begin that need not follow each other.
const PAGE: usize = 4096;
/// The usual length of a stripe in bytes.
const USUAL_STRIPE: u64 = 4096;
/// The limits of a stripe's length in bytes.
const STRIPE_LIMITS: (u64, u64) = (64, 1 << 30);

/// The lock of one rank's part, for epochs: a ticket lock for readers and writers.
#[repr(C, align(64))]
struct TicketLock {
    /// The next ticket.
    next: AtomicU32,
    /// Tickets whose shared holders have entered, or whose exclusive holders have left.
    shared: AtomicU32,
    /// Tickets whose holders have left.
    exclusive: AtomicU32,
    /// Number of ranks that wait for it, and may sleep.
    waiting: AtomicU32,
}

/// State of one member that all members share.
#[repr(C, align(64))]
struct Member {
    stripes: [StripeLock; STRIPES as usize],
    lock: TicketLock,
    /// The member whose window lock this one waits for, plus one.
    awaits: AtomicU32,
    /// Its process, and the name space in which the process has this number.
    process: AtomicU32,
    space: AtomicU64,
}

/// The kind of a window lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowLock {
    /// Others may hold it too, if theirs are shared.
    Shared,
    /// Nobody else holds it.
    Exclusive,
}

/// A request for a window lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    target: usize,
    number: u32,
    kind: WindowLock,
}

/// The places of the parts of a window in its memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowLayout {
    parts: Box<[Range<usize>]>,
    bytes: usize,
}

impl WindowLayout {
    /// Parts of these sizes, one behind the other, or each on pages of its own. `None`: they do not
    /// fit memory.
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

    /// Bytes of the whole memory.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// The memory of a window, as one member maps it.
#[derive(Debug)]
pub struct WindowMemory {
    memory: SharedMemory,
    parts: Box<[Buffer]>,
    /// The first byte of each part here.
    starts: Box<[usize]>,
    /// The world ranks of the members.
    worlds: Box<[usize]>,
    me: usize,
    /// The number of this member as the holder of a stripe.
    holder: u32,
    /// The length of a stripe is this power of two.
    shift: u32,
}

/// A set of stripes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stripes(u64);

/// Locks of stripes, until they are dropped.
#[must_use]
pub struct HeldStripes<'a> {
    member: &'a Member,
    stripes: u64,
}

/// The lock of one stripe, until it is dropped.
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
    /// Shared memory with this layout, as member `me` of these world ranks maps it. `stripe`: the
    /// length of a stripe in bytes that the members request, zero for the default.
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

    /// The process of a member, which has held a stripe, has ended. One in another name space of
    /// processes, whose number means nothing here, is taken to live.
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

    /// Nobody can know what a member has left there that ended while it accumulated.
    #[cold]
    fn abandoned(&self, holder: u32) -> Error {
        let peer = self.worlds[holder as usize - 1];
        Fault::Gone { peer }.into()
    }

    /// Number of members.
    #[inline]
    pub fn members(&self) -> usize {
        self.parts.len()
    }

    /// The length of a stripe in bytes.
    pub fn stripe(&self) -> u64 {
        1 << self.shift
    }

    /// The part of a member.
    #[inline]
    pub fn part(&self, member: usize) -> &Buffer {
        &self.parts[member]
    }

    /// The address of the part of a member.
    #[inline]
    pub fn start(&self, member: usize) -> usize {
        self.starts[member]
    }

    #[inline]
    fn member(&self, member: usize) -> &Member {
        assert!(member < self.parts.len());
        // SAFETY: the layout begins with as many members, which are atomics only; the mapping is
        // aligned to a page, and lives as long as `memory`.
        unsafe { &*self.memory.base().cast::<Member>().add(member) }
    }

    /// The stripes that hold some of the `len` bytes from `first` on, an offset in a part.
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

    /// Bytes from `first` to the end of its stripe.
    #[inline]
    pub fn left_in_stripe(&self, first: usize) -> usize {
        let stripe = 1usize << self.shift;
        stripe - (first & (stripe - 1))
    }

    /// Takes the locks of stripes of a member's part.
    ///
    /// # Errors
    /// A process that held one has ended.
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

    /// Takes the lock of the stripe that holds the byte at `offset` of a member's part.
    ///
    /// # Errors
    /// A process that held it has ended.
    #[inline(always)]
    pub fn hold_one(&self, member: usize, offset: usize) -> Result<HeldStripe<'_>> {
        let lock = &self.member(member).stripes[number_of(offset >> self.shift)];
        self.take(lock)?;
        Ok(HeldStripe { lock })
    }

    /// Asks for the window lock of a member.
    pub fn request(&self, target: usize, kind: WindowLock) -> Ticket {
        let number = self.member(target).lock.next.fetch_add(1, Ordering::SeqCst);
        Ticket {
            target,
            number,
            kind,
        }
    }

    /// The lock has been granted. To be called until it is, and not again. A shared lock lets the
    /// next request in, so the caller then wakes those who wait.
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

    /// Gives up a window lock that this rank holds. The caller then wakes those who wait.
    pub fn release(&self, target: usize, kind: WindowLock) {
        let lock = &self.member(target).lock;
        if kind == WindowLock::Exclusive {
            lock.shared.fetch_add(1, Ordering::SeqCst);
        }
        lock.exclusive.fetch_add(1, Ordering::SeqCst);
    }

    /// This rank begins to wait for the window lock of a member: others ring its doorbell when the
    /// lock changes.
    pub fn begin_wait(&self, target: usize) {
        self.member(self.me)
            .awaits
            .store(target as u32 + 1, Ordering::SeqCst);
        self.member(target)
            .lock
            .waiting
            .fetch_add(1, Ordering::SeqCst);
    }

    /// This rank waits no longer.
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
    /// These and others.
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

/// The lock of a stripe, as a set. Neighbours, and places at a power of two apart, have different
/// locks.
#[inline]
fn lock_of(stripe: usize) -> u64 {
    1 << number_of(stripe)
}

/// The number of a stripe's lock.
#[inline]
fn number_of(stripe: usize) -> usize {
    let spread = (stripe as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (spread >> (64 - STRIPES.ilog2())) as usize
}

/// No process has this number.
fn has_ended(process: u32) -> bool {
    let Ok(process) = libc::pid_t::try_from(process) else {
        return false;
    };
    // SAFETY: signal 0 only asks whether the process exists.
    let refused = process > 0 && unsafe { libc::kill(process, 0) } != 0;
    refused && std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
}

/// The name space of processes, which a process never leaves. Zero: it is unknown.
fn name_space() -> u64 {
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |space| space.ino())
}

#[cfg(test)]
mod tests;
