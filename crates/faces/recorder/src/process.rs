//! The recording of this process.

use std::cell::Cell;
use std::ffi::c_int;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use recording::{Library, RECORDED, Recorder, StatusMemory, standard};
use trace::{Job, Measured, is_query};

use crate::clock::Clock;
use crate::foreign::Foreign;
use crate::limit::Limit;
use crate::names::{ABORT, FINALIZE, NAMES};
use crate::original::{self, invoke};
use crate::part_file::PartFile;
use crate::ticks::{Ticks, nanos};
use crate::words;

/// The variable that names the folder of the recording.
const FOLDER: &str = "FISHPLATE_RECORD";
/// The number of MPI_Pcontrol, which follows those of the recorded procedures.
const PCONTROL: usize = NAMES.len() / 2;
/// The longest time, in nanoseconds, that a call is kept in memory only, if calls follow it.
const BETWEEN_FLUSHES: u64 = 1_000_000_000;

thread_local! {
    /// True while a call of the program, or a question of the recording, is in progress in this
    /// thread.
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// True while calls are recorded.
static IS_ACTIVE: AtomicBool = AtomicBool::new(false);
static TICKS: OnceLock<Ticks> = OnceLock::new();
static RECORDING: Mutex<Option<Recording>> = Mutex::new(None);

/// The recording of this process.
struct Recording {
    process: u32,
    recorder: Recorder,
    library: Foreign,
    clock: Clock,
    /// For each procedure, true if its calls move nothing and make nothing.
    is_query: Vec<bool>,
    /// True while a call is in progress.
    is_busy: bool,
    /// The tick at which the calls in memory were last written.
    flushed: u64,
    /// The most ticks that a call is kept in memory only, if calls follow it.
    between_flushes: u64,
    /// The tick at which the recording ends.
    last: u64,
    limit: Limit,
    /// The bytes that have been written.
    written: Arc<AtomicU64>,
    /// True once a limit is reached.
    is_over: bool,
}

/// Makes a call of the program, and records it unless it is part of another one.
///
/// # Safety
/// The words are the arguments of the entry point's procedure, as C promises them.
#[inline(never)]
pub(crate) unsafe fn call<const N: usize>(entry: usize, words: [u64; N]) -> c_int {
    let function = original::of_entry(entry);
    if !IS_ACTIVE.load(Ordering::Relaxed) || IS_INSIDE.get() {
        // SAFETY: the caller's promise.
        return unsafe { invoke(function, &words) };
    }
    let (mut words, mut standard) = (words, words);
    let ticks = TICKS.get().copied().unwrap_or(Ticks::SYSTEM);
    let began = ticks.now();
    IS_INSIDE.set(true);
    // SAFETY: the caller's promise.
    let code = unsafe {
        let is_recorded = before(entry / 2, &mut words, &mut standard, began).is_some();
        let started = ticks.now();
        let code = invoke(function, &words);
        let ended = ticks.now();
        if is_recorded {
            after(entry / 2, &standard, code, ended - started);
        }
        code
    };
    IS_INSIDE.set(false);
    code
}

/// Makes a call of the program through the library of entry points with large counts. Its
/// arguments are `count` words.
///
/// # Safety
/// As for [`call`].
#[unsafe(no_mangle)]
unsafe extern "C" fn fishplate_record_call(entry: usize, words: *const u64, count: usize) -> c_int {
    macro_rules! by_count {
        ($($count:literal)*) => {
            match count {
                // SAFETY: the caller's promise.
                $($count => unsafe { call(entry, *words.cast::<[u64; $count]>()) },)*
                _ => unreachable!("no procedure has so many parameters"),
            }
        };
    }
    by_count!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14)
}

/// Records the begin of a call, and turns its arguments into those of the standard ABI. `None`: the
/// call is not recorded.
///
/// # Safety
/// As for [`call`].
unsafe fn before(
    procedure: usize,
    words: &mut [u64],
    standard: &mut [u64],
    began: u64,
) -> Option<()> {
    let mut guard = lock();
    let recording = guard.as_mut()?;
    // SAFETY: the caller's promise.
    unsafe { recording.enter(procedure, words, standard, began)? };
    if procedure == FINALIZE {
        recording.end(began);
        IS_ACTIVE.store(false, Ordering::Relaxed);
        *guard = None;
        return None;
    }
    if procedure == ABORT {
        recording.recorder.leave();
        recording.recorder.flush();
    }
    Some(())
}

/// Records the end of a call that took `inside` ticks.
///
/// # Safety
/// As for [`call`], with the arguments in the standard ABI.
unsafe fn after(procedure: usize, standard: &[u64], code: c_int, inside: u64) {
    let mut guard = lock();
    if let Some(recording) = guard.as_mut() {
        // SAFETY: the caller's promise.
        unsafe { recording.leave(procedure, standard, code, inside) }
        if recording.is_over {
            let now = recording.clock.left();
            recording.end(now);
            IS_ACTIVE.store(false, Ordering::Relaxed);
            *guard = None;
        }
    }
}

/// Makes a call of MPI_Pcontrol with this level, which is the function `original`, and records it.
pub(crate) fn control(level: c_int, original: impl FnOnce() -> c_int) -> c_int {
    if !IS_ACTIVE.load(Ordering::Relaxed) || IS_INSIDE.get() {
        return original();
    }
    let began = TICKS.get().copied().unwrap_or(Ticks::SYSTEM).now();
    IS_INSIDE.set(true);
    if let Some(recording) = lock().as_mut() {
        recording.control(level, began);
    }
    // A tool's function may call the library's by its profiled name.
    let code = original();
    IS_INSIDE.set(false);
    code
}

fn lock() -> MutexGuard<'static, Option<Recording>> {
    RECORDING.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recording {
    /// Begins a call. `None`: another thread's call is in progress.
    ///
    /// # Safety
    /// As for [`call`].
    unsafe fn enter(
        &mut self,
        procedure: usize,
        words: &mut [u64],
        standard: &mut [u64],
        began: u64,
    ) -> Option<()> {
        self.begin(RECORDED[procedure].name, began)?;
        if self.is_query[procedure] {
            return Some(());
        }
        if self.recorder.repeats(procedure, words) {
            return Some(());
        }
        words::standard(&self.library.family, procedure, words, standard);
        // SAFETY: the caller's promise, and the words have the values of the standard ABI.
        let given = unsafe { self.recorder.arguments(&self.library, procedure, standard) };
        if let Some(StatusMemory { parameter, address }) = given {
            words[parameter] = address;
            standard[parameter] = address;
        }
        Some(())
    }

    /// Begins a call of the procedure `name`, after the computing before it. `None`: another
    /// thread's call is in progress.
    fn begin(&mut self, name: &'static str, began: u64) -> Option<()> {
        if self.is_busy {
            let why = "calls of several threads overlap";
            self.recorder.refuse(name, why);
            return None;
        }
        self.is_busy = true;
        let (before, gap) = (self.clock.sums.interrupted, self.clock.enter(began));
        self.recorder.enter(name, gap);
        match self.clock.sums.interrupted - before {
            0 => (),
            taken => self.recorder.taken(taken),
        }
        Some(())
    }

    /// Records a call of MPI_Pcontrol.
    fn control(&mut self, level: c_int, began: u64) {
        if self.begin("MPI_Pcontrol", began).is_some() {
            self.recorder.level(level);
            self.recorder.leave();
            self.is_busy = false;
            self.clock.leave(PCONTROL);
        }
    }

    /// Ends a call.
    ///
    /// # Safety
    /// As for [`call`], with the arguments in the standard ABI.
    unsafe fn leave(&mut self, procedure: usize, standard: &[u64], code: c_int, inside: u64) {
        // SAFETY: the caller's promise.
        unsafe { self.recorder.results(&self.library, standard, code) };
        self.recorder.leave_after(inside);
        if RECORDED[procedure].constructs {
            self.library.forget();
        }
        self.is_busy = false;
        self.clock.leave(procedure);
        if self.clock.left() - self.flushed > self.between_flushes {
            self.recorder.flush();
            self.clock.leave(procedure);
            self.flushed = self.clock.left();
            self.is_over = self.flushed >= self.last
                || self.written.load(Ordering::Relaxed) >= self.limit.bytes;
        }
    }

    /// Ends the recording at tick `now`, with the times that have been measured.
    fn end(&mut self, now: u64) {
        let (times, ticks) = (self.clock.sums, self.clock.ticks);
        let inside = self.recorder.inside(|inside| ticks.nanos(inside));
        self.recorder.measured(&Measured {
            host: 0,
            elapsed: self.clock.elapsed(now),
            outside: times.outside,
            known: times.known,
            slept: times.slept,
            interrupted: times.interrupted,
            inside,
            // The calls have them.
            taken: Vec::new(),
        });
        self.recorder.finish();
    }
}

/// Begins the recording of this process, if it is wanted: MPI has started.
pub(crate) fn begin() {
    let Some(folder) = std::env::var_os(FOLDER).filter(|folder| !folder.is_empty()) else {
        return;
    };
    let mut guard = lock();
    if guard.is_some() {
        return;
    }
    IS_INSIDE.set(true);
    let made = Recording::new(PathBuf::from(folder));
    IS_INSIDE.set(false);
    match made {
        Ok(recording) => {
            *guard = Some(recording);
            // SAFETY: the function has no parameters.
            unsafe { libc::atexit(at_exit) };
            IS_ACTIVE.store(true, Ordering::Relaxed);
        }
        Err(why) => eprintln!("fishplate record: {why}; the program goes on without a recording"),
    }
}

/// Ends the recording of a process that leaves without MPI_Finalize.
extern "C" fn at_exit() {
    IS_ACTIVE.store(false, Ordering::Relaxed);
    // Another thread may be in a call, and a child that was forked has a copy of the recording.
    if let Ok(mut guard) = RECORDING.try_lock()
        && let Some(mut recording) = guard.take()
        && recording.process == std::process::id()
    {
        let now = recording.clock.ticks.now();
        recording.end(now);
    }
}

impl Recording {
    fn new(folder: PathBuf) -> Result<Recording, String> {
        let ticks = *TICKS.get_or_init(Ticks::of_host);
        let library = Foreign::loaded();
        let world = library.members(standard::MPI_COMM_WORLD as u64)?;
        let host = host_name();
        let path = folder.join(&host).with_extension("part");
        let open = PartFile::open(&path);
        let file = open.map_err(|why| format!("{} cannot be written: {why}", path.display()))?;
        let limit = Limit::of_environment(world.size as u64)?;
        let written = Arc::new(AtomicU64::new(0));
        let sum = Arc::clone(&written);
        let mut has_failed = false;
        let rank = world.rank;
        let began = nanos(libc::CLOCK_REALTIME);
        let process = began ^ u64::from(std::process::id()) << 32;
        let sink = move |block: &[u8]| {
            if has_failed {
                return Err(std::io::ErrorKind::BrokenPipe.into());
            }
            sum.fetch_add(block.len() as u64, Ordering::Relaxed);
            let appended = file.append(&trace::part_file::sealed(process, block));
            if let Err(why) = &appended {
                has_failed = true;
                eprintln!(
                    "fishplate record: {} cannot be written: {why}; the recording of rank {rank} ends here, and the program goes on",
                    path.display()
                );
            }
            appended
        };
        let mut recorder = Recorder::new(Box::new(sink), rank as usize);
        recorder.job(&Job {
            program: program(),
            library: original::library_name(),
            host,
            size: world.size,
            began,
        });
        // Whatever becomes of the process, its rank is known.
        recorder.flush();
        let query = |number: usize| {
            let name = RECORDED[number].name;
            is_query(name) && !["MPI_Get_address", "MPI_Address"].contains(&name)
        };
        Ok(Recording {
            process: std::process::id(),
            recorder,
            library,
            clock: Clock::new(PCONTROL + 1, ticks),
            is_query: (0..PCONTROL).map(query).collect(),
            is_busy: false,
            flushed: ticks.now(),
            between_flushes: ticks.ticks(BETWEEN_FLUSHES.min(limit.nanos)),
            last: match limit.nanos {
                u64::MAX => u64::MAX,
                nanos => ticks.now().saturating_add(ticks.ticks(nanos)),
            },
            limit,
            written,
            is_over: false,
        })
    }
}

/// The name of the program, without its folder and its arguments, which may be nobody's business.
fn program() -> String {
    let path = std::env::current_exe().unwrap_or_default();
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn host_name() -> String {
    let mut name = [0u8; 256];
    // SAFETY: the system writes at most this number of bytes.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(0);
    let name = String::from_utf8_lossy(&name[..end]);
    name.replace(['/', '.'], "-")
}
