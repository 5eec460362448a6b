//! The thread that waits for the devices' events and rings the rank's doorbell for them, so that a
//! rank with peers in shared memory and peers reached by devices sleeps on the doorbell alone. It
//! starts at the first sleep of a rank with devices and costs nothing while the rank is awake.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use super::thread;
use crate::doorbell::Bell;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;

const STACK: usize = 64 << 10;

pub(super) struct EventThread {
    orders: Arc<Orders>,
    thread: Option<JoinHandle<()>>,
}

struct Orders {
    what: Mutex<What>,
    changed: Condvar,
    /// An eventfd that is written to when the rank ends; it ends the wait for events.
    end: OwnedFd,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Idle,
    Watch,
    End,
}

impl EventThread {
    /// Starts a thread that rings `bell` when `events` becomes readable, while it watches.
    pub(super) fn new(events: OwnedFd, bell: Bell) -> std::io::Result<EventThread> {
        let orders = Arc::new(Orders {
            what: Mutex::new(What::Idle),
            changed: Condvar::new(),
            end: eventfd(0, EventfdFlags::CLOEXEC)?,
        });
        let thread = thread::spawn("fishplate events", STACK, {
            let orders = orders.clone();
            move || orders.follow(&events, &bell)
        })?;
        Ok(EventThread {
            orders,
            thread: Some(thread),
        })
    }

    /// Watches until the next event. Call this after arming the bell, before the sleep.
    pub(super) fn watch(&self) {
        let mut what = self.orders.lock();
        if *what == What::Idle {
            *what = What::Watch;
            self.orders.changed.notify_one();
        }
    }
}

impl Orders {
    fn lock(&self) -> MutexGuard<'_, What> {
        self.what.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn follow(&self, events: &OwnedFd, bell: &Bell) {
        loop {
            let idle = |what: &mut What| *what == What::Idle;
            let what = self
                .changed
                .wait_while(self.lock(), idle)
                .unwrap_or_else(PoisonError::into_inner);
            if *what == What::End {
                return;
            }
            drop(what);
            let mut files = [events, &self.end].map(|file| PollFd::new(file, PollFlags::IN));
            match poll(&mut files, None) {
                Ok(_) | Err(Errno::INTR) => {}
                // Without this thread a sleeper still wakes after its time limit.
                Err(_) => return,
            }
            let mut what = self.lock();
            if *what == What::Watch {
                *what = What::Idle;
            }
            drop(what);
            // A sleeper that found this thread watching has armed the bell before, so this ring
            // wakes it.
            bell.ring();
        }
    }
}

impl Drop for EventThread {
    fn drop(&mut self) {
        *self.orders.lock() = What::End;
        self.orders.changed.notify_one();
        let _ = rustix::io::write(&self.orders.end, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
