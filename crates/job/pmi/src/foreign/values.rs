//! The values of our key-value store in the key-value space of another launcher: escaped to
//! characters that every launcher carries, and split into parts no longer than its limit.
//!
//! The value of the key `card.3` is stored under `card.3`, which begins with the number of parts,
//! `part1.card.3`, `part2.card.3` and so on. A key ends with the rank that puts it.

use std::collections::HashMap;

use crate::KvsError;

/// The most parts into which a value is divided.
const MOST_PARTS: usize = 64;
/// The length of the prefix of the first part, in bytes: the number of parts, and a colon.
const HEAD: usize = 3;

/// Splits a value that is stored under `key`: into pairs of a key and a text of at most `limit`
/// bytes.
pub(crate) fn parts(
    key: &str,
    value: &str,
    limit: usize,
) -> Result<Vec<(String, String)>, KvsError> {
    let text = escaped(value);
    let room = limit.saturating_sub(HEAD).max(1);
    let chunks = text.as_bytes().chunks(room);
    let chunks: Vec<String> = match text.is_empty() {
        true => vec![String::new()],
        false => chunks
            .map(|chunk| String::from_utf8_lossy(chunk).into())
            .collect(),
    };
    if chunks.len() > MOST_PARTS {
        return Err(KvsError::TooLong {
            what: "value",
            bytes: text.len(),
            limit: MOST_PARTS * room,
            key: key.to_string(),
        });
    }
    let count = chunks.len();
    let part = |(number, chunk): (usize, String)| match number {
        0 => (key.to_string(), format!("{count}:{chunk}")),
        _ => (part_key(key, number), chunk),
    };
    Ok(chunks.into_iter().enumerate().map(part).collect())
}

fn part_key(key: &str, number: usize) -> String {
    format!("part{number}.{key}")
}

/// The rank that puts the value of a key: the number at the key's end. `None`: the key has no such
/// number.
pub(crate) fn owner(key: &str) -> Option<usize> {
    key.rsplit('.').next()?.parse().ok()
}

/// The parts of values of which others are still missing.
#[derive(Debug, Default)]
pub(crate) struct Assembly(HashMap<String, Vec<Option<String>>>);

/// The result of adding a part of a value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Assembled {
    /// The value of a key is complete: the key, and the value.
    Value(String, String),
    /// These keys have to be requested for the missing parts. Empty if they have been requested.
    Wants(Vec<String>),
}

impl Assembly {
    /// Adds the part that is stored under `key`. `None`: it is invalid, so the launcher has changed
    /// it.
    pub(crate) fn add(&mut self, key: &str, text: &str) -> Option<Assembled> {
        let later = key
            .strip_prefix("part")
            .and_then(|rest| rest.split_once('.'));
        let (key, number, chunk) = match later {
            Some((number, key)) => (key, number.parse::<usize>().ok()?, text),
            None => {
                let (count, chunk) = text.split_once(':')?;
                let count = count
                    .parse()
                    .ok()
                    .filter(|count| (1..=MOST_PARTS).contains(count))?;
                self.0.insert(key.to_string(), vec![None; count]);
                (key, 0, chunk)
            }
        };
        let found = self.0.get_mut(key)?;
        *found.get_mut(number)? = Some(chunk.to_string());
        let count = found.len();
        if found.iter().all(Option::is_some) {
            let text: String = self.0.remove(key)?.into_iter().flatten().collect();
            return Some(Assembled::Value(key.to_string(), unescaped(&text)?));
        }
        let wanted = (1..count).filter(|_| number == 0);
        Some(Assembled::Wants(
            wanted.map(|number| part_key(key, number)).collect(),
        ))
    }
}

/// Escapes a text: letters, digits and a few signs stay, every other byte becomes `%XX`.
fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.,:/".contains(&byte);
    let letters = text.bytes().map(|byte| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    letters.collect()
}

fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        bytes.push(match first {
            b'%' => {
                let (digits, after) = rest.split_at_checked(2)?;
                rest = after;
                u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Splits a value of `card.3` into parts with this limit and reassembles it. Returns the
    /// result, and the number of parts.
    fn through(value: &str, limit: usize) -> (String, usize) {
        let parts = parts("card.3", value, limit).unwrap();
        assert!(parts.iter().all(|(_, text)| text.len() <= limit));
        assert!(parts.iter().all(|(key, _)| owner(key) == Some(3)));
        let space: HashMap<String, String> = parts.iter().cloned().collect();
        let mut assembly = Assembly::default();
        let mut wanted = vec!["card.3".to_string()];
        while let Some(key) = wanted.pop() {
            match assembly.add(&key, &space[&key]).unwrap() {
                Assembled::Value(key, value) => {
                    assert_eq!(key, "card.3");
                    assert!(wanted.is_empty());
                    return (value, parts.len());
                }
                Assembled::Wants(keys) => wanted.extend(keys),
            }
        }
        panic!("the value is not complete")
    }

    #[test]
    fn a_value_of_any_length_and_letters_survives_a_small_space() {
        for value in [
            "",
            "a",
            "0123456789abcdef",
            "a=b;c%d~\"'\\{}",
            &"x".repeat(1000),
        ] {
            for limit in [20, 63, 1023, 100_000] {
                let (found, parts) = through(value, limit);
                assert_eq!(found, value);
                assert!(limit < 100_000 || parts == 1);
            }
        }
        assert!(parts("card.3", &"x".repeat(1000), 8).is_err());
    }

    #[test]
    fn a_part_that_was_changed_is_noticed() {
        let mut assembly = Assembly::default();
        for (key, text) in [
            ("card.0", "x"),
            ("card.0", "0:x"),
            ("card.0", "65:x"),
            ("card.0", ":x"),
            ("card.0", "1:%"),
            ("card.0", "1:%zz"),
            ("part1.card.0", "x"),
            ("partx.card.0", "x"),
        ] {
            assert_eq!(assembly.add(key, text), None, "{key} {text}");
        }
    }
}
