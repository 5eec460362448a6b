//! Info keys of windows (MPI 5.0 §12.2.1): promises and wishes of the program.

use crate::{Class, Error, Result};

/// The hints of a window, with their defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowHints {
    /// `no_locks`: the window is never locked. Locking it all the same is an error.
    no_locks: bool,
    same_size: bool,
    same_disp_unit: bool,
    /// `alloc_shared_noncontig`: the parts of a shared window begin on pages of their own.
    pub(crate) noncontiguous: bool,
    /// `accumulate_ordering`: reported as wished. Accumulates are always in order.
    ordering: String,
    /// `accumulate_ops`: reported as wished. All operations are atomic with each other.
    ops: String,
    /// `mpi_accumulate_granularity` in bytes: reported as wished. All accumulates to a target are
    /// atomic with each other.
    granularity: u64,
}

impl Default for WindowHints {
    fn default() -> WindowHints {
        WindowHints {
            no_locks: false,
            same_size: false,
            same_disp_unit: false,
            noncontiguous: false,
            ordering: "rar,raw,war,waw".to_string(),
            ops: "same_op_no_op".to_string(),
            granularity: 0,
        }
    }
}

impl WindowHints {
    /// Takes the keys of an info object. Unknown keys are ignored, as the standard asks.
    ///
    /// # Errors
    /// A value is none of its key.
    pub fn update(&mut self, info: &[(String, String)]) -> Result<()> {
        let mut new = self.clone();
        for (key, value) in info {
            match key.as_str() {
                "no_locks" => new.no_locks = truth(key, value)?,
                "same_size" => new.same_size = truth(key, value)?,
                "same_disp_unit" => new.same_disp_unit = truth(key, value)?,
                "alloc_shared_noncontig" => new.noncontiguous = truth(key, value)?,
                "accumulate_ordering" => new.ordering = ordering(key, value)?,
                "accumulate_ops" => {
                    if !["same_op", "same_op_no_op"].contains(&value.as_str()) {
                        return Err(invalid(key, value, "`same_op` and `same_op_no_op`"));
                    }
                    new.ops.clone_from(value);
                }
                "mpi_accumulate_granularity" => {
                    let bytes = value.parse();
                    new.granularity =
                        bytes.map_err(|_| invalid(key, value, "a number of bytes"))?;
                }
                _ => {}
            }
        }
        *self = new;
        Ok(())
    }

    /// The window is never locked.
    pub(crate) fn no_locks(&self) -> bool {
        self.no_locks
    }

    /// All keys with their values.
    pub fn info(&self) -> Vec<(String, String)> {
        let rows = [
            ("no_locks", self.no_locks.to_string()),
            ("accumulate_ordering", self.ordering.clone()),
            ("accumulate_ops", self.ops.clone()),
            ("mpi_accumulate_granularity", self.granularity.to_string()),
            ("same_size", self.same_size.to_string()),
            ("same_disp_unit", self.same_disp_unit.to_string()),
            ("alloc_shared_noncontig", self.noncontiguous.to_string()),
        ];
        rows.map(|(key, value)| (key.to_string(), value)).into()
    }
}

fn truth(key: &str, value: &str) -> Result<bool> {
    value
        .parse()
        .map_err(|_| invalid(key, value, "`true` and `false`"))
}

fn ordering(key: &str, value: &str) -> Result<String> {
    let known = |part: &str| ["rar", "raw", "war", "waw"].contains(&part.trim());
    match value == "none" || value.split(',').all(known) {
        true => Ok(value.to_string()),
        false => Err(invalid(
            key,
            value,
            "`none` and lists of `rar`, `raw`, `war`, `waw`",
        )),
    }
}

#[cold]
fn invalid(key: &str, value: &str, valid: &str) -> Error {
    let detail = format!("the info key {key} has the value `{value}`; valid are {valid}");
    Error::new(Class::INFO_VALUE, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_checked_and_reported() {
        let mut hints = WindowHints::default();
        let pair = |key: &str, value: &str| [(key.to_string(), value.to_string())];
        for (key, value) in hints.info() {
            hints.update(&pair(&key, &value)).unwrap();
        }
        assert_eq!(hints, WindowHints::default());
        for (key, good, bad) in [
            ("no_locks", "true", "yes"),
            ("same_size", "true", ""),
            ("alloc_shared_noncontig", "true", "1"),
            ("accumulate_ordering", "none", "rar,all"),
            ("accumulate_ordering", "rar,waw", "none,rar"),
            ("accumulate_ops", "same_op", "any"),
            ("mpi_accumulate_granularity", "4096", "-1"),
        ] {
            hints.update(&pair(key, good)).unwrap();
            assert!(hints.info().contains(&(key.to_string(), good.to_string())));
            let refused = hints.update(&pair(key, bad)).unwrap_err();
            assert_eq!(refused.class, Class::INFO_VALUE);
        }
        hints.update(&pair("colour", "red")).unwrap();
        assert!(hints.no_locks && hints.noncontiguous);
        assert_eq!(hints.info().len(), 7);
    }
}
