//! The computing of a program between two calls, as a modelled machine charges it: the processor
//! time of the thread that computed the longest.
//!
//! Wall-clock time would include other ranks that share the core. The processor time of the process
//! is the sum of those of its threads, which run at the same time on a machine with a core for
//! each. Threads are searched for only if the process has used more time than the calling thread,
//! so a rank without threads pays two readings of a clock.

use std::fs;

/// A thread, with its processor time in nanoseconds at the start of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Thread {
    id: libc::pid_t,
    since: u64,
}

/// The processor times, in nanoseconds, at the start of a span of computing.
#[derive(Default)]
pub(crate) struct ComputeClock {
    /// The processor time that the process has used.
    process: u64,
    /// The thread that returned from MPI; `None` before the first span.
    caller: Option<Thread>,
    /// All threads of the process; empty until several threads have computed.
    threads: Vec<Thread>,
    /// The processor time that one reading of the clock takes, in nanoseconds.
    reading: u64,
    /// The most threads that have computed at the same time.
    most: usize,
    /// The number of involuntary context switches of the calling thread at the start of the span.
    switches: u64,
    /// The number of involuntary switches in all spans of computing, and the total time of these in
    /// nanoseconds.
    interrupted: (u64, u64),
}

/// The threads of the process, as the operating system reports them. Tests replace it.
pub(crate) trait Threads {
    /// The ids of the threads of this process.
    fn list(&self) -> Vec<libc::pid_t>;
    /// The processor time of a thread, in nanoseconds; `None` if it has ended.
    fn time(&self, thread: libc::pid_t) -> Option<u64>;
}

/// The fixed part of the tolerance of a difference between clocks, in nanoseconds: readings of
/// clocks agree only to some microseconds.
const SLACK: u64 = 20_000;
/// The part of a span's length by which the clocks may differ: one in this number.
const SLACK_PART: u64 = 64;
/// A thread counts if it has computed at least one in this number of the longest thread's time.
const SHARE: u64 = 8;

impl ComputeClock {
    /// A clock that measures no computing yet.
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

    /// Begins to measure a span of computing.
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

    /// The computing since the start of the span, in nanoseconds: the time of the longest thread.
    pub(crate) fn computed(&mut self) -> u64 {
        let all = processor_time().saturating_sub(self.process + self.reading);
        let switches = involuntary_switches().saturating_sub(self.switches);
        let longest = self.longest(all, this_thread(), &System);
        // A thread other than the longest one may have had fewer switches.
        self.interrupted.0 += switches;
        self.interrupted.1 += longest;
        longest
    }

    /// The processor time that the process has used since it was `before`, in nanoseconds.
    pub(crate) fn since(&self, before: u64) -> u64 {
        processor_time().saturating_sub(before + self.reading)
    }

    /// The number of involuntary context switches while the program computed, and the time of this
    /// computing in nanoseconds. Switches inside MPI are normal: ranks share one core, and the
    /// system may let the next one run before this one sleeps.
    pub(crate) fn interruptions(&self) -> (u64, u64) {
        self.interrupted
    }

    /// The most threads that have computed at one time; 1 for a program without threads.
    pub(crate) fn most_threads(&self) -> usize {
        self.most.max(1)
    }

    /// The longest time of one thread in a span in which the process has used `all` nanoseconds.
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
            self.find_threads(system);
            found = times(&self.threads);
        }
        // Threads that have ended have no clock any more: they count as one thread.
        let gone = all.saturating_sub(found.iter().sum());
        let gone = if gone > slack { gone } else { 0 };
        let longest = found.iter().copied().max().unwrap_or(all).max(gone);
        let side_by_side = found.iter().filter(|time| **time > longest / SHARE);
        self.most = self.most.max(side_by_side.count());
        longest
    }

    /// Finds new threads. All their time belongs to the span in which they are found.
    fn find_threads(&mut self, system: &impl Threads) {
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
        // The id of a thread's processor clock in Linux (posix-timers): the inverted thread id, a
        // bit for "thread" instead of "process", and the kind "scheduled time".
        clock((!thread << 3) | 0b110)
    }
}

fn this_thread() -> libc::pid_t {
    // By system call number: the C library of RHEL 8 (2.28) has no function for it.
    // SAFETY: the call has no arguments and always succeeds.
    unsafe { libc::syscall(libc::SYS_gettid) as libc::pid_t }
}

/// Processor time of all threads of this process, in nanoseconds.
pub(crate) fn processor_time() -> u64 {
    clock(libc::CLOCK_PROCESS_CPUTIME_ID).unwrap_or(0)
}

/// The number of times that the system gave the core of this thread to another task.
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
        // A new thread is found; the time of an ended thread is not requested again.
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
