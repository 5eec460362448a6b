//! Message authentication codes: a code proves that a process of the job has made the message, and
//! that nobody has changed it since.
//!
//! A code alone does not say when the message was made. Whoever checks it refuses replays, by a
//! sequence number or a nonce among the parts of the message.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::Secret;

/// The length of a code in bytes: half of an HMAC-SHA-256, the least that RFC 2104 advises.
pub const CODE: usize = 16;

/// The longest name of a purpose, in bytes. The hello authenticates a label that begins with a
/// letter. A letter's value is higher than any length, so no code passes for one of the hello.
const LONGEST_PURPOSE: usize = 64;

/// Computes and checks codes for one purpose. A code for one purpose is not valid for another.
///
/// ```
/// use secret::{Secret, codes::Codes};
///
/// let codes = Codes::new(&Secret::draw()?, "an example");
/// let code = codes.code(&[b"a message"]);
/// assert!(codes.is_code(&[b"a message"], &code));
/// assert!(!codes.is_code(&[b"a massage"], &code));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct Codes(Hmac<Sha256>);

impl Codes {
    /// Codes for one purpose, keyed by the secret.
    ///
    /// # Panics
    /// The name of the purpose has more than 64 bytes.
    pub fn new(secret: &Secret, purpose: &str) -> Codes {
        assert!(purpose.len() <= LONGEST_PURPOSE);
        let key = Hmac::new_from_slice(secret.as_bytes());
        let mut codes = key.expect("HMAC takes keys of any length");
        codes.update(&[purpose.len() as u8]);
        codes.update(purpose.as_bytes());
        Codes(codes)
    }

    /// Computes the code of a message. Each part but the last must have a fixed length, or two
    /// messages could have one code.
    pub fn code(&self, parts: &[&[u8]]) -> [u8; CODE] {
        let whole = self.over(parts).finalize().into_bytes();
        let mut code = [0; CODE];
        code.copy_from_slice(&whole[..CODE]);
        code
    }

    /// True if `code` is the code of the message. The time of the comparison does not depend on its
    /// bytes.
    pub fn is_code(&self, parts: &[&[u8]], code: &[u8; CODE]) -> bool {
        self.over(parts).verify_truncated_left(code).is_ok()
    }

    /// A number that all processes of the job derive from `parts`, and that no stranger can guess.
    pub fn number(&self, parts: &[&[u8]]) -> u32 {
        let [one, two, three, four, ..] = self.code(parts);
        u32::from_be_bytes([one, two, three, four])
    }

    fn over(&self, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut codes = self.0.clone();
        parts.iter().for_each(|part| codes.update(part));
        codes
    }
}

impl fmt::Debug for Codes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Codes(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(byte: u8, purpose: &str) -> Codes {
        Codes::new(&Secret::from_bytes([byte; Secret::LENGTH]), purpose)
    }

    /// The code is HMAC-SHA-256 as RFC 2104 and FIPS 180-4 define it: the value was computed by
    /// Python's `hmac` over the same bytes.
    #[test]
    fn a_code_is_that_of_another_implementation() {
        let code = codes(0x11, "test").code(&[b"one", b"two"]);
        let code: String = code.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(code, "c3515d7021232820113f0fa44ac3825b");
    }

    #[test]
    fn secret_purpose_and_every_bit_of_a_message_count() {
        let own = codes(1, "test");
        let code = own.code(&[b"message"]);
        assert!(own.is_code(&[b"mess", b"age"], &code));
        assert!(!codes(2, "test").is_code(&[b"message"], &code));
        assert!(!codes(1, "tests").is_code(&[b"message"], &code));
        assert!(!codes(1, "tes").is_code(&[b"tmessage"], &code));
        for bit in 0..7 * 8 {
            let mut changed = *b"message";
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(!own.is_code(&[&changed], &code));
        }
        for bit in 0..CODE * 8 {
            let mut changed = code;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(!own.is_code(&[b"message"], &changed));
        }
        assert_eq!(format!("{own:?}"), "Codes(..)");
    }

    #[test]
    fn a_number_is_the_same_for_all_who_know_the_secret() {
        let number = |byte, part| codes(byte, "test").number(&[part]);
        assert_eq!(number(1, b"a"), number(1, b"a"));
        assert_ne!(number(1, b"a"), number(1, b"b"));
        assert_ne!(number(1, b"a"), number(2, b"a"));
    }
}
