//! The limits of a recording, by time and by size.

/// The variable with the limits: `60s`, `1000000B`, or both, separated by a comma. The bytes are
/// those of all ranks.
const LIMIT: &str = "FISHPLATE_RECORD_LIMIT";

/// The limits of the recording of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    /// The longest time, in nanoseconds.
    pub(crate) nanos: u64,
    /// The most bytes.
    pub(crate) bytes: u64,
}

impl Limit {
    /// The limits that the user has set, for a job of so many ranks.
    ///
    /// # Errors
    /// The variable has another form.
    pub(crate) fn of_environment(ranks: u64) -> Result<Limit, String> {
        let text = std::env::var(LIMIT).unwrap_or_default();
        Limit::parse(&text, ranks).ok_or_else(|| {
            format!("{LIMIT}={text} is no limit; valid are 60s, 1000000B, and both with a comma")
        })
    }

    fn parse(text: &str, ranks: u64) -> Option<Limit> {
        let mut limit = Limit {
            nanos: u64::MAX,
            bytes: u64::MAX,
        };
        for word in text.split(',').filter(|word| !word.is_empty()) {
            if let Some(seconds) = word.strip_suffix('s') {
                let seconds = seconds.parse::<f64>().ok()?;
                // A limit beyond the range of the type is none.
                limit.nanos = (seconds > 0.0).then_some((seconds * 1e9) as u64)?;
            } else {
                let bytes = word.strip_suffix('B')?.parse::<u64>().ok()?;
                limit.bytes = bytes / ranks.max(1);
            }
        }
        Some(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_parsed() {
        let of = |text: &str| Limit::parse(text, 4).map(|limit| (limit.nanos, limit.bytes));
        assert_eq!(of(""), Some((u64::MAX, u64::MAX)));
        assert_eq!(of("0.5s"), Some((500_000_000, u64::MAX)));
        assert_eq!(of("4000B,2s"), Some((2_000_000_000, 1000)));
        for wrong in ["5", "-1s", "0s", "nans", "1GB", "s", "B", "1s;2B"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}
