//! A watch by `userfaultfd`, for the events of mappings and not for page faults.
//!
//! The kernel reports `munmap`, a mapping over an old one, `brk`, `mremap` and
//! `madvise(MADV_DONTNEED)` of watched pages, and the thread that makes such a call waits until the
//! report has been read. A separate thread therefore reads it at once: the caller may be the rank
//! itself.
//!
//! Invariants:
//! - the thread marks changes as pending before it reads, and both under the lock: when the
//!   program's call returns, the mark is set, and whoever then takes the lock finds the range;
//! - neither the thread nor `take_changes` allocates or frees memory under the lock: the program's
//!   call may come from an allocator that holds its own lock;
//! - for the same reason the thread allocates and frees nothing while memory is watched: it has
//!   started before anything is watched, and closes the descriptor before it ends;
//! - pages are watched for write protection, and none is ever protected: no access faults.

use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::ioctl::opcode;

use super::watch::{Changes, Watch};

// From <linux/userfaultfd.h>.
const TYPE: u8 = 0xAA;
const API: u64 = 0xAA;
const USER_MODE_ONLY: libc::c_int = 1;
const EVENT_REMAP: u8 = 0x14;
const EVENT_REMOVE: u8 = 0x15;
const EVENT_UNMAP: u8 = 0x16;
const FEATURES: u64 = 1 << 2 | 1 << 3 | 1 << 6;
const MODE_WRITE_PROTECT: u64 = 1 << 1;

const CALL_API: libc::Ioctl = opcode::read_write::<UffdioApi>(TYPE, 0x3F) as libc::Ioctl;
const CALL_REGISTER: libc::Ioctl = opcode::read_write::<UffdioRegister>(TYPE, 0) as libc::Ioctl;
const CALL_UNREGISTER: libc::Ioctl = opcode::read::<UffdioRange>(TYPE, 1) as libc::Ioctl;

#[repr(C)]
struct UffdioApi {
    api: u64,
    features: u64,
    ioctls: u64,
}

#[repr(C)]
struct UffdioRange {
    start: u64,
    len: u64,
}

#[repr(C)]
struct UffdioRegister {
    range: UffdioRange,
    mode: u64,
    ioctls: u64,
}

/// A report of the kernel on changed memory. The meaning of `words` depends on the event.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct UffdMsg {
    event: u8,
    reserved: [u8; 7],
    words: [u64; 3],
}

/// The most reports that are read with one system call.
const BATCH: usize = 16;
const STACK: usize = 64 << 10;

/// A watch by `userfaultfd`, with the thread that reads its reports of changes.
pub(super) struct UserfaultWatch {
    /// The `userfaultfd`. `None` while the watch ends: then the thread alone holds the descriptor.
    fd: Option<Arc<OwnedFd>>,
    seen: Arc<Seen>,
    /// The event descriptor that is written to when the watch ends.
    end: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

/// The changes of mappings that the thread has read and `take_changes` has not taken.
struct Seen {
    pending: AtomicBool,
    changes: Mutex<Changes>,
}

impl UserfaultWatch {
    /// Starts the thread. The error describes what this system refuses, and what the user can do.
    pub(super) fn start() -> Result<UserfaultWatch, String> {
        let fd = Arc::new(open()?);
        let no = |error| format!("the thread that watches memory cannot start: {error}");
        let event = || eventfd(0, EventfdFlags::CLOEXEC).map(Arc::new);
        let system = |error| no(std::io::Error::from(error));
        let (end, begun) = (event().map_err(system)?, event().map_err(system)?);
        let seen = Arc::new(Seen {
            pending: AtomicBool::new(false),
            changes: Mutex::new(Changes::NONE),
        });
        let thread = std::thread::Builder::new()
            .name("fishplate memory".into())
            .stack_size(STACK)
            .spawn({
                let (fd, seen) = (fd.clone(), seen.clone());
                let (end, begun) = (end.clone(), begun.clone());
                move || seen.follow(fd, &begun, &end)
            })
            .map_err(no)?;
        let mut number = [0; 8];
        while rustix::io::read(&begun, &mut number) == Err(rustix::io::Errno::INTR) {}
        Ok(UserfaultWatch {
            fd: Some(fd),
            seen,
            end,
            thread: Some(thread),
        })
    }
}

/// Opens a descriptor that reports changes of this process's mappings.
fn open() -> Result<OwnedFd, String> {
    let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | USER_MODE_ONLY;
    // SAFETY: a system call with a number.
    let raw = unsafe { libc::syscall(libc::SYS_userfaultfd, flags) };
    if raw < 0 {
        let why = std::io::Error::last_os_error();
        return Err(format!(
            "userfaultfd is refused ({why}): it needs Linux 5.11, and in a container a seccomp \
             profile that allows it"
        ));
    }
    // SAFETY: new, and owned by nobody else.
    let fd = unsafe { OwnedFd::from_raw_fd(raw as i32) };
    let mut api = UffdioApi {
        api: API,
        features: FEATURES,
        ioctls: 0,
    };
    // SAFETY: the call reads and writes this structure only.
    if unsafe { libc::ioctl(fd.as_raw_fd(), CALL_API, &mut api) } < 0 {
        let why = std::io::Error::last_os_error();
        return Err(format!("userfaultfd of this kernel lacks events ({why})"));
    }
    Ok(fd)
}

impl Seen {
    fn lock(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads reports until the end. Then it closes the descriptor, of which it has the last
    /// reference: from then on no call of the program waits for this thread.
    fn follow(&self, fd: Arc<OwnedFd>, begun: &OwnedFd, end: &OwnedFd) {
        block_signals();
        let _ = rustix::io::write(begun, &1u64.to_ne_bytes());
        loop {
            let mut files = [&*fd, end].map(|file| PollFd::new(file, PollFlags::IN));
            // Whatever the answer, the descriptor is read: the program waits for that.
            let _ = poll(&mut files, None);
            if !files[1].revents().is_empty() {
                return;
            }
            self.read(&fd);
        }
    }

    /// Reads the pending reports of the kernel, and adds their ranges to the changes.
    fn read(&self, fd: &OwnedFd) {
        let mut changes = self.lock();
        self.pending.store(true, Ordering::Release);
        let mut reports = [UffdMsg::default(); BATCH];
        // SAFETY: room for the bytes, of which every value is valid.
        let read = unsafe {
            libc::read(
                fd.as_raw_fd(),
                reports.as_mut_ptr().cast(),
                size_of_val(&reports),
            )
        };
        // A negative answer: there was no report.
        for report in &reports[..read.max(0) as usize / size_of::<UffdMsg>()] {
            let [first, second, third] = report.words;
            match report.event {
                EVENT_REMAP => changes.add(first, first.saturating_add(third)),
                EVENT_REMOVE | EVENT_UNMAP => changes.add(first, second),
                _ => changes.add_all(),
            }
        }
    }
}

/// Blocks signals in this thread: a handler of the program that unmaps memory would wait for it.
fn block_signals() {
    // SAFETY: a signal set of this stack, filled before it is used.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &all, std::ptr::null_mut());
    }
}

impl UserfaultWatch {
    fn raw(&self) -> i32 {
        // Only `drop` takes it away.
        self.fd.as_ref().map_or(-1, |fd| fd.as_raw_fd())
    }
}

impl Watch for UserfaultWatch {
    fn watch(&mut self, pages: Range<u64>) -> bool {
        let mut register = UffdioRegister {
            range: UffdioRange {
                start: pages.start,
                len: pages.end - pages.start,
            },
            mode: MODE_WRITE_PROTECT,
            ioctls: 0,
        };
        // SAFETY: the call reads and writes this structure, and changes no memory of the range.
        unsafe { libc::ioctl(self.raw(), CALL_REGISTER, &mut register) == 0 }
    }

    fn unwatch(&mut self, pages: Range<u64>) {
        let range = UffdioRange {
            start: pages.start,
            len: pages.end - pages.start,
        };
        // The kernel refuses pages that are not mapped any more: nothing watches them.
        // SAFETY: the call reads this structure, and changes no memory of the range.
        unsafe { libc::ioctl(self.raw(), CALL_UNREGISTER, &range) };
    }

    #[inline]
    fn take_changes(&mut self) -> Option<Changes> {
        if !self.seen.pending.load(Ordering::Acquire) {
            return None;
        }
        let mut changes = self.seen.lock();
        let taken = *changes;
        *changes = Changes::NONE;
        self.seen.pending.store(false, Ordering::Relaxed);
        drop(changes);
        (!taken.is_empty()).then_some(taken)
    }
}

impl Drop for UserfaultWatch {
    fn drop(&mut self) {
        self.fd = None;
        let _ = rustix::io::write(&self.end, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
