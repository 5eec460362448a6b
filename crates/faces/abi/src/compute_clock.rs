//! The computing of a program between two calls, as a modelled machine charges it: the processor
//! time of the thread that computed longest.
//!
//! Wall-clock time would include other ranks that share the core. The processor time of the process
//! is the sum of its threads', which run side by side on a machine with a core for each. Threads
//! are searched for only once the process has used more time than the calling thread, so a rank
//! without threads pays two readings of a clock.

use std::fs;

/// The processor time of one thread at the start of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Thread {
    id: libc::pid_t,
    since: u64,
}

/// The processor times at the start of a span of computing.
#[derive(Default)]
pub(crate) struct ComputeClock {
    /// The processor time of the process.
    process: u64,
    /// The thread that returned from MPI.
    caller: Option<Thread>,
    /// All threads, once several have computed.
    threads: Vec<Thread>,
    /// The processor time that one reading of the clock takes.
    reading: u64,
    /// The most threads that have computed side by side.
    most: usize,
    /// The involuntary switches of the calling thread at the start of the span.
    switches: u64,
    /// Those within all spans so far, and the time of these.
    interrupted: (u64, u64),
}

/// Threads of the system: replaced in tests.
pub(crate) trait Threads {
    /// The threads of this process.
    fn list(&self) -> Vec<libc::pid_t>;
    /// The processor time of a thread, in nanoseconds; `None` if it has ended.
    fn time(&self, thread: libc::pid_t) -> Option<u64>;
}

/// A difference that is no thread's computing, in nanoseconds: readings of clocks, which do not
/// agree to the last microsecond.
const SLACK: u64 = 20_000;
/// Of a span's length, the part that is no thread's computing.
const SLACK_PART: u64 = 64;
/// A thread counts if it has computed this part of the longest one's time.
const SHARE: u64 = 8;

impl ComputeClock {
    /// A clock that stands at now.
    pub(crate) fn new() -> ComputeClock {
        let readings = (0..32).map(|_| {
            let before = processor_time();
            processor_time() - before
        });
        ComputeClock {
            reading: readings.min().unwrap_or(0),
            ..ComputeClock::default()
        }
    }

    /// A span of computing begins.
    pub(crate) fn start(&mut self) {
        self.switches = involuntary_switches();
        if !self.threads.is_empty() {
            self.threads
                .retain_mut(|thread| match System.time(thread.id) {
                    Some(time) => {
                        thread.since = time;
                        true
                    }
                    None => false,
                });
        }
        let id = this_thread();
        let since = System.time(id).unwrap_or(0);
        self.caller = Some(Thread { id, since });
        self.process = processor_time();
    }

    /// The computing since the start of the span, in nanoseconds.
    pub(crate) fn computed(&mut self) -> u64 {
        let all = processor_time().saturating_sub(self.process + self.reading);
        let switches = involuntary_switches().saturating_sub(self.switches);
        let longest = self.longest(all, this_thread(), &System);
        // Another thread has switches of its own, which may be fewer.
        self.interrupted.0 += switches;
        self.interrupted.1 += longest;
        longest
    }

    /// The processor time of the process since it was `before`, in nanoseconds.
    pub(crate) fn since(&self, before: u64) -> u64 {
        processor_time().saturating_sub(before + self.reading)
    }

    /// The involuntary switches while the program computed, and the time of this computing in
    /// nanoseconds. Those within MPI are normal: ranks take turns on one core, and the system may
    /// let the next one run before this one sleeps.
    pub(crate) fn interruptions(&self) -> (u64, u64) {
        self.interrupted
    }

    /// The most threads that have computed side by side; 1 for a program without threads.
    pub(crate) fn most_threads(&self) -> usize {
        self.most.max(1)
    }

    /// The longest time of one thread in a span in which the process has used `all`.
    fn longest(&mut self, all: u64, caller: libc::pid_t, system: &impl Threads) -> u64 {
        let slack = SLACK + all / SLACK_PART;
        if self.threads.is_empty() && all <= slack {
            return all;
        }
        let known = self.caller.filter(|thread| thread.id == caller);
        let own = known.and_then(|thread| Some(system.time(caller)?.saturating_sub(thread.since)));
        if let Some(own) = own
            && all.saturating_sub(own) <= slack
        {
            return all;
        }
        let used = |thread: &Thread| {
            let now = system.time(thread.id)?;
            Some(now.saturating_sub(thread.since).min(all))
        };
        let times = |threads: &[Thread]| threads.iter().filter_map(used).collect::<Vec<u64>>();
        let mut found = times(&self.threads);
        if all.saturating_sub(found.iter().sum()) > slack {
            self.look(system);
            found = times(&self.threads);
        }
        // Threads that have ended have no clock any more: they count together.
        let gone = all.saturating_sub(found.iter().sum());
        let gone = if gone > slack { gone } else { 0 };
        let longest = found.iter().copied().max().unwrap_or(all).max(gone);
        let side_by_side = found.iter().filter(|time| **time > longest / SHARE);
        self.most = self.most.max(side_by_side.count());
        longest
    }

    /// Finds threads that are not known. All their time belongs to the span in which they are
    /// found.
    fn look(&mut self, system: &impl Threads) {
        for id in system.list() {
            if self.threads.iter().any(|thread| thread.id == id) {
                continue;
            }
            let caller = self.caller.filter(|thread| thread.id == id);
            let since = caller.map_or(0, |thread| thread.since);
            self.threads.push(Thread { id, since });
        }
    }
}

struct System;

impl Threads for System {
    fn list(&self) -> Vec<libc::pid_t> {
        let entries = fs::read_dir("/proc/self/task").into_iter().flatten();
        let names = entries.flatten().map(|entry| entry.file_name());
        names
            .filter_map(|name| name.to_str()?.parse().ok())
            .collect()
    }

    fn time(&self, thread: libc::pid_t) -> Option<u64> {
        // The number of a thread's processor clock, as Linux makes it (posix-timers): the inverted
        // thread, a bit for one thread instead of its process, and the kind "scheduled time".
        clock((!thread << 3) | 0b110)
    }
}

fn this_thread() -> libc::pid_t {
    // By number: the C library of RHEL 8 (2.28) has no function for it.
    // SAFETY: the call has no arguments and always succeeds.
    unsafe { libc::syscall(libc::SYS_gettid) as libc::pid_t }
}

/// Processor time of all threads of this process, in nanoseconds.
pub(crate) fn processor_time() -> u64 {
    clock(libc::CLOCK_PROCESS_CPUTIME_ID).unwrap_or(0)
}

/// The times that the system took the core from this thread for another task.
fn involuntary_switches() -> u64 {
    // SAFETY: all bytes 0 are a valid structure of numbers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is a local variable.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    u64::try_from(usage.ru_nivcsw).unwrap_or(0)
}

fn clock(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the structure is a local variable.
    let failed = unsafe { libc::clock_gettime(clock, &raw mut time) } != 0;
    (!failed).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::thread;

    /// Threads with these processor times.
    struct Fake(BTreeMap<libc::pid_t, u64>);

    impl Threads for Fake {
        fn list(&self) -> Vec<libc::pid_t> {
            self.0.keys().copied().collect()
        }

        fn time(&self, thread: libc::pid_t) -> Option<u64> {
            self.0.get(&thread).copied()
        }
    }

    const MS: u64 = 1_000_000;

    fn at(caller: u64) -> ComputeClock {
        ComputeClock {
            caller: Some(Thread {
                id: 1,
                since: caller,
            }),
            ..ComputeClock::default()
        }
    }

    #[test]
    fn a_program_without_threads_is_charged_the_time_of_the_process() {
        let mut clock = at(5 * MS);
        let system = Fake([(1, 15 * MS)].into());
        assert_eq!(clock.longest(10 * MS + 7, 1, &system), 10 * MS + 7);
        assert_eq!((clock.most_threads(), clock.threads.len()), (1, 0));
    }

    #[test]
    fn threads_that_compute_side_by_side_are_charged_once() {
        let mut clock = at(5 * MS);
        let mut system = Fake([(1, 15 * MS), (2, 9 * MS), (3, 8 * MS)].into());
        assert_eq!(clock.longest(27 * MS, 1, &system), 10 * MS);
        assert_eq!(clock.most_threads(), 3);
        // The next span: a thread computes alone, while the caller waits for it.
        for thread in &mut clock.threads {
            thread.since = system.0[&thread.id];
        }
        clock.caller = Some(clock.threads[0]);
        system.0.insert(2, 16 * MS);
        assert_eq!(clock.longest(7 * MS, 1, &system), 7 * MS);
        // A new thread is found, and one that has ended is not asked again.
        system.0.remove(&3);
        system.0.insert(4, 30 * MS);
        assert_eq!(clock.longest(37 * MS, 1, &system), 30 * MS);
    }

    #[test]
    fn another_thread_may_make_the_next_call() {
        let mut clock = at(5 * MS);
        let system = Fake([(1, 5 * MS), (2, 40 * MS)].into());
        assert_eq!(clock.longest(40 * MS, 2, &system), 40 * MS);
    }

    #[test]
    fn threads_that_have_ended_count_together() {
        let mut clock = at(5 * MS);
        let system = Fake([(1, 6 * MS)].into());
        assert_eq!(clock.longest(31 * MS, 1, &system), 30 * MS);
    }

    #[test]
    fn real_threads_are_found() {
        let mut clock = ComputeClock::new();
        clock.start();
        let stop = std::sync::atomic::AtomicBool::new(false);
        let (ready, both) = std::sync::mpsc::channel();
        thread::scope(|scope| {
            for _ in 0..2 {
                let (ready, stop) = (ready.clone(), &stop);
                scope.spawn(move || {
                    while System.time(this_thread()).unwrap() < 10 * MS {}
                    ready.send(()).unwrap();
                    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                        thread::yield_now();
                    }
                });
            }
            both.recv().unwrap();
            both.recv().unwrap();
            let longest = clock.computed();
            let all = processor_time() - clock.process;
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            // The other thread has computed for 10 ms.
            assert!(longest <= all - 10 * MS, "{longest} of {all}");
            assert!(longest >= 10 * MS, "{longest}");
        });
        assert!(clock.most_threads() >= 2);
    }
}
