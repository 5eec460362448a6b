//! The hook by which tests put a machine of their own below a rank: a clock that only their own
//! charges advance, and a price for each primitive that moves bytes or wakes a rank.
//!
//! Without the feature `double` every function here is an empty inline one. With it they ask the
//! double of the calling thread, if there is one.
//!
//! Invariant: the library asks for its time in one place (`channel::now`), which asks here first.

/// A primitive of the processor or the kernel whose use a double can price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Primitive {
    /// A poll of shared memory.
    Poll,
    /// The hand-over of a packet or a flag to another core, without its body.
    Send,
    /// The receipt of a packet or a flag from another core, without its body.
    Take,
    /// The read of a cache line that another core has written.
    Line,
    /// A copy by vector instructions, whose stores go through the cache.
    Vectors(Copied),
    /// A copy by a string move.
    String(Copied),
    /// A copy by stores that bypass the cache.
    PastCache(Copied),
    /// A copy of this many bytes from or to the memory of another process, by one call of the
    /// kernel.
    Kernel(usize),
    /// The kernel call that wakes another rank.
    Wake,
    /// The hand-over of the core to another rank.
    Yield,
}

/// A copy within the memory of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Address of the first byte that is read.
    pub from: usize,
    /// Address of the first byte that is written.
    pub to: usize,
    /// Number of bytes.
    pub len: usize,
}

/// A machine that replaces the real one below the ranks of a thread.
pub trait Double {
    /// The time of the calling rank in nanoseconds.
    fn now(&self) -> u64;
    /// Charges a primitive to the calling rank, and lets other ranks run that are earlier. The
    /// caller changes shared memory only after this.
    fn spend(&self, primitive: Primitive);
    /// Suspends the calling rank for at most `nanos` nanoseconds, or until another rank wakes it.
    fn sleep(&self, nanos: u64);
    /// Wakes all suspended ranks.
    fn wake(&self);
    /// The number of the core on which the calling rank runs.
    fn core(&self) -> usize;
    /// Records that ranks share the memory at `from`, of `len` bytes.
    fn shares(&self, from: usize, len: usize);
    /// True if the kernel can copy between the memory of two processes.
    fn has_kernel_copies(&self) -> bool;
    /// True if the processor's string moves start fast.
    fn has_fast_strings(&self) -> bool;
}

#[cfg(feature = "double")]
mod hook {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::Double;

    thread_local! {
        static DOUBLE: RefCell<Option<Rc<dyn Double>>> = const { RefCell::new(None) };
    }

    pub(super) fn get() -> Option<Rc<dyn Double>> {
        DOUBLE.with_borrow(Option::clone)
    }

    /// Puts a machine below all ranks of the calling thread, until the guard is dropped.
    pub fn begin(double: Rc<dyn Double>) -> Doubled {
        DOUBLE.set(Some(double));
        Doubled(())
    }

    /// The guard of a double, a replacement of the memory primitives; dropping it removes the
    /// double.
    pub struct Doubled(());

    impl Drop for Doubled {
        fn drop(&mut self) {
            DOUBLE.set(None);
        }
    }
}

#[cfg(feature = "double")]
pub use hook::{Doubled, begin};

/// The result of `question` for the calling thread's double. `None`: it has no double.
#[inline(always)]
pub fn ask<R>(question: impl FnOnce(&dyn Double) -> R) -> Option<R> {
    #[cfg(feature = "double")]
    return hook::get().map(|double| question(&*double));
    #[cfg(not(feature = "double"))]
    {
        let _ = question;
        None
    }
}

/// Charges a primitive to the double of the calling thread, if it has one.
#[inline(always)]
pub fn spend(primitive: Primitive) {
    ask(|double| double.spend(primitive));
}

/// Longest copy that is performed although a double has charged it, in bytes: control data are
/// short, and nobody reads the bytes of longer messages.
const PERFORMED: usize = 4 << 10;

/// Charges a copy of `len` bytes. True: the caller need not perform it.
#[inline(always)]
pub fn has_priced(primitive: Primitive, len: usize) -> bool {
    ask(|double| double.spend(primitive)).is_some() && len > PERFORMED
}

/// Charges a copy within this process. True: the caller need not perform it.
#[inline(always)]
pub(crate) fn has_copied(
    primitive: fn(Copied) -> Primitive,
    from: *const u8,
    to: *mut u8,
    len: usize,
) -> bool {
    let (from, to) = (from.addr(), to.addr());
    has_priced(primitive(Copied { from, to, len }), len)
}
