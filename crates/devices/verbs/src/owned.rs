//! The queues and queue pairs that a device keeps, each with its object of libibverbs.

use std::time::Instant;

use super::rdmacm::Line;
use super::sys::*;
use device::wr_table::{Receives, Sends};
use device::{State, Transport};

pub(super) struct OwnCq {
    pub raw: *mut ibv_cq,
    /// Its next completion raises an event.
    pub armed: bool,
    /// The device has reported that completions are lost.
    pub overrun: bool,
}

pub(super) struct OwnSrq {
    pub raw: *mut ibv_srq,
    pub receives: Receives,
}

pub(super) struct OwnQp {
    pub raw: *mut ibv_qp,
    pub transport: Transport,
    /// The last state that it was taken to. The device may have moved it to ERROR since.
    pub state: State,
    pub life: u8,
    pub inline: u32,
    /// Its line at the connection manager, for iWARP.
    pub line: Option<Line>,
    pub sends: Sends,
    /// None: receives come from a shared queue.
    pub receives: Option<Receives>,
    /// The device has reported Last WQE Reached.
    pub last_wqe: bool,
    /// The time at which its owner first asked for that report.
    pub asked: Option<Instant>,
}
