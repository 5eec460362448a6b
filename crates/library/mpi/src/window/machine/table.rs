//! The windows of a rank, by handle.

use super::*;

/// All windows of a rank, by handle.
pub struct Windows {
    pub(super) all: Slab<Window>,
    /// The number of windows that need the progress thread.
    pub(super) with_thread: usize,
    /// The handles of windows by the contexts of their messages.
    handles: BTreeMap<u64, u32>,
    /// Windows that may have something to do: those that a call has used, those for which messages
    /// have arrived, and those with outstanding operations. Idle windows cost nothing.
    marked: Vec<u32>,
    /// True if a background task serves the windows.
    pub(crate) are_served: bool,
    /// The number of this rank, if its machine records notes of accesses.
    pub(crate) noting: Option<u32>,
    /// The progress thread that serves windows while the rank makes no MPI calls, if one needs it.
    pub(crate) thread: Assistance,
    /// The numbers of windows that this rank has made, by flavour and by who makes progress.
    pub(super) made: Vec<(Flavor, Progressors, u64)>,
}

impl Default for Windows {
    fn default() -> Windows {
        Windows {
            all: Slab::new(ObjectKind::Window),
            with_thread: 0,
            handles: BTreeMap::new(),
            marked: Vec::new(),
            are_served: false,
            noting: None,
            thread: Assistance::None,
            made: Vec::new(),
        }
    }
}

impl Windows {
    /// An empty table. `noting` is the number of this rank, if its accesses are noted.
    pub(crate) fn noting(noting: Option<u32>) -> Windows {
        Windows {
            noting,
            ..Windows::default()
        }
    }

    /// The window with this handle.
    pub fn get(&self, handle: u32) -> Result<&Window> {
        self.all.get(handle).ok_or_else(|| unknown(handle))
    }

    /// The window with this handle, to change it. The next pass of progress then serves it first.
    pub fn get_mut(&mut self, handle: u32) -> Result<&mut Window> {
        let window = self.all.get_mut(handle).ok_or_else(|| unknown(handle))?;
        if !std::mem::replace(&mut window.is_marked, true) {
            self.marked.push(handle);
        }
        Ok(window)
    }

    /// The short path of an access: the bytes at a displacement of a target, if this rank maps them
    /// and may access them.
    #[inline(always)]
    pub fn near(
        &mut self,
        handle: u32,
        rank: i32,
        disp: isize,
        bytes: usize,
    ) -> Option<NearPlace<'_>> {
        self.all.get_mut(handle)?.near(rank, disp, bytes)
    }

    /// The short path of a flush: orders all accesses of this rank to a window that it maps.
    /// Returns false if it does not map the window, or the flush is an error or has more to do.
    #[inline]
    pub(crate) fn flush_near(&mut self, handle: u32, rank: Option<i32>) -> bool {
        let Some(window) = self.all.get_mut(handle) else {
            return false;
        };
        let Some(direct) = window.direct.as_deref_mut() else {
            return false;
        };
        let target = match rank.map(u32::try_from) {
            None => None,
            Some(Ok(target)) if (target as usize) < direct.memory.members() => Some(target),
            Some(_) => return false,
        };
        window.failure.is_none()
            && window.epochs.check_flush(target).is_ok()
            && !direct.synchronise()
    }

    /// True if `is_it` is true for some window of the rank.
    pub(crate) fn any(&self, mut is_it: impl FnMut(&Window) -> bool) -> bool {
        self.all.iter().any(|(_, window)| is_it(window))
    }

    /// True if there are no windows.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The number of windows that are served next.
    pub fn marked(&self) -> usize {
        self.marked.len()
    }

    /// The handle of the window whose operations have requests with this context.
    pub fn handle_of(&self, context: u64) -> Option<u32> {
        self.handles.get(&context).copied()
    }

    pub(crate) fn add(&mut self, mut window: Window) -> Result<u32> {
        let context = window.core.context;
        let needs_thread = window.needs_thread();
        window.has_thread = needs_thread;
        let handle = self.all.insert(window).ok_or_else(|| {
            Error::new(
                Class::NO_MEM,
                "there are a million windows: free some of them first",
            )
        })?;
        self.with_thread += usize::from(needs_thread);
        self.handles.insert(context, handle);
        // Messages for the window may have arrived before it.
        self.get_mut(handle)?;
        Ok(handle)
    }

    pub(crate) fn remove(&mut self, handle: u32) -> Result<Window> {
        let window = self.all.remove(handle).ok_or_else(|| unknown(handle))?;
        self.with_thread -= usize::from(window.has_thread);
        self.marked.retain(|other| *other != handle);
        self.handles.remove(&window.core.context);
        Ok(window)
    }

    /// Serves all windows that may have something to do. Returns true if anything moved.
    ///
    /// # Errors
    /// A peer broke the protocol, or progress failed.
    pub(crate) fn serve(&mut self, ports: &mut Ports) -> Result<bool> {
        for context in std::mem::take(&mut ports.messages.of_windows) {
            if let Some(handle) = self.handle_of(context) {
                self.get_mut(handle)?;
            }
        }
        let (mut moved, mut at) = (false, 0);
        while let Some(&handle) = self.marked.get(at) {
            let Some(window) = self.all.get_mut(handle) else {
                self.marked.remove(at);
                continue;
            };
            moved |= window.serve(ports)?;
            window.is_marked = !window.is_resting();
            match window.is_marked {
                true => at += 1,
                false => drop(self.marked.remove(at)),
            }
        }
        Ok(moved)
    }
}

#[cold]
fn unknown(handle: u32) -> Error {
    let detail = match handle {
        NULL => "MPI_WIN_NULL is not a window that can be used".to_string(),
        _ => format!("{handle:#x} is not a window: it was never one, or it has been freed"),
    };
    Error::new(Class::WIN, detail)
}
