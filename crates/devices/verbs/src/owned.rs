//! The queues and queue pairs of a device, each with its libibverbs object.

use std::time::Instant;

use super::rdmacm::Line;
use super::sys::*;
use device::wr_table::{Receives, Sends};
use device::{State, Transport};

pub(super) struct OwnCq {
    pub raw: *mut ibv_cq,
    /// True if the next completion of the queue raises an event.
    pub armed: bool,
    /// True if the device has reported that completions are lost.
    pub overrun: bool,
}

pub(super) struct OwnSrq {
    pub raw: *mut ibv_srq,
    pub receives: Receives,
}

pub(super) struct OwnQp {
    pub raw: *mut ibv_qp,
    pub transport: Transport,
    /// The last state that was set for the queue pair. The device may have changed it to ERROR
    /// since.
    pub state: State,
    pub life: u8,
    pub inline: u32,
    /// The queue pair's identifier at the connection manager, for iWARP.
    pub line: Option<Line>,
    pub sends: Sends,
    /// The queue pair's own receives. `None`: it consumes receives of a shared queue.
    pub receives: Option<Receives>,
    /// True if the device has reported Last WQE Reached.
    pub last_wqe: bool,
    /// The time of the owner's first call of `is_drained`.
    pub asked: Option<Instant>,
}
