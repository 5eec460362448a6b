//! Persistent operations (MPI 5.0 §3.9): sends and receives that are described once and started
//! often.

use datatype::Buffer;

use crate::rank::State;
use crate::request::{Mode, Operation, Persistent, RequestId, Template};
use crate::{ANY_SOURCE, ANY_TAG, Class, Error, PROC_NULL, Result};

impl State {
    /// `MPI_Send_init` and its variants: an inactive request.
    pub fn send_init(
        &mut self,
        mode: Mode,
        buffer: Buffer,
        dest: i32,
        tag: i32,
        comm: u32,
    ) -> Result<RequestId> {
        self.comms.get(comm)?.core.peer(dest)?;
        self.init(Template::Send {
            mode,
            buffer,
            dest,
            tag,
            comm,
        })
    }

    /// `MPI_Recv_init`: an inactive request.
    pub fn receive_init(
        &mut self,
        buffer: Buffer,
        source: i32,
        tag: i32,
        comm: u32,
    ) -> Result<RequestId> {
        let wildcard = source == ANY_SOURCE || source == PROC_NULL;
        self.comms
            .get(comm)?
            .core
            .peer(if wildcard { PROC_NULL } else { source })?;
        debug_assert!(tag >= 0 || tag == ANY_TAG);
        self.init(Template::Receive {
            buffer,
            source,
            tag,
            comm,
        })
    }

    fn init(&mut self, template: Template) -> Result<RequestId> {
        let persistent = Persistent {
            template,
            active: None,
        };
        self.messages
            .requests
            .add(Operation::Persistent(Box::new(persistent)))
    }

    /// `MPI_Start`.
    pub fn start(&mut self, id: RequestId) -> Result<()> {
        self.messages.requests.valid(id)?;
        let Some(persistent) = self.messages.requests.persistent_mut(id) else {
            return Err(Error::new(
                Class::REQUEST,
                "only a request of a persistent operation can be started",
            ));
        };
        if persistent.active.is_some() {
            return Err(Error::new(
                Class::REQUEST,
                "the operation is active: complete it before it is started again",
            ));
        }
        let active = match persistent.template.clone() {
            Template::Send {
                mode,
                buffer,
                dest,
                tag,
                comm,
            } => self.send(mode, &buffer, dest, tag, comm)?,
            Template::Receive {
                buffer,
                source,
                tag,
                comm,
            } => self.receive(buffer, source, tag, comm)?,
        };
        if let Some(persistent) = self.messages.requests.persistent_mut(id) {
            persistent.active = Some(active);
        }
        Ok(())
    }
}
