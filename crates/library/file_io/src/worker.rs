//! The worker: a thread that accesses files while the rank does something else.
//!
//! Invariants:
//! - jobs begin in the order in which they were handed over;
//! - a job's memory is free for others once its ticket has returned the result, or has been
//!   dropped;
//! - a result is in its ticket before its job is counted as finished, and the owner is notified
//!   after that. An owner that announces its sleep and then finds no finished job is awakened.

use std::collections::VecDeque;
use std::io::Result;

use crate::sync::{Arc, AtomicU64, Condvar, JoinHandle, Mutex, MutexGuard, Ordering, spawn};

/// The greatest number of jobs that wait for the worker.
#[cfg(not(loom))]
const MOST_JOBS: usize = 64;
#[cfg(loom)]
const MOST_JOBS: usize = 1;

/// A thread that executes the jobs of one rank. It ends with this object, after all jobs.
pub struct Worker {
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
}

struct Queue {
    jobs: Mutex<Jobs>,
    /// The condition that a job has been added, or that no more will be.
    changed: Condvar,
    /// The number of jobs that the worker has finished.
    finished: AtomicU64,
    /// The number of finished jobs whose results have been taken.
    taken: AtomicU64,
}

#[derive(Default)]
struct Jobs {
    waiting: VecDeque<Box<dyn FnOnce() + Send>>,
    is_over: bool,
}

/// The claim to the result of a job. The drop of a ticket waits for the end of its job.
pub struct Ticket<T> {
    queue: Arc<Queue>,
    slot: Arc<Slot<T>>,
    is_taken: bool,
}

struct Slot<T> {
    result: Mutex<Option<T>>,
    filled: Condvar,
}

impl Worker {
    /// Starts a worker, which calls `ring` after each job.
    ///
    /// # Errors
    /// The system has no room for another thread.
    pub fn start(ring: impl Fn() + Send + 'static) -> Result<Worker> {
        let queue = Arc::new(Queue {
            jobs: Mutex::new(Jobs::default()),
            changed: Condvar::new(),
            finished: AtomicU64::new(0),
            taken: AtomicU64::new(0),
        });
        let theirs = queue.clone();
        let thread = spawn(move || theirs.work(&ring))?;
        Ok(Worker {
            queue,
            thread: Some(thread),
        })
    }

    /// Adds a job for the worker. Returns the ticket of its result.
    ///
    /// # Errors
    /// Too many jobs wait. The error is the job itself.
    pub fn hand_over<T, F>(&self, job: F) -> std::result::Result<Ticket<T>, F>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let mut jobs = self.queue.lock();
        if jobs.waiting.len() >= MOST_JOBS {
            return Err(job);
        }
        let slot = Arc::new(Slot {
            result: Mutex::new(None),
            filled: Condvar::new(),
        });
        let theirs = slot.clone();
        jobs.waiting.push_back(Box::new(move || {
            let result = job();
            *locked(&theirs.result) = Some(result);
            theirs.filled.notify_one();
        }));
        drop(jobs);
        self.queue.changed.notify_one();
        Ok(Ticket {
            queue: self.queue.clone(),
            slot,
            is_taken: false,
        })
    }

    /// True if jobs have been finished whose results have not been taken.
    pub fn has_results(&self) -> bool {
        self.queue.finished.load(Ordering::SeqCst) != self.queue.taken.load(Ordering::SeqCst)
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Jobs> {
        locked(&self.jobs)
    }

    fn work(&self, ring: &impl Fn()) {
        while let Some(job) = self.next() {
            job();
            self.finished.fetch_add(1, Ordering::SeqCst);
            ring();
        }
    }

    /// Waits for the next job. `None`: no further job will be added.
    fn next(&self) -> Option<Box<dyn FnOnce() + Send>> {
        let mut jobs = self.lock();
        loop {
            if let Some(job) = jobs.waiting.pop_front() {
                return Some(job);
            }
            if jobs.is_over {
                return None;
            }
            jobs = self
                .changed
                .wait(jobs)
                .unwrap_or_else(|error| error.into_inner());
        }
    }
}

impl<T> Ticket<T> {
    /// Removes and returns the result, if the job is finished.
    pub fn take(&mut self) -> Option<T> {
        let result = locked(&self.slot.result).take();
        if result.is_some() {
            self.note_taken();
        }
        result
    }

    fn note_taken(&mut self) {
        self.is_taken = true;
        self.queue.taken.fetch_add(1, Ordering::SeqCst);
    }
}

impl<T> Drop for Ticket<T> {
    fn drop(&mut self) {
        if self.is_taken {
            return;
        }
        let mut result = locked(&self.slot.result);
        while result.is_none() {
            result = self
                .slot
                .filled
                .wait(result)
                .unwrap_or_else(|error| error.into_inner());
        }
        drop(result);
        self.note_taken();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.queue.lock().is_over = true;
        self.queue.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // The last owner of a rank, which drops the worker, may be the worker's own thread
            // after a job.
            #[cfg(not(loom))]
            if thread.thread().id() == crate::sync::current().id() {
                return;
            }
            let _ = thread.join();
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|error| error.into_inner())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn jobs_begin_in_their_order_and_give_their_results() {
        let (rings, rung) = channel();
        let worker = Worker::start(move || rings.send(()).unwrap()).unwrap();
        let tickets: Vec<_> = (0..5).map(|at| worker.hand_over(move || at)).collect();
        for _ in 0..5 {
            rung.recv().unwrap();
        }
        assert!(worker.has_results());
        let results = tickets.into_iter().map(|ticket| ticket.ok()?.take());
        assert_eq!(results.collect::<Option<Vec<_>>>(), Some((0..5).collect()));
        assert!(!worker.has_results());
    }

    #[test]
    fn a_full_queue_gives_a_job_back() {
        let (go, gone) = channel::<()>();
        let worker = Worker::start(|| ()).unwrap();
        let first = worker.hand_over(move || gone.recv().is_ok()).ok().unwrap();
        let mut tickets = Vec::new();
        let refused = loop {
            match worker.hand_over(|| 7) {
                Ok(ticket) => tickets.push(ticket),
                Err(job) => break job,
            }
        };
        // The first job may have left the queue.
        assert!((MOST_JOBS - 1..=MOST_JOBS).contains(&tickets.len()));
        go.send(()).unwrap();
        drop((first, tickets));
        assert_eq!(
            worker
                .hand_over(refused)
                .ok()
                .map(|mut ticket| wait(&mut ticket)),
            Some(7)
        );
    }

    fn wait<T>(ticket: &mut Ticket<T>) -> T {
        loop {
            match ticket.take() {
                Some(result) => return result,
                None => std::thread::yield_now(),
            }
        }
    }

    #[test]
    fn a_worker_ends_after_its_jobs() {
        let worker = Worker::start(|| ()).unwrap();
        let mut tickets: Vec<_> = (0..9)
            .map(|at| worker.hand_over(move || at).ok().unwrap())
            .collect();
        drop(worker);
        assert!(tickets.iter_mut().all(|ticket| ticket.take().is_some()));
    }

    #[test]
    fn no_signal_reaches_a_worker() {
        let worker = Worker::start(|| ()).unwrap();
        let mut ticket = worker
            .hand_over(|| {
                let mut mask = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
                // SAFETY: the memory is that of a set, which the call fills.
                unsafe {
                    libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), mask.as_mut_ptr());
                    [libc::SIGTERM, libc::SIGUSR1, libc::SIGALRM]
                        .map(|signal| libc::sigismember(mask.as_ptr(), signal))
                }
            })
            .ok()
            .unwrap();
        assert_eq!(wait(&mut ticket), [1; 3]);
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use loom::sync::atomic::{AtomicBool, fence};
    use loom::thread;

    use super::*;

    /// A rank announces its sleep, and checks the worker. Either it finds the result, or it is
    /// awakened.
    #[test]
    fn no_result_is_overslept() {
        loom::model(|| {
            let is_asleep = Arc::new(AtomicBool::new(false));
            let bell = is_asleep.clone();
            let worker = Worker::start(move || {
                fence(Ordering::SeqCst);
                bell.store(false, Ordering::SeqCst);
            })
            .unwrap();
            let mut ticket = worker.hand_over(|| 7).ok().unwrap();
            is_asleep.store(true, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            let has_results = worker.has_results();
            if has_results {
                assert_eq!(ticket.take(), Some(7));
            }
            drop(worker);
            assert!(has_results || !is_asleep.load(Ordering::SeqCst));
            assert!(has_results || ticket.take() == Some(7));
        });
    }

    #[test]
    fn a_full_queue_loses_no_job() {
        loom::model(|| {
            let made = Arc::new(AtomicU64::new(0));
            let worker = Worker::start(|| ()).unwrap();
            let mut tickets = Vec::new();
            for _ in 0..2 {
                let counted = made.clone();
                let mut job = move || counted.fetch_add(1, Ordering::SeqCst);
                loop {
                    match worker.hand_over(job) {
                        Ok(ticket) => break tickets.push(ticket),
                        Err(refused) => job = refused,
                    }
                    thread::yield_now();
                }
            }
            drop(worker);
            assert_eq!(made.load(Ordering::SeqCst), 2);
            let taken: Vec<_> = tickets.iter_mut().map(Ticket::take).collect();
            assert_eq!(taken, [Some(0), Some(1)]);
        });
    }

    /// The memory of a job is not touched after its ticket is gone.
    #[test]
    fn a_ticket_that_is_dropped_waits() {
        loom::model(|| {
            let is_done = Arc::new(AtomicBool::new(false));
            let theirs = is_done.clone();
            let worker = Worker::start(|| ()).unwrap();
            drop(
                worker
                    .hand_over(move || theirs.store(true, Ordering::Relaxed))
                    .ok(),
            );
            assert!(is_done.load(Ordering::Relaxed));
        });
    }
}
