//! The connection over PMIx to another launcher, through libpmix.
//!
//! The library runs a thread of its own. Its callbacks put answers into a mailbox, and access
//! nothing else of the rank. The thread receives no signals.

use std::collections::VecDeque;
use std::ffi::{CStr, CString, c_char, c_void};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::event::{EventfdFlags, PollFlags, eventfd};
use rustix::io::{read, write};

use super::message::shown;
use super::pmix_library::{
    EVENT_ACTION_COMPLETE, EventDone, Found, Functions, GLOBAL, Info, LOST_CONNECTION, Proc,
    RANK_WILDCARD, SUCCESS, Status, Value, without_signals,
};
use super::pmix_places::{mapped_by_launcher, names};
use super::wire::{Answer, Wire};
use super::{mapping, values};
use crate::{Hosts, KvsError, LauncherGone};

/// The length of the longest value, in bytes. The library itself has no limit.
const VALUE_LIMIT: usize = 1 << 20;

/// A connection to a launcher over PMIx.
pub(crate) struct PmixWire {
    library: Functions,
    own: Proc,
    mailbox: Arc<Mailbox>,
}

/// Facts of the job that the launcher reports to each rank.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) rank: usize,
    pub(crate) program: usize,
    pub(crate) hosts: Hosts,
}

/// The queue into which the library's thread puts answers for the rank.
#[derive(Debug)]
struct Mailbox {
    letters: Mutex<VecDeque<Letter>>,
    bell: OwnedFd,
    /// An eventfd, readable once the launcher is gone.
    lost: OwnedFd,
}

/// A message from the thread of the PMIx library to the rank.
#[derive(Debug)]
enum Letter {
    Fence(Status),
    Value {
        key: String,
        value: Option<String>,
    },
    /// The launcher is gone.
    Lost,
}

/// The mailbox for events that the library reports. It is static, because a rank cannot pass an
/// argument to the callback of an event.
static EVENTS: OnceLock<Arc<Mailbox>> = OnceLock::new();

impl PmixWire {
    /// Connects to the launcher with the library at `path`. An empty path means the launcher's own
    /// library.
    pub(crate) fn open<'a>(
        find: &impl Fn(&str) -> Option<&'a str>,
        path: &str,
    ) -> Result<(PmixWire, Facts), String> {
        let mapped = match path.is_empty() {
            true => mapped_by_launcher(),
            false => None,
        };
        let library = Functions::open(&names(path, mapped, find("PMIX_PREFIX")))?;
        let mailbox = Mailbox::new()?;
        let mut own = Proc::empty();
        // SAFETY: the library fills in `own`; no options.
        let status = without_signals(|| unsafe { (library.init)(&mut own, ptr::null(), 0) });
        if status != SUCCESS {
            let words = library.words(status);
            return Err(format!(
                "the launcher does not accept it: PMIx_Init: {words}"
            ));
        }
        let wire = PmixWire {
            library,
            own,
            mailbox,
        };
        wire.listen();
        let facts = wire.facts()?;
        Ok((wire, facts))
    }

    fn facts(&self) -> Result<Facts, String> {
        let job = self.own.of(RANK_WILDCARD);
        let size = match self.library.value(&job, c"pmix.job.size") {
            Some(Found::Number(size)) => size,
            _ => return Err("the launcher does not say how many ranks the job has".into()),
        };
        let rank = self.own.rank as usize;
        if rank >= size || size > knobs::MOST_RANKS {
            let most = knobs::MOST_RANKS;
            return Err(format!(
                "rank {rank} of {size} is no rank of a job of up to {most} ranks"
            ));
        }
        let program = match self.library.value(&self.own, c"pmix.appnum") {
            Some(Found::Number(program)) => program,
            _ => 0,
        };
        let hosts = self.placement(size)?;
        Ok(Facts {
            rank,
            program,
            hosts,
        })
    }

    /// The job's placement: from the launcher's text in PMI's notation, or else from the ranks of
    /// each node.
    fn placement(&self, size: usize) -> Result<Hosts, String> {
        let job = self.own.of(RANK_WILDCARD);
        if let Some(Found::Text(text)) = self.library.value(&job, c"pmix.anlmap")
            && let Some(hosts) = mapping::parse(&text, size)
        {
            return Ok(hosts);
        }
        let mut nodes = vec![usize::MAX; size];
        for (number, node) in self.nodes().iter().enumerate() {
            for rank in self.ranks_on(node) {
                if let Some(place) = nodes.get_mut(rank as usize) {
                    *place = number;
                }
            }
        }
        match nodes.iter().position(|&node| node == usize::MAX) {
            None => Ok(mapping::numbered(&nodes)),
            Some(rank) => Err(format!(
                "the launcher does not say on which host rank {rank} is"
            )),
        }
    }

    fn nodes(&self) -> Vec<CString> {
        let mut list: *mut c_char = ptr::null_mut();
        let namespace = self.own.namespace.as_ptr();
        // SAFETY: the call sets `list` to a text in memory of `malloc` if it succeeds.
        let text = unsafe {
            if (self.library.resolve_nodes)(namespace, &mut list) != SUCCESS || list.is_null() {
                return Vec::new();
            }
            let text = CStr::from_ptr(list).to_string_lossy().into_owned();
            libc::free(list.cast());
            text
        };
        let nodes = text.split(',').filter_map(|node| CString::new(node).ok());
        nodes.collect()
    }

    fn ranks_on(&self, node: &CStr) -> Vec<u32> {
        let (mut procs, mut count): (*mut Proc, usize) = (ptr::null_mut(), 0);
        let namespace = self.own.namespace.as_ptr();
        // SAFETY: the call sets `procs` to `count` entries in memory of `malloc` if it succeeds.
        unsafe {
            let status =
                (self.library.resolve_peers)(node.as_ptr(), namespace, &mut procs, &mut count);
            if status != SUCCESS || procs.is_null() {
                return Vec::new();
            }
            let ranks = std::slice::from_raw_parts(procs, count);
            let ranks = ranks.iter().map(|proc| proc.rank).collect();
            libc::free(procs.cast());
            ranks
        }
    }

    /// Registers for the event that the launcher is gone. If this fails, the rank only detects it
    /// later.
    fn listen(&self) {
        EVENTS.get_or_init(|| Arc::clone(&self.mailbox));
        let codes = LOST_CONNECTION.as_ptr();
        let count = LOST_CONNECTION.len();
        // SAFETY: the codes live during the call. Without a callback, the call returns when the
        // registration is complete.
        unsafe {
            (self.library.register)(
                codes,
                count,
                ptr::null(),
                0,
                on_lost,
                ptr::null(),
                ptr::null_mut(),
            )
        };
    }

    fn asked(&self, key: CString, owner: u32) -> *mut Asked {
        Box::into_raw(Box::new(Asked {
            mailbox: Arc::clone(&self.mailbox),
            key,
            owner: self.own.of(owner),
        }))
    }

    fn check(&self, what: &str, status: Status) -> Result<(), KvsError> {
        match status {
            SUCCESS => Ok(()),
            status => {
                let words = shown(&self.library.words(status));
                Err(KvsError::Launcher(format!("{what}: {words}")))
            }
        }
    }
}

impl fmt::Debug for PmixWire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PmixWire")
            .field("rank", &self.own.rank)
            .finish()
    }
}

impl Mailbox {
    fn new() -> Result<Arc<Mailbox>, String> {
        let event = || {
            let made = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
            made.map_err(|errno| format!("no descriptor for events: {errno}"))
        };
        Ok(Arc::new(Mailbox {
            letters: Mutex::default(),
            bell: event()?,
            lost: event()?,
        }))
    }

    fn letters(&self) -> MutexGuard<'_, VecDeque<Letter>> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, letter: Letter) {
        self.letters().push_back(letter);
        // A write to a full counter fails, but the descriptor is readable then.
        let _ = write(&self.bell, &1u64.to_ne_bytes());
    }

    fn take(&self) -> Option<Letter> {
        let mut letters = self.letters();
        let letter = letters.pop_front();
        if letters.is_empty() {
            // A read of an empty counter fails, which does not matter.
            let _ = read(&self.bell, &mut [0; 8]);
        }
        letter
    }
}

/// An outstanding request, passed to the library as the argument of its callback. The library keeps
/// pointers into it until the callback.
struct Asked {
    mailbox: Arc<Mailbox>,
    key: CString,
    owner: Proc,
}

impl Asked {
    /// # Safety
    /// `argument` is a leaked box of this type, and is not used again after this call.
    unsafe fn take(argument: *mut c_void) -> Asked {
        // SAFETY: the caller's promise.
        *unsafe { Box::from_raw(argument.cast()) }
    }
}

extern "C" fn on_fence(status: Status, argument: *mut c_void) {
    // SAFETY: the library calls this once for each fence that it has accepted.
    let asked = unsafe { Asked::take(argument) };
    asked.mailbox.put(Letter::Fence(status));
}

extern "C" fn on_value(status: Status, value: *mut Value, argument: *mut c_void) {
    // SAFETY: the library calls this once for each request that it has accepted.
    let Asked { mailbox, key, .. } = unsafe { Asked::take(argument) };
    // SAFETY: the value is the library's, and is valid during this call.
    let found = unsafe { value.as_ref() }.filter(|_| status == SUCCESS);
    let value = match found.and_then(Value::read) {
        Some(Found::Text(text)) => Some(text),
        _ => None,
    };
    let key = key.to_string_lossy().into();
    mailbox.put(Letter::Value { key, value });
}

extern "C" fn on_lost(
    _handler: usize,
    _status: Status,
    _source: *const Proc,
    _info: *mut Info,
    _infos: usize,
    _results: *mut Info,
    _result_count: usize,
    done: EventDone,
    argument: *mut c_void,
) {
    if let Some(mailbox) = EVENTS.get() {
        mailbox.put(Letter::Lost);
        let _ = write(&mailbox.lost, &1u64.to_ne_bytes());
    }
    if let Some(done) = done {
        let (complete, none) = (EVENT_ACTION_COMPLETE, ptr::null_mut());
        // SAFETY: the library's own function, called with its argument and no results.
        unsafe { done(complete, none, 0, ptr::null(), ptr::null_mut(), argument) };
    }
}

fn c_text(text: &str) -> Result<CString, KvsError> {
    CString::new(text).map_err(|_| KvsError::Launcher("a text holds a zero byte".into()))
}

impl Wire for PmixWire {
    fn value_limit(&self) -> usize {
        VALUE_LIMIT
    }

    fn put(&self, key: &str, value: &str) -> Result<(), KvsError> {
        debug_assert_eq!(values::owner(key), Some(self.own.rank as usize));
        let (key, text) = (c_text(key)?, c_text(value)?);
        // SAFETY: key and value live during the call, which copies them.
        let put = unsafe { (self.library.put)(GLOBAL, key.as_ptr(), &mut Value::text(&text)) };
        self.check("PMIx_Put", put)
    }

    fn get(&self, key: &str, owner: usize) -> Result<(), KvsError> {
        let asked = self.asked(c_text(key)?, owner as u32);
        // SAFETY: owner and key live until the callback takes `asked`.
        let status = unsafe {
            let (owner, key) = (&raw const (*asked).owner, (*asked).key.as_ptr());
            (self.library.get_later)(owner, key, ptr::null(), 0, on_value, asked.cast())
        };
        if status != SUCCESS {
            // SAFETY: a refused request has no callback.
            drop(unsafe { Asked::take(asked.cast()) });
        }
        self.check("PMIx_Get_nb", status)
    }

    fn enter_fence(&self) -> Result<(), KvsError> {
        // SAFETY: no arguments.
        self.check("PMIx_Commit", unsafe { (self.library.commit)() })?;
        // All values arrive with the end of the fence, so that none is fetched over the network
        // later.
        let options = [Info::on(c"pmix.collect")];
        let asked = self.asked(CString::default(), RANK_WILDCARD);
        // SAFETY: the library uses the options during the call only; NULL means all ranks of the
        // job; the callback takes `asked`.
        let status = unsafe {
            (self.library.fence)(ptr::null(), 0, options.as_ptr(), 1, on_fence, asked.cast())
        };
        if status != SUCCESS {
            // SAFETY: a refused request has no callback.
            drop(unsafe { Asked::take(asked.cast()) });
        }
        self.check("PMIx_Fence_nb", status)
    }

    fn next(&self) -> Result<Option<Answer>, KvsError> {
        match self.mailbox.take() {
            None => Ok(None),
            Some(Letter::Fence(status)) => {
                self.check("PMIx_Fence_nb", status)?;
                Ok(Some(Answer::Fence))
            }
            Some(Letter::Value { key, value }) => Ok(Some(Answer::Value { key, value })),
            Some(Letter::Lost) => Err(LauncherGone::Dead.into()),
        }
    }

    fn abort(&self, code: i32, text: &str) {
        let Ok(text) = CString::new(text) else {
            return;
        };
        // SAFETY: the text outlives the call; NULL means all ranks of the job.
        unsafe { (self.library.abort)(code, text.as_ptr(), ptr::null(), 0) };
    }

    fn finalize(&self) {
        // SAFETY: no options. The callbacks of outstanding requests have run, or run before the
        // library's thread ends.
        unsafe { (self.library.finalize)(ptr::null(), 0) };
    }

    fn event_fd(&self) -> BorrowedFd<'_> {
        self.mailbox.bell.as_fd()
    }

    fn lost_fd(&self) -> io::Result<(OwnedFd, PollFlags)> {
        Ok((self.mailbox.lost.try_clone()?, PollFlags::IN))
    }
}
