//! Signs of life of an agent while it starts its ranks.
//!
//! A start may take minutes where programs come from a slow file system, and the system call that
//! waits for it blocks its thread. A second thread speaks meanwhile. An agent that is stopped falls
//! silent with both.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use super::frame::FromAgent;
use super::link::FrameLink;
use super::liveness::BEATS;

/// Does the work on this thread: the death of a rank's launcher is that of the thread that has
/// started it. Beats go to the other end until it is done. `patience` is the longest silence; zero
/// asks for no beats.
pub(super) fn beating<T>(link: &mut FrameLink, patience: Duration, work: impl FnOnce() -> T) -> T {
    if patience.is_zero() {
        return work();
    }
    thread::scope(|scope| {
        let (working, is_over) = channel::<()>();
        let beats = move || {
            while let Err(RecvTimeoutError::Timeout) = is_over.recv_timeout(patience / BEATS) {
                link.post(&FromAgent::Beat);
                link.flush();
            }
        };
        // A system without room for a thread will say so of the ranks, too.
        let _ = thread::Builder::new().spawn_scoped(scope, beats);
        let done = work();
        drop(working);
        done
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::frame::LONGEST;

    #[test]
    fn long_work_beats_until_it_is_done() {
        let (there, out) = rustix::pipe::pipe().unwrap();
        let (back, _open) = rustix::pipe::pipe().unwrap();
        let mut own = FrameLink::new(back, out, LONGEST).unwrap();
        let null = std::fs::File::options().write(true).open("/dev/null");
        let mut other = FrameLink::new(there, null.unwrap().into(), LONGEST).unwrap();
        let patience = Duration::from_millis(4);
        let beats = beating(&mut own, patience, || {
            let mut beats = 0;
            while beats < 3 {
                other.pull();
                while let Some(frame) = other.next::<FromAgent>().unwrap() {
                    assert!(matches!(frame, FromAgent::Beat));
                    beats += 1;
                }
            }
            beats
        });
        assert!(beats >= 3);
    }

    #[test]
    fn without_signs_of_life_work_is_only_done() {
        let (there, out) = rustix::pipe::pipe().unwrap();
        let mut own = FrameLink::new(there, out, LONGEST).unwrap();
        assert_eq!(beating(&mut own, Duration::ZERO, || 7), 7);
        assert!(own.has_sent_all());
    }
}
