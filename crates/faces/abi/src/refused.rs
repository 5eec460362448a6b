//! Calls of procedures that do not work yet. An error code that nobody reads would hide them, so
//! each is reported once to the user.

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

    /// The user has had no report of this procedure. From now on there is one.
    pub(crate) fn is_new(&mut self, procedure: &'static str) -> bool {
        self.reported.insert(procedure)
    }

    /// The text of the error that the last of these calls gave.
    pub fn text_of_last(&self) -> Option<String> {
        let version = env!("CARGO_PKG_VERSION");
        let text = |name| format!("{name} is not supported yet by Fishplate {version}");
        self.last.map(text)
    }
}
