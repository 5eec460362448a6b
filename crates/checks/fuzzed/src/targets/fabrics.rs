//! Fuzz target: the parser of files of modelled machines, with the catalogue beside them.
//!
//! The promise: a system of a file that is read comes back as it was from the form that ranks get.

use fabric::System;
use fabric::catalogue::Catalogue;

const FILE: &str = "fuzzed.toml";

pub(crate) fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut catalogue = Catalogue::builtin();
    if let Err(problems) = catalogue.add(FILE, &text) {
        assert!(!problems.to_string().is_empty());
        return;
    }
    for name in catalogue.systems_of(FILE) {
        if let Ok(system) = catalogue.system(name) {
            let again = System::decode(&system.encode());
            assert!(again.is_ok_and(|again| again == system), "{name}");
        }
    }
    catalogue.slips(FILE);
}
