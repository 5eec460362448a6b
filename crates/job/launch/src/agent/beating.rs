//! Heartbeats of an agent while it starts its ranks.
//!
//! A start may take minutes if programs come from a slow file system, and the system call that
//! waits for it blocks its thread. A second thread sends heartbeats meanwhile. If the agent is
//! stopped, both threads are silent.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use super::frame::FromAgent;
use super::link::FrameLink;
use super::liveness::BEATS;

/// Runs `work` on this thread, because a rank dies with the thread that has started it. A second
/// thread sends heartbeats until `work` returns. `patience` is the longest silence; zero means that
/// no heartbeats are needed.
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
        // If the system cannot start a thread, it cannot start ranks either, which is reported
        // then.
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
