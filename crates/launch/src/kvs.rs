//! The job's key-value space, which the launcher keeps for all ranks.

use std::collections::HashMap;

use pmi::{check_key, check_value};

/// What a space holds in all: keys and values of the largest job take a part of it.
const BYTES_LIMIT: usize = 256 << 20;

/// Values that have been put, and the ranks that wait for others.
#[derive(Debug, Default)]
pub(crate) struct Space {
    values: HashMap<String, Entry>,
    waiting: HashMap<String, Vec<usize>>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    value: String,
    by: usize,
}

impl Space {
    /// Takes a value. Returns the ranks that have been waiting for it; an error says what was wrong with it.
    pub fn put(&mut self, by: usize, key: &str, value: &str) -> Result<Vec<usize>, String> {
        check_key(key)
            .and_then(|()| check_value(key, value))
            .map_err(|why| why.to_string())?;
        if let Some(entry) = self.values.get(key) {
            return match entry.value == value {
                true => Ok(Vec::new()),
                false => Err(format!(
                    "the key {key} has another value already, put by rank {}",
                    entry.by
                )),
            };
        }
        self.bytes += key.len() + value.len();
        if self.bytes > BYTES_LIMIT {
            return Err(format!(
                "with the key {key} it holds more than {} MiB",
                BYTES_LIMIT >> 20
            ));
        }
        let value = value.to_string();
        self.values.insert(key.to_string(), Entry { value, by });
        Ok(self.waiting.remove(key).unwrap_or_default())
    }

    /// The value, if it has been put; otherwise `by` waits for it.
    pub fn get(&mut self, by: usize, key: &str) -> Result<Option<&str>, String> {
        check_key(key).map_err(|why| why.to_string())?;
        if !self.values.contains_key(key) {
            self.waiting.entry(key.to_string()).or_default().push(by);
        }
        Ok(self.values.get(key).map(|entry| entry.value.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::Space;

    #[test]
    fn answers_come_at_once_or_with_the_value() {
        let mut space = Space::default();
        assert_eq!(space.get(3, "a"), Ok(None));
        assert_eq!(space.get(4, "a"), Ok(None));
        assert_eq!(space.put(0, "a", "1"), Ok(vec![3, 4]));
        assert_eq!(space.put(0, "a", "1"), Ok(vec![]));
        assert_eq!(space.get(3, "a"), Ok(Some("1")));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let mut space = Space::default();
        space.put(0, "a", "1").unwrap();
        assert!(space.put(1, "a", "2").unwrap_err().contains("by rank 0"));
        assert!(space.put(1, "", "2").unwrap_err().contains("printable"));
        let long = "x".repeat(pmi::VALUE_LIMIT + 1);
        assert!(space.put(1, "b", &long).unwrap_err().contains("3072"));
        assert!(space.get(1, &long).unwrap_err().contains("128"));
        assert_eq!(space.get(1, "b"), Ok(None));
    }
}
