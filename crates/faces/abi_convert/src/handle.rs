//! The conversion of the handles of one class between an older ABI and the standard one. Predefined
//! handles are converted by tables. Other objects keep the standard's handle if the program's ABI
//! can use the same value; otherwise the program's handle contains an index of a table.

use crate::abi::{Abi, Predefined, Word};
use crate::array::Array;
use crate::constants::Pairs;
use crate::kept_arrays;
use crate::objects::{INDEX_BITS, Objects};
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

/// The standard's handle for a value that is no handle of the program: the library reports it.
pub const UNKNOWN: usize = 0;

/// A predefined handle: its value in the program's table of constants, and in the standard.
#[derive(Clone, Copy)]
struct Row {
    program: c_int,
    standard: usize,
}

const NONE: Row = Row {
    program: 0,
    standard: 0,
};

/// A class of handles (such as communicators) of a library of an older ABI.
pub struct Class<A: Abi> {
    null: Row,
    /// The upper bits of an object's handle, which identify the class.
    prefix: A::Handle,
    /// True if every object of the class has an index.
    is_indexed: bool,
    /// The predefined handles of the class, by the program's handles.
    pub predefined: A::Predefined,
    /// The predefined handles, indexed by the lowest 8 bits of the standard's handle.
    by_standard: [Row; 256],
    objects: Objects,
    /// The indices of objects, by the standard's handles, for a class whose objects the library may
    /// return again. `None`: it never does.
    indices: Option<Mutex<BTreeMap<usize, u32>>>,
}

/// The conversions of the handles of a class.
pub trait Handles<A: Abi> {
    /// The handle in the standard ABI for a handle of the program.
    fn standard(&self, handle: A::Handle) -> usize;

    /// Writes the program's handle of an object that the library has made. 0: it has made none.
    ///
    /// # Safety
    /// The address is NULL or that of a handle.
    unsafe fn give(&self, handle: *mut A::Handle, standard: usize);

    /// Writes the null handle over the program's handle, if the library has freed its object:
    /// `standard` is the null handle.
    ///
    /// # Safety
    /// The address is NULL or that of a handle.
    unsafe fn update(&self, handle: *mut A::Handle, standard: usize);

    /// The standard's handle for the program's handle at an address, which may be NULL.
    ///
    /// # Safety
    /// The address is NULL or that of a handle.
    #[inline(always)]
    unsafe fn standard_at(&self, handle: *const A::Handle) -> usize {
        if handle.is_null() {
            return UNKNOWN;
        }
        // SAFETY: promised.
        self.standard(unsafe { *handle })
    }

    /// Fills an array with the standard's handles for the program's, or leaves it NULL.
    ///
    /// # Safety
    /// The address is NULL or that of `length` handles.
    #[inline(always)]
    unsafe fn array(&self, array: &mut Array<usize>, handles: *const A::Handle, length: i64) {
        if !handles.is_null() {
            // SAFETY: promised.
            array.fill(length, |at| self.standard(unsafe { *handles.add(at) }));
        }
    }

    /// Writes the program's handles of objects like [`Handles::give`], for an array.
    ///
    /// # Safety
    /// The address is NULL or that of as many handles.
    unsafe fn give_all(&self, handles: *mut A::Handle, standard: &[usize]) {
        if handles.is_null() {
            return;
        }
        for (at, &standard) in standard.iter().enumerate() {
            // SAFETY: promised.
            unsafe { self.give(handles.add(at), standard) };
        }
    }

    /// Updates the program's handles like [`Handles::update`], for an array.
    ///
    /// # Safety
    /// The address is NULL or that of as many handles.
    #[inline(always)]
    unsafe fn update_all(&self, handles: *mut A::Handle, standard: &[usize]) {
        for (at, &standard) in standard.iter().enumerate() {
            // SAFETY: promised; the slice is empty if the address is NULL.
            unsafe { self.update(handles.add(at), standard) };
        }
    }
}

impl<A: Abi> Class<A> {
    /// A class with pairs of its predefined handles and the null handle. `returns_again`: true if
    /// the library may return an object that the program has already. `prefix`: the upper bits of
    /// the handles of objects. `is_indexed`: true if every object has an index.
    pub const fn new(
        pairs: Pairs,
        null: (i64, i64),
        returns_again: bool,
        (prefix, is_indexed): (A::Handle, bool),
        predefined: A::Predefined,
    ) -> Class<A> {
        Class {
            null: Row {
                program: null.0 as c_int,
                standard: null.1 as usize,
            },
            prefix,
            is_indexed,
            predefined,
            by_standard: by_standard(pairs),
            objects: Objects::new(A::FIRST),
            indices: if returns_again {
                Some(Mutex::new(BTreeMap::new()))
            } else {
                None
            },
        }
    }

    /// The standard's handle of an object whose handle contains an index.
    #[cold]
    #[inline(never)]
    fn indexed(&self, handle: A::Handle) -> usize {
        self.index(handle)
            .and_then(|index| self.objects.get(index))
            .map_or(UNKNOWN, |entry| entry.standard.load(Ordering::Acquire))
    }

    /// The index that the program's handle of an object contains; `None` for other handles.
    #[inline(always)]
    pub fn index(&self, handle: A::Handle) -> Option<u32> {
        let index = handle.bits() as u32 & ((1 << INDEX_BITS) - 1);
        let is_object = handle.bits() ^ index as usize == self.prefix.bits() && index >= A::FIRST;
        is_object.then_some(index)
    }

    /// The program's handle for a handle that the library returns. An object that the program has
    /// already keeps its handle, and must be freed as often as it was returned.
    #[inline(never)]
    pub fn program(&self, standard: usize) -> A::Handle {
        if let Some(handle) = self.predefined(standard) {
            return handle;
        }
        match A::shared(standard) {
            Some(handle) if !self.is_indexed && self.predefined.standard(handle).is_none() => {
                handle
            }
            _ => self.handle(self.referred(standard)),
        }
    }

    /// The program's handle of an object that the library never returns again. It always contains
    /// an index, which is returned too.
    pub fn with_index(&self, standard: usize) -> (A::Handle, u32) {
        let index = self.objects.insert(standard);
        (self.handle(index), index)
    }

    fn predefined(&self, standard: usize) -> Option<A::Handle> {
        let row = &self.by_standard[standard & 0xff];
        (row.standard == standard && row.program != 0).then(|| A::handle(row.program))
    }

    /// The program's null handle.
    #[inline(always)]
    fn null(&self) -> A::Handle {
        A::handle(self.null.program)
    }

    /// The handle of the program that contains an index of the table.
    pub fn handle(&self, index: u32) -> A::Handle {
        A::Handle::of_bits(self.prefix.bits() | index as usize)
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

    /// The values of the predefined handles in the program's table of constants.
    pub fn numbers(&self) -> impl Iterator<Item = c_int> {
        let rows = self.by_standard.iter().filter(|row| row.program != 0);
        rows.map(|row| row.program)
    }

    /// Assigns another object of the library to a handle, and returns the old object. `None`: the
    /// handle is that of no object.
    pub fn replace(&self, handle: A::Handle, standard: usize) -> Option<usize> {
        let index = self.index(handle)?;
        let entry = self.objects.get(index)?;
        let mut indices = self
            .indices
            .as_ref()?
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let old = entry.standard.load(Ordering::Relaxed);
        indices.remove(&old)?;
        indices.insert(standard, index);
        entry.standard.store(standard, Ordering::Release);
        Some(old)
    }

    /// Removes one reference to an object after the library has freed it.
    #[inline(never)]
    pub fn release(&self, handle: A::Handle) {
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
            let is_request = || std::ptr::eq(self, &*A::classes().request);
            kept_arrays::forget(index, entry, is_request);
            self.objects.remove(index);
        }
    }

    /// Calls a function with the program's handle of an object that the library passes to a
    /// callback.
    pub fn during<R>(&self, standard: usize, call: impl FnOnce(A::Handle) -> R) -> R {
        let handle = self.program(standard);
        let result = call(handle);
        self.release(handle);
        result
    }

    /// The reference count of the object with this index. A class whose objects the library never
    /// returns again may use it as a mark. `None`: there is no such object.
    pub fn mark(&self, index: u32) -> Option<&std::sync::atomic::AtomicU32> {
        Some(&self.objects.get(index)?.references)
    }
}

/// A table of the predefined handles, indexed by the lowest 8 bits of the standard's handle.
const fn by_standard(pairs: Pairs) -> [Row; 256] {
    let mut rows = [NONE; 256];
    let mut at = 0;
    while at < pairs.len() {
        let row = Row {
            program: pairs[at].0 as c_int,
            standard: pairs[at].1 as usize,
        };
        at += 1;
        let slot = &mut rows[row.standard & 0xff];
        // If a handle has two names, the first one is used.
        if slot.program == 0 {
            *slot = row;
        }
    }
    rows
}

impl<A: Abi> Handles<A> for Class<A> {
    #[inline(always)]
    fn standard(&self, handle: A::Handle) -> usize {
        if let Some(standard) = self.predefined.standard(handle) {
            return standard;
        }
        match A::shared_in(handle) {
            Some(standard) => standard,
            None => self.indexed(handle),
        }
    }

    #[inline(always)]
    unsafe fn give(&self, handle: *mut A::Handle, standard: usize) {
        if standard != 0 && !handle.is_null() {
            // SAFETY: promised.
            unsafe { *handle = self.program(standard) };
        }
    }

    #[inline(always)]
    unsafe fn update(&self, handle: *mut A::Handle, standard: usize) {
        if standard != self.null.standard || handle.is_null() {
            return;
        }
        // SAFETY: promised.
        unsafe {
            if *handle != self.null() {
                self.release(*handle);
                *handle = self.null();
            }
        }
    }
}
