//! Windows and the progress thread: which windows need it, and what they report about it.

use super::{AccessKind, Assistance, Flavor, Progressor, Progressors, Window};
use crate::Result;
use crate::window::Windows;

/// The info key with which a window reports who makes progress for its operations.
const KEY: &str = "fishplate_progress";

impl Window {
    /// True if operations of this kind need the processor of their target.
    fn needs_target(&self, kind: AccessKind) -> bool {
        // In mapped memory, window locks and locks of stripes are words of that memory.
        let (AccessKind::Put | AccessKind::Get | AccessKind::Accumulate | AccessKind::Lock) = kind;
        self.direct.is_none()
    }

    /// True if other members may need this rank's processor at any time, even while it makes no MPI
    /// calls. Without locks, every epoch ends with a call of each target.
    pub(crate) fn needs_thread(&self) -> bool {
        let mut kinds = AccessKind::ALL.into_iter();
        let needs_target = kinds.any(|kind| self.needs_target(kind));
        needs_target && self.core.size() > 1 && !self.hints.no_locks()
    }
}

impl Windows {
    /// True if one of the rank's windows needs the progress thread.
    pub(crate) fn need_thread(&self) -> bool {
        self.with_thread > 0
    }

    /// True if a progress thread, real or modelled, serves the windows that need it.
    pub(crate) fn has_thread(&self) -> bool {
        !matches!(self.thread, Assistance::None)
    }

    /// True if the progress thread is a modelled one in virtual time.
    pub(crate) fn has_modelled_thread(&self) -> bool {
        matches!(self.thread, Assistance::Modelled)
    }

    /// For each kind of operations on a window: who makes progress for them at the target.
    fn progressors(&self, window: &Window) -> Progressors {
        let has_thread = self.has_thread() && window.needs_thread();
        AccessKind::ALL.map(|kind| match (window.needs_target(kind), has_thread) {
            (false, _) => Progressor::Memory,
            (true, true) => Progressor::Thread,
            (true, false) => Progressor::Calls,
        })
    }

    /// All info keys of a window with their values.
    ///
    /// # Errors
    /// The handle is invalid.
    pub fn info(&self, handle: u32) -> Result<Vec<(String, String)>> {
        let window = self.get(handle)?;
        let progressors = self.progressors(window).into_iter();
        let pairs = AccessKind::ALL.into_iter().zip(progressors);
        let pairs = pairs.map(|(kind, who)| format!("{}={}", kind.name(), who.name()));
        let value = pairs.collect::<Vec<_>>().join(",");
        let mut info = window.hints.info();
        info.push((KEY.to_string(), value));
        Ok(info)
    }

    /// Counts a new window in [`Windows::made`].
    pub(crate) fn count_made(&mut self, handle: u32) {
        let Some(window) = self.all.get(handle) else {
            return;
        };
        let (flavor, progressors) = (window.flavor, self.progressors(window));
        let mut known = self.made.iter_mut();
        match known.find(|(other, who, _)| (*other, *who) == (flavor, progressors)) {
            Some((.., count)) => *count += 1,
            None => self.made.push((flavor, progressors, 1)),
        }
    }

    /// The windows that this rank has made: flavour, means of progress, and the number of such
    /// windows.
    pub fn made(&self) -> &[(Flavor, Progressors, u64)] {
        &self.made
    }
}
