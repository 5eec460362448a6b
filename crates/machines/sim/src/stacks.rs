//! The stacks of coroutines, in one mapping.
//!
//! Below each stack lies a page that nobody may access, so that a stack that is too small ends the
//! process instead of writing to its neighbour. Guards that the kernel keeps in its page tables
//! (Linux 6.13) leave one mapping. Before, each stack makes two, and a process may have 65,530
//! unless `vm.max_map_count` says otherwise.

use std::io;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::rc::Rc;

use corosensei::stack::{Stack, StackPointer};

const PAGE: usize = 4096;
/// Advice to keep a guard in the page tables; `libc` has no name for it yet.
const MADV_GUARD_INSTALL: i32 = 102;

/// The stacks of a world. The memory is unmapped once the pool and all its stacks are gone.
pub(crate) struct StackPool {
    mapping: Rc<Mapping>,
    /// The distance between the starts of two stacks, in bytes.
    step: usize,
}

struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
}

/// One stack of a pool, for one coroutine.
pub(crate) struct PooledStack {
    _mapping: Rc<Mapping>,
    limit: StackPointer,
    base: StackPointer,
}

impl StackPool {
    /// Memory for `count` stacks of at least `bytes` bytes each, guards included.
    pub(crate) fn new(count: usize, bytes: usize) -> io::Result<StackPool> {
        let step = bytes.max(2 * PAGE).next_multiple_of(PAGE);
        let bytes = step.checked_mul(count.max(1));
        let bytes = bytes.ok_or(io::ErrorKind::OutOfMemory)?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let mapping = Rc::new(Mapping { base, bytes });
        let pool = StackPool { mapping, step };
        (0..count).try_for_each(|number| pool.guard(number))?;
        Ok(pool)
    }

    fn lowest(&self, number: usize) -> *mut u8 {
        self.mapping.base.as_ptr().wrapping_add(number * self.step)
    }

    /// Makes the lowest page of a stack inaccessible.
    fn guard(&self, number: usize) -> io::Result<()> {
        let page = self.lowest(number).cast();
        // SAFETY: a page of our mapping, which nobody uses yet.
        let is_guarded = unsafe {
            libc::madvise(page, PAGE, MADV_GUARD_INSTALL) == 0
                || libc::mprotect(page, PAGE, libc::PROT_NONE) == 0
        };
        if is_guarded {
            return Ok(());
        }
        let why = io::Error::last_os_error();
        let what = format!(
            "the guard of stack {number} cannot be made ({why}): before Linux 6.13 each stack takes two mappings, and \
             sysctl vm.max_map_count limits those of a process"
        );
        Err(io::Error::new(why.kind(), what))
    }

    /// The stack with this number, for which it may be called once.
    ///
    /// # Panics
    /// If the pool has no such stack.
    pub(crate) fn stack(&self, number: usize) -> PooledStack {
        let limit = number * self.step;
        assert!(limit + self.step <= self.mapping.bytes, "stack {number}");
        let address = |offset: usize| {
            let address = self.mapping.base.as_ptr() as usize + offset;
            NonZeroUsize::new(address).expect("the kernel maps nothing at 0")
        };
        PooledStack {
            _mapping: self.mapping.clone(),
            limit: address(limit),
            base: address(limit + self.step),
        }
    }
}

// SAFETY: base and limit enclose memory that is mapped as long as this value, used by no other
// stack, aligned to pages, and has its guard page at the limit.
unsafe impl Stack for PooledStack {
    fn base(&self) -> StackPointer {
        self.base
    }

    fn limit(&self) -> StackPointer {
        self.limit
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by us with this length, and no stack in it is left.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_lie_side_by_side_and_begin_with_a_guard() {
        let pool = StackPool::new(3, 4 * PAGE).unwrap();
        let stacks = [0, 1, 2].map(|number| pool.stack(number));
        drop(pool);
        for (one, next) in stacks.iter().zip(&stacks[1..]) {
            assert_eq!(one.base(), next.limit());
        }
        let is_readable = |address: usize| {
            let mut pipe = [0; 2];
            // SAFETY: the array takes both ends. The kernel reads the byte, or refuses.
            unsafe {
                assert_eq!(libc::pipe(pipe.as_mut_ptr()), 0);
                let written = libc::write(pipe[1], address as *const _, 1);
                libc::close(pipe[0]);
                libc::close(pipe[1]);
                written == 1
            }
        };
        for stack in &stacks {
            let (limit, base) = (stack.limit().get(), stack.base().get());
            let addresses = [limit, limit + PAGE - 1, limit + PAGE, base - 1];
            assert_eq!(addresses.map(is_readable), [false, false, true, true]);
        }
    }
}
