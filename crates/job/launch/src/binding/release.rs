//! The release of ranks from a soft binding if other tasks take much of their cores' time.
//!
//! If another busy task runs on the core of a bound rank, the rank waits for that core, although
//! another may be idle; without the binding the scheduler would move it there. A rank that
//! exchanges messages without a pause gains more by its binding than it loses; a rank that computes
//! does not. So a rank gets back all cores of its launcher if it loses more than a tenth of the
//! time to other tasks and spends most of its own time outside MPI.
//!
//! The launcher makes these checks: a rank that computes cannot, and in the launcher they cost the
//! rank nothing.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::cpu_list::CpuList;
use crate::rank::RankProcess;

/// The first interval between two readings of the time that ranks have lost. Intervals grow,
/// because the readings must not disturb the ranks.
const SHORT: Duration = Duration::from_millis(100);
/// The longest interval between two readings of the time that ranks have lost.
const LONG: Duration = Duration::from_millis(400);
/// The interval between two samples of a rank's activity.
const SAMPLE: Duration = Duration::from_millis(2);
/// The number of samples by which a running rank is judged.
const SAMPLES: u32 = 20;
/// The number of samples outside MPI from which on a rank is regarded as computing. A ping-pong is
/// outside MPI in up to a third of the samples, a rank that computes for 10 µs between messages in
/// nine tenths. A release is final, so it needs more than a majority.
const OUTSIDE: u32 = 16;
/// The most attempts to sample a rank: a rank that sleeps gives no sample.
const ATTEMPTS: u32 = 10 * SAMPLES;
/// The number of times that the threads of a rank are listed while the rank is released.
const ROUNDS: u32 = 3;
/// The time after which a rank that has not completed MPI_Init is regarded as computing. Earlier it
/// may still be loading, and later exchange messages without a pause.
const LOADED: Duration = Duration::from_secs(5);
/// A rank may lose one part in this number of its time to other tasks: a tenth.
const MAY_LOSE: u32 = 10;

/// The soft binding of the ranks of this host, while they run.
#[derive(Debug)]
pub(crate) struct ReleaseWatch {
    /// The hardware threads that the launcher may use.
    allowed: CpuSet,
    ranks: Vec<WatchedRank>,
    /// The time of the next check. `None`: no bound rank is left.
    pub next: Option<Instant>,
    pause: Duration,
    report: bool,
}

/// A rank that is bound to its share.
#[derive(Debug)]
struct WatchedRank {
    /// The index of the rank among the ranks of this host.
    place: usize,
    share: CpuSet,
    /// The time at which the checks of this rank began.
    start: Instant,
    /// The time that each thread of the rank had waited for a core at the last reading, in
    /// nanoseconds.
    waited: HashMap<i32, u64>,
    /// The time at which the rank's processor time was last read.
    since: Instant,
    sampling: Option<Samples>,
}

/// The samples of the activity of a rank that loses time.
#[derive(Debug, Default)]
struct Samples {
    taken: u32,
    outside: u32,
    attempts: u32,
    /// The processor time of the rank up to the last sample, in nanoseconds.
    ran: u64,
}

/// The activity of a rank at one moment.
enum Sample {
    /// No sample: the rank sleeps, or has not run since the last sample.
    None,
    /// The rank runs or waits for a core, inside MPI.
    InMpi,
    /// The rank runs or waits for a core, outside MPI.
    Outside,
    /// The rank runs or waits for a core; whether it is inside MPI is unknown.
    Unknown,
}

/// The result of a check of a bound rank.
#[derive(Debug, PartialEq)]
enum Finding {
    /// The rank stays bound: other tasks hardly use its cores.
    Undisturbed,
    /// The rank loses time to other tasks, and its activity is being sampled.
    Sampling,
    /// The rank's binding must be removed.
    Release,
    /// The rank needs no more checks: it has ended, or has chosen its cores itself.
    Gone,
}

impl ReleaseWatch {
    /// Begins to check ranks with these shares, one for each rank of the host.
    pub(crate) fn new(allowed: CpuSet, shares: &[CpuList], report: bool) -> ReleaseWatch {
        let now = Instant::now();
        let ranks = shares.iter().enumerate().map(|(place, share)| WatchedRank {
            place,
            share: share.mask(),
            start: now,
            waited: HashMap::new(),
            since: now,
            sampling: None,
        });
        ReleaseWatch {
            allowed,
            ranks: ranks.collect(),
            next: Some(now + SHORT),
            pause: SHORT,
            report,
        }
    }

    /// Checks the ranks if that is due, and releases those that lose too much time.
    pub(crate) fn check(&mut self, ranks: &[RankProcess], now: Instant) {
        if self.next.is_none_or(|next| now < next) {
            return;
        }
        let mut sampling = false;
        let ReleaseWatch {
            allowed,
            ranks: watched,
            report,
            ..
        } = self;
        watched.retain_mut(|watched| {
            let Some(rank) = ranks.get(watched.place) else {
                return false;
            };
            let finding = watched.check(rank, now);
            sampling |= finding == Finding::Sampling;
            if finding == Finding::Release {
                watched.release(rank, allowed);
                if *report {
                    report_release(rank);
                }
            }
            matches!(finding, Finding::Undisturbed | Finding::Sampling)
        });
        let pause = match sampling {
            true => SAMPLE,
            false => {
                self.pause = (2 * self.pause).min(LONG);
                self.pause
            }
        };
        self.next = (!self.ranks.is_empty()).then(|| now + pause);
    }
}

/// Reports the release of a rank to the user.
fn report_release(rank: &RankProcess) {
    let text = format!(
        "fishplate: rank {}: released from its cores, where other tasks kept it from computing\n",
        rank.number
    );
    let _ = std::io::stderr().write_all(text.as_bytes());
}

impl WatchedRank {
    fn check(&mut self, rank: &RankProcess, now: Instant) -> Finding {
        // The process of the rank's program, or of a wrapper that will start it.
        let Some(pid) = rank.init.or(rank.pid).filter(|_| rank.is_running()) else {
            return Finding::Gone;
        };
        if !sched_getaffinity(Some(pid)).is_ok_and(|mask| mask == self.share) {
            return Finding::Gone;
        }
        if rank.lock.is_none() && now - self.start < LOADED {
            return Finding::Undisturbed;
        }
        if let Some(samples) = &mut self.sampling {
            let finding = samples.follow(pid, rank.lock);
            if finding == Finding::Undisturbed {
                self.sampling = None;
                self.read(pid, now);
            }
            return finding;
        }
        // The samples of other ranks make calls more frequent than the readings for this rank.
        if now - self.since < SHORT || !self.read(pid, now) {
            return Finding::Undisturbed;
        }
        self.sampling = Some(Samples::default());
        Finding::Sampling
    }

    /// Reads how long the threads of a process have waited for a core. True if one of them has
    /// waited for too much of the time since the last reading.
    fn read(&mut self, pid: Pid, now: Instant) -> bool {
        let passed = now - self.since;
        let waited: HashMap<i32, u64> = threads(pid)
            .into_iter()
            .filter_map(|thread| Some((thread, waited(pid, thread)?)))
            .collect();
        let before = std::mem::replace(&mut self.waited, waited);
        let most = self
            .waited
            .iter()
            .filter_map(|(thread, waited)| Some(waited.saturating_sub(*before.get(thread)?)));
        let most = Duration::from_nanos(most.max().unwrap_or(0));
        self.since = now;
        most * MAY_LOSE > passed
    }

    /// Permits the threads of a rank to use all cores of the launcher. Threads whose mask differs
    /// from the rank's share have chosen their cores themselves, and keep them.
    fn release(&self, rank: &RankProcess, allowed: &CpuSet) {
        for pid in [rank.pid, rank.init].into_iter().flatten() {
            // A thread that starts meanwhile inherits the mask of its creator, hence the
            // repetitions.
            for _ in 0..ROUNDS {
                for thread in threads(pid).into_iter().filter_map(Pid::from_raw) {
                    let mask = sched_getaffinity(Some(thread));
                    if mask.is_ok_and(|mask| mask == self.share) {
                        // The thread may have ended.
                        let _ = sched_setaffinity(Some(thread), allowed);
                    }
                }
            }
        }
    }
}

impl Samples {
    /// Takes a sample of the rank's activity.
    fn follow(&mut self, pid: Pid, lock: Option<u64>) -> Finding {
        let sample = self.take(pid, lock);
        self.add(sample)
    }

    /// Adds a sample, and judges the rank after enough samples.
    fn add(&mut self, sample: Sample) -> Finding {
        self.attempts += 1;
        match sample {
            Sample::None => {}
            Sample::InMpi => self.taken += 1,
            Sample::Outside => {
                self.taken += 1;
                self.outside += 1;
            }
            // A rank whose activity is unknown is regarded as computing.
            Sample::Unknown => return Finding::Release,
        }
        match self.taken >= SAMPLES || self.attempts >= ATTEMPTS {
            false => Finding::Sampling,
            true if self.outside >= OUTSIDE => Finding::Release,
            true => Finding::Undisturbed,
        }
    }

    /// The activity of a rank now. `lock` is the address of its lock; a rank without one has not
    /// completed MPI_Init.
    fn take(&mut self, pid: Pid, lock: Option<u64>) -> Sample {
        let ran = schedstat(pid, pid.as_raw_nonzero().get(), 0).unwrap_or(0);
        // While a rank waits for its core, it stays inside or outside MPI as at the last sample.
        let has_run = std::mem::replace(&mut self.ran, ran) != ran;
        if !has_run || !is_runnable(pid) {
            return Sample::None;
        }
        match lock.and_then(|address| is_held(pid, address)) {
            None => Sample::Unknown,
            Some(true) => Sample::InMpi,
            Some(false) => Sample::Outside,
        }
    }
}

/// True if the first thread of a process has a core, or waits for one.
fn is_runnable(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    // The process name is in parentheses and may contain parentheses; the state follows it.
    stat.is_ok_and(|stat| {
        stat.rsplit_once(')')
            .is_some_and(|(_, rest)| rest.starts_with(" R"))
    })
}

/// True if a rank is in MPI: its lock's value is odd while a call has the lock. `None`: the memory
/// of the rank cannot be read.
fn is_held(pid: Pid, address: u64) -> Option<bool> {
    let memory = File::open(format!("/proc/{}/mem", pid.as_raw_nonzero())).ok()?;
    let mut bytes = [0; 4];
    memory.read_exact_at(&mut bytes, address).ok()?;
    Some(u32::from_ne_bytes(bytes) % 2 == 1)
}

fn threads(pid: Pid) -> Vec<i32> {
    let Ok(entries) = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())) else {
        return Vec::new();
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    names
        .filter_map(|name| name.to_str()?.parse().ok())
        .collect()
}

/// The nanoseconds that a thread was ready to run and had no core.
fn waited(pid: Pid, thread: i32) -> Option<u64> {
    schedstat(pid, thread, 1)
}

/// A field of the kernel's statistics of a thread. Field 0: nanoseconds on a core; field 1:
/// nanoseconds of waiting for one.
fn schedstat(pid: Pid, thread: i32, field: usize) -> Option<u64> {
    let file = format!("/proc/{}/task/{thread}/schedstat", pid.as_raw_nonzero());
    fs::read_to_string(file)
        .ok()?
        .split_whitespace()
        .nth(field)?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread;

    use super::*;

    fn judge(samples: impl IntoIterator<Item = Sample>) -> Finding {
        let mut all = Samples::default();
        for sample in samples {
            let finding = all.add(sample);
            if finding != Finding::Sampling {
                return finding;
            }
        }
        Finding::Sampling
    }

    #[test]
    fn a_rank_that_computes_most_of_the_time_is_released() {
        let mixed = |outside: u32| {
            (0..SAMPLES).map(move |at| {
                if at < outside {
                    Sample::Outside
                } else {
                    Sample::InMpi
                }
            })
        };
        assert_eq!(judge(mixed(SAMPLES)), Finding::Release);
        assert_eq!(judge(mixed(OUTSIDE)), Finding::Release);
        assert_eq!(judge(mixed(OUTSIDE - 1)), Finding::Undisturbed);
        assert_eq!(judge(mixed(0)), Finding::Undisturbed);
        assert_eq!(judge([Sample::Unknown]), Finding::Release);
    }

    #[test]
    fn only_samples_of_a_rank_that_runs_count() {
        let nothing = || std::iter::repeat_with(|| Sample::None);
        let busy = || std::iter::repeat_with(|| Sample::Outside).take(SAMPLES as usize);
        assert_eq!(judge(nothing().take(30).chain(busy())), Finding::Release);
        assert_eq!(judge(nothing()), Finding::Undisturbed);
    }

    #[test]
    fn the_word_of_a_lock_is_read() {
        let this = rustix::process::getpid();
        let word = AtomicU32::new(0);
        let address = (&raw const word).addr() as u64;
        for (value, held) in [(0, false), (1, true), (2, false), (3, true), (5, true)] {
            black_box(&word).store(value, Ordering::SeqCst);
            assert_eq!(is_held(this, address), Some(held));
        }
        assert_eq!(is_held(this, 0), None);
    }

    #[test]
    fn the_threads_of_a_process_are_seen_with_their_losses() {
        let this = rustix::process::getpid();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let other = thread::spawn(move || stopped.recv());
        let found = threads(this);
        assert!(found.len() >= 2);
        assert!(found.contains(&this.as_raw_nonzero().get()));
        assert!(waited(this, found[0]).is_some());
        drop(stop);
        assert!(other.join().unwrap().is_err());
    }
}
