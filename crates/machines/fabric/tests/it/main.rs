//! Tests of the catalogue, of units, and of what messages cost.

mod catalogue;
mod costs;
mod narrower;
mod rails;
mod units;
mod wrong_files;

use fabric::System;
use fabric::catalogue::Catalogue;

/// A system of the catalogue.
fn system(name: &str) -> System {
    Catalogue::builtin().system(name).unwrap()
}
