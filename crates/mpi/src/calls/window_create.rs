//! Making and freeing windows (MPI 5.0 §12.2).

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use channel::{SharedMemory, SharedName};
use datatype::Buffer;

use super::agreement::Agreement;
use crate::attributes::Holder;
use crate::coll::Work;
use crate::comm::{Core, bare};
use crate::errhandler;
use crate::rank::{Rank, State};
use crate::request::Waiting;
use crate::window::{Facts, Flavor, Memory, Part, Ports, Window, WindowHints};
use crate::{Class, Error, PROC_NULL, Result};

/// The memory that this rank gives to a window, and its hints.
pub struct WindowSpec<'a> {
    /// The memory: one run.
    pub memory: Buffer,
    /// Bytes of a unit of displacements.
    pub disp_unit: i64,
    /// The info keys.
    pub info: &'a [(String, String)],
}

/// Bytes of the facts of a member in an agreement.
const FACTS: usize = 16;
/// Bytes of the name of shared memory in an agreement.
const NAME: usize = 24;
/// Bytes of a page, on which the parts of a window begin that need not follow each other.
const PAGE: usize = 4096;

impl Rank {
    /// `MPI_Win_create`, `MPI_Win_allocate` and `MPI_Win_create_dynamic`: a window of memory that
    /// the caller keeps until it has freed the window. A dynamic one begins without memory.
    ///
    /// # Errors
    /// An argument is invalid, or a member is lost.
    pub fn window_create(
        self: &Arc<Rank>,
        operation: &'static str,
        comm: u32,
        flavor: Flavor,
        spec: WindowSpec,
    ) -> Result<u32> {
        let hints = checked(&spec)?;
        let (base, size) = match flavor {
            Flavor::Dynamic => (0, 0),
            _ => spec.memory.as_dense().unwrap_or((0, 0)),
        };
        let own = self.window_comm(operation, comm)?;
        let parts = self.window_parts(operation, own, size, spec.disp_unit)?;
        let (parts, memory) = match flavor {
            Flavor::Dynamic => (Vec::new(), Memory::Attached(Default::default())),
            _ => (parts, Memory::Run(spec.memory)),
        };
        let facts = Facts::new(base, size, spec.disp_unit, flavor);
        self.add_window(operation, own, (facts, flavor), parts, (memory, hints))
    }

    /// `MPI_Win_allocate_shared`: a window of `size` bytes at this rank that all members map.
    ///
    /// # Errors
    /// An argument is invalid, the members share no memory, or there is not enough of it.
    pub fn window_create_shared(
        self: &Arc<Rank>,
        operation: &'static str,
        comm: u32,
        size: usize,
        spec: WindowSpec,
    ) -> Result<u32> {
        let hints = checked(&spec)?;
        let own = self.window_comm(operation, comm)?;
        let mut parts = self.window_parts(operation, own, size, spec.disp_unit)?;
        let mut total: usize = 0;
        for part in &mut parts {
            // Where the part begins; its address follows once the memory is mapped.
            part.address = total as u64;
            let room = match hints.noncontiguous {
                true => (part.size as usize).checked_next_multiple_of(PAGE),
                false => Some(part.size as usize),
            };
            let end = room.and_then(|room| total.checked_add(room));
            total = end.ok_or_else(|| {
                Error::new(Class::NO_MEM, "the parts of the window do not fit memory")
            })?;
        }
        let whole = match self.window_memory(operation, own, total) {
            Ok(memory) => memory.buffer(),
            Err(error) => {
                self.comm_free(own)?;
                return Err(error);
            }
        };
        let (base, _) = whole.as_dense().unwrap_or((0, 0));
        let me = self.lock().comms.get(own)?.core.rank;
        let memory = whole.slice(parts[me].address as usize, size);
        for part in &mut parts {
            part.address = match part.size {
                0 => 0,
                _ => part.address + base as u64,
            };
        }
        let flavor = Flavor::Shared;
        let facts = Facts::new(parts[me].address as usize, size, spec.disp_unit, flavor);
        let memory = Memory::Run(memory);
        self.add_window(operation, own, (facts, flavor), parts, (memory, hints))
    }

    /// A communicator for a window's own collective operations.
    fn window_comm(self: &Arc<Rank>, operation: &'static str, comm: u32) -> Result<u32> {
        let parent = self.begin_intra(comm)?;
        let agreement = Agreement::all(self, &parent.core, parent.tag);
        let (members, place) = (parent.core.members.clone(), parent.core.rank);
        let mut new = self.agreed_comm(operation, &parent, agreement, members, place)?;
        new.errhandler = errhandler::RETURN;
        self.lock().add_comm(new)
    }

    /// The sizes and units of all members.
    fn window_parts(
        self: &Arc<Rank>,
        operation: &'static str,
        comm: u32,
        size: usize,
        disp_unit: i64,
    ) -> Result<Vec<Part>> {
        let mine = [(size as u64).to_ne_bytes(), disp_unit.to_ne_bytes()].concat();
        let all = self.gathered(operation, comm, mine)?;
        let part = |bytes: &[u8]| Part {
            size: word(bytes, 0),
            disp_unit: word(bytes, 8) as i64,
            address: 0,
        };
        Ok(all.chunks_exact(FACTS).map(part).collect())
    }

    /// Memory that all members map: the first makes it, the others open it.
    fn window_memory(
        self: &Arc<Rank>,
        operation: &'static str,
        comm: u32,
        total: usize,
    ) -> Result<SharedMemory> {
        let core = self.lock().comms.get(comm)?.core.clone();
        let mut made = match core.rank {
            0 => Some(SharedMemory::new(total)),
            _ => None,
        };
        let name = match &made {
            Some(Ok(memory)) => memory.name(),
            _ => None,
        };
        let mine = name.map_or([0; NAME], |name| encode(&name));
        let all = self.gathered(operation, comm, mine.to_vec())?;
        if made.is_none() && self.is_beside(&core) {
            let first = all.first_chunk::<NAME>().map(decode);
            made = first.map(|name| SharedMemory::open(name, total));
        }
        let worked = matches!(made, Some(Ok(_))) && self.is_beside(&core);
        let all = self.gathered(operation, comm, vec![worked.into()])?;
        match made {
            Some(Ok(mut memory)) if all.iter().all(|worked| *worked == 1) => {
                memory.close();
                Ok(memory)
            }
            Some(Err(why)) if self.is_beside(&core) => {
                Err(Error::new(Class::RMA_SHARED, why.to_string()))
            }
            _ => Err(Error::new(
                Class::RMA_SHARED,
                "the ranks of the communicator do not all share memory: make one of those that do \
                 by MPI_Comm_split_type with MPI_COMM_TYPE_SHARED",
            )),
        }
    }

    /// All members are on this rank's host.
    fn is_beside(&self, core: &Core) -> bool {
        let here = self.host_of(self.rank());
        core.members.iter().all(|world| self.host_of(world) == here)
    }

    /// The bytes of all members of a communicator, in order.
    fn gathered(
        self: &Arc<Rank>,
        operation: &'static str,
        comm: u32,
        mine: Vec<u8>,
    ) -> Result<Vec<u8>> {
        let parent = self.begin(comm)?;
        let agreement = Agreement::all(self, &parent.core, parent.tag);
        let among = Some(parent.core.context);
        self.block_on(
            &Waiting::in_call(operation),
            among,
            agreement.allgather(mine),
        )
    }

    /// Gives a window its handle once all members have theirs.
    fn add_window(
        self: &Arc<Rank>,
        operation: &'static str,
        comm: u32,
        facts: (Facts, Flavor),
        parts: Vec<Part>,
        (memory, hints): (Memory, WindowHints),
    ) -> Result<u32> {
        let handle = {
            let mut state = self.lock();
            let core = state.comms.get(comm)?.core.clone();
            let mut window = Window::new((comm, core), facts, parts, memory);
            window.hints = hints;
            state.windows.add(window)?
        };
        self.serve_by_task()?;
        self.collective(operation, &Work::Barrier, comm)?;
        Ok(handle)
    }

    /// Leaves the service of all windows to progress, until there are none.
    fn serve_by_task(self: &Arc<Rank>) -> Result<()> {
        if std::mem::replace(&mut self.lock().windows.are_served, true) {
            return Ok(());
        }
        let rank = Arc::downgrade(self);
        let id = self.spawn(
            None,
            poll_fn(move |_| {
                let Some(rank) = rank.upgrade() else {
                    return Poll::Ready(Ok(()));
                };
                let mut state = rank.lock();
                if state.windows.is_empty() {
                    state.windows.are_served = false;
                    return Poll::Ready(Ok(()));
                }
                // A failure ends the job at the next progress.
                let _ = state.serve_windows();
                Poll::Pending
            }),
        )?;
        self.lock().messages.requests.detach(id)
    }

    /// `MPI_Win_free`. The window stays if one of its attributes cannot be deleted.
    ///
    /// # Errors
    /// An epoch is open, an attribute cannot be deleted, or a member is lost.
    pub fn window_free(self: &Arc<Rank>, operation: &'static str, win: u32) -> Result<()> {
        self.lock().windows.get(win)?.epochs.check_free()?;
        self.delete_attributes(Holder::Window(win))?;
        let comm = self.lock().windows.get(win)?.comm;
        self.lock()
            .with_window(win, |window, ports| window.ask_last(ports))?;
        self.wait_for_window(operation, win, |window, _| window.missing_end(None).into())?;
        self.collective(operation, &Work::Barrier, comm)?;
        self.wait_for_window(operation, win, |window, ports| {
            window.is_quiet(ports).into()
        })?;
        let mut state = self.lock();
        let window = state.windows.remove(win)?;
        state.errhandlers.remove_object(window.errhandler);
        drop((state, window));
        self.comm_free(comm)
    }
}

impl State {
    /// `MPI_Win_get_group`.
    ///
    /// # Errors
    /// The handle is invalid, or there are too many groups.
    pub fn window_group(&mut self, win: u32) -> Result<u32> {
        let members = self.windows.get(win)?.core.members.clone();
        self.groups.add(members)
    }

    /// `MPI_Win_attach`: memory that the caller keeps until it has detached it.
    ///
    /// # Errors
    /// The window is not dynamic, or the memory overlaps attached memory.
    pub fn window_attach(&mut self, win: u32, region: Buffer) -> Result<()> {
        self.windows.get_mut(win)?.memory.attach(region)
    }

    /// `MPI_Win_detach`.
    ///
    /// # Errors
    /// The window is not dynamic, or no attached memory begins at the address.
    pub fn window_detach(&mut self, win: u32, start: usize) -> Result<()> {
        self.windows.get_mut(win)?.memory.detach(start)
    }

    /// `MPI_Win_shared_query`: address in this rank's memory, size and unit of a member's part. The
    /// address is zero and the size too, if the memory is not shared.
    ///
    /// # Errors
    /// The window is dynamic, or has no such member.
    pub fn window_shared_query(&self, win: u32, rank: i32) -> Result<(usize, usize, i64)> {
        let window = self.windows.get(win)?;
        if window.flavor == Flavor::Dynamic {
            return Err(Error::new(
                Class::RMA_FLAVOR,
                "MPI_Win_shared_query is not for windows of MPI_Win_create_dynamic",
            ));
        }
        let me = window.core.rank as u32;
        let known = |member: u32| {
            let part = window.part(member).filter(|part| part.size > 0)?;
            match (part.address, member == me) {
                (0, false) => None,
                (0, true) => Some((window.facts.base, part.size as usize, part.disp_unit)),
                (address, _) => Some((address as usize, part.size as usize, part.disp_unit)),
            }
        };
        if rank == PROC_NULL {
            let mut members = 0..window.core.size() as u32;
            let first =
                members.find(|&member| window.part(member).is_some_and(|part| part.size > 0));
            return Ok(first.and_then(known).unwrap_or((0, 0, 1)));
        }
        let member = window.member(rank)?;
        let unit = window.part(member).map_or(1, |part| part.disp_unit);
        Ok(known(member).unwrap_or((0, 0, unit)))
    }

    /// `MPI_Win_set_errhandler`.
    ///
    /// # Errors
    /// A handle is invalid, or the handler is for other objects.
    pub fn set_window_errhandler(&mut self, win: u32, errhandler: u32) -> Result<()> {
        self.windows.get(win)?;
        let kind = crate::handle::ObjectKind::Window;
        self.errhandlers.check(kind, errhandler)?;
        self.errhandlers.add_object(errhandler);
        let old = std::mem::replace(&mut self.windows.get_mut(win)?.errhandler, errhandler);
        self.errhandlers.remove_object(old);
        Ok(())
    }

    /// `MPI_Win_get_errhandler`: a handle that the user is to free.
    ///
    /// # Errors
    /// The handle is invalid.
    pub fn window_errhandler(&mut self, win: u32) -> Result<u32> {
        let handle = self.windows.get(win)?.errhandler;
        self.errhandlers.add_handle(handle);
        Ok(handle)
    }

    /// The window whose operation's request failed with this context.
    pub fn window_of(&self, context: u64) -> Option<u32> {
        self.windows.handle_of(bare(context))
    }

    /// Serves all windows: takes what has arrived, applies it and answers. True if anything moved.
    ///
    /// # Errors
    /// A peer broke the protocol: the job ends.
    pub(crate) fn serve_windows(&mut self) -> Result<bool> {
        let State {
            windows,
            messages,
            router,
            scratch,
            ..
        } = self;
        let served = windows.serve(&mut Ports {
            messages,
            router,
            scratch,
        });
        if let Err(error) = &served {
            messages.broken.get_or_insert(error.clone());
        }
        served
    }

    /// Lets a window work with the machines of this rank.
    pub(crate) fn with_window<T>(
        &mut self,
        win: u32,
        then: impl FnOnce(&mut Window, &mut Ports) -> Result<T>,
    ) -> Result<T> {
        let State {
            windows,
            messages,
            router,
            scratch,
            ..
        } = self;
        let window = windows.get_mut(win)?;
        let done = then(
            window,
            &mut Ports {
                messages,
                router,
                scratch,
            },
        )?;
        messages.flush(router)?;
        Ok(done)
    }
}

/// The hints of a window whose arguments are valid.
fn checked(spec: &WindowSpec) -> Result<WindowHints> {
    if spec.disp_unit <= 0 {
        let detail = format!("disp_unit is {}; it must be greater than 0", spec.disp_unit);
        return Err(Error::new(Class::DISP, detail));
    }
    let mut hints = WindowHints::default();
    hints.update(spec.info)?;
    Ok(hints)
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}

fn encode(name: &SharedName) -> [u8; NAME] {
    let mut bytes = [0; NAME];
    bytes[..8].copy_from_slice(&u64::from(name.process).to_ne_bytes());
    bytes[8..16].copy_from_slice(&(name.descriptor as u64).to_ne_bytes());
    bytes[16..].copy_from_slice(&name.token.to_ne_bytes());
    bytes
}

fn decode(bytes: &[u8; NAME]) -> SharedName {
    SharedName {
        process: word(bytes, 0) as u32,
        descriptor: word(bytes, 8) as i32,
        token: word(bytes, 16),
    }
}
