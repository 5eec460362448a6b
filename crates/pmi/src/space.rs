//! The job's key-value space: one for all its ranks, on whatever host they are.
//!
//! A rank puts what others have to know of it, its addresses above all, and asks for what it has to know of them. An
//! answer comes when there is one: at once, or as soon as somebody has put that key. So nobody needs a fence, and nobody
//! has to block. Once put, a value stays as it is.

use std::fmt;

use crate::Gone;

/// The longest key, in bytes.
pub const KEY_LIMIT: usize = 128;

/// The longest value, in bytes. With its key it fits into one line.
pub const VALUE_LIMIT: usize = 3072;

/// What a rank can do with the space, whoever keeps it.
pub trait Space {
    /// Makes `value` known under `key`. Whoever puts another value under a key that is taken ends the job.
    fn put(&mut self, key: &str, value: &str) -> Result<(), SpaceError>;

    /// Asks for the value of `key`. Each question gets one answer.
    fn ask(&mut self, key: &str) -> Result<(), SpaceError>;

    /// The next answer that has come: a key and its value. Never blocks. Answers come in no particular order.
    fn answer(&mut self) -> Result<Option<(String, String)>, SpaceError>;
}

/// Why the space cannot be used so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpaceError {
    /// Nobody keeps it any more.
    Gone(Gone),
    /// The key or the value is longer than the limit.
    TooLong {
        what: &'static str,
        bytes: usize,
        limit: usize,
        key: String,
    },
    /// A key is empty, or something in a key or a value is no printable ASCII, or a space.
    Unprintable { what: &'static str, key: String },
}

impl From<Gone> for SpaceError {
    fn from(gone: Gone) -> Self {
        SpaceError::Gone(gone)
    }
}

impl fmt::Display for SpaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpaceError::Gone(gone) => gone.fmt(f),
            SpaceError::TooLong {
                what,
                bytes,
                limit,
                key,
            } => write!(
                f,
                "the {what} of the key {key} in the job's key-value space has {bytes} bytes, and {limit} are possible: put \
                 it in pieces under several keys"
            ),
            SpaceError::Unprintable { what, key } => write!(
                f,
                "the {what} of the key {key:?} in the job's key-value space has to consist of printable ASCII without \
                 spaces: write bytes in hexadecimal"
            ),
        }
    }
}

impl std::error::Error for SpaceError {}

/// Can this be a key? What is shown of one that cannot is short.
pub fn check_key(key: &str) -> Result<(), SpaceError> {
    check("name", key, key, KEY_LIMIT)?;
    match key.is_empty() {
        true => Err(unprintable("name", key)),
        false => Ok(()),
    }
}

/// Can this be a value of `key`?
pub fn check_value(key: &str, value: &str) -> Result<(), SpaceError> {
    check("value", key, value, VALUE_LIMIT)
}

fn check(what: &'static str, key: &str, text: &str, limit: usize) -> Result<(), SpaceError> {
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(unprintable(what, key));
    }
    if text.len() > limit {
        return Err(SpaceError::TooLong {
            what,
            bytes: text.len(),
            limit,
            key: shortened(key),
        });
    }
    Ok(())
}

fn unprintable(what: &'static str, key: &str) -> SpaceError {
    let key = shortened(key);
    SpaceError::Unprintable { what, key }
}

fn shortened(key: &str) -> String {
    key.chars().take(KEY_LIMIT / 2).collect()
}

/// Bytes as a value: two digits each.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value)]);
    let digits = bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]);
    digits.collect()
}

/// The bytes of such a value. None if it is none.
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
