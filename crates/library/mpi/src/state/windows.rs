//! Operations on windows: the only ones that change both the messages (`Engine`) and the program's
//! objects (`Objects`).

use super::{Engine, State};
use crate::Result;
use crate::request::RequestId;
use crate::window::{Access, Place, Ports, Window};

impl State {
    /// Services all windows: receives active messages, applies and answers them. True if anything
    /// moved.
    ///
    /// # Errors
    /// A peer broke the protocol: the job ends.
    pub(crate) fn serve_windows(&mut self) -> Result<bool> {
        let Engine {
            messages,
            router,
            scratch,
            ..
        } = &mut self.engine;
        let served = self.objects.windows.serve(&mut Ports {
            messages,
            router,
            scratch,
        });
        if let Err(error) = &served {
            messages.broken.get_or_insert(error.clone());
        }
        served
    }

    /// Calls `then` with a window and the parts of the engine that it needs. Then sends queued
    /// packets.
    pub(crate) fn with_window<T>(
        &mut self,
        win: u32,
        then: impl FnOnce(&mut Window, &mut Ports) -> Result<T>,
    ) -> Result<T> {
        let Engine {
            messages,
            router,
            scratch,
            ..
        } = &mut self.engine;
        let window = self.objects.windows.get_mut(win)?;
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

    /// Starts an operation on a window. The result is its request, if `wants_request`.
    ///
    /// # Errors
    /// An argument is invalid, no epoch allows the operation, or the target is lost.
    pub fn access_window(
        &mut self,
        win: u32,
        access: &Access,
        place: &Place,
        wants_request: bool,
    ) -> Result<Option<RequestId>> {
        let (request, waits) = self.with_window(win, |window, ports| {
            let request = window.start(ports, access, place, wants_request)?;
            Ok((request, window.has_queued(place.rank)))
        })?;
        if self.objects.windows.noting.is_some() {
            self.notes().access(win, access, place, wants_request)?;
        }
        if waits {
            // Credit comes with progress, and a program may make no other calls for long.
            self.progress()?;
            self.serve_windows()?;
        }
        Ok(request)
    }

    /// Checks that no member of a window is lost.
    ///
    /// # Errors
    /// A member is lost.
    #[cold]
    pub(crate) fn check_members(&self, win: u32) -> Result<()> {
        let window = self.objects.windows.get(win)?;
        let mut members = 0..window.core.size() as u32;
        members.try_for_each(|member| {
            let key = window.awaited(member);
            self.engine.check_awaited(&self.objects.comms, &key)
        })
    }
}
