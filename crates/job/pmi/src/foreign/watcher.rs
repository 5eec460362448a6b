//! A thread of a rank that detects the death of the launcher, whatever the rank does meanwhile.
//!
//! A rank that waits in MPI detects it by itself. A rank that computes, or that never waits in MPI,
//! does not, and without a launcher nothing else would end it.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, write};

use super::pmix_library::without_signals;

const STACK: usize = 64 << 10;

/// A handle of the running thread, which ends with [`Watcher::end`] or when this value is dropped.
#[derive(Debug)]
pub(crate) struct Watcher {
    end: Arc<OwnedFd>,
}

impl Watcher {
    /// Starts the thread. Once one of the launcher's files reports its events, the rank has `time`
    /// to detect the death by itself; then the thread calls `ends`. `None` if the system cannot
    /// start a thread: then only the rank itself can detect the death.
    pub(crate) fn start(
        launcher: Vec<(OwnedFd, PollFlags)>,
        time: Duration,
        ends: impl FnOnce() + Send + 'static,
    ) -> Option<Watcher> {
        let end = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).ok()?);
        let thread = std::thread::Builder::new()
            .name("fishplate launcher".into())
            .stack_size(STACK);
        let watch = {
            let end = Arc::clone(&end);
            move || {
                let mut files = vec![PollFd::new(&*end, PollFlags::IN)];
                files.extend(
                    launcher
                        .iter()
                        .map(|(file, flags)| PollFd::new(file, *flags)),
                );
                if is_first_silent(&mut files, None) && is_first_silent(&mut files[..1], Some(time))
                {
                    ends();
                }
            }
        };
        without_signals(|| thread.spawn(watch)).ok()?;
        Some(Watcher { end })
    }

    /// Ends the thread: from now on the end of the launcher has no effect.
    pub(crate) fn end(&self) {
        // This write cannot block: the counter is far from full.
        let _ = write(&*self.end, &1u64.to_ne_bytes());
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.end();
    }
}

/// Waits for events, or until `time` has passed. True if the first file has no event.
fn is_first_silent(files: &mut [PollFd<'_>], time: Option<Duration>) -> bool {
    let time = time.map(|time| Timespec {
        tv_sec: time.as_secs() as i64,
        tv_nsec: time.subsec_nanos().into(),
    });
    loop {
        match poll(files, time.as_ref()) {
            Ok(_) => return files[0].revents().is_empty(),
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc::channel;

    use super::*;

    fn files(launcher: UnixStream) -> Vec<(OwnedFd, PollFlags)> {
        vec![(launcher.into(), PollFlags::RDHUP)]
    }

    #[test]
    fn the_end_of_the_launcher_is_noticed_and_its_words_are_not() {
        let (launcher, mut rank) = UnixStream::pair().unwrap();
        let (tell, told) = channel();
        let ends = move || tell.send(()).unwrap();
        let time = Duration::ZERO;
        let watcher = Watcher::start(files(launcher), time, ends).unwrap();
        std::io::Write::write_all(&mut rank, b"words").unwrap();
        assert!(told.try_recv().is_err());
        drop(rank);
        assert_eq!(told.recv(), Ok(()));
        watcher.end();
    }

    #[test]
    fn after_the_end_of_the_rank_the_launcher_may_go() {
        let (launcher, rank) = UnixStream::pair().unwrap();
        let (tell, told) = channel::<()>();
        let ends = move || tell.send(()).unwrap();
        let time = Duration::from_secs(3600);
        let watcher = Watcher::start(files(launcher), time, ends).unwrap();
        drop(rank);
        watcher.end();
        // The thread ended without a call of its closure, so the sender in the closure is gone.
        assert!(told.recv().is_err());
    }
}
