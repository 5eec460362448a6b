//! Tokens: secrets that people copy from one command line or file to another.

use std::fmt;
use std::io;
use std::str::FromStr;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::{Secret, random};

/// A secret that people copy: 128 random bits, written as 32 hexadecimal digits. It is made to be
/// shown, unlike the [`Secret`] that is derived from it.
///
/// ```
/// use secret::Token;
///
/// let token = Token::draw()?;
/// let read: Token = token.to_string().parse().unwrap();
/// assert_eq!(read.secret(), token.secret());
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Token([u8; Token::LENGTH]);

/// The error of a text that is no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAToken;

impl Token {
    const LENGTH: usize = 16;

    /// Draws a token from the kernel's random numbers.
    pub fn draw() -> io::Result<Token> {
        random::bytes().map(Token)
    }

    /// Derives the secret from the token.
    pub fn secret(&self) -> Secret {
        let key = Hmac::<Sha256>::new_from_slice(&self.0);
        let mut derived = key.expect("HMAC takes keys of any length");
        derived.update(b"the secret of a fishplate token");
        Secret::from_bytes(derived.finalize().into_bytes().into())
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Token {
    type Err = NotAToken;

    /// Parses a token. White space before and behind it is ignored.
    fn from_str(text: &str) -> Result<Token, NotAToken> {
        let text = text.trim_ascii().as_bytes();
        let (pairs, rest) = text.as_chunks::<2>();
        let mut token = [0; Token::LENGTH];
        if pairs.len() != Token::LENGTH || !rest.is_empty() {
            return Err(NotAToken);
        }
        for (byte, pair) in token.iter_mut().zip(pairs) {
            let digit = |at: usize| char::from(pair[at]).to_digit(16).ok_or(NotAToken);
            *byte = (digit(0)? << 4 | digit(1)?) as u8;
        }
        Ok(Token(token))
    }
}

impl fmt::Display for NotAToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a token has 32 hexadecimal digits")
    }
}

impl std::error::Error for NotAToken {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_is_shown() {
        let token = Token::draw().unwrap();
        let text = format!("  {token}\n");
        let read: Token = text.parse().unwrap();
        assert_eq!(read.secret(), token.secret());
        let upper: Token = text.to_uppercase().parse().unwrap();
        assert_eq!(upper.secret(), token.secret());
        assert_ne!(Token::draw().unwrap().secret(), token.secret());
    }

    #[test]
    fn other_texts_are_no_tokens() {
        let digits = "0123456789abcdef0123456789abcdef";
        assert!(digits.parse::<Token>().is_ok());
        let signs = "+1".repeat(16);
        let wide = "é".repeat(16);
        for text in ["", &digits[1..], &format!("{digits}00"), &signs, &wide] {
            assert!(text.parse::<Token>().is_err(), "{text}");
        }
    }
}
