//! The key of a call as text: `c257,s4,p-1` is communicator 257, size class 4, the rank before the
//! caller as peer; `n` marks a call that makes or frees an object. An empty text is a key without
//! fields.

use device::CallKey;

/// Writes the key of a call as text.
pub(super) fn text(key: CallKey) -> String {
    let parts = [
        key.comm.map(|comm| format!("c{comm}")),
        key.size.map(|size| format!("s{size}")),
        key.peer.map(|peer| format!("p{peer}")),
        key.constructs.then(|| "n".to_owned()),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(",")
}

/// The key that a text encodes. `None`: the text is not valid.
pub(super) fn parse(text: &str) -> Option<CallKey> {
    let mut key = CallKey::default();
    for part in text.split(',').filter(|_| !text.is_empty()) {
        match part.split_at_checked(1)? {
            ("c", number) => key.comm = Some(number.parse().ok()?),
            ("s", number) => key.size = Some(number.parse().ok()?),
            ("p", number) => key.peer = Some(number.parse().ok()?),
            ("n", "") => key.constructs = true,
            _ => return None,
        }
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_comes_back_from_its_text() {
        for word in ["", "c257", "s0,p-3", "c1,s40,p2,n", "n"] {
            assert_eq!(text(parse(word).unwrap()), word);
        }
        for wrong in ["c", "x3", "c1,,s2", "n1", "p-", "é"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
