//! Memory that all members of a window map: whether they can, its layout, and how they open it.

use std::sync::Arc;

use channel::{MappedMemory, SharedMemory, SharedName, WindowLayout};
use knobs::WindowPath;

use crate::comm::Core;
use crate::rank::Rank;
use crate::window::Part;
use crate::{Class, Error, Result};

/// Bytes of the name of shared memory, as members exchange it.
const NAME: usize = 24;

impl Rank {
    /// True if loads and stores may replace messages between the members of a communicator: these
    /// are real ranks of one host. In virtual time, only messages have a cost.
    pub(super) fn can_access_directly(&self, comm: u32) -> Result<bool> {
        let mut state = self.lock();
        let core = state.objects.comms.get(comm)?.core.clone();
        let wishes = self.knobs.windows == WindowPath::Auto;
        let me = self.rank();
        let mut others = core.members.iter().filter(|world| *world != me).peekable();
        let reaches = others.peek().is_none() || state.engine.router.shares_memory(others);
        Ok(wishes && reaches && state.engine.router.machine().abilities().maps_memory)
    }

    /// Memory that all members map: the first member makes it, the others open it.
    pub(super) fn window_memory(
        self: &Arc<Rank>,
        operation: &'static str,
        comm: u32,
        total: usize,
    ) -> Result<SharedMemory> {
        let core = self.lock().objects.comms.get(comm)?.core.clone();
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

    /// True if all members are on this rank's host.
    fn is_beside(&self, core: &Core) -> bool {
        let here = self.host_of(self.rank());
        core.members.iter().all(|world| self.host_of(world) == here)
    }
}

/// The positions of the members' parts in memory that all map. `on_pages`: each part begins on a
/// page of its own.
pub(super) fn layout(parts: &[Part], on_pages: bool) -> Result<WindowLayout> {
    let sizes = parts.iter().map(|part| part.size as usize);
    WindowLayout::new(sizes, on_pages)
        .ok_or_else(|| Error::new(Class::NO_MEM, "the parts of the window do not fit memory"))
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

pub(super) fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}
