//! The state behind a rank's lock: what moves messages (`Engine`), and the objects that a program
//! has made (`Objects`).
//!
//! A function that changes one of the two, or one machine of it, is a method there. If it reads the
//! other, it takes a shared reference to that. Only operations on windows change both at once.

mod buffered_sends;
mod fast_receive;
mod losses;
pub(crate) mod notes;
mod posting;
mod progress;
mod report;
mod rounds;
mod windows;

use std::sync::Arc;

use channel::Router;
use datatype::local_work::Meter;
use datatype::{Buffer, Pool, Predefined};
use pmi::Bootstrap;

use crate::attributes::Keyvals;
use crate::coll::lanes::Lanes;
use crate::comm::{Comm, Comms};
use crate::errhandler::Errhandlers;
use crate::error::{Class, Error, Result};
use crate::file::Files;
use crate::group::Groups;
use crate::handle::{ObjectKind, Slab};
use crate::op::Ops;
use crate::p2p::buffered::AttachedBuffers;
use crate::p2p::{Found, Messages};
use crate::request::task::Tasks;
use crate::request::{Mode, RequestId, Requests};
use crate::status::Status;
use crate::types::Types;
use crate::window::Windows;

/// The part of a rank that its lock protects.
pub struct State {
    /// The rank's messages and the transports that carry them.
    pub(crate) engine: Engine,
    /// The objects that the program has made.
    pub(crate) objects: Objects,
}

/// Messages, and the parts of a rank that move them.
pub(crate) struct Engine {
    /// The transports to all peers.
    pub(crate) router: Router,
    /// Point-to-point messages and requests.
    pub(crate) messages: Messages,
    /// The unfinished operations with several steps.
    pub(crate) tasks: Tasks,
    /// The lanes (collective buffers) for operations with several steps.
    pub(crate) lanes: Lanes,
    /// Messages that matched probes have claimed.
    pub(crate) claimed: Slab<Found>,
    /// Memory for intermediate results of collectives, and for copies of buffered sends.
    pub(crate) scratch: Pool,
    /// Buffers attached for buffered sends.
    pub(crate) attached: AttachedBuffers,
    /// The connection to the launcher.
    pub(crate) bootstrap: Arc<dyn Bootstrap>,
    /// The most recent error of an operation whose status has only the class of the error.
    pub(crate) last_error: Option<Error>,
    /// The budget of blocking receives that need no request.
    pub(crate) fast_path: FastPath,
    /// The number of calls of progress in which something moved.
    pub(crate) moved: u64,
}

/// The objects that a program has made, by their handles.
pub struct Objects {
    pub(crate) comms: Comms,
    pub(crate) groups: Groups,
    pub(crate) windows: Windows,
    pub(crate) types: Types,
    /// The keys of attributes that the program has made.
    pub(crate) keyvals: Keyvals,
    pub(crate) errhandlers: Errhandlers,
    pub(crate) files: Files,
    /// The user's reduction operations.
    pub(crate) ops: Ops,
}

/// The budget of blocking receives that only poll, without a pass of progress.
#[derive(Clone, Copy, Default)]
pub(crate) struct FastPath {
    /// Number of blocking receives that may still only poll before a pass of progress.
    pub(crate) left: u32,
    /// Number of polls of each blocking receive that only polls.
    pub(crate) polls: u32,
}

impl Engine {
    /// The engine of a new rank, with these transports and messages.
    pub(crate) fn new(router: Router, messages: Messages, bootstrap: Arc<dyn Bootstrap>) -> Engine {
        Engine {
            router,
            messages,
            tasks: Tasks::default(),
            lanes: Lanes::default(),
            claimed: Slab::new(ObjectKind::Message),
            scratch: Pool::default(),
            attached: AttachedBuffers::default(),
            bootstrap,
            last_error: None,
            fast_path: FastPath::default(),
            moved: 0,
        }
    }
}

impl Objects {
    /// The predefined objects of world rank `rank`. `noting`: the rank under which accesses to
    /// windows are noted, if they are.
    pub(crate) fn new(
        (world, alone): (Comm, Comm),
        rank: usize,
        noting: Option<u32>,
        meter: Option<Arc<Meter>>,
    ) -> Objects {
        Objects {
            comms: Comms::new(world, alone),
            groups: Groups::new(rank),
            windows: Windows::noting(noting),
            types: Types::metered(meter),
            keyvals: Keyvals::default(),
            errhandlers: Errhandlers::default(),
            files: Files::default(),
            ops: Ops::default(),
        }
    }
}

impl State {
    /// One pass of progress, without tasks. True if anything moved.
    ///
    /// # Errors
    /// A transport failed, or a peer broke the protocol.
    #[inline(always)]
    pub fn progress(&mut self) -> Result<bool> {
        self.engine.progress(&self.objects.comms)
    }

    /// The objects that the program has made.
    #[inline(always)]
    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    /// The objects that the program has made, to change them.
    #[inline(always)]
    pub fn objects_mut(&mut self) -> &mut Objects {
        &mut self.objects
    }

    /// True if some peer is lost, or some communicator cannot be used for collective operations any
    /// more.
    pub fn has_losses(&self) -> bool {
        self.engine.has_losses()
    }

    /// True if a lost peer, or a loss on a communicator, has this error class.
    pub fn is_loss(&self, class: Class) -> bool {
        self.engine.loss_with(class).is_some()
    }

    /// The requests of this rank.
    #[inline(always)]
    pub fn requests(&self) -> &Requests {
        &self.engine.messages.requests
    }

    /// The requests of this rank, to change them.
    #[inline(always)]
    pub fn requests_mut(&mut self) -> &mut Requests {
        &mut self.engine.messages.requests
    }

    /// The status; or an error, if the status has an error class.
    ///
    /// # Errors
    /// The operation of the status failed. The text is that of the rank's last error, if that has
    /// the class of the status.
    pub fn result_of(&mut self, status: Status) -> Result<Status> {
        status.into_result(&mut self.engine)
    }

    /// Begins to cancel an operation, which then completes, cancelled or not.
    ///
    /// # Errors
    /// The handle is invalid, or progress failed.
    pub fn cancel(&mut self, id: RequestId) -> Result<()> {
        self.engine.cancel(&self.objects.comms, id)
    }

    /// A packed copy of the data of a buffer.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn copy_of(&mut self, buffer: &Buffer) -> Result<Buffer> {
        let bytes = &Predefined::BYTE.into();
        let copy = self.engine.scratch.elements(buffer.len(), bytes)?.buffer();
        buffer.copy_to(&copy);
        Ok(copy)
    }

    /// Starts a send. The result is [`Requests::done`] if the send is complete at once.
    ///
    /// # Errors
    /// An argument is invalid, or progress failed.
    #[inline(always)]
    pub fn send(
        &mut self,
        mode: Mode,
        buffer: &Buffer,
        dest: i32,
        tag: i32,
        comm: u32,
    ) -> Result<RequestId> {
        self.engine
            .send(&self.objects, mode, buffer, (dest, tag, comm))
    }

    /// Starts a receive.
    ///
    /// # Errors
    /// An argument is invalid, or progress failed.
    #[inline(always)]
    pub fn receive(
        &mut self,
        buffer: Buffer,
        source: i32,
        tag: i32,
        comm: u32,
    ) -> Result<RequestId> {
        match self.objects.comms.receive_key(source, tag, comm)? {
            Some(key) => self.engine.receive_by_key(&self.objects.comms, buffer, key),
            None => self.requests_mut().add_complete(Status::PROC_NULL),
        }
    }
}

/// The tables of the program's objects, each with its own operations.
impl Objects {
    /// The communicators of the program.
    #[inline(always)]
    pub fn comms(&self) -> &Comms {
        &self.comms
    }

    /// The communicators of the program, to change them.
    pub fn comms_mut(&mut self) -> &mut Comms {
        &mut self.comms
    }

    /// The groups of the program.
    #[inline(always)]
    pub fn groups(&self) -> &Groups {
        &self.groups
    }

    /// The groups of the program, to change them.
    pub fn groups_mut(&mut self) -> &mut Groups {
        &mut self.groups
    }

    /// The windows of the program.
    #[inline(always)]
    pub fn windows(&self) -> &Windows {
        &self.windows
    }

    /// The windows of the program, to change them.
    pub fn windows_mut(&mut self) -> &mut Windows {
        &mut self.windows
    }

    /// The datatypes of the program.
    #[inline(always)]
    pub fn types(&self) -> &Types {
        &self.types
    }

    /// The datatypes of the program, to change them.
    pub fn types_mut(&mut self) -> &mut Types {
        &mut self.types
    }

    /// The program's keys of attributes, to change them.
    pub fn keyvals_mut(&mut self) -> &mut Keyvals {
        &mut self.keyvals
    }

    /// The program's error handlers, to change them.
    pub fn errhandlers_mut(&mut self) -> &mut Errhandlers {
        &mut self.errhandlers
    }

    /// The open files of the program.
    #[inline(always)]
    pub fn files(&self) -> &Files {
        &self.files
    }

    /// The open files of the program, to change them.
    pub fn files_mut(&mut self) -> &mut Files {
        &mut self.files
    }

    /// The reduction operations that the program made.
    #[inline(always)]
    pub fn ops(&self) -> &Ops {
        &self.ops
    }

    /// The reduction operations that the program made, to change them.
    pub fn ops_mut(&mut self) -> &mut Ops {
        &mut self.ops
    }
}
