//! Tests of the catalogue, of units, and of the costs of messages.

mod catalogue;
mod costs;
mod narrower;
mod networks;
mod rails;
mod units;
mod wrong_files;

use fabric::System;
use fabric::catalogue::Catalogue;

/// The system of this name in the catalogue.
fn system(name: &str) -> System {
    Catalogue::builtin().system(name).unwrap()
}
