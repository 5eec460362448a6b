//! Fuzz targets for data from other launchers. The parsers are private to this crate; crate
//! `fuzzed` runs the targets. A target takes any bytes, and panics if a promise is broken.

use super::message::{Arriving, MESSAGE_LIMIT, Message, Request};
use super::values::{Assembled, Assembly, parts};
use super::{mapping, pmi1, pmi2};

/// The length of the longest error message about a launcher's text, in characters.
const LONGEST_SHOWN: usize = 300;

/// Fuzz target: bytes of a launcher over PMI-1 or PMI-2, split at arbitrary positions.
///
/// The promises: the memory for these bytes is bounded; a failure is short and has no control
/// characters; an encoded message of PMI-2 is decoded to the same message.
pub fn messages(bytes: &[u8]) {
    let (mode, bytes) = bytes.split_first().unwrap_or((&0, &[]));
    let mut arriving = Arriving::default();
    for piece in bytes.chunks(usize::from(mode >> 1).max(1)) {
        arriving.push(piece);
        loop {
            let next = match mode & 1 {
                0 => arriving.line(),
                _ => arriving.counted(),
            };
            match next {
                Ok(None) => break,
                Ok(Some(message)) => {
                    assert!(message.len() <= MESSAGE_LIMIT);
                    read(match mode & 1 {
                        0 => pmi1::decode(&message),
                        _ => pmi2::decode(&message),
                    });
                }
                Err(why) => return check_words(&why.to_string()),
            }
        }
    }
    let text = String::from_utf8_lossy(bytes);
    requests(&text);
}

fn read(message: Message) {
    if !message.is_success() {
        check_words(&message.failure());
    }
    for name in ["rank", "size", "rc", "vallen_max"] {
        if let Err(why) = message.number(name) {
            check_words(&why.to_string());
        }
    }
}

fn check_words(words: &str) {
    assert!(words.chars().count() <= LONGEST_SHOWN, "{words:?}");
    assert!(!words.contains(char::is_control), "{words:?}");
}

/// Encodes all requests of a rank, with this text as key and value.
fn requests(text: &str) {
    let (key, value) = (text.to_string(), text.to_string());
    for request in [
        Request::Init,
        Request::Begin { rank: text.len() },
        Request::Space,
        Request::Program,
        Request::Attribute { key: key.clone() },
        Request::Get { key: key.clone() },
        Request::Put { key, value },
        Request::Fence,
        Request::Abort {
            code: 1,
            text: text.to_string(),
        },
        Request::Finalize,
    ] {
        assert!(pmi1::encode(&request, "space").ends_with(b"\n"));
        let _ = (pmi1::answer(&request), pmi2::answer(&request));
        let bytes = pmi2::encode(&request, "job");
        let mut arriving = Arriving::default();
        arriving.push(&bytes);
        if request == Request::Init {
            continue;
        }
        if let Ok(Some(body)) = arriving.counted() {
            let message = pmi2::decode(&body);
            assert!(message.get("cmd").is_some());
        }
    }
}

/// Fuzz target: the placement of a job, and the values of a key-value space, as another launcher
/// sends them.
///
/// The promises: each rank is placed once; a value of ours is reassembled from its parts; whatever
/// parts arrive, the memory for them is bounded.
pub fn values(bytes: &[u8]) {
    let (mode, bytes) = bytes.split_first().unwrap_or((&0, &[]));
    let text = String::from_utf8_lossy(bytes);
    let ranks = usize::from(mode >> 1) + 1;
    if mode & 1 == 0 {
        if let Some(hosts) = mapping::parse(&text, ranks) {
            assert_eq!(hosts.ranks(), ranks);
            let placed: usize = (0..hosts.count() as u32)
                .map(|host| hosts.on(host).count())
                .sum();
            assert_eq!(placed, ranks);
        }
        return comes_back(&text, ranks);
    }
    let mut assembly = Assembly::default();
    for line in text.lines() {
        let (key, part) = line.split_once(' ').unwrap_or((line, ""));
        match assembly.add(key, part) {
            Some(Assembled::Value(_, value)) => assert!(value.len() <= text.len()),
            Some(Assembled::Wants(keys)) => assert!(keys.len() < 64),
            None => {}
        }
    }
}

fn comes_back(value: &str, limit: usize) {
    let Ok(parts) = parts("card.3", value, limit) else {
        return;
    };
    let mut assembly = Assembly::default();
    let mut found = None;
    for (key, part) in &parts {
        match assembly.add(key, part) {
            Some(Assembled::Value(_, value)) => found = Some(value),
            Some(Assembled::Wants(_)) => {}
            None => panic!("a part of ours was not taken: {key}"),
        }
    }
    assert_eq!(found.as_deref(), Some(value));
}
