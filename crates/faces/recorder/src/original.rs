//! The functions of the MPI library, or of a tool before it, in front of which the entry points
//! stand.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::names::NAMES;

static FUNCTIONS: [AtomicPtr<c_void>; NAMES.len()] =
    [const { AtomicPtr::new(ptr::null_mut()) }; NAMES.len()];

/// The function that an entry point stands for.
#[inline(always)]
pub(crate) fn of_entry(entry: usize) -> *mut c_void {
    let known = FUNCTIONS[entry].load(Ordering::Relaxed);
    match known.is_null() {
        true => find(entry),
        false => known,
    }
}

#[cold]
fn find(entry: usize) -> *mut c_void {
    let found = named(NAMES[entry]).unwrap_or_else(|| missing(NAMES[entry]));
    FUNCTIONS[entry].store(found, Ordering::Relaxed);
    found
}

/// Ends the process as the loader does for a function that no library has.
fn missing(name: &CStr) -> ! {
    let name = name.to_string_lossy();
    eprintln!(
        "fishplate record: the program calls {name}, which its MPI library does not have: if its name ends in _c, record with --without-large-counts"
    );
    std::process::exit(127)
}

/// The function or object with this name, of a tool or of the MPI library.
pub(crate) fn named(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the name is a C string.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if !next.is_null() {
        return Some(next);
    }
    // SAFETY: as above, and the handle is that of a loaded library.
    let own = unsafe { libc::dlsym(library()?.handle, name.as_ptr()) };
    Some(own).filter(|own| !own.is_null())
}

/// The MPI library of the process.
pub(crate) struct Loaded {
    handle: *mut c_void,
    /// The file name of the library.
    pub(crate) name: String,
}

// SAFETY: the handle of a library is valid in all threads.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

/// The MPI library of the process. `None`: none is loaded yet.
///
/// Python opens libraries so that their symbols are visible to the module alone, and then no search
/// by name from here finds them.
pub(crate) fn library() -> Option<&'static Loaded> {
    static LIBRARY: OnceLock<Loaded> = OnceLock::new();
    if LIBRARY.get().is_none()
        && let Some(found) = search()
    {
        let _ = LIBRARY.set(found);
    }
    LIBRARY.get()
}

/// The name and the version of the MPI library, as it tells them.
pub(crate) fn library_name() -> String {
    let mut text = [0u8; 8192];
    let mut length: c_int = 0;
    if let Some(function) = named(c"PMPI_Get_library_version") {
        let text = text.as_mut_ptr().expose_provenance() as u64;
        let length = (&raw mut length).expose_provenance() as u64;
        // SAFETY: the procedure writes a text that no family lets be longer, and its length.
        unsafe { invoke(function, &[text, length]) };
    }
    let text = &text[..text.len().min(length.max(0) as usize)];
    let text = String::from_utf8_lossy(text);
    // The rest of the text may name the user and the host that built the library.
    let line = text.split(['\n', '\0', ',']).next().unwrap_or("");
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A procedure that every MPI library has.
const KNOWN: &CStr = c"PMPI_Comm_rank";

fn search() -> Option<Loaded> {
    // SAFETY: the name is a C string.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, KNOWN.as_ptr()) };
    if let Some(found) = owner(next) {
        return Some(found);
    }
    loaded_files().into_iter().find_map(|file| {
        let handle = open(&file)?;
        // SAFETY: the library is loaded, and the name is a C string.
        owner(unsafe { libc::dlsym(handle, KNOWN.as_ptr()) })
    })
}

/// The library that a function belongs to; `None` for this one.
fn owner(function: *mut c_void) -> Option<Loaded> {
    // SAFETY: all bytes 0 are a valid structure of addresses.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    let mut own = info;
    // SAFETY: the structure is a local variable.
    unsafe { libc::dladdr(owner as *const c_void, &raw mut own) };
    // SAFETY: as above.
    let is_known = !function.is_null() && unsafe { libc::dladdr(function, &raw mut info) } != 0;
    if !is_known || info.dli_fname.is_null() || info.dli_fbase == own.dli_fbase {
        return None;
    }
    // SAFETY: dladdr returned the name of a loaded library.
    let file = unsafe { CStr::from_ptr(info.dli_fname) };
    let path = file.to_string_lossy();
    let name = Path::new(&*path).file_name()?.to_string_lossy();
    Some(Loaded {
        handle: open(file)?,
        name: name.into_owned(),
    })
}

/// The handle of a library, if it is loaded.
fn open(file: &CStr) -> Option<*mut c_void> {
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
    // SAFETY: the name is a C string; the library is loaded, so no code of it runs.
    let handle = unsafe { libc::dlopen(file.as_ptr(), flags) };
    Some(handle).filter(|handle| !handle.is_null())
}

/// The files of all loaded libraries.
fn loaded_files() -> Vec<CString> {
    unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _: usize, files: *mut c_void) -> c_int {
        // SAFETY: the system passes the description of a library, and the vector's address.
        unsafe {
            let name: *const c_char = (*info).dlpi_name;
            if !name.is_null() && *name != 0 {
                let files = &mut *files.cast::<Vec<CString>>();
                files.push(CStr::from_ptr(name).to_owned());
            }
        }
        0
    }
    let mut files: Vec<CString> = Vec::new();
    // SAFETY: the function gets the address of the vector.
    unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut files).cast()) };
    files
}

/// Calls a function with arguments that are words.
///
/// # Safety
/// The function has this number of parameters, all of them integers or addresses, and the
/// arguments are as C promises them.
#[inline(always)]
pub(crate) unsafe fn invoke(function: *mut c_void, words: &[u64]) -> c_int {
    macro_rules! by_number {
        ($($number:literal: $($at:literal)*;)*) => {
            match words.len() {
                $($number => {
                    type Function = unsafe extern "C" fn($(by_number!(@type $at)),*) -> c_int;
                    // SAFETY: the caller's promise.
                    unsafe {
                        let function = std::mem::transmute::<*mut c_void, Function>(function);
                        function($(words[$at]),*)
                    }
                })*
                _ => unreachable!("no procedure has so many parameters"),
            }
        };
        (@type $at:literal) => { u64 };
    }
    by_number! {
        0: ;
        1: 0;
        2: 0 1;
        3: 0 1 2;
        4: 0 1 2 3;
        5: 0 1 2 3 4;
        6: 0 1 2 3 4 5;
        7: 0 1 2 3 4 5 6;
        8: 0 1 2 3 4 5 6 7;
        9: 0 1 2 3 4 5 6 7 8;
        10: 0 1 2 3 4 5 6 7 8 9;
        11: 0 1 2 3 4 5 6 7 8 9 10;
        12: 0 1 2 3 4 5 6 7 8 9 10 11;
        13: 0 1 2 3 4 5 6 7 8 9 10 11 12;
        14: 0 1 2 3 4 5 6 7 8 9 10 11 12 13;
    }
}
