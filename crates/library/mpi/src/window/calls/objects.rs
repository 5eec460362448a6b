//! Queries and settings of windows: groups, detached and shared memory, error handlers.

use crate::comm::bare;
use crate::state::Objects;
use crate::window::Flavor;
use crate::{Class, Error, PROC_NULL, Result};

impl Objects {
    /// `MPI_Win_get_group`.
    ///
    /// # Errors
    /// The handle is invalid, or there are too many groups.
    pub fn window_group(&mut self, win: u32) -> Result<u32> {
        self.groups.of_object(&self.windows.get(win)?.core.members)
    }

    /// `MPI_Win_detach`.
    ///
    /// # Errors
    /// The window is not dynamic, or no attached memory begins at the address.
    pub fn window_detach(&mut self, win: u32, start: usize) -> Result<()> {
        self.windows.get_mut(win)?.memory.detach(start)
    }

    /// `MPI_Win_shared_query`: the address of a member's part in this rank's memory, its size and
    /// its displacement unit. Address and size are zero if the memory is not shared.
    ///
    /// # Errors
    /// The window is dynamic, or has no such member.
    pub fn window_shared_query(&mut self, win: u32, rank: i32) -> Result<(usize, usize, i64)> {
        let window = self.windows.get_mut(win)?;
        if let Some(direct) = &mut window.direct {
            direct.is_loaded();
        }
        let window = &*window;
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

    /// `MPI_Win_get_errhandler`: a new handle that the user must free.
    ///
    /// # Errors
    /// The handle is invalid.
    pub fn window_errhandler(&mut self, win: u32) -> Result<u32> {
        let handle = self.windows.get(win)?.errhandler;
        self.errhandlers.add_handle(handle);
        Ok(handle)
    }

    /// The window to which the context of a failed request belongs.
    pub fn window_of(&self, context: u64) -> Option<u32> {
        self.windows.handle_of(bare(context))
    }
}
