//! How much narrower a tree is above its leaves.

use std::fmt;

use crate::quantity::{Quantity, Raw};

/// Hosts of a leaf switch for each of its links to the level above, written as a number or as a
/// ratio: 3 or "3:1".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oversubscription(pub u32);

impl fmt::Display for Oversubscription {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl Oversubscription {
    /// Reads a word of a command line, such as 3 or 3:1.
    ///
    /// # Errors
    /// Another word, with the valid ones.
    pub fn of_word(word: &str) -> Result<Oversubscription, String> {
        let number = word.strip_suffix(":1").unwrap_or(word);
        let number = number.trim().parse().map(Oversubscription);
        number.map_err(|_| format!("valid is {}", Oversubscription::VALID))
    }
}

impl Quantity for Oversubscription {
    const VALID: &'static str =
        "a whole number of hosts for each link up, from 1 to 64, such as 3 or \"3:1\"";

    fn read(raw: &Raw) -> Option<Self> {
        match raw {
            Raw::Text(text) => Oversubscription::of_word(text).ok(),
            other => u32::read(other).map(Oversubscription),
        }
    }

    fn show(&self) -> String {
        self.0.to_string()
    }

    fn to_word(&self) -> u64 {
        self.0.into()
    }

    fn from_word(word: u64) -> Option<Self> {
        u32::from_word(word).map(Oversubscription)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_a_number_of_hosts_for_one_link() {
        let read = |text: &str| Oversubscription::read(&Raw::Text(text.into()));
        assert_eq!(read("3:1"), Some(Oversubscription(3)));
        assert_eq!(read("2"), Some(Oversubscription(2)));
        assert_eq!(
            Oversubscription::read(&Raw::Integer(5)),
            Some(Oversubscription(5))
        );
        for text in ["3:2", "1:3", "-1", "three", ""] {
            assert_eq!(read(text), None, "{text}");
        }
        let kept = Oversubscription(3);
        assert_eq!(Oversubscription::from_word(kept.to_word()), Some(kept));
    }
}
