//! Rank 0's explanation of its choices (protocols, rails, algorithms), passed to the launcher in
//! parts through the job's key-value store.

use crate::{Bootstrap, KvsError, VALUE_LIMIT, hex, unhex};

/// The length of one part of an explanation, in bytes. The key-value store holds it in hexadecimal
/// digits, which take twice as many bytes.
const PART: usize = VALUE_LIMIT / 2;

fn key(part: usize) -> String {
    format!("explanation.{part}")
}

/// Stores an explanation for the launcher in the key-value store, split into parts. The last part
/// is shorter than the others, possibly empty.
pub fn put_explanation(job: &dyn Bootstrap, text: &str) -> Result<(), KvsError> {
    let bytes = text.as_bytes();
    for part in 0..=bytes.len() / PART {
        let rest = &bytes[part * PART..];
        job.put(&key(part), &hex(&rest[..rest.len().min(PART)]))?;
    }
    Ok(())
}

/// Reassembles an explanation from its parts. `value` returns the value of a key in the key-value
/// store. `None` if a part is missing.
pub fn explanation<'a>(value: impl Fn(&str) -> Option<&'a str>) -> Option<String> {
    let mut bytes = Vec::new();
    for number in 0.. {
        let part = unhex(value(&key(number))?)?;
        bytes.extend_from_slice(&part);
        if part.len() < PART {
            break;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::{Hosts, InProcess};

    #[test]
    fn a_text_of_any_length_survives_the_store() {
        for len in [0, 1, PART - 1, PART, PART + 1, 3 * PART] {
            let text: String = "explained ".chars().cycle().take(len).collect();
            let job = InProcess::job(Hosts::one(1)).remove(0);
            put_explanation(&job, &text).unwrap();
            let mut values = HashMap::new();
            for part in 0..=len / PART {
                job.get(&key(part)).unwrap();
                values.extend(job.next_value().unwrap());
            }
            let whole = explanation(|key| values.get(key).map(String::as_str));
            assert_eq!(whole, Some(text));
            values.remove(&key(len / PART));
            let cut = explanation(|key| values.get(key).map(String::as_str));
            assert_eq!(cut, None, "the last part is missing");
        }
    }
}
