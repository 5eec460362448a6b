//! Records of calls of procedures that are not implemented yet. An error code that the program
//! ignores would hide them, so each procedure is reported to the user once.

use std::collections::BTreeSet;

/// The unimplemented procedures that the program has called.
#[derive(Default)]
pub struct Refused {
    reported: BTreeSet<&'static str>,
    last: Option<&'static str>,
}

impl Refused {
    /// A record of no calls.
    pub const fn new() -> Refused {
        Refused {
            reported: BTreeSet::new(),
            last: None,
        }
    }

    /// Records that the program has called this procedure.
    pub fn called(&mut self, procedure: &'static str) {
        self.last = Some(procedure);
    }

    /// Records that this procedure is reported to the user. Returns true if it was not reported
    /// before.
    pub(crate) fn is_new(&mut self, procedure: &'static str) -> bool {
        self.reported.insert(procedure)
    }

    /// The error text of the last unimplemented procedure that was called, if one was.
    pub fn text_of_last(&self) -> Option<String> {
        let version = env!("CARGO_PKG_VERSION");
        let text = |name| format!("{name} is not supported yet by Fishplate {version}");
        self.last.map(text)
    }
}
