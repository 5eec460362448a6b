//! The secret of a job, and the mutual proof of its knowledge.
//!
//! The launcher draws one [`Secret`] for each job and gives it to the ranks. Two processes that
//! connect over a network prove to each other with [`hello`] that both know it, before either
//! trusts a byte of the other; [`admission`] is that proof over sockets. Messages without a
//! connection carry [`codes`].
//!
//! Invariants:
//! - no secret appears in a text: `Debug` hides it, and there is no `Display`; only a [`Token`] is
//!   made to be shown;
//! - nothing but [`admission`] touches a socket, and nothing opens a file;
//! - codes are compared in a time that does not depend on their bytes.
//!
//! Never here: files, and the data that a connection carries afterwards.

#![forbid(unsafe_code)]

pub mod admission;
pub mod codes;
pub mod hello;
mod random;
mod token;

use std::fmt;
use std::io;

pub use token::{NotAToken, Token};

/// Draws a random number from the kernel, to distinguish a message from a replay of an earlier
/// one.
pub fn nonce() -> io::Result<u64> {
    random::bytes().map(u64::from_ne_bytes)
}

/// The secret of a job: 256 bits that only its launcher and its ranks know.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; Secret::LENGTH]);

impl Secret {
    /// The length of a secret in bytes.
    pub const LENGTH: usize = 32;

    /// Draws a secret from the kernel's random numbers.
    pub fn draw() -> io::Result<Secret> {
        random::bytes().map(Secret)
    }

    /// The secret with these bytes.
    pub fn from_bytes(bytes: [u8; Secret::LENGTH]) -> Secret {
        Secret(bytes)
    }

    /// The bytes of the secret, for a file or a stream that only processes of the job read.
    pub fn as_bytes(&self) -> &[u8; Secret::LENGTH] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_secrets_differ_and_neither_is_shown() {
        let (one, other) = (Secret::draw().unwrap(), Secret::draw().unwrap());
        assert_ne!(one, other);
        assert_eq!(format!("{one:?}"), "Secret(..)");
        assert_eq!(Secret::from_bytes(*one.as_bytes()), one);
    }
}
