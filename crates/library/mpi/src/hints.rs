//! Hints on communicators (MPI 5.0 §7.4.4): assertions of the user that the library may rely on.

use crate::{Class, Error, Result};

/// The assertions that the standard defines; each is `true` or `false`.
const ASSERTIONS: [&str; 5] = [
    "mpi_assert_allow_overtaking",
    "mpi_assert_exact_length",
    "mpi_assert_no_any_source",
    "mpi_assert_no_any_tag",
    "mpi_assert_strict_persistent_collective_ordering",
];

/// The assertions that have been set. Other keys are ignored, as the standard asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints([Option<bool>; ASSERTIONS.len()]);

impl Hints {
    /// The hints that an info object gives. Keys that are no assertions are ignored.
    pub fn new(info: &[(String, String)]) -> Result<Hints> {
        let mut hints = Hints::default();
        hints.update(info)?;
        Ok(hints)
    }

    /// Sets the assertions of `info` and keeps the others.
    pub fn update(&mut self, info: &[(String, String)]) -> Result<()> {
        let mut updated = self.clone();
        for (key, value) in info {
            let Some(at) = ASSERTIONS.iter().position(|assertion| assertion == key) else {
                continue;
            };
            updated.0[at] = match value.as_str() {
                "true" => Some(true),
                "false" => Some(false),
                _ => {
                    let detail = format!(
                        "the info key {key} has the value `{value}`; valid are `true` and `false`"
                    );
                    return Err(Error::new(Class::INFO_VALUE, detail));
                }
            };
        }
        *self = updated;
        Ok(())
    }

    /// The assertions that are set, as keys and values of an info object.
    pub fn info(&self) -> Vec<(String, String)> {
        let set = ASSERTIONS
            .iter()
            .zip(self.0)
            .filter_map(|(key, value)| Some((key, value?)));
        set.map(|(key, value)| (key.to_string(), value.to_string()))
            .collect()
    }
}
