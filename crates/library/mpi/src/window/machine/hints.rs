//! Info keys of windows (MPI 5.0 §12.2.1): promises and requests of the program.

use crate::{Class, Error, Result};

/// The info key that promises that accumulates are only of 8-byte words.
pub(super) const WORDS: &str = "fishplate_word_accumulates";

/// The hints of a window, with their defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowHints {
    /// `no_locks`: the window is never locked. A call that locks it is an error.
    no_locks: bool,
    same_size: bool,
    same_disp_unit: bool,
    /// `alloc_shared_noncontig`: each part of a shared window begins on a page of its own.
    pub(crate) noncontiguous: bool,
    /// `accumulate_ordering`: reported as requested. Accumulates are always in order.
    ordering: String,
    /// `accumulate_ops`: reported as requested. All operations are atomic with each other.
    ops: String,
    /// `mpi_accumulate_granularity` in bytes, zero for the default: the length of a stripe in
    /// mapped memory. Elsewhere all accumulates to a target are atomic with each other, and the key
    /// is ignored.
    granularity: u64,
    /// `fishplate_word_accumulates`: every accumulate is a sum, `MPI_NO_OP` or a compare-and-swap
    /// of aligned 8-byte integers. In mapped memory these are then atomic instructions of the
    /// processor, and all others are errors; elsewhere the key is ignored.
    words: bool,
    /// True once the window exists: then `granularity` and `words` no longer change.
    is_settled: bool,
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
            words: false,
            is_settled: false,
        }
    }
}

impl WindowHints {
    /// Updates the hints from the pairs of an info object. Unknown keys are ignored, as MPI
    /// requires.
    ///
    /// # Errors
    /// A value is not valid for its key.
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
                    let bytes: std::result::Result<u64, _> = value.parse();
                    let bytes = bytes.map_err(|_| invalid(key, value, "a number of bytes"))?;
                    if !self.is_settled {
                        new.granularity = bytes;
                    }
                }
                WORDS => {
                    let words = truth(key, value)?;
                    if !self.is_settled {
                        new.words = words;
                    }
                }
                _ => {}
            }
        }
        *self = new;
        Ok(())
    }

    /// True if the user promises that the window is never locked.
    pub(crate) fn no_locks(&self) -> bool {
        self.no_locks
    }

    /// Bytes of a stripe, within which accumulates exclude each other; zero for the default.
    pub(crate) fn granularity(&self) -> u64 {
        self.granularity
    }

    /// True if the user promises that accumulates are only of 8-byte words.
    pub(crate) fn words(&self) -> bool {
        self.words
    }

    /// Records the values in effect once the window exists: `stripe` is the length of its stripes,
    /// if it has any, and `words` is true if its accumulates are atomic instructions.
    pub(crate) fn settle(&mut self, stripe: Option<u64>, words: bool) {
        self.granularity = match (self.granularity, stripe) {
            (0, _) | (_, None) => 0,
            (_, Some(stripe)) => stripe,
        };
        (self.words, self.is_settled) = (words, true);
    }

    /// All hints of the window, as keys and values.
    pub fn info(&self) -> Vec<(String, String)> {
        let rows = [
            ("no_locks", self.no_locks.to_string()),
            ("accumulate_ordering", self.ordering.clone()),
            ("accumulate_ops", self.ops.clone()),
            ("mpi_accumulate_granularity", self.granularity.to_string()),
            (WORDS, self.words.to_string()),
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
            (WORDS, "true", "8"),
        ] {
            hints.update(&pair(key, good)).unwrap();
            assert!(hints.info().contains(&(key.to_string(), good.to_string())));
            let refused = hints.update(&pair(key, bad)).unwrap_err();
            assert_eq!(refused.class, Class::INFO_VALUE);
        }
        hints.update(&pair("colour", "red")).unwrap();
        assert!(hints.no_locks && hints.noncontiguous);
        assert_eq!(hints.info().len(), 8);
        let shown = |hints: &WindowHints, key: &str| {
            let info = hints.info();
            info.into_iter().find(|(known, _)| known == key).unwrap().1
        };
        // The keys show the values in effect, which do not change afterwards.
        for (stripe, words, granularity) in [(Some(8192), true, "8192"), (None, false, "0")] {
            let mut hints = hints.clone();
            hints.settle(stripe, words);
            for _ in 0..2 {
                assert_eq!(shown(&hints, "mpi_accumulate_granularity"), granularity);
                assert_eq!(shown(&hints, WORDS), words.to_string());
                hints
                    .update(&pair("mpi_accumulate_granularity", "64"))
                    .unwrap();
                hints.update(&pair(WORDS, "true")).unwrap();
            }
        }
        let mut usual = WindowHints::default();
        usual.settle(Some(4096), false);
        assert_eq!(shown(&usual, "mpi_accumulate_granularity"), "0");
    }
}
