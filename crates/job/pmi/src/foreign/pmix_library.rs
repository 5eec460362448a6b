//! The functions of libpmix that a rank uses, and the C types in their arguments.
//!
//! The types are those of the PMIx standard 3.1, 4 and 5 (section "Data Structures and Types"),
//! which all libraries `libpmix.so.2` share. The library is opened at run time; its symbols stay
//! private to it (RTLD_LOCAL).

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::{MaybeUninit, transmute};

/// A status code: 0 for success, or a negative error.
pub(super) type Status = c_int;

pub(super) const SUCCESS: Status = 0;
pub(super) const LOST_CONNECTION: [Status; 2] = [-61, -101];
pub(super) const EVENT_ACTION_COMPLETE: Status = -331;
/// The rank number that means all ranks of a job; the job's own data are stored under it.
pub(super) const RANK_WILDCARD: u32 = u32::MAX - 1;
/// The scope of a value that is visible to all ranks (`PMIX_GLOBAL`).
pub(super) const GLOBAL: u8 = 3;

const NAMESPACE: usize = 256;
const KEY: usize = 512;
const TYPE_BOOL: u16 = 1;
const TYPE_STRING: u16 = 3;
const TYPE_SIZE: u16 = 4;
const TYPE_UINT32: u16 = 14;

/// `pmix_proc_t`: a rank of a job, named by its namespace and number.
#[repr(C)]
#[derive(Clone)]
pub(super) struct Proc {
    pub(super) namespace: [c_char; NAMESPACE],
    pub(super) rank: u32,
}

/// `pmix_value_t`: a value with its type. The largest members of the union take three machine
/// words.
#[repr(C)]
pub(super) struct Value {
    kind: u16,
    data: Data,
}

#[repr(C)]
union Data {
    flag: bool,
    string: *mut c_char,
    uint32: u32,
    size: usize,
    words: [usize; 3],
}

/// `pmix_info_t`: an option that a call of the PMIx library gets.
#[repr(C)]
pub(super) struct Info {
    key: [c_char; KEY],
    flags: u32,
    value: Value,
}

/// The value of a key, as the library has returned it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    Text(String),
    Number(usize),
}

pub(super) type Done = extern "C" fn(Status, *mut c_void);
pub(super) type Got = extern "C" fn(Status, *mut Value, *mut c_void);
pub(super) type EventDone =
    Option<unsafe extern "C" fn(Status, *mut Info, usize, *const c_void, *mut c_void, *mut c_void)>;
pub(super) type OnEvent = extern "C" fn(
    usize,
    Status,
    *const Proc,
    *mut Info,
    usize,
    *mut Info,
    usize,
    EventDone,
    *mut c_void,
);

macro_rules! functions {
    ($($(#[$doc:meta])* $field:ident = $name:literal: fn($($argument:ty),*) -> $result:ty;)*) => {
        /// The functions of the PMIx library, which is never closed.
        pub(super) struct Functions {
            $($(#[$doc])* pub(super) $field: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Functions {
            fn find(library: *mut c_void) -> Result<Functions, String> {
                Ok(Functions {
                    $($field: {
                        let found = symbol(library, $name)?;
                        // SAFETY: the standard gives the function of this name this type.
                        unsafe {
                            transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) -> $result>(found)
                        }
                    },)*
                })
            }
        }
    };
}

functions! {
    init = c"PMIx_Init": fn(*mut Proc, *const Info, usize) -> Status;
    finalize = c"PMIx_Finalize": fn(*const Info, usize) -> Status;
    put = c"PMIx_Put": fn(u8, *const c_char, *mut Value) -> Status;
    commit = c"PMIx_Commit": fn() -> Status;
    fence = c"PMIx_Fence_nb": fn(*const Proc, usize, *const Info, usize, Done, *mut c_void) -> Status;
    get_later = c"PMIx_Get_nb": fn(*const Proc, *const c_char, *const Info, usize, Got, *mut c_void) -> Status;
    get = c"PMIx_Get": fn(*const Proc, *const c_char, *const Info, usize, *mut *mut Value) -> Status;
    abort = c"PMIx_Abort": fn(c_int, *const c_char, *const Proc, usize) -> Status;
    error_string = c"PMIx_Error_string": fn(Status) -> *const c_char;
    resolve_nodes = c"PMIx_Resolve_nodes": fn(*const c_char, *mut *mut c_char) -> Status;
    resolve_peers = c"PMIx_Resolve_peers": fn(*const c_char, *const c_char, *mut *mut Proc, *mut usize) -> Status;
    register = c"PMIx_Register_event_handler":
        fn(*const Status, usize, *const Info, usize, OnEvent, *const c_void, *mut c_void) -> Status;
}

impl Functions {
    /// Opens the first of these library files that exists.
    pub(super) fn open(names: &[String]) -> Result<Functions, String> {
        let mut why = Vec::new();
        for name in names {
            let Ok(path) = CString::new(name.as_str()) else {
                continue;
            };
            // SAFETY: a name that ends with a zero; the initialisers are those of libpmix.
            let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
            if !library.is_null() {
                return Functions::find(library);
            }
            why.push(loader_words());
        }
        Err(format!(
            "libpmix cannot be opened: {}. FISHPLATE_PMIX_LIBRARY names the one that belongs to the launcher",
            why.join("; ")
        ))
    }

    /// The PMIx library's text for a status.
    pub(super) fn words(&self, status: Status) -> String {
        // SAFETY: the function accepts any number.
        let words = unsafe { (self.error_string)(status) };
        match words.is_null() {
            true => status.to_string(),
            // SAFETY: a constant zero-terminated text of the library.
            false => unsafe { CStr::from_ptr(words) }.to_string_lossy().into(),
        }
    }

    /// The value of a key of rank `owner`, or of the job. `None` if the launcher does not have it.
    pub(super) fn value(&self, owner: &Proc, key: &CStr) -> Option<Found> {
        let options = [Info::on(c"pmix.immediate")];
        let mut value: *mut Value = std::ptr::null_mut();
        // SAFETY: all arguments live during the call, which sets `value` if it succeeds.
        let status = unsafe { (self.get)(owner, key.as_ptr(), options.as_ptr(), 1, &mut value) };
        if status != SUCCESS || value.is_null() {
            return None;
        }
        // SAFETY: the library has made the value for this call, and only this call uses it. The
        // value and its text were allocated by `malloc`.
        unsafe {
            let found = (*value).read();
            if (*value).kind == TYPE_STRING {
                libc::free((*value).data.string.cast());
            }
            libc::free(value.cast());
            found
        }
    }
}

fn symbol(library: *mut c_void, name: &CStr) -> Result<*mut c_void, String> {
    // SAFETY: an open library, and a zero-terminated name.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    match found.is_null() {
        true => Err(format!("libpmix is too old: {}", loader_words())),
        false => Ok(found),
    }
}

fn loader_words() -> String {
    // SAFETY: the text of the last error of this thread, or NULL.
    let text = unsafe { libc::dlerror() };
    match text.is_null() {
        true => "no reason is given".into(),
        // SAFETY: a zero-terminated text.
        false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into(),
    }
}

impl Proc {
    /// An empty `pmix_proc_t`, which the PMIx library fills in.
    pub(super) fn empty() -> Proc {
        Proc {
            namespace: [0; NAMESPACE],
            rank: 0,
        }
    }

    /// The name of a rank of this job by its number, or of the job itself by [`RANK_WILDCARD`].
    pub(super) fn of(&self, rank: u32) -> Proc {
        Proc {
            rank,
            ..self.clone()
        }
    }
}

impl Value {
    /// A value that is a text. The text must outlive the value.
    pub(super) fn text(text: &CStr) -> Value {
        let mut value = Value::none();
        value.kind = TYPE_STRING;
        value.data.string = text.as_ptr().cast_mut();
        value
    }

    fn none() -> Value {
        Value {
            kind: 0,
            data: Data { words: [0; 3] },
        }
    }

    /// Copies the value, if it is a text or a number. `None` for other types.
    pub(super) fn read(&self) -> Option<Found> {
        // SAFETY: `kind` names the member of the union that the library has set; a text is
        // zero-terminated.
        unsafe {
            match self.kind {
                TYPE_STRING if self.data.string.is_null() => None,
                TYPE_STRING => {
                    let text = CStr::from_ptr(self.data.string);
                    Some(Found::Text(text.to_string_lossy().into()))
                }
                TYPE_UINT32 => Some(Found::Number(self.data.uint32 as usize)),
                TYPE_SIZE => Some(Found::Number(self.data.size)),
                _ => None,
            }
        }
    }
}

impl Info {
    /// A PMIx option with the value true.
    pub(super) fn on(name: &CStr) -> Info {
        let mut info = Info {
            key: [0; KEY],
            flags: 0,
            value: Value::none(),
        };
        for (to, from) in info.key.iter_mut().zip(name.to_bytes()) {
            *to = *from as c_char;
        }
        info.value.kind = TYPE_BOOL;
        info.value.data.flag = true;
        info
    }
}

/// Runs `start` with all signals of this thread blocked. A thread started by it inherits the mask
/// and receives none: signals belong to the program.
pub(super) fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    let mut all = MaybeUninit::uninit();
    let mut before = MaybeUninit::uninit();
    // SAFETY: the first call sets `all`, the second one `before`.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let result = start();
    // SAFETY: `before` is set.
    unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut());
    }
    result
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    /// The sizes and offsets as a C compiler computes them from the library's headers.
    #[test]
    fn the_types_lie_in_memory_as_those_of_c() {
        assert_eq!((size_of::<Proc>(), offset_of!(Proc, rank)), (260, 256));
        assert_eq!((size_of::<Value>(), offset_of!(Value, data)), (32, 8));
        assert_eq!(size_of::<Info>(), 552);
        assert_eq!(
            (offset_of!(Info, flags), offset_of!(Info, value)),
            (512, 520)
        );
    }

    #[test]
    fn values_are_read_by_their_type() {
        let text = CString::new("a text").unwrap();
        assert_eq!(
            Value::text(&text).read(),
            Some(Found::Text("a text".into()))
        );
        assert_eq!(Info::on(c"pmix.collect").value.read(), None);
    }
}
