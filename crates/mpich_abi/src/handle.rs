//! One class of handles: the conversion of predefined handles by tables, and of the program's
//! objects by an index.

use crate::array::Array;
use crate::objects::{FIRST, INDEX_BITS, Objects};
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

/// The standard's handle for a word that is no handle of the program: the library reports it.
pub(crate) const UNKNOWN: usize = 0;

/// A handle that MPI predefines, in both ABIs.
#[derive(Clone, Copy)]
struct Predefined {
    mpich: c_int,
    standard: usize,
}

const NONE: Predefined = Predefined {
    mpich: 0,
    standard: 0,
};

pub(crate) struct Class {
    null: Predefined,
    /// The bits of a dynamic handle that name the class.
    prefix: u32,
    /// Predefined handles at the places of their lower bits.
    by_mpich: [Predefined; 128],
    /// The places of the standard's handles' lower bits.
    by_standard: [Predefined; 256],
    objects: Objects,
    /// The indices of handles that the library may return again. None: it never does.
    indices: Option<Mutex<BTreeMap<usize, u32>>>,
}

/// The place of a predefined handle of MPICH. Direct handles, of which only datatypes have
/// predefined ones, stand behind all others.
const fn place(mpich: c_int) -> usize {
    if mpich < 0 {
        0x70 | (mpich & 0xf) as usize
    } else {
        (mpich & 0x7f) as usize
    }
}

impl Class {
    /// A class whose table of handles begins with the null handle. `returns_again`: the library may
    /// return the handle of an object that the program has already.
    pub(crate) const fn new(pairs: &[(i64, i64)], null: (i64, i64), returns_again: bool) -> Class {
        let null = Predefined {
            mpich: null.0 as c_int,
            standard: null.1 as usize,
        };
        let mut class = Class {
            null,
            prefix: 0x8000_0000 | null.mpich as u32,
            by_mpich: [NONE; 128],
            by_standard: [NONE; 256],
            objects: Objects::new(),
            indices: if returns_again {
                Some(Mutex::new(BTreeMap::new()))
            } else {
                None
            },
        };
        let mut at = 0;
        while at < pairs.len() {
            let pair = Predefined {
                mpich: pairs[at].0 as c_int,
                standard: pairs[at].1 as usize,
            };
            at += 1;
            let back = &mut class.by_standard[pair.standard & 0xff];
            // Of two names for one handle the first counts.
            if back.mpich == 0 {
                *back = pair;
            }
            if pair.mpich == null.mpich {
                continue;
            }
            let slot = &mut class.by_mpich[place(pair.mpich)];
            assert!(
                slot.mpich == 0 || slot.mpich == pair.mpich,
                "two handles at one place"
            );
            if slot.mpich == 0 {
                *slot = pair;
            }
        }
        class
    }

    /// The standard's handle.
    #[inline(always)]
    pub(crate) fn standard(&self, handle: c_int) -> usize {
        let predefined = &self.by_mpich[place(handle)];
        if predefined.mpich == handle && handle != 0 {
            return predefined.standard;
        }
        if handle == self.null.mpich {
            return self.null.standard;
        }
        self.dynamic(handle)
    }

    /// The standard's handle of one of the program's objects.
    #[inline(never)]
    fn dynamic(&self, handle: c_int) -> usize {
        self.index(handle)
            .and_then(|index| self.objects.get(index))
            .map_or(UNKNOWN, |entry| entry.standard.load(Ordering::Acquire))
    }

    /// The standard's handle of the one at an address, which may be NULL.
    ///
    /// # Safety
    /// The address is NULL or that of a handle.
    #[inline(always)]
    pub(crate) unsafe fn standard_at(&self, handle: *const c_int) -> usize {
        if handle.is_null() {
            return UNKNOWN;
        }
        // SAFETY: promised.
        self.standard(unsafe { *handle })
    }

    /// The index in a handle of one of the program's objects.
    #[inline(always)]
    pub(crate) fn index(&self, handle: c_int) -> Option<u32> {
        let index = handle as u32 & ((1 << INDEX_BITS) - 1);
        (handle as u32 ^ index == self.prefix && index >= FIRST).then_some(index)
    }

    /// The program's handle for one that the library returns. An object that the program has
    /// already keeps its handle, and must be freed as often as it was returned.
    #[inline(never)]
    pub(crate) fn mpich(&self, standard: usize) -> c_int {
        match self.predefined(standard) {
            Some(handle) => handle,
            None => self.handle(self.referred(standard)),
        }
    }

    fn predefined(&self, standard: usize) -> Option<c_int> {
        let predefined = &self.by_standard[standard & 0xff];
        (predefined.standard == standard && predefined.mpich != 0).then_some(predefined.mpich)
    }

    fn handle(&self, index: u32) -> c_int {
        (self.prefix | index) as c_int
    }

    fn referred(&self, standard: usize) -> u32 {
        let Some(indices) = &self.indices else {
            return self.objects.insert(standard);
        };
        let mut indices = indices
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let index = *indices
            .entry(standard)
            .or_insert_with(|| self.objects.insert(standard));
        if let Some(entry) = self.objects.get(index) {
            entry.references.fetch_add(1, Ordering::Relaxed);
        }
        index
    }

    /// Forgets one reference to an object, after the library has freed it.
    #[inline(never)]
    pub(crate) fn release(&self, handle: c_int) {
        let Some(index) = self.index(handle) else {
            return;
        };
        let Some(entry) = self.objects.get(index) else {
            return;
        };
        if let Some(indices) = &self.indices {
            let mut indices = indices
                .lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner());
            let references = entry.references.load(Ordering::Relaxed);
            if references > 1 {
                entry.references.store(references - 1, Ordering::Relaxed);
                return;
            }
            let standard = entry.standard.load(Ordering::Relaxed);
            if standard == 0 || indices.remove(&standard).is_none() {
                return;
            }
            self.objects.remove(index);
        } else if entry.standard.load(Ordering::Relaxed) != 0 {
            crate::late_arrays::forget(self, index, entry);
            self.objects.remove(index);
        }
    }

    /// Calls a function with the program's handle for one that the library passes to a callback.
    pub(crate) fn during<R>(&self, standard: usize, call: impl FnOnce(c_int) -> R) -> R {
        let handle = self.mpich(standard);
        let result = call(handle);
        self.release(handle);
        result
    }

    /// Writes the program's handle for one that the library has made. 0: it has made none.
    ///
    /// # Safety
    /// The address is NULL or that of a handle.
    #[inline(always)]
    pub(crate) unsafe fn give(&self, handle: *mut c_int, standard: usize) {
        if standard != 0 && !handle.is_null() {
            // SAFETY: promised.
            unsafe { *handle = self.mpich(standard) };
        }
    }

    /// Writes the null handle over one whose object the library has freed.
    ///
    /// # Safety
    /// The address is NULL or that of a handle.
    #[inline(always)]
    pub(crate) unsafe fn update(&self, handle: *mut c_int, standard: usize) {
        if standard != self.null.standard || handle.is_null() {
            return;
        }
        // SAFETY: promised.
        unsafe {
            if *handle != self.null.mpich {
                self.release(*handle);
                *handle = self.null.mpich;
            }
        }
    }

    /// The standard's handles of an array.
    ///
    /// # Safety
    /// The address is NULL or that of so many handles.
    #[inline(always)]
    pub(crate) unsafe fn array(&self, handles: *const c_int, length: i64) -> Array<usize> {
        if handles.is_null() {
            return Array::null();
        }
        // SAFETY: promised.
        Array::new(length, |at| self.standard(unsafe { *handles.add(at) }))
    }

    /// [`Class::update`] of an array.
    ///
    /// # Safety
    /// The address is NULL or that of as many handles.
    #[inline(always)]
    pub(crate) unsafe fn update_all(&self, handles: *mut c_int, standard: &[usize]) {
        for (at, &standard) in standard.iter().enumerate() {
            // SAFETY: promised; the slice is empty if the address is NULL.
            unsafe { self.update(handles.add(at), standard) };
        }
    }

    /// [`Class::give`] of an array.
    ///
    /// # Safety
    /// The address is NULL or that of as many handles.
    pub(crate) unsafe fn give_all(&self, handles: *mut c_int, standard: &[usize]) {
        if handles.is_null() {
            return;
        }
        for (at, &standard) in standard.iter().enumerate() {
            // SAFETY: promised.
            unsafe { self.give(handles.add(at), standard) };
        }
    }

    /// The entry's mark of an object that the library never returns again.
    pub(crate) fn mark(&self, handle: c_int) -> Option<(u32, &std::sync::atomic::AtomicU32)> {
        let index = self.index(handle)?;
        Some((index, &self.objects.get(index)?.references))
    }
}
