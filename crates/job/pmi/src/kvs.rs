//! Keys and values of the job's key-value store, and the errors of its users.
//!
//! The store belongs to the whole job. A rank puts the data that its peers need, above all its
//! addresses, and gets theirs. A value never changes once it was put.

use std::fmt;

use crate::LauncherGone;

/// The length of the longest key, in bytes.
pub const KEY_LIMIT: usize = 128;

/// The length of the longest value, in bytes. A key and its value fit into one line of the control
/// socket.
pub const VALUE_LIMIT: usize = 3072;

/// The reason why an operation on the key-value store failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KvsError {
    /// The launcher, which keeps the store, is gone.
    Gone(LauncherGone),
    /// This rank was started without a launcher, and so without a store.
    None,
    /// The key or the value is too long.
    TooLong {
        /// The text that is too long: `key` or `value`.
        what: &'static str,
        /// The length of the key or value, in bytes.
        bytes: usize,
        /// The limit on the length of a key or value, in bytes.
        limit: usize,
        /// The key, or its beginning.
        key: String,
    },
    /// The key is empty, or the key or value has a character that is not printable ASCII, or a
    /// space.
    Unprintable {
        /// The text that is invalid: `key` or `value`.
        what: &'static str,
        /// The key, or its beginning.
        key: String,
    },
    /// The key has another value already.
    Taken {
        /// The key that has another value already.
        key: String,
    },
    /// A launcher of another MPI library does not support what the operation needs. Contains the
    /// reason.
    Launcher(String),
    /// This rank tried to enter a fence before its previous fence was complete.
    InFence,
}

impl From<LauncherGone> for KvsError {
    fn from(gone: LauncherGone) -> Self {
        KvsError::Gone(gone)
    }
}

impl fmt::Display for KvsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KvsError::Gone(gone) => gone.fmt(f),
            KvsError::Launcher(why) => f.write_str(why),
            KvsError::None => write!(
                f,
                "a rank without a launcher has no key-value store: start the program with `fishplate run`"
            ),
            KvsError::TooLong {
                what: "key",
                bytes,
                limit,
                key,
            } => write!(
                f,
                "the key {key}... has {bytes} bytes, but a key of the job's key-value store has at most {limit}: shorten it"
            ),
            KvsError::TooLong {
                bytes, limit, key, ..
            } => write!(
                f,
                "the value of the key {key} has {bytes} bytes, but a value of the job's key-value store has at most \
                 {limit}: split it over several keys"
            ),
            KvsError::Unprintable { what: "key", key } => write!(
                f,
                "the key {key:?} cannot be used: a key of the job's key-value store is printable ASCII without spaces"
            ),
            KvsError::Unprintable { key, .. } => write!(
                f,
                "the value of the key {key:?} cannot be stored: a value of the job's key-value store is printable ASCII \
                 without spaces; write bytes in hexadecimal"
            ),
            KvsError::Taken { key } => write!(
                f,
                "the key {key} has another value already: a value of the job's key-value store never changes"
            ),
            KvsError::InFence => write!(
                f,
                "a rank enters a fence of the job's key-value store only after its previous fence is complete"
            ),
        }
    }
}

impl std::error::Error for KvsError {}

/// Checks that `key` is a valid key. The error shows at most its beginning.
pub fn check_key(key: &str) -> Result<(), KvsError> {
    check("key", key, key, KEY_LIMIT)?;
    match key.is_empty() {
        true => Err(unprintable("key", key)),
        false => Ok(()),
    }
}

/// Checks that `value` is a valid value for `key`.
pub fn check_value(key: &str, value: &str) -> Result<(), KvsError> {
    check("value", key, value, VALUE_LIMIT)
}

fn check(what: &'static str, key: &str, text: &str, limit: usize) -> Result<(), KvsError> {
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(unprintable(what, key));
    }
    if text.len() > limit {
        return Err(KvsError::TooLong {
            what,
            bytes: text.len(),
            limit,
            key: shortened(key),
        });
    }
    Ok(())
}

fn unprintable(what: &'static str, key: &str) -> KvsError {
    let key = shortened(key);
    KvsError::Unprintable { what, key }
}

fn shortened(key: &str) -> String {
    key.chars().take(KEY_LIMIT / 2).collect()
}

/// Encodes bytes as a value for the key-value store: two hexadecimal digits for each byte.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value)]);
    let digits = bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]);
    digits.collect()
}

/// Decodes bytes that [`hex`] has encoded. `None` for any other text.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| Some(char::from(byte).to_digit(16)? as u8);
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| match *pair {
            [high, low] => Some(digit(high)? << 4 | digit(low)?),
            _ => None,
        })
        .collect()
}
