//! Properties of the modelled HCA beyond the traits: its times, its faults, and the rules of the
//! specification.

mod faults;
mod free_start;
mod port_faults;
mod processes;
mod rails;
mod rates;
mod shares;
mod times;
mod trees;
mod usage;
mod verbs;

use fabric::catalogue::Catalogue;

/// The names of all systems of the catalogue.
pub(crate) fn systems() -> Vec<String> {
    let catalogue = Catalogue::builtin();
    let systems = catalogue.entries().filter(|entry| entry.kind == "system");
    systems.map(|entry| entry.name.to_owned()).collect()
}
