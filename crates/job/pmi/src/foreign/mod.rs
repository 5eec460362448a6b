//! A rank of a job that a launcher of another MPI library started.
//!
//! The launcher provides a rank's identity, a key-value space with a fence, and the end of the job
//! ([`Wire`]). All other services of our own launcher are built from these here: the shared memory
//! of a host, the job's secret, messages of a rank to the user.
//!
//! Invariants:
//! - start-up needs one fence, and one more where cards (the addresses of ranks) are exchanged; a
//!   rank puts at most three values, and requests two and the card of each peer that it uses;
//! - no data from a launcher make a rank panic or use memory without limit.

mod detect;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod guardian;
mod mapping;
mod message;
mod neighbours;
mod output;
mod pmi1;
mod pmi2;
mod pmi_wire;
mod pmix;
mod pmix_library;
mod pmix_places;
mod values;
mod watcher;
mod wire;

use std::collections::{BTreeSet, VecDeque};
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::event::{PollFlags, epoll};
use rustix::process::{Signal, getpid, kill_process};
use secret::Secret;

use self::neighbours::{Meeting, Neighbours};
use self::values::{Assembled, Assembly};
use self::watcher::Watcher;
use self::wire::{Answer, Wire};
use crate::{
    Bootstrap, Hosts, KvsError, LauncherGone, Notice, check_key, check_value, empty_segment, hex,
    unhex, unsupported_text,
};

pub(crate) use detect::open;
pub use detect::{launcher_of, launchers_seen};

/// One rank of a job that a launcher of another MPI library started.
#[derive(Debug)]
pub struct ForeignJob {
    launcher: &'static str,
    protocol: &'static str,
    rank: usize,
    program: usize,
    hosts: Hosts,
    wire: Box<dyn Wire>,
    segment: Mutex<Option<OwnedFd>>,
    secret: Option<Secret>,
    /// The connections to the other ranks of this host. `None` if there are none.
    neighbours: Option<Neighbours>,
    /// An epoll descriptor, readable when the launcher has sent something or a rank of this host
    /// has ended.
    events: OwnedFd,
    store: Mutex<Store>,
    /// The topics of the warnings that were printed already.
    warned: Mutex<BTreeSet<String>>,
    has_finalized: AtomicBool,
    /// The thread that detects the launcher's death. `None` if the system could not start it.
    watcher: Option<Watcher>,
}

/// The exit code of a rank whose MPI_Init fails: MPI_ERR_OTHER.
const INIT_FAILED: i32 = 16;

/// Answers that have arrived and were not returned to a caller yet.
#[derive(Debug, Default)]
struct Store {
    assembly: Assembly,
    values: VecDeque<(String, String)>,
    fences: usize,
    in_fence: bool,
}

/// A connection to a launcher, and the facts of the job that it has reported.
#[derive(Debug)]
struct Opened {
    launcher: &'static str,
    protocol: &'static str,
    rank: usize,
    program: usize,
    hosts: Hosts,
    wire: Box<dyn Wire>,
}

fn secret_key() -> String {
    "secret.0".into()
}

fn segment_key(keeper: usize) -> String {
    format!("segment.{keeper}")
}

impl ForeignJob {
    /// Joins the ranks of the job: exchanges the secret and the shared memory of each host.
    fn join(opened: Opened, guardian: Option<OwnedFd>) -> Result<ForeignJob, String> {
        let events =
            epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|errno| errno.to_string())?;
        let mut job = ForeignJob {
            launcher: opened.launcher,
            protocol: opened.protocol,
            rank: opened.rank,
            program: opened.program,
            hosts: opened.hosts,
            wire: opened.wire,
            segment: Mutex::new(None),
            secret: None,
            neighbours: None,
            events,
            store: Mutex::default(),
            warned: Mutex::default(),
            has_finalized: AtomicBool::new(false),
            watcher: None,
        };
        job.watch(job.wire.event_fd())?;
        let connection = job.wire.lost_fd().ok();
        let guardian = guardian.map(|process| (process, PollFlags::IN));
        job.watcher = watch_launcher(job.rank, connection.into_iter().chain(guardian).collect());
        match job.size() {
            1 => job.secret = Secret::draw().ok(),
            _ => job.connect().map_err(|why| job.give_up(why))?,
        }
        Ok(job)
    }

    /// Prints why this rank cannot join the others, and requests the end of the job: otherwise
    /// ranks that have joined would blame this rank. Returns the reason in case the launcher does
    /// not end it.
    fn give_up(&self, why: String) -> String {
        let protocol = self.protocol;
        self.say(&format!(
            "MPI_Init: over {protocol} this rank cannot join the others: {why}"
        ));
        self.end_job(INIT_FAILED);
        std::thread::sleep(neighbours::LAUNCHER_ENDS);
        why
    }

    /// Exchanges the secret of the job, and passes the segment of each host to its ranks.
    fn connect(&mut self) -> Result<(), String> {
        let words = |why: KvsError| why.to_string();
        let local: Vec<usize> = self.hosts.beside(self.rank).collect();
        let (keeper, others) = (local[0], &local[1..]);
        let is_keeper = keeper == self.rank && !others.is_empty();
        let meeting = is_keeper.then(|| Meeting::open(others.len())).transpose()?;
        if let Some(meeting) = &meeting {
            self.put(&segment_key(keeper), meeting.name())
                .map_err(words)?;
        }
        if self.rank == 0 {
            let secret = Secret::draw().map_err(|why| format!("no random bytes: {why}"))?;
            self.put(&secret_key(), &hex(secret.as_bytes()))
                .map_err(words)?;
        }
        self.fence().map_err(words)?;
        let secret = self.value(&secret_key()).map_err(words)?;
        let bytes = unhex(&secret).and_then(|bytes| bytes.try_into().ok());
        let secret = bytes.ok_or("the launcher has changed the value of a key")?;
        self.secret = Some(Secret::from_bytes(secret));
        if others.is_empty() {
            return Ok(());
        }
        let check = || self.poll().map_err(words);
        let (segment, neighbours) = match meeting {
            Some(meeting) => {
                let segment = empty_segment().map_err(|why| format!("no shared memory: {why}"))?;
                let neighbours = meeting.gather(others, segment.as_fd(), check)?;
                (segment, neighbours)
            }
            None => {
                let name = self.value(&segment_key(keeper)).map_err(words)?;
                let joined = neighbours::join(&name, keeper, self.rank, check);
                // If the keeper has died, the launcher reports it and ends this rank meanwhile.
                joined.inspect_err(|_| std::thread::sleep(neighbours::LAUNCHER_ENDS))?
            }
        };
        self.watch(neighbours.event_fd())?;
        self.segment = Mutex::new(Some(segment));
        self.neighbours = Some(neighbours);
        Ok(())
    }

    fn watch(&self, file: BorrowedFd<'_>) -> Result<(), String> {
        let data = epoll::EventData::new_u64(0);
        let added = epoll::add(&self.events, file, data, epoll::EventFlags::IN);
        added.map_err(|errno| format!("the connection to the launcher cannot be watched: {errno}"))
    }

    /// Waits for the value of a key that a rank put before the last fence.
    fn value(&self, key: &str) -> Result<String, KvsError> {
        self.get(key)?;
        loop {
            if let Some((_, value)) = self.next_value()? {
                return Ok(value);
            }
            crate::bootstrap::sleep_until_readable(Some(self.events.as_fd()));
        }
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Receives all answers that have arrived. Fails if the launcher is gone.
    fn poll(&self) -> Result<(), KvsError> {
        let mut store = self.store();
        while let Some(answer) = self.wire.next()? {
            let (key, value) = match answer {
                Answer::Fence => {
                    store.fences += 1;
                    continue;
                }
                Answer::Value { key, value } => (key, value),
            };
            let Some(value) = value else {
                return Err(KvsError::Launcher(format!("no rank has put the key {key}")));
            };
            match store.assembly.add(&key, &value) {
                Some(Assembled::Value(key, value)) => store.values.push_back((key, value)),
                Some(Assembled::Wants(keys)) => {
                    for key in keys {
                        self.request(&key)?;
                    }
                }
                None => {
                    let why = format!("the value of the key {key} is not the one that was put");
                    return Err(KvsError::Launcher(why));
                }
            }
        }
        Ok(())
    }

    fn request(&self, key: &str) -> Result<(), KvsError> {
        let owner = values::owner(key).filter(|&owner| owner < self.size());
        let owner = owner.ok_or_else(|| {
            KvsError::Launcher(format!(
                "the key {key} does not end with the rank that puts it"
            ))
        })?;
        self.wire.get(key, owner)
    }

    /// A rank of this host that has died while the launcher did not end the job.
    fn dead_neighbour(&self) -> Option<usize> {
        self.neighbours.as_ref().and_then(Neighbours::dead)
    }

    fn say(&self, text: &str) {
        say(self.rank, text);
    }

    /// The name of the launcher.
    pub fn launcher(&self) -> &'static str {
        self.launcher
    }

    /// The name of the protocol between this rank and its launcher.
    pub fn protocol(&self) -> &'static str {
        self.protocol
    }
}

/// Starts the thread that ends this process some time after its launcher has died. `files` report
/// that death.
fn watch_launcher(rank: usize, files: Vec<(OwnedFd, PollFlags)>) -> Option<Watcher> {
    Watcher::start(files, neighbours::LAUNCHER_ENDS, move || {
        say(rank, &format!("{}, so this rank ends", LauncherGone::Dead));
        let _ = kill_process(getpid(), Signal::KILL);
    })
}

/// Prints a message of a rank with one write, which the launcher forwards to the user.
fn say(rank: usize, text: &str) {
    let line = format!("fishplate: rank {rank}: {}\n", terminal_text::lines(text));
    let _ = std::io::stderr().write_all(line.as_bytes());
}

impl Bootstrap for ForeignJob {
    fn rank(&self) -> usize {
        self.rank
    }

    fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    fn program(&self) -> usize {
        self.program
    }

    fn take_segment(&self) -> Option<OwnedFd> {
        let mut segment = self.segment.lock().unwrap_or_else(PoisonError::into_inner);
        segment.take()
    }

    fn secret(&self) -> Option<Secret> {
        self.secret.clone()
    }

    fn put(&self, key: &str, value: &str) -> Result<(), KvsError> {
        check_key(key)?;
        check_value(key, value)?;
        let parts = values::parts(key, value, self.wire.value_limit())?;
        parts
            .iter()
            .try_for_each(|(key, part)| self.wire.put(key, part))
    }

    fn get(&self, key: &str) -> Result<(), KvsError> {
        check_key(key)?;
        self.request(key)
    }

    fn next_value(&self) -> Result<Option<(String, String)>, KvsError> {
        self.poll()?;
        Ok(self.store().values.pop_front())
    }

    fn get_waits(&self) -> bool {
        false
    }

    fn enter_fence(&self) -> Result<(), KvsError> {
        let mut store = self.store();
        if std::mem::replace(&mut store.in_fence, true) {
            return Err(KvsError::InFence);
        }
        self.wire.enter_fence()
    }

    fn fence_is_complete(&self) -> Result<bool, KvsError> {
        self.poll()?;
        let mut store = self.store();
        if let Some(left) = store.fences.checked_sub(1) {
            store.fences = left;
            store.in_fence = false;
            return Ok(true);
        }
        // A launcher that lets the other ranks wait never completes this fence.
        match self.dead_neighbour() {
            Some(dead) => Err(KvsError::Gone(LauncherGone::Idle { dead })),
            None => Ok(false),
        }
    }

    fn abort(&self, code: i32, message: &str) -> Result<(), LauncherGone> {
        let colon = if message.is_empty() { "" } else { ": " };
        self.say(&format!(
            "called MPI_Abort with code {code}{colon}{message}"
        ));
        Ok(())
    }

    /// False, because some launchers let the other ranks wait after a death.
    fn reports_deaths(&self) -> bool {
        false
    }

    fn notify(&self, notice: Notice<'_>) -> Result<(), LauncherGone> {
        match notice {
            Notice::Warning { topic, text } => {
                let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
                if warned.insert(topic.to_string()) {
                    self.say(text);
                }
            }
            Notice::Unsupported(procedure) => self.say(&unsupported_text(procedure)),
            Notice::Fault { text, .. } => self.say(text),
            Notice::Finalized => {
                self.has_finalized.store(true, Ordering::Relaxed);
                if let Some(neighbours) = &self.neighbours {
                    neighbours.leave();
                }
                if let Some(watcher) = &self.watcher {
                    watcher.end();
                }
                self.wire.finalize();
            }
            // Launchers of other MPI libraries do not use these notices.
            Notice::Initialized | Notice::Lock(_) | Notice::Status(_) | Notice::Deadlock(_) => {}
        }
        Ok(())
    }

    /// Always false, as no other launcher requests the status. The error reports a dead rank or
    /// launcher.
    fn status_requested(&self) -> Result<bool, LauncherGone> {
        if self.has_finalized.load(Ordering::Relaxed) {
            return Ok(false);
        }
        if let Err(KvsError::Gone(gone)) = self.poll() {
            return Err(gone);
        }
        match self.dead_neighbour() {
            Some(dead) => Err(LauncherGone::Idle { dead }),
            None => Ok(false),
        }
    }

    fn end_job(&self, code: i32) {
        output::wait_until_read();
        self.wire
            .abort(code, &format!("rank {} ends the job", self.rank));
    }

    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.events.as_fd())
    }
}
