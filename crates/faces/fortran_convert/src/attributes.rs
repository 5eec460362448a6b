//! Values of attributes (MPI 5.0 §19.3.7). An attribute is an address in C and an integer in
//! Fortran. A value that Fortran sets is stored in memory of this library, whose address C gets. A
//! value that C sets is returned to Fortran as that address.

use crate::constants::Constants;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::Mutex;

/// The values that Fortran has set. Each is stored once and never freed, because attributes are
/// copied as addresses.
struct Values {
    places: BTreeMap<isize, usize>,
    pages: Vec<&'static mut [isize; PAGE]>,
    /// The number of used elements in the last page of the table.
    used: usize,
}

/// The number of attribute values in a page of the table.
const PAGE: usize = 256;

static VALUES: Mutex<Values> = Mutex::new(Values {
    places: BTreeMap::new(),
    pages: Vec::new(),
    used: PAGE,
});

impl Values {
    /// The address of a stored value, which is added if it is new.
    fn place(&mut self, value: isize) -> usize {
        if let Some(place) = self.places.get(&value) {
            return *place;
        }
        if self.used == PAGE {
            self.pages.push(Box::leak(Box::new([0; PAGE])));
            self.used = 0;
        }
        let page = self.pages.last_mut().expect("there is a page");
        page[self.used] = value;
        let place = (&raw const page[self.used]).addr();
        self.used += 1;
        self.places.insert(value, place);
        place
    }

    fn contains(&self, address: usize) -> bool {
        let mut pages = self.pages.iter();
        pages.any(|page| address.wrapping_sub(page.as_ptr().addr()) < size_of::<[isize; PAGE]>())
    }
}

/// The attribute that C gets for a value that Fortran sets.
pub fn store(value: isize) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(values().place(value))
}

/// The value that Fortran gets for an attribute of C.
///
/// # Safety
/// The attribute comes from the library, with this key.
pub unsafe fn load<A: Constants>(keyval: c_int, attribute: *mut c_void) -> isize {
    let integers = [
        A::MPI_TAG_UB,
        A::MPI_IO,
        A::MPI_HOST,
        A::MPI_WTIME_IS_GLOBAL,
        A::MPI_APPNUM,
        A::MPI_LASTUSEDCODE,
        A::MPI_UNIVERSE_SIZE,
        A::MPI_WIN_DISP_UNIT,
        A::MPI_WIN_CREATE_FLAVOR,
        A::MPI_WIN_MODEL,
    ];
    // SAFETY: the library promises what its own attributes point to.
    unsafe {
        match keyval {
            _ if integers.contains(&keyval) => *attribute.cast::<c_int>() as isize,
            _ if keyval == A::MPI_WIN_SIZE => *attribute.cast::<isize>(),
            _ if keyval == A::MPI_WIN_BASE => attribute.addr() as isize,
            _ if values().contains(attribute.addr()) => *attribute.cast::<isize>(),
            _ => attribute.addr() as isize,
        }
    }
}

fn values() -> std::sync::MutexGuard<'static, Values> {
    VALUES
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
