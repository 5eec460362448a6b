//! Copies between the user's memory and memory that ranks share.
//!
//! Short runs are copied inline. On x86-64, runs up to [`BY_VECTORS`] are copied by vectors: the
//! string move that C libraries use for such lengths is slow to start, and slow to read lines that
//! another core holds. It is fast to write such lines, because it obtains a line without reading
//! it. So memory that another core reads next is written by string moves beyond 2 KiB, if the
//! processor starts them fast.
//!
//! Here, string moves have no upper limit if the processor starts them fast. C libraries stop using
//! them at the size of the second cache, and then read each line before they write it. By that,
//! runs of 1 MiB in 64 MiB took 1.4 times as long to write, 1.2 to read (AMD Zen 5, glibc 2.36).

use std::ptr;

use crate::copy_kind::{Direction, HandOver};
use crate::double::{Primitive, has_copied};

pub(crate) const LINE: usize = 64;
/// The longest run that is copied by vectors, in bytes, if the processor has AVX.
#[cfg(any(test, target_arch = "x86_64"))]
const BY_VECTORS: usize = 32 << 10;

/// The longest run that is fetched by vectors, in bytes, if string moves start fast. (On one core
/// of an AMD Zen 5, 16 KiB took a quarter less time by vectors than by a string move, and 32 KiB a
/// tenth more.)
#[cfg(all(target_arch = "x86_64", not(miri)))]
const FETCHED_BY_VECTORS: usize = 16 << 10;
/// The shortest run that is fetched by AVX-512 vectors of a cache line each, in bytes. The first
/// processors with AVX-512 slowed down for it; processors whose string moves start fast are later
/// ones.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const FETCHED_BY_LINES: usize = 1 << 10;

/// `copy_nonoverlapping`. A short run is copied as its first and last bytes: two moves that overlap
/// in the middle cover every length between a power of two and the next.
///
/// # Safety
/// As for `ptr::copy_nonoverlapping`.
#[inline(always)]
pub(crate) unsafe fn copy(direction: Direction, from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: each branch reads and writes within `len` bytes, which the caller promises; no
    // alignment is assumed.
    unsafe {
        if len >= 8 {
            if len <= 16 {
                ends::<u64>(from, to, len);
            } else if len <= 32 {
                ends::<u128>(from, to, len);
            } else if len <= 64 {
                ends::<[u128; 2]>(from, to, len);
            } else {
                copy_run(direction, from, to, len);
            }
        } else if len >= 4 {
            ends::<u32>(from, to, len);
        } else if len >= 2 {
            ends::<u16>(from, to, len);
        } else if len == 1 {
            to.write(from.read());
        }
    }
}

/// Copies the first and the last `T` of `len` bytes; together they cover all bytes.
///
/// # Safety
/// As for `ptr::copy_nonoverlapping`; `len` is at least the size of a `T`.
#[inline(always)]
unsafe fn ends<T: Copy>(from: *const u8, to: *mut u8, len: usize) {
    let last = len - size_of::<T>();
    // SAFETY: both are within `len` bytes, which the caller promises; no alignment is assumed.
    unsafe {
        let head = from.cast::<T>().read_unaligned();
        let tail = from.add(last).cast::<T>().read_unaligned();
        to.cast::<T>().write_unaligned(head);
        to.add(last).cast::<T>().write_unaligned(tail);
    }
}

/// `copy_nonoverlapping` of a run that is too long for inline moves.
///
/// # Safety
/// As for `ptr::copy_nonoverlapping`; more than 64 bytes.
#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn copy_run(direction: Direction, from: *const u8, to: *mut u8, len: usize) {
    let by_vectors = len <= BY_VECTORS;
    let primitive = [Primitive::String, Primitive::Vectors][usize::from(by_vectors)];
    if has_copied(primitive, from, to, len) {
        return;
    }
    // SAFETY: the caller promises more than 64 bytes on both sides, apart; `copy_by_avx` is called
    // only on a machine with AVX.
    unsafe {
        if by_vectors && is_x86_feature_detected!("avx") {
            return copy_by_avx(direction, from, to, len);
        }
        ptr::copy_nonoverlapping(from, to, len);
    }
}

/// `copy_nonoverlapping` of a run that is too long for inline moves.
///
/// # Safety
/// As for `ptr::copy_nonoverlapping`.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
unsafe fn copy_run(_: Direction, from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller promises `len` bytes on both sides, apart.
    unsafe { ptr::copy_nonoverlapping(from, to, len) };
}

/// `copy_nonoverlapping` by vectors that are aligned in the target.
///
/// # Safety
/// As for `ptr::copy_nonoverlapping`, of more than 64 bytes, on a machine with AVX.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
unsafe fn copy_by_avx(direction: Direction, from: *const u8, to: *mut u8, len: usize) {
    use std::arch::x86_64::{
        __m256i, _mm256_loadu_si256 as load, _mm256_store_si256 as store,
        _mm256_storeu_si256 as store_anywhere,
    };
    const PART: usize = size_of::<__m256i>();
    const BLOCK: usize = 4 * PART;
    let part = |at: usize| from.wrapping_add(at).cast::<__m256i>();
    let place = |at: usize| to.wrapping_add(at).cast::<__m256i>();
    // SAFETY: all accesses are within `len` bytes, which are more than two parts: the first part,
    // aligned blocks while a whole one (backward: more than one) remains, and the block at the
    // other end, or the last two parts if there are at most four.
    unsafe {
        if len <= BLOCK {
            let ends = [0, PART, len - 2 * PART, len - PART].map(|at| (at, load(part(at))));
            for (at, value) in ends {
                store_anywhere(place(at), value);
            }
            return;
        }
        if direction == Direction::Backward {
            let head = [0, 1, 2, 3].map(|at| load(part(at * PART)));
            store_anywhere(place(len - PART), load(part(len - PART)));
            let mut end = len - to.wrapping_add(len).addr() % PART;
            while end > BLOCK {
                end -= BLOCK;
                let block = [3, 2, 1, 0].map(|next| (next, load(part(end + next * PART))));
                for (next, value) in block {
                    store(place(end + next * PART), value);
                }
            }
            for (next, value) in head.into_iter().enumerate() {
                store_anywhere(place(next * PART), value);
            }
        } else {
            store_anywhere(place(0), load(part(0)));
            let mut at = (PART - to.addr() % PART) % PART;
            while at + BLOCK <= len {
                let block = [0, 1, 2, 3].map(|next| load(part(at + next * PART)));
                for (next, value) in block.into_iter().enumerate() {
                    store(place(at + next * PART), value);
                }
                at += BLOCK;
            }
            let last = len - BLOCK;
            let tail = [0, 1, 2, 3].map(|at| load(part(last + at * PART)));
            for (next, value) in tail.into_iter().enumerate() {
                store_anywhere(place(last + next * PART), value);
            }
        }
    }
}

/// `copy_nonoverlapping` to memory that another core reads next.
///
/// # Safety
/// As for `ptr::copy_nonoverlapping`.
#[inline(always)]
pub(crate) unsafe fn hand_over(how: HandOver, from: *const u8, to: *mut u8, len: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if len > crate::copy_kind::HANDED_OVER_BY_VECTORS && how.by_strings && string_moves_start_fast()
    {
        // SAFETY: as the caller promises.
        return unsafe { move_string(from, to, len) };
    }
    // SAFETY: as the caller promises.
    unsafe { copy(how.direction, from, to, len) };
}

/// [`hand_over`] that is not inlined: its caller copies 8 bytes inline, and that code must stay
/// small.
///
/// # Safety
/// As for `ptr::copy_nonoverlapping`.
#[inline(never)]
pub(crate) unsafe fn hand_over_by_call(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: as the caller promises.
    unsafe { hand_over(HandOver::USUAL, from, to, len) };
}

/// `copy_nonoverlapping` from memory that another core may have written.
///
/// # Safety
/// As for `ptr::copy_nonoverlapping`.
#[inline(never)]
pub(crate) unsafe fn fetch(from: *const u8, to: *mut u8, len: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if len > FETCHED_BY_VECTORS && string_moves_start_fast() {
        // SAFETY: as the caller promises.
        return unsafe { move_string(from, to, len) };
    }
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if len >= FETCHED_BY_LINES && string_moves_start_fast() && is_x86_feature_detected!("avx512f") {
        // SAFETY: as the caller promises, on a machine with AVX-512.
        return unsafe { copy_by_lines(from, to, len) };
    }
    // SAFETY: as the caller promises.
    unsafe { copy(Direction::Forward, from, to, len) };
}

/// `copy_nonoverlapping` by AVX-512 vectors of a cache line each, aligned in the target.
///
/// # Safety
/// As for `ptr::copy_nonoverlapping`, of at least [`FETCHED_BY_LINES`] bytes, on a machine with
/// AVX-512.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(never)]
unsafe fn copy_by_lines(from: *const u8, to: *mut u8, len: usize) {
    if has_copied(Primitive::Vectors, from, to, len) {
        return;
    }
    // SAFETY: all accesses are within `len` bytes, which are more than five lines: the first line,
    // four aligned lines at a time while as many remain, and the last four.
    unsafe {
        std::arch::asm!(
            "vmovdqu64 zmm0, [{from}]",
            "vmovdqu64 [{to}], zmm0",
            "2:",
            "vmovdqu64 zmm0, [{from} + {at}]",
            "vmovdqu64 zmm1, [{from} + {at} + 64]",
            "vmovdqu64 zmm2, [{from} + {at} + 128]",
            "vmovdqu64 zmm3, [{from} + {at} + 192]",
            "vmovdqa64 [{to} + {at}], zmm0",
            "vmovdqa64 [{to} + {at} + 64], zmm1",
            "vmovdqa64 [{to} + {at} + 128], zmm2",
            "vmovdqa64 [{to} + {at} + 192], zmm3",
            "add {at}, 256",
            "cmp {at}, {last}",
            "jbe 2b",
            "vmovdqu64 zmm0, [{from} + {last}]",
            "vmovdqu64 zmm1, [{from} + {last} + 64]",
            "vmovdqu64 zmm2, [{from} + {last} + 128]",
            "vmovdqu64 zmm3, [{from} + {last} + 192]",
            "vmovdqu64 [{to} + {last}], zmm0",
            "vmovdqu64 [{to} + {last} + 64], zmm1",
            "vmovdqu64 [{to} + {last} + 128], zmm2",
            "vmovdqu64 [{to} + {last} + 192], zmm3",
            "vzeroupper",
            from = in(reg) from,
            to = in(reg) to,
            at = inout(reg) LINE - to.addr() % LINE => _,
            last = in(reg) len - 4 * LINE,
            out("xmm0") _,
            out("xmm1") _,
            out("xmm2") _,
            out("xmm3") _,
            options(nostack),
        );
    }
}

/// `copy_nonoverlapping` by one string move.
///
/// # Safety
/// As for `ptr::copy_nonoverlapping`.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn move_string(from: *const u8, to: *mut u8, len: usize) {
    if has_copied(Primitive::String, from, to, len) {
        return;
    }
    // SAFETY: the caller promises `len` bytes on both sides, apart. The instruction changes these
    // three registers; the direction flag is clear by the rules of the ABI.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") len => _,
            inout("rsi") from => _,
            inout("rdi") to => _,
            options(nostack, preserves_flags),
        );
    }
}

/// True if the processor has fast short string moves (CPUID leaf 7, EDX bit 4).
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
pub fn string_moves_start_fast() -> bool {
    use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
    const UNKNOWN: u8 = 2;
    static KNOWN: AtomicU8 = AtomicU8::new(UNKNOWN);
    #[cold]
    fn ask() -> bool {
        use std::arch::x86_64::{__cpuid, __cpuid_count};
        let fast = __cpuid(0).eax >= 7 && __cpuid_count(7, 0).edx & 1 << 4 != 0;
        KNOWN.store(u8::from(fast), Relaxed);
        fast
    }
    if let Some(fast) = crate::double::ask(|double| double.has_fast_strings()) {
        return fast;
    }
    match KNOWN.load(Relaxed) {
        UNKNOWN => ask(),
        known => known == 1,
    }
}

/// Always false: this crate uses no string moves of this processor.
#[cfg(any(not(target_arch = "x86_64"), miri))]
pub fn string_moves_start_fast() -> bool {
    false
}

/// `copy_nonoverlapping` by non-temporal stores, visible to other cores when it returns.
///
/// # Safety
/// As for `ptr::copy_nonoverlapping`.
#[inline(always)]
pub(crate) unsafe fn stream(from: *const u8, to: *mut u8, len: usize) {
    if has_copied(Primitive::PastCache, from, to, len) {
        return;
    }
    let head = to.align_offset(LINE).min(len);
    let lines = (len - head) / LINE;
    let tail = (len - head) % LINE;
    // SAFETY: head, lines and tail are `len` bytes together; behind the head, `to` is aligned to a
    // line.
    unsafe {
        if head > 0 {
            ptr::copy_nonoverlapping(from, to, head);
        }
        stream_lines(from.add(head), to.add(head), lines);
        if tail > 0 {
            ptr::copy_nonoverlapping(from.add(len - tail), to.add(len - tail), tail);
        }
    }
}

/// Copies `lines` cache lines by non-temporal stores.
///
/// # Safety
/// As for `ptr::copy_nonoverlapping` with `lines` lines, where `to` is aligned to a line.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn stream_lines(from: *const u8, to: *mut u8, lines: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    // SAFETY: the caller promises `lines` lines on both sides; `stream_lines_by_avx` is called only
    // on a machine with AVX.
    unsafe {
        if is_x86_feature_detected!("avx") {
            return stream_lines_by_avx(from, to, lines);
        }
        for at in 0..lines {
            let (from, to) = (from.add(at * LINE), to.add(at * LINE));
            let (from, to) = (from.cast::<__m128i>(), to.cast::<__m128i>());
            let line = [0, 1, 2, 3].map(|part| _mm_loadu_si128(from.add(part)));
            for (part, value) in line.into_iter().enumerate() {
                _mm_stream_si128(to.add(part), value);
            }
        }
        _mm_sfence();
    }
}

/// Copies `lines` cache lines by non-temporal stores of 32 bytes.
///
/// # Safety
/// As for `stream_lines`, on a machine with AVX.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx")]
unsafe fn stream_lines_by_avx(from: *const u8, to: *mut u8, lines: usize) {
    use std::arch::x86_64::{__m256i, _mm_sfence, _mm256_loadu_si256, _mm256_stream_si256};
    let (mut from, mut to) = (from.cast::<__m256i>(), to.cast::<__m256i>());
    // SAFETY: the caller promises `lines` lines, each of two vectors.
    unsafe {
        let end = from.add(2 * lines);
        if lines % 2 == 1 {
            let line = [0, 1].map(|part| _mm256_loadu_si256(from.add(part)));
            for (part, value) in line.into_iter().enumerate() {
                _mm256_stream_si256(to.add(part), value);
            }
            (from, to) = (from.add(2), to.add(2));
        }
        while from < end {
            let pair = [0, 1, 2, 3].map(|part| _mm256_loadu_si256(from.add(part)));
            for (part, value) in pair.into_iter().enumerate() {
                _mm256_stream_si256(to.add(part), value);
            }
            (from, to) = (from.add(4), to.add(4));
        }
        _mm_sfence();
    }
}

/// Copies `lines` cache lines by ordinary stores: the machine has no non-temporal ones, or Miri
/// does not model them.
///
/// # Safety
/// As for `ptr::copy_nonoverlapping` with `lines` lines.
#[cfg(any(not(target_arch = "x86_64"), miri))]
unsafe fn stream_lines(from: *const u8, to: *mut u8, lines: usize) {
    // SAFETY: the caller promises `lines` lines on both sides.
    unsafe { ptr::copy_nonoverlapping(from, to, lines * LINE) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy)]
    enum Way {
        Copy(Direction),
        HandOver,
        Fetch,
        Stream,
    }

    /// Copies of all lengths, to beyond the longest that is copied by vectors, from and to
    /// addresses of every alignment: the bytes arrive, and nothing around them changes.
    #[test]
    fn what_is_moved_is_there_and_nothing_else() {
        const AROUND: usize = 128;
        let long = [
            1000,
            1023,
            1024,
            1025,
            1279,
            1280,
            1311,
            1344,
            4095,
            4096,
            16 << 10,
            (16 << 10) + 1,
            BY_VECTORS - 1,
            BY_VECTORS,
            BY_VECTORS + 1,
        ];
        let from: Vec<u8> = (0..BY_VECTORS + 2 * AROUND)
            .map(|at| (at % 251) as u8)
            .collect();
        let mut to = vec![0; from.len()];
        // Miri would take minutes for longer runs.
        let (short, long) = match cfg!(miri) {
            true => (140, &long[..0]),
            false => (600, &long[..]),
        };
        for len in (0..short).chain(long.iter().copied()) {
            for (start, place) in [(0, 0), (1, 0), (0, 1), (7, 31), (33, 64)] {
                for way in [
                    Way::Copy(Direction::Forward),
                    Way::Copy(Direction::Backward),
                    Way::HandOver,
                    Way::Fetch,
                    Way::Stream,
                ] {
                    let end = if cfg!(miri) { 400 } else { to.len() };
                    let to = &mut to[..end];
                    to.fill(255);
                    let source = from[start..start + len].as_ptr();
                    let target = to[place..place + len].as_mut_ptr();
                    // SAFETY: both are long enough, and apart.
                    unsafe {
                        match way {
                            Way::Copy(direction) => copy(direction, source, target, len),
                            Way::HandOver => hand_over(HandOver::USUAL, source, target, len),
                            Way::Fetch => fetch(source, target, len),
                            Way::Stream => stream(source, target, len),
                        }
                    }
                    assert_eq!(to[place..place + len], from[start..start + len]);
                    let around = to[..place].iter().chain(&to[place + len..]);
                    assert!(around.copied().all(|byte| byte == 255), "{len} bytes");
                }
            }
        }
    }
}
