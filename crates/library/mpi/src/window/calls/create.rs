//! Making and freeing windows (MPI 5.0 §12.2).

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use channel::{MappedMemory, SharedMemory, Transport, WindowLayout, WindowMemory};
use datatype::Buffer;
use knobs::WindowPath;
use rma_check::Event;

use crate::attributes::Holder;
use crate::coll::calls::Work;
use crate::comm::Core;
use crate::comm::calls::agreement::Agreement;
use crate::comm::calls::making::Making;
use crate::errhandler;
use crate::rank::Rank;
use crate::request::Waiting;
use crate::state::Engine;
use crate::window::calls::common_memory::{layout, word};
use crate::window::{Direct, Facts, Flavor, KEYS, Memory, Part, Remote, Window, WindowHints};
use crate::{Class, Error, Result};

/// The memory that this rank gives to a window, and its hints.
pub struct WindowSpec<'a> {
    /// The memory that the rank gives to the window, which is contiguous.
    pub memory: Buffer,
    /// The number of bytes in a unit of displacements.
    pub disp_unit: i64,
    /// The keys and values of the info object.
    pub info: &'a [(String, String)],
}

/// The facts of all members of a window that is being made.
struct AllFacts {
    parts: Vec<Part>,
    /// The length in bytes of the stripes, parts of the window with one accumulate lock each, as
    /// the first member requests it. Zero requests the default.
    stripe: u64,
    /// True if all members can map the memory and access it by loads and stores.
    are_direct: bool,
    /// True if all members promise that accumulates are only of 8-byte words.
    are_words: bool,
}

/// The methods to access the memory of the other members without messages.
struct Access {
    /// The state for loads and stores in mapped memory, if members share it.
    direct: Option<Box<Direct>>,
    /// The state for transfers by a device or the kernel, if they are possible.
    remote: Option<Box<Remote>>,
}

/// A window whose members have agreed on making it.
struct Begun {
    /// The handle of the communicator for the window's own collective operations.
    own: u32,
    facts: AllFacts,
    hints: WindowHints,
}

impl Rank {
    /// `MPI_Win_create` and `MPI_Win_create_dynamic`: a window of memory that the caller keeps
    /// until it has freed the window. A dynamic window begins without memory.
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
        let (base, size) = match flavor {
            Flavor::Dynamic => (0, 0),
            _ => spec.memory.as_dense().unwrap_or((0, 0)),
        };
        let Begun { own, facts, hints } =
            self.begin_window(operation, comm, (size, false), &spec)?;
        let (parts, memory, remote) = match flavor {
            Flavor::Dynamic => (Vec::new(), Memory::Attached(Default::default()), None),
            _ => {
                let remote =
                    self.open_to_members(operation, own, Ok(&spec.memory), &facts.parts)?;
                (facts.parts, Memory::Run(spec.memory), remote)
            }
        };
        let facts = Facts::new(base, size, spec.disp_unit, flavor);
        let access = Access {
            direct: None,
            remote,
        };
        self.add_window(
            operation,
            own,
            (facts, flavor),
            parts,
            (memory, access, hints),
        )
    }

    /// `MPI_Win_allocate`: a window of `size` bytes at this rank, in memory that all members map if
    /// each of them `can_map` it. Otherwise the memory is that of `allocate`, which the caller
    /// keeps until it has freed the window; [`Window::is_mapped`] tells the two cases apart.
    ///
    /// # Errors
    /// An argument is invalid, there is not enough memory, or a member is lost.
    pub fn window_allocate(
        self: &Arc<Rank>,
        operation: &'static str,
        comm: u32,
        (size, can_map): (usize, bool),
        spec: WindowSpec,
        allocate: impl FnOnce() -> Option<Buffer>,
    ) -> Result<u32> {
        let can_map = can_map && self.can_access_directly(comm)?;
        let Begun {
            own,
            mut facts,
            hints,
        } = self.begin_window(operation, comm, (size, can_map), &spec)?;
        let flavor = Flavor::Allocate;
        let layout = match facts.are_direct {
            true => layout(&facts.parts, true).ok(),
            false => None,
        };
        if let Some(layout) = layout
            && let Ok(memory) = self.window_memory(operation, own, layout.bytes())
        {
            return self.add_mapped(operation, (own, flavor), facts, (memory, &layout), hints);
        }
        let memory = allocate().ok_or_else(|| {
            Error::new(
                Class::NO_MEM,
                format!("there is no memory for {size} bytes"),
            )
        });
        let parts = std::mem::take(&mut facts.parts);
        let remote = self.open_to_members(
            operation,
            own,
            memory.as_ref().map_err(Clone::clone),
            &parts,
        )?;
        let memory = memory?;
        let (base, _) = memory.as_dense().unwrap_or((0, 0));
        let facts = Facts::new(base, size, spec.disp_unit, flavor);
        let memory = Memory::Run(memory);
        let access = Access {
            direct: None,
            remote,
        };
        self.add_window(
            operation,
            own,
            (facts, flavor),
            parts,
            (memory, access, hints),
        )
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
        let can_map = self.can_access_directly(comm)?;
        let Begun { own, facts, hints } =
            self.begin_window(operation, comm, (size, can_map), &spec)?;
        let made = layout(&facts.parts, hints.noncontiguous).and_then(|layout| {
            let memory = self.window_memory(operation, own, layout.bytes())?;
            Ok((memory, layout))
        });
        let (memory, layout) = match made {
            Ok(made) => made,
            Err(error) => {
                self.comm_free(own)?;
                return Err(error);
            }
        };
        let flavor = Flavor::Shared;
        self.add_mapped(operation, (own, flavor), facts, (memory, &layout), hints)
    }

    /// Registers a window in mapped memory, and returns its handle.
    fn add_mapped(
        self: &Arc<Rank>,
        operation: &'static str,
        (own, flavor): (u32, Flavor),
        mut all: AllFacts,
        (memory, layout): (SharedMemory, &WindowLayout),
        hints: WindowHints,
    ) -> Result<u32> {
        let core = self.lock().objects.comms.get(own)?.core.clone();
        let (worlds, me) = (core.members.iter().collect(), core.rank);
        let memory = WindowMemory::new(memory, layout, (worlds, me), all.stripe);
        for (member, part) in all.parts.iter_mut().enumerate() {
            part.address = match part.size {
                0 => 0,
                _ => memory.start(member) as u64,
            };
        }
        let mine = all.parts[me];
        let facts = Facts::new(
            mine.address as usize,
            mine.size as usize,
            mine.disp_unit,
            flavor,
        );
        let run = Memory::Run(memory.part(me).clone());
        let mut direct = all
            .are_direct
            .then(|| Box::new(Direct::new(memory, all.are_words)));
        if let Some(direct) = direct.as_mut().filter(|_| flavor == Flavor::Shared) {
            // The program may know the parts of others without a query: they are adjacent.
            direct.is_loaded();
        }
        let access = Access {
            direct,
            remote: None,
        };
        self.add_window(
            operation,
            own,
            (facts, flavor),
            all.parts,
            (run, access, hints),
        )
    }

    /// Makes the members agree on a new window: on what each gives to it. This member gives `size`
    /// bytes.
    fn begin_window(
        self: &Arc<Rank>,
        operation: &'static str,
        comm: u32,
        (size, is_direct): (usize, bool),
        spec: &WindowSpec,
    ) -> Result<Begun> {
        let parent = self.begin_intra(comm)?;
        let hints = checked(spec);
        let context = self.lock().objects.comms.new_context(self.rank());
        let mine = hints.as_ref().map_err(Clone::clone).map(|hints| {
            let words = [
                size as u64,
                spec.disp_unit as u64,
                hints.granularity(),
                u64::from(is_direct) | u64::from(hints.words()) << 1,
                context,
            ];
            words.map(u64::to_ne_bytes).concat()
        });
        let all = self.exchange_to_make(operation, &parent, Making::Window, mine)?;
        let part = |bytes: &[u8]| Part {
            size: word(bytes, 0),
            disp_unit: word(bytes, 8) as i64,
            address: 0,
        };
        let context = word(&all, 32);
        let all = all.chunks_exact(Making::Window.bytes());
        let (members, place) = (parent.core.members.clone(), parent.core.rank);
        let mut new = parent.child(Core::new(context, members, place));
        new.errhandler = errhandler::RETURN;
        Ok(Begun {
            own: self.add_comm(new)?,
            facts: AllFacts {
                parts: all.clone().map(part).collect(),
                stripe: all.clone().next().map_or(0, |first| word(first, 16)),
                are_direct: all.clone().all(|bytes| word(bytes, 24) & 1 == 1),
                are_words: all.clone().all(|bytes| word(bytes, 24) >> 1 == 1),
            },
            hints: hints?,
        })
    }

    /// Gathers bytes from all members of a communicator, in order.
    pub(super) fn gathered(
        self: &Arc<Rank>,
        operation: &'static str,
        comm: u32,
        mine: Vec<u8>,
    ) -> Result<Vec<u8>> {
        let len = mine.len();
        self.gathered_agreed(operation, comm, Ok(mine), len)
    }

    /// Gathers `len` bytes from each member of a communicator, in order. An error of one member is
    /// returned on all.
    fn gathered_agreed(
        self: &Arc<Rank>,
        operation: &'static str,
        comm: u32,
        mine: Result<Vec<u8>>,
        len: usize,
    ) -> Result<Vec<u8>> {
        let parent = self.begin(comm)?;
        let agreement = Agreement::all(self, &parent.core, parent.tag);
        let among = Some(parent.core.context);
        let all = agreement.allgather_agreed(mine, len);
        self.block_on(&Waiting::in_call(operation), among, all)
    }

    /// Registers a window, and returns its handle once all members have theirs.
    fn add_window(
        self: &Arc<Rank>,
        operation: &'static str,
        comm: u32,
        facts: (Facts, Flavor),
        parts: Vec<Part>,
        (memory, Access { direct, remote }, mut hints): (Memory, Access, WindowHints),
    ) -> Result<u32> {
        let stripe = direct.as_ref().map(|direct| direct.memory.stripe());
        let words = direct.as_ref().is_some_and(|direct| direct.words);
        hints.settle(stripe, words);
        let handle = {
            let mut state = self.lock();
            let core = state.objects.comms.get(comm)?.core.clone();
            let mut window = Window::new((comm, core), facts, parts, memory);
            (window.direct, window.remote, window.hints) = (direct, remote, hints);
            window.meter = state.objects.types.meter().cloned();
            state.objects.windows.add(window)?
        };
        self.serve_by_task()?;
        self.begin_window_progress();
        self.lock().objects.windows.count_made(handle);
        self.collective(operation, &Work::Barrier, comm)?;
        let mut state = self.lock();
        let facts = state.objects.windows.get(handle)?.facts.clone();
        state
            .notes()
            .memory_of(handle, facts.base, facts.size as usize);
        drop(state);
        Ok(handle)
    }

    /// Exposes this rank's part of a window to the other members, and receives the keys of theirs.
    /// An error, also one of another member that has no memory, frees the window's communicator.
    fn open_to_members(
        self: &Arc<Rank>,
        operation: &'static str,
        comm: u32,
        memory: Result<&Buffer>,
        parts: &[Part],
    ) -> Result<Option<Box<Remote>>> {
        let core = self.lock().objects.comms.get(comm)?.core.clone();
        let mut remote = None;
        let mine = memory.and_then(|memory| {
            // By request of the user (`WindowPath::Messages`), every access is a message.
            if self.knobs.windows != WindowPath::Messages {
                remote = Some(self.lock().engine.expose_part(&core, memory)?);
            }
            let keys = remote.as_ref().map(|remote| remote.own_keys());
            Ok(keys.unwrap_or([0; KEYS]).to_vec())
        });
        let all = match self.gathered_agreed(operation, comm, mine, KEYS) {
            Ok(all) => all,
            Err(error) => {
                if let Some(remote) = &mut remote {
                    remote.close(&mut self.lock().engine.router)?;
                }
                self.comm_free(comm)?;
                return Err(error);
            }
        };
        if let Some(remote) = &mut remote {
            let sizes = parts.iter().map(|part| part.size);
            let members = core.members.iter().zip(sizes).zip(all.chunks_exact(KEYS));
            let members = members.map(|((world, size), keys)| (world, size, keys));
            let me = core.members.world(core.rank);
            remote.take_keys(&self.lock().engine.router, me, members);
        }
        Ok(remote)
    }

    /// Starts a background task that serves all windows, until there are none.
    fn serve_by_task(self: &Arc<Rank>) -> Result<()> {
        if std::mem::replace(&mut self.lock().objects.windows.are_served, true) {
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
                if state.objects.windows.is_empty() {
                    state.objects.windows.are_served = false;
                    state.engine.tasks.have_background(0);
                    return Poll::Ready(Ok(()));
                }
                // A failure ends the job at the next progress call.
                let _ = state.serve_windows();
                Poll::Pending
            }),
        )?;
        let mut state = self.lock();
        state.engine.tasks.have_background(1);
        state.engine.messages.requests.detach(id)
    }

    /// `MPI_Win_free`. The window stays valid if one of its attributes cannot be deleted.
    ///
    /// # Errors
    /// An epoch is open, an attribute cannot be deleted, or a member is lost.
    pub fn window_free(self: &Arc<Rank>, operation: &'static str, win: u32) -> Result<()> {
        self.lock().objects.windows.get(win)?.epochs.check_free()?;
        self.delete_attributes(Holder::Window(win))?;
        let comm = self.lock().objects.windows.get(win)?.comm;
        self.lock()
            .with_window(win, |window, ports| window.ask_last(ports))?;
        self.wait_for_window(operation, win, |window, _| {
            let missing = window.missing_end(None);
            missing.or_else(|| window.missing_local(None)).into()
        })?;
        self.collective(operation, &Work::Barrier, comm)?;
        self.wait_for_window(operation, win, |window, ports| {
            window.is_quiet(ports).into()
        })?;
        let mut state = self.lock();
        state.notes().window(win, |window| Event::Freed { window });
        let mut window = state.objects.windows.remove(win)?;
        if let Some(remote) = &mut window.remote {
            remote.close(&mut state.engine.router)?;
        }
        state.objects.errhandlers.remove_object(window.errhandler);
        drop((state, window));
        self.end_window_progress();
        self.comm_free(comm)
    }

    /// `MPI_Win_attach`. The caller keeps the memory until it has detached it.
    ///
    /// # Errors
    /// The window is not dynamic, or the memory overlaps attached memory.
    pub fn window_attach(&self, win: u32, region: Buffer) -> Result<()> {
        let place = region.as_dense();
        let mut state = self.lock();
        state.objects.windows.get_mut(win)?.memory.attach(region)?;
        if let Some((base, len)) = place {
            state.notes().memory_of(win, base, len);
        }
        Ok(())
    }
}

impl Engine {
    /// Exposes this rank's part of a window to the other members.
    fn expose_part(&mut self, core: &Core, memory: &Buffer) -> Result<Box<Remote>> {
        let me = core.members.world(core.rank);
        let beside = |world: &usize| self.router.shares_memory(std::iter::once(*world));
        let others = || core.members.iter().filter(|world| Some(*world) != me);
        let peers = match memory.is_empty() {
            true => [None; 2],
            false => [others().find(beside), others().find(|world| !beside(world))],
        };
        let remote = Remote::expose(&mut self.router, memory, peers)?;
        if let Some(peer) = peers[1]
            && !remote.opens_to_devices()
            && self.router.capabilities(peer).zero_copy.is_some()
        {
            let text = format!(
                "the memory of a window, {} bytes, cannot be registered with the devices of this \
                 rank: it is accessed by messages, in which the target takes part. More memory \
                 that may be locked (ulimit -l) would help",
                memory.len()
            );
            self.warn("windows-by-messages", &text);
        }
        Ok(Box::new(remote))
    }
}

/// Checks the arguments of a new window, and returns its hints.
fn checked(spec: &WindowSpec) -> Result<WindowHints> {
    if spec.disp_unit <= 0 {
        let detail = format!("disp_unit is {}; it must be greater than 0", spec.disp_unit);
        return Err(Error::new(Class::DISP, detail));
    }
    let mut hints = WindowHints::default();
    hints.update(spec.info)?;
    Ok(hints)
}
