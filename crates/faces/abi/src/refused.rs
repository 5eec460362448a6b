//! Calls of procedures that do not work yet. An error code that nobody reads would hide them, so
//! each is reported once to the user.

use crate::state::LIBRARY;
use pmi::{Notice, unsupported_text};
use std::collections::BTreeSet;

/// The procedures that do not work yet and that the program has called.
#[derive(Default)]
pub struct Refused {
    reported: BTreeSet<&'static str>,
    last: Option<&'static str>,
}

impl Refused {
    /// No procedure.
    pub const fn new() -> Refused {
        Refused {
            reported: BTreeSet::new(),
            last: None,
        }
    }

    /// The program has called this procedure.
    pub fn called(&mut self, procedure: &'static str) {
        self.last = Some(procedure);
    }

    /// The text of the error that the last of these calls gave.
    pub fn text_of_last(&self) -> Option<String> {
        let version = env!("CARGO_PKG_VERSION");
        let text = |name| format!("{name} is not supported yet by Fishplate {version}");
        self.last.map(text)
    }
}

/// Reports that the error handler of such a call has returned, once for each procedure.
#[cold]
pub(crate) fn report(procedure: &'static str) {
    if !LIBRARY.refused().reported.insert(procedure) {
        return;
    }
    let Some(rank) = LIBRARY.rank() else {
        return crate::raise::say(&unsupported_text(procedure));
    };
    let notice = Notice::Unsupported(procedure);
    let heard = rank.bootstrap().notify(notice).is_ok();
    if !heard {
        let text = unsupported_text(procedure);
        crate::raise::say(&format!("rank {}: {text}", rank.rank()));
    }
}
