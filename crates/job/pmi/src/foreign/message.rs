//! Messages between a rank and a launcher that speaks PMI: requests, answers, and their fields.
//!
//! Pure: bytes in, messages out. A message has a bounded length, and no bytes of a launcher make
//! these functions panic.

use std::fmt;

/// The longest message of a launcher, in bytes: many times its longest value.
pub(crate) const MESSAGE_LIMIT: usize = 64 << 10;

/// A request of a rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Request {
    /// Agreement on the version of the protocol.
    Init,
    /// The first request after it, by this rank. The answer has the limits of the key-value space
    /// in PMI-1, and the number of the rank's program in PMI-2.
    Begin { rank: usize },
    /// The name of the key-value space, or of the job.
    Space,
    /// The number of the rank's program, in PMI-1.
    Program,
    /// A value that the launcher itself has put: PMI-2 keeps those apart.
    Attribute { key: String },
    /// Store a value.
    Put { key: String, value: String },
    /// The value of a key.
    Get { key: String },
    /// The rank enters a fence; the answer is its end.
    Fence,
    /// The end of the job. No answer follows.
    Abort { code: i32, text: String },
    /// The rank needs the launcher no more.
    Finalize,
}

/// Reason why bytes of a launcher are no message, or not the answer to the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) String);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A message: named fields in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Message {
    pub(crate) fields: Vec<(String, String)>,
}

impl Message {
    /// The value of a field.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let field = self.fields.iter().find(|(known, _)| known == name);
        field.map(|(_, value)| value.as_str())
    }

    /// The number in a field.
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

    /// The launcher has done what the request asks for.
    pub(crate) fn is_success(&self) -> bool {
        self.get("rc").is_none_or(|code| code == "0") && self.get("found") != Some("FALSE")
    }

    /// The reason that the launcher gives for a failure.
    pub(crate) fn failure(&self) -> String {
        let words = ["errmsg", "msg"].iter().find_map(|name| self.get(name));
        let code = self.get("rc").unwrap_or("-1");
        match words {
            Some(words) => format!("it answers: {} ({})", shown(words), shown(code)),
            None => format!("it answers with error {}", shown(code)),
        }
    }
}

/// Text of a launcher as an error shows it: its beginning, control characters escaped.
pub(crate) fn shown(text: &str) -> String {
    terminal_text::line(text).chars().take(100).collect()
}

/// Bytes that have arrived and are not yet a whole message.
#[derive(Debug, Default)]
pub(crate) struct Arriving(Vec<u8>);

impl Arriving {
    /// Adds bytes that have arrived.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Takes a line, without its end. None if it is not complete.
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

    /// Takes a message whose first six bytes are its length in decimal digits.
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
