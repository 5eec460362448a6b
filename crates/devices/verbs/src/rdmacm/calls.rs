//! The connection manager's events about calls, ours and those of peers, and the reactions to them.

use std::ffi::{CStr, c_int};
use std::io;
use std::mem::zeroed;
use std::ptr;

use super::card::Card;
use super::{Ends, PATIENCE, Phase, Shared};
use crate::internet::words;
use crate::library::refused;
use crate::sys::*;

impl Shared {
    /// Reads, handles and acknowledges an event. An error of kind `WouldBlock`: there is none.
    pub(super) fn take_event(&self) -> io::Result<()> {
        let mut event = ptr::null_mut();
        // SAFETY: a channel of ours, and memory for the result.
        if unsafe { (self.manager.get_cm_event)(self.channel, &mut event) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the event that was just read, which is acknowledged below.
        let unwanted = self.handle(unsafe { &*event });
        // SAFETY: the same event, to which nothing refers any more.
        unsafe { (self.manager.ack_cm_event)(event) };
        self.let_go(unwanted);
        Ok(())
    }

    /// Ends all connection attempts with an error: no more events will arrive.
    pub(super) fn give_up(&self, why: &io::Error) {
        let mut lines = self.lines();
        let why = format!(
            "{}: the connection manager reports no more events: {why} (was the device removed? see the kernel's log)",
            self.device
        );
        let why = self.ended.get_or_init(|| why);
        for ends in lines.values_mut() {
            if matches!(ends.phase, Phase::Waiting | Phase::Calling) {
                ends.phase = Phase::Failed(why.clone());
            }
        }
        self.signal_news();
    }

    /// Handles an event. Returns an id that the caller must destroy, or null.
    fn handle(&self, event: &rdma_cm_event) -> *mut rdma_cm_id {
        let mut lines = self.lines();
        if event.event == RDMA_CM_EVENT_CONNECT_REQUEST {
            let mut all = lines.iter_mut();
            let called = all.find(|(_, ends)| ends.listener == event.listen_id);
            return match called.map(|(number, ends)| self.take_call(*number, ends, event)) {
                Some(true) => ptr::null_mut(),
                _ => {
                    // SAFETY: the id of the caller's connection request.
                    unsafe { (self.manager.reject)(event.id, ptr::null(), 0) };
                    event.id
                }
            };
        }
        let mut all = lines.iter_mut();
        let Some((number, ends)) = all.find(|(_, ends)| ends.id == event.id) else {
            return ptr::null_mut();
        };
        let answer = match event.event {
            // SAFETY: an id of ours.
            RDMA_CM_EVENT_ADDR_RESOLVED => unsafe {
                (self.manager.resolve_route)(event.id, PATIENCE)
            },
            RDMA_CM_EVENT_ROUTE_RESOLVED => self.say_who_calls(*number, ends),
            RDMA_CM_EVENT_ESTABLISHED => {
                // SAFETY: the event is that of a connection.
                let said = unsafe { private_data(event) };
                ends.phase = self.established(ends, said);
                0
            }
            // The queue pair itself reports the end of a connection.
            _ if ends.phase == Phase::Connected => return ptr::null_mut(),
            _ => {
                ends.phase = Phase::Failed(self.what_failed(ends, event));
                0
            }
        };
        if answer != 0 {
            let what = ends.peer.map(|peer| format!("calling {}", words(peer)));
            let why = refused(&self.device, &what.unwrap_or_default());
            ends.phase = Phase::Failed(why.to_string());
        }
        if matches!(ends.phase, Phase::Connected | Phase::Failed(_)) {
            self.signal_news();
        }
        ptr::null_mut()
    }

    /// Accepts a call. False: the caller is not the peer of this line, or is a stranger.
    fn take_call(&self, number: u32, ends: &mut Ends, event: &rdma_cm_event) -> bool {
        // SAFETY: the event is that of a call.
        let said = unsafe { private_data(event) };
        let Some(card) = Card::read(said, &self.codes) else {
            return false;
        };
        if card.to != ends.address || !ends.id.is_null() {
            return false;
        }
        let answer = card.answer(&self.codes);
        let mut wanted = parameters(number, ends.path, &answer);
        // SAFETY: the id of the caller's connection request, and bytes that are valid during the
        // call.
        if unsafe { (self.manager.accept)(event.id, &mut wanted) } != 0 {
            // The caller has given up meanwhile.
            return false;
        }
        ends.id = event.id;
        ends.peer = Some(card.from);
        ends.phase = Phase::Calling;
        true
    }

    fn say_who_calls(&self, number: u32, ends: &Ends) -> c_int {
        let Some(card) = ends.card() else { return 0 };
        let call = card.call(&self.codes);
        let mut wanted = parameters(number, ends.path, &call);
        // SAFETY: our own id, and bytes that are valid during the call.
        unsafe { (self.manager.connect)(ends.id, &mut wanted) }
    }

    /// The phase of a line whose connection has been made. `said`: the private data of the other
    /// end.
    fn established(&self, ends: &Ends, said: &[u8]) -> Phase {
        let is_proven = match ends.card() {
            Some(card) => card.is_answered(said, &self.codes),
            // The call was accepted here, after the check of its card.
            None => true,
        };
        match is_proven {
            true => Phase::Connected,
            false => Phase::Failed(format!(
                "{}: {} has taken a call and does not know the secret of this job",
                self.device,
                ends.peer.map_or("nobody".into(), words)
            )),
        }
    }

    fn what_failed(&self, ends: &Ends, event: &rdma_cm_event) -> String {
        // SAFETY: a static string of the library.
        let name = unsafe { CStr::from_ptr((self.manager.event_str)(event.event)) };
        let why = match event.status {
            0 => String::new(),
            number => format!(": {}", io::Error::from_raw_os_error(number.abs())),
        };
        format!(
            "{}: connecting a queue pair to {}: {}{why} (is the peer's host reachable, and does the peer still run?)",
            self.device,
            ends.peer.map_or("nobody".into(), words),
            name.to_string_lossy()
        )
    }
}

/// The private data of an event.
///
/// # Safety
/// The event is that of a call or of a connection.
unsafe fn private_data(event: &rdma_cm_event) -> &[u8] {
    // SAFETY: for these events this part of the union is valid. It has that number of the other
    // end's bytes, which are valid until the event is acknowledged.
    unsafe {
        let said = event.param.conn;
        match said.private_data.is_null() {
            true => &[],
            false => {
                let len = usize::from(said.private_data_len);
                std::slice::from_raw_parts(said.private_data.cast(), len)
            }
        }
    }
}

fn parameters(number: u32, (asked, answered): (u8, u8), say: &[u8]) -> rdma_conn_param {
    // SAFETY: integers, and a pointer that may be null.
    let mut wanted: rdma_conn_param = unsafe { zeroed() };
    wanted.private_data = say.as_ptr().cast();
    wanted.private_data_len = say.len() as u8;
    wanted.qp_num = number;
    wanted.initiator_depth = asked;
    wanted.responder_resources = answered;
    wanted
}
