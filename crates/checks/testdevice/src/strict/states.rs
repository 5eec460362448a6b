//! The states of the queue pairs of strict devices: connections, failures, Last WQE Reached and
//! resets.

use super::queues::{QpState, invalid};
use super::world::World;
use device::{Address, Ending, Qp, Result, State};

/// The longest delay of the event Last WQE Reached after a failure, in nanoseconds.
const DRAIN: u64 = 300_000;

impl World {
    pub(super) fn connect(&mut self, device: usize, qp: Qp, peer: Option<Address>) -> Result<()> {
        self.devices[device].connect(qp, peer)?;
        if peer.is_some() && self.ties_both {
            self.devices[device].qp_mut(qp)?.state = State::Connecting;
            self.tying.push((device, qp, self.now + self.timeout_ns));
            self.news();
        }
        Ok(())
    }

    /// Makes the connections that both ends have requested.
    pub(super) fn tie(&mut self) {
        for (device, qp, until) in std::mem::take(&mut self.tying) {
            let Ok(state) = self.devices[device].qp(qp) else {
                continue;
            };
            let (State::Connecting, Some(peer)) = (state.state, state.peer) else {
                continue;
            };
            let far_at = peer.port as usize;
            let ends = match self.cut(device, far_at) {
                Some(_) if self.now >= until => Some(State::Error),
                Some(_) => None,
                None => {
                    let own = Some(Address {
                        port: device as u128,
                        qp: qp.0,
                    });
                    let far = self.devices.get_mut(far_at);
                    let far = far.and_then(|far| far.qp_mut(Qp(peer.qp)).ok());
                    match far {
                        Some(far) if far.peer == own && far.state != State::Error => {
                            far.state = State::Rts;
                            Some(State::Rts)
                        }
                        _ => None,
                    }
                }
            };
            match ends {
                Some(ends) => {
                    if let Ok(state) = self.devices[device].qp_mut(qp) {
                        state.state = ends;
                    }
                    self.news();
                }
                None => self.tying.push((device, qp, until)),
            }
        }
    }

    pub(super) fn modify(&mut self, device: usize, qp: Qp, to: Ending) -> Result<()> {
        let resets = self.devices[device].setup.resets;
        let state = self.devices[device].qp_mut(qp)?;
        match to {
            Ending::Error => self.break_qp(device, qp),
            Ending::Reset if !resets => {
                return Err(invalid(format!(
                    "queue pair {}: this device resets none; destroy it and create another",
                    qp.0
                )));
            }
            Ending::Reset if state.wanted.srq.is_some() && !may_reset(state) => {
                return Err(invalid(format!(
                    "queue pair {}: it still uses its shared receive queue; take it to ERROR and wait for Last WQE \
                     Reached before the reset",
                    qp.0
                )));
            }
            Ending::Reset => {
                state.state = State::Reset;
                state.work.clear();
                state.receives.clear();
                (state.held, state.silent, state.peer) = (0, 0, None);
                self.busy.retain(|busy| *busy != (device, qp));
                self.devices[device].forget_completions(qp);
            }
        }
        self.news();
        Ok(())
    }

    /// True once a failed queue pair no longer uses its shared receive queue.
    pub(super) fn is_drained(&mut self, device: usize, qp: Qp) -> Result<bool> {
        self.drain();
        let is_draining = self.draining.contains(&(device, qp));
        let state = self.devices[device].qp_mut(qp)?;
        if state.wanted.srq.is_some() {
            state.drain.confirmed = state.state == State::Error && !is_draining;
            return Ok(state.drain.confirmed);
        }
        Ok(true)
    }

    /// Flushes the consumed receives of failed queue pairs that no longer use their shared receive
    /// queue.
    pub(super) fn drain(&mut self) {
        for (device, qp) in std::mem::take(&mut self.draining) {
            match self.devices[device].qp(qp) {
                Ok(state) if self.now < state.drain.at => self.draining.push((device, qp)),
                Ok(_) => {
                    self.devices[device].end_drain(qp);
                    self.news();
                }
                Err(_) => {}
            }
        }
    }

    /// Moves a queue pair to state ERROR.
    pub(super) fn break_qp(&mut self, device: usize, qp: Qp) {
        if let Ok(state) = self.devices[device].qp_mut(qp) {
            let was = std::mem::replace(&mut state.state, State::Error);
            if state.wanted.srq.is_some() && was != State::Error {
                let takes = was == State::Rts && self.is_delayed();
                let delay = if takes { self.random % DRAIN } else { 0 };
                self.devices[device].begin_drain(qp, self.now + delay, takes);
                self.draining.push((device, qp));
            }
        }
        self.flush(device, qp);
    }
}

/// True if a queue pair consumes no further receive of its shared receive queue, and its owner
/// knows that.
fn may_reset(state: &QpState) -> bool {
    match state.state {
        State::Reset => true,
        State::Error => state.drain.confirmed,
        State::Connecting | State::Rts => false,
    }
}
