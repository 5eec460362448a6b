//! Answers to the launcher's requests for a report, and the end of a rank whose launcher is gone.

use pmi::Notice;

use super::Rank;
use crate::request::Waiting;
use crate::{Class, Error, Result};

impl Rank {
    /// Reports failed rails to the launcher, and what this rank waits for, if the launcher requests
    /// it.
    ///
    /// # Errors
    /// The launcher is gone.
    #[cold]
    pub(crate) fn attend(&self, waiting: &Waiting) -> Result<()> {
        let state = &mut *self.lock();
        state.engine.report_rails();
        let answer = || {
            while state.engine.bootstrap.status_requested()? {
                let report = state.engine.report(&state.objects.comms, waiting);
                state.engine.bootstrap.notify(Notice::Status(&report))?;
            }
            Ok(())
        };
        // Nothing else would end a rank without a launcher.
        answer().map_err(|gone: pmi::LauncherGone| {
            Error::new(Class::OTHER, format!("{gone}, so this rank ends"))
        })
    }
}
