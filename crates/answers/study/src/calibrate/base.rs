//! The system from which a calibration starts.

use anyhow::Result;
use fabric::System;
use fabric::catalogue::{Catalogue, Sheet};
use fabric::components::Part;

/// The catalogued system from which a calibration starts.
#[derive(Clone)]
pub struct Base {
    /// The catalogue that contains the system before the calibration.
    pub catalogue: Catalogue,
    /// The name of the system in the catalogue.
    pub name: String,
    /// The text of the file that defines the system; empty for a built-in system.
    pub text: String,
}

impl Base {
    pub(super) fn sheet(&self) -> Result<Sheet> {
        let sheet = self.catalogue.sheet(System::KIND, &self.name);
        sheet.map_err(|why| anyhow::anyhow!("{why}"))
    }
}
