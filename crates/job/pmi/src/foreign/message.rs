//! Messages between a rank and a launcher over PMI: requests, answers, and their fields.
//!
//! Pure functions: bytes in, messages out. The length of a message is bounded, and no bytes of a
//! launcher make these functions panic.

use std::fmt;

/// The length of the longest message of a launcher, in bytes: many times that of its longest value.
pub(crate) const MESSAGE_LIMIT: usize = 64 << 10;

/// A request of a rank to its launcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Request {
    /// Negotiates the version of PMI.
    Init,
    /// The first request after [`Request::Init`], by this rank. The answer has the limits of the
    /// key-value space in PMI-1, and the index of the rank's program in PMI-2.
    Begin { rank: usize },
    /// Requests the name of the key-value space in PMI-1, or of the job in PMI-2.
    Space,
    /// Requests the index of the program that this rank runs, in PMI-1.
    Program,
    /// Requests a value that the launcher itself has put; PMI-2 keeps these in a space of their
    /// own.
    Attribute { key: String },
    /// Stores a value.
    Put { key: String, value: String },
    /// Requests the value of a key.
    Get { key: String },
    /// Enters a fence; the answer arrives when all ranks have entered it.
    Fence,
    /// Ends the job. No answer follows.
    Abort { code: i32, text: String },
    /// Announces that the rank no longer needs the launcher, as at MPI_Finalize.
    Finalize,
}

/// The reason why bytes of a launcher are not a message, or not the answer to the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) String);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A message of PMI: named fields in the order of arrival.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Message {
    pub(crate) fields: Vec<(String, String)>,
}

impl Message {
    /// The value of the field `name`, if the message has it.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let field = self.fields.iter().find(|(known, _)| known == name);
        field.map(|(_, value)| value.as_str())
    }

    /// The value of the field `name` as a number.
    pub(crate) fn number(&self, name: &str) -> Result<usize, Malformed> {
        let value = self.get(name);
        let number = value.and_then(|value| value.parse().ok());
        number.ok_or_else(|| {
            Malformed(match value {
                None => format!("its answer has no {name}"),
                Some(value) => format!("its answer has {name}={}", shown(value)),
            })
        })
    }

    /// True if this answer reports success.
    pub(crate) fn is_success(&self) -> bool {
        self.get("rc").is_none_or(|code| code == "0") && self.get("found") != Some("FALSE")
    }

    /// The reason for a failure, as the launcher states it.
    pub(crate) fn failure(&self) -> String {
        let words = ["errmsg", "msg"].iter().find_map(|name| self.get(name));
        let code = self.get("rc").unwrap_or("-1");
        match words {
            Some(words) => format!("it answers: {} ({})", shown(words), shown(code)),
            None => format!("it answers with error {}", shown(code)),
        }
    }
}

/// Text of a launcher in the form for an error message: its first 100 characters, control
/// characters escaped.
pub(crate) fn shown(text: &str) -> String {
    terminal_text::line(text).chars().take(100).collect()
}

/// Bytes that have arrived and are not yet a complete message.
#[derive(Debug, Default)]
pub(crate) struct Arriving(Vec<u8>);

impl Arriving {
    /// Adds bytes that have arrived to the incomplete message.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Takes a line, without its newline. `None` if it is not complete yet.
    pub(crate) fn line(&mut self) -> Result<Option<Vec<u8>>, Malformed> {
        match self.0.iter().position(|&byte| byte == b'\n') {
            Some(end) if end <= MESSAGE_LIMIT => {
                let mut line: Vec<u8> = self.0.drain(..=end).collect();
                line.pop();
                Ok(Some(line))
            }
            None if self.0.len() <= MESSAGE_LIMIT => Ok(None),
            _ => Err(too_long()),
        }
    }

    /// Takes a message whose first six bytes are its length in decimal digits. `None` if it is not
    /// complete yet.
    pub(crate) fn counted(&mut self) -> Result<Option<Vec<u8>>, Malformed> {
        const HEAD: usize = 6;
        let Some(head) = self.0.get(..HEAD) else {
            return Ok(None);
        };
        let length = std::str::from_utf8(head).ok().map(str::trim);
        let plain = length.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let Some(length) = plain.and_then(|digits| digits.parse::<usize>().ok()) else {
            let head = shown(&String::from_utf8_lossy(head));
            return Err(Malformed(format!("it sends `{head}` as a length")));
        };
        if length > MESSAGE_LIMIT {
            return Err(too_long());
        }
        if self.0.len() < HEAD + length {
            return Ok(None);
        }
        let message = self.0.drain(..HEAD + length).skip(HEAD).collect();
        Ok(Some(message))
    }
}

fn too_long() -> Malformed {
    Malformed(format!(
        "it sends a message of more than {MESSAGE_LIMIT} bytes"
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{mapping, pmi1, pmi2};
    use super::*;

    fn requests() -> Vec<Request> {
        let (key, value) = ("card.3".to_string(), "1:a;b".to_string());
        vec![
            Request::Put {
                key: key.clone(),
                value,
            },
            Request::Get { key },
            Request::Fence,
            Request::Begin { rank: 3 },
            Request::Abort {
                code: 42,
                text: "rank 3; ends".into(),
            },
        ]
    }

    #[test]
    fn a_request_is_one_message_whose_fields_are_read_again() {
        for request in requests() {
            let mut arriving = Arriving::default();
            arriving.push(&pmi2::encode(&request, "job"));
            let message = pmi2::decode(&arriving.counted().unwrap().unwrap());
            assert_eq!(arriving.counted(), Ok(None));
            match &request {
                Request::Put { value, .. } => assert_eq!(message.get("value"), Some(&value[..])),
                Request::Abort { text, .. } => assert_eq!(message.get("msg"), Some(&text[..])),
                _ => assert!(message.get("cmd").is_some()),
            }
            arriving.push(&pmi1::encode(&request, "space"));
            let message = pmi1::decode(&arriving.line().unwrap().unwrap());
            assert!(message.get("cmd").is_some());
            assert_eq!(arriving.line(), Ok(None));
        }
    }

    #[test]
    fn a_length_that_is_none_or_too_great_is_refused() {
        for head in [
            "x     ", "-1    ", "+1    ", "99999 ", "999999", "      ", "1 2   ",
        ] {
            let mut arriving = Arriving::default();
            arriving.push(head.as_bytes());
            assert!(arriving.counted().is_err(), "{head}");
        }
        let mut arriving = Arriving::default();
        arriving.push(b"    12cmd=");
        assert_eq!(arriving.counted(), Ok(None));
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_pieces_give_the_same_messages(
            bytes in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b';'), Just(b'='), Just(b' '),
                                                       Just(b'1'), any::<u8>()], 0..300),
            cut in 0usize..300,
        ) {
            let cut = cut.min(bytes.len());
            let whole = |pieces: &[&[u8]], take: fn(&mut Arriving) -> Result<Option<Vec<u8>>, Malformed>| {
                let mut arriving = Arriving::default();
                let mut found = Vec::new();
                for piece in pieces {
                    arriving.push(piece);
                    while let Ok(Some(message)) = take(&mut arriving) {
                        found.push((pmi1::decode(&message), pmi2::decode(&message)));
                    }
                }
                found
            };
            let pieces = [&bytes[..cut], &bytes[cut..]];
            prop_assert_eq!(whole(&[&bytes], Arriving::line), whole(&pieces, Arriving::line));
            prop_assert_eq!(whole(&[&bytes], Arriving::counted), whole(&pieces, Arriving::counted));
        }

        #[test]
        fn any_text_is_a_placement_of_all_ranks_or_none(text in "\\(?v?[(),0-9vector]{0,60}\\)?", ranks in 1usize..200) {
            if let Some(hosts) = mapping::parse(&text, ranks) {
                prop_assert_eq!(hosts.ranks(), ranks);
                prop_assert!(hosts.count() <= ranks);
            }
        }
    }
}
