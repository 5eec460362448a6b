//! Persistent operations (MPI 5.0 §3.9): sends, receives and collective operations that are
//! described once and started often.

use std::sync::Arc;

use datatype::Buffer;

use crate::rank::Rank;
use crate::request::{Mode, RequestId, Template};
use crate::state::State;
use crate::{ANY_SOURCE, ANY_TAG, PROC_NULL, Result};

impl State {
    /// `MPI_Send_init` and its variants: adds an inactive request.
    pub fn send_init(
        &mut self,
        mode: Mode,
        buffer: Buffer,
        dest: i32,
        tag: i32,
        comm: u32,
    ) -> Result<RequestId> {
        self.objects.comms.get(comm)?.core.peer(dest)?;
        self.engine.init(Template::Send {
            mode,
            buffer,
            dest,
            tag,
            comm,
        })
    }

    /// `MPI_Recv_init`: adds an inactive request.
    pub fn receive_init(
        &mut self,
        buffer: Buffer,
        source: i32,
        tag: i32,
        comm: u32,
    ) -> Result<RequestId> {
        let wildcard = source == ANY_SOURCE || source == PROC_NULL;
        self.objects
            .comms
            .get(comm)?
            .core
            .peer(if wildcard { PROC_NULL } else { source })?;
        debug_assert!(tag >= 0 || tag == ANY_TAG);
        self.engine.init(Template::Receive {
            buffer,
            source,
            tag,
            comm,
        })
    }
}

impl Rank {
    /// `MPI_Start`.
    pub fn start(self: &Arc<Rank>, id: RequestId) -> Result<()> {
        let mut state = self.lock();
        let active = match state.engine.startable(id)? {
            Template::Send {
                mode,
                buffer,
                dest,
                tag,
                comm,
            } => state.send(mode, &buffer, dest, tag, comm)?,
            Template::Receive {
                buffer,
                source,
                tag,
                comm,
            } => state.receive(buffer, source, tag, comm)?,
            Template::Collective(collective) => match collective.round() {
                Some(round) => state.engine.start_round(round.clone())?,
                None => {
                    drop(state);
                    let started = collective.start()?;
                    state = self.lock();
                    started
                }
            },
        };
        if let Some(persistent) = state.engine.messages.requests.persistent_mut(id) {
            persistent.active = Some(active);
        }
        Ok(())
    }
}
