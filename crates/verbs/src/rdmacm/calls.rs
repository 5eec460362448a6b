//! What the manager tells of calls, ours and those of peers, and what comes of it.

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
    /// Takes an event, if there is one.
    pub(super) fn take_event(&self) -> io::Result<()> {
        let mut event = ptr::null_mut();
        // SAFETY: a channel of ours, and a place for the answer.
        if unsafe { (self.manager.get_cm_event)(self.channel, &mut event) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: what has just been taken, and is given back below.
        let unwanted = self.handle(unsafe { &*event });
        // SAFETY: as above; nothing looks at it any more.
        unsafe { (self.manager.ack_cm_event)(event) };
        self.let_go(unwanted);
        Ok(())
    }

    /// No more events will come: what is not tied yet never will be.
    pub(super) fn give_up(&self, why: &io::Error) {
        let mut lines = self.lines();
        let why = format!(
            "{}: the connection manager tells no more of calls: {why} (has the device been taken away? look into the kernel's log)",
            self.device
        );
        let why = self.ended.get_or_init(|| why);
        for ends in lines.values_mut() {
            if matches!(ends.phase, Phase::Waiting | Phase::Calling) {
                ends.phase = Phase::Failed(why.clone());
            }
        }
        self.tell_news();
    }

    /// Something has happened. The answer is an id that is to go.
    fn handle(&self, event: &rdma_cm_event) -> *mut rdma_cm_id {
        let mut lines = self.lines();
        if event.event == RDMA_CM_EVENT_CONNECT_REQUEST {
            let mut all = lines.iter_mut();
            let called = all.find(|(_, ends)| ends.listener == event.listen_id);
            return match called.map(|(number, ends)| self.take_call(*number, ends, event)) {
                Some(true) => ptr::null_mut(),
                _ => {
                    // SAFETY: the caller's id.
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
                ends.phase = Phase::Tied;
                0
            }
            // What this means its queue pair says.
            _ if ends.phase == Phase::Tied => return ptr::null_mut(),
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
        if matches!(ends.phase, Phase::Tied | Phase::Failed(_)) {
            self.tell_news();
        }
        ptr::null_mut()
    }

    /// False: it is nobody's whom this line is for.
    fn take_call(&self, number: u32, ends: &mut Ends, event: &rdma_cm_event) -> bool {
        // SAFETY: of a call this part of the union holds, with so many bytes of the caller's.
        let card = unsafe {
            let said = event.param.conn;
            match usize::from(said.private_data_len) >= size_of::<Card>() {
                true => (*said.private_data.cast::<Card>()).read(),
                false => return false,
            }
        };
        if card.1 != ends.address || !ends.id.is_null() {
            return false;
        }
        let mut wanted = parameters(number, ends.way);
        // SAFETY: the caller's id.
        if unsafe { (self.manager.accept)(event.id, &mut wanted) } != 0 {
            // It has been given up meanwhile.
            return false;
        }
        ends.id = event.id;
        ends.peer = Some(card.0);
        ends.phase = Phase::Calling;
        true
    }

    fn say_who_calls(&self, number: u32, ends: &Ends) -> c_int {
        let Some(peer) = ends.peer else { return 0 };
        let card = Card::of(ends.address, peer);
        let mut wanted = parameters(number, ends.way);
        wanted.private_data = (&raw const card).cast();
        wanted.private_data_len = size_of::<Card>() as u8;
        // SAFETY: an id of ours, and words that stay during the call.
        unsafe { (self.manager.connect)(ends.id, &mut wanted) }
    }

    fn what_failed(&self, ends: &Ends, event: &rdma_cm_event) -> String {
        // SAFETY: a string of the library's that stays.
        let name = unsafe { CStr::from_ptr((self.manager.event_str)(event.event)) };
        let why = match event.status {
            0 => String::new(),
            number => format!(": {}", io::Error::from_raw_os_error(number.abs())),
        };
        format!(
            "{}: tying a queue pair to {}: {}{why} (is the peer's host reachable, and does the peer still run?)",
            self.device,
            ends.peer.map_or("nobody".into(), words),
            name.to_string_lossy()
        )
    }
}

fn parameters(number: u32, (asked, answered): (u8, u8)) -> rdma_conn_param {
    // SAFETY: numbers and a pointer that may be null.
    let mut wanted: rdma_conn_param = unsafe { zeroed() };
    wanted.qp_num = number;
    wanted.initiator_depth = asked;
    wanted.responder_resources = answered;
    wanted
}
