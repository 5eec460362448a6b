//! The mutual proof: three messages by which two processes show each other that they know the
//! secret of one job.
//!
//! 1. CALL, 104 bytes, caller to listener: head, nonce of the caller, introduction, code.
//! 2. ANSWER, 72 bytes, listener to caller: head, nonce of the listener, code.
//! 3. PROOF, 40 bytes, caller to listener: head, code.
//!
//! A head is the string `fplate`, the version of the protocol and the number of the message. A
//! nonce is 32 fresh random bytes. An introduction is 32 bytes that the caller chooses: who it is
//! and why it calls. A code is the HMAC-SHA-256, keyed by the secret, of a fixed label and of all
//! bytes sent before the code, in either direction, from the beginning of CALL.
//!
//! Each code covers all heads up to its own, so no message passes for another: neither the caller's
//! for the listener's (reflection), nor one of another connection (replay). The code of CALL lets
//! the listener drop a stranger before it answers. An observer can repeat a CALL, but the ANSWER to
//! it has a new nonce, for which the observer cannot make a PROOF. So only
//! [`Listener::check_proof`] returns the introduction. Bytes after the hello are not authenticated,
//! and nothing is encrypted.
//!
//! ```
//! use secret::{Secret, hello::{Caller, Listener}};
//!
//! let secret = Secret::draw()?;
//! let (caller, call) = Caller::call(&secret, [7; 32])?;
//! let (listener, answer) = Listener::answer(&secret, &call)?;
//! let proof = caller.check_answer(&answer)?;
//! assert_eq!(listener.check_proof(&proof)?, [7; 32]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::io;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::{Secret, random};

/// Length of the first message, from the caller, in bytes.
pub const CALL: usize = HEAD + NONCE + INTRODUCTION + CODE;
/// Length of the second message, from the listener, in bytes.
pub const ANSWER: usize = HEAD + NONCE + CODE;
/// Length of the third message, from the caller, in bytes.
pub const PROOF: usize = HEAD + CODE;

const MAGIC: [u8; 6] = *b"fplate";
const VERSION: u8 = 1;
const LABEL: &[u8] = b"fishplate hello between two processes of a job";

const HEAD: usize = MAGIC.len() + 2;
const NONCE: usize = 32;
const INTRODUCTION: usize = 32;
const CODE: usize = 32;

/// The kinds of messages of the hello, with their numbers.
#[derive(Clone, Copy)]
enum Message {
    Call = 1,
    Answer = 2,
    Proof = 3,
}

/// The reason why a hello failed. The connection must then be closed without a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The peer's bytes do not begin a hello: it is no process of a job of this library.
    Stranger,
    /// The peer uses another version of the hello, namely this one.
    Version(u8),
    /// The peer has sent another message of the hello than the expected one.
    OutOfTurn,
    /// The peer does not know the secret of this job, or bytes were changed in transit.
    Unproven,
    /// The kernel gave no random bytes.
    NoRandomBytes,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Stranger => f.write_str("its first bytes are not those of this library"),
            Refused::Version(theirs) => write!(
                f,
                "it greets by version {theirs} of the protocol, and this is version {VERSION}: \
                 use one version of the library in the whole job"
            ),
            Refused::OutOfTurn => f.write_str("it sent a message of the greeting out of turn"),
            Refused::Unproven => f.write_str("it does not know the secret of this job"),
            Refused::NoRandomBytes => f.write_str("the system gives no random bytes"),
        }
    }
}

impl std::error::Error for Refused {}

/// The end that opened the connection, between its CALL and the listener's ANSWER.
#[derive(Debug)]
pub struct Caller {
    transcript: Transcript,
}

impl Caller {
    /// Begins a hello. The returned bytes are the CALL to send.
    pub fn call(
        secret: &Secret,
        introduction: [u8; INTRODUCTION],
    ) -> io::Result<(Caller, [u8; CALL])> {
        Ok(Caller::call_with(secret, introduction, random::bytes()?))
    }

    fn call_with(
        secret: &Secret,
        introduction: [u8; INTRODUCTION],
        nonce: [u8; NONCE],
    ) -> (Caller, [u8; CALL]) {
        let mut transcript = Transcript::new(secret);
        let message = transcript.say(Message::Call, &[&nonce, &introduction]);
        (Caller { transcript }, message)
    }

    /// Checks the ANSWER, which proves that the listener knows the secret. The returned bytes are
    /// the PROOF to send; after it the caller may use the connection.
    pub fn check_answer(mut self, answer: &[u8; ANSWER]) -> Result<[u8; PROOF], Refused> {
        self.transcript.check(Message::Answer, answer)?;
        Ok(self.transcript.say(Message::Proof, &[]))
    }
}

/// The end that accepted the connection, between its ANSWER and the caller's PROOF.
#[derive(Debug)]
pub struct Listener {
    transcript: Transcript,
    introduction: [u8; INTRODUCTION],
}

impl Listener {
    /// Checks the CALL. The returned bytes are the ANSWER to send.
    pub fn answer(secret: &Secret, call: &[u8; CALL]) -> Result<(Listener, [u8; ANSWER]), Refused> {
        Listener::answer_with(secret, call, || {
            random::bytes().map_err(|_| Refused::NoRandomBytes)
        })
    }

    fn answer_with(
        secret: &Secret,
        call: &[u8; CALL],
        nonce: impl FnOnce() -> Result<[u8; NONCE], Refused>,
    ) -> Result<(Listener, [u8; ANSWER]), Refused> {
        let mut transcript = Transcript::new(secret);
        let said = transcript.check(Message::Call, call)?;
        let mut introduction = [0; INTRODUCTION];
        introduction.copy_from_slice(&said[NONCE..]);
        let message = transcript.say(Message::Answer, &[&nonce()?]);
        let listener = Listener {
            transcript,
            introduction,
        };
        Ok((listener, message))
    }

    /// Checks the PROOF: the caller knows the secret, and its CALL was no replay. Returns the
    /// caller's introduction.
    pub fn check_proof(mut self, proof: &[u8; PROOF]) -> Result<[u8; INTRODUCTION], Refused> {
        self.transcript.check(Message::Proof, proof)?;
        Ok(self.introduction)
    }
}

/// The code (HMAC) of all bytes that the two ends of a hello have exchanged so far.
struct Transcript(Hmac<Sha256>);

impl Transcript {
    fn new(secret: &Secret) -> Transcript {
        let key = Hmac::new_from_slice(secret.as_bytes());
        let mut code = key.expect("HMAC takes keys of any length");
        code.update(LABEL);
        Transcript(code)
    }

    /// Makes a message: head, parts, and the code of everything up to this code.
    fn say<const LENGTH: usize>(&mut self, message: Message, parts: &[&[u8]]) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        let (body, code) = bytes.split_at_mut(LENGTH - CODE);
        let (head, mut rest) = body.split_at_mut(HEAD);
        head.copy_from_slice(&head_of(message));
        for part in parts {
            let (place, after) = rest.split_at_mut(part.len());
            place.copy_from_slice(part);
            rest = after;
        }
        debug_assert!(rest.is_empty());
        self.0.update(body);
        code.copy_from_slice(&self.0.clone().finalize().into_bytes());
        self.0.update(code);
        bytes
    }

    /// Checks a message of the peer, and returns its bytes between head and code.
    fn check<'a>(&mut self, due: Message, message: &'a [u8]) -> Result<&'a [u8], Refused> {
        let (body, code) = message.split_at(message.len() - CODE);
        let (head, said) = body.split_at(HEAD);
        let (magic, version, number) = (&head[..MAGIC.len()], head[HEAD - 2], head[HEAD - 1]);
        if magic != MAGIC {
            return Err(Refused::Stranger);
        }
        if version != VERSION {
            return Err(Refused::Version(version));
        }
        if number != due as u8 {
            return Err(Refused::OutOfTurn);
        }
        self.0.update(body);
        let expected = self.0.clone();
        expected.verify_slice(code).map_err(|_| Refused::Unproven)?;
        self.0.update(code);
        Ok(said)
    }
}

impl fmt::Debug for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Transcript(..)")
    }
}

fn head_of(message: Message) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..MAGIC.len()].copy_from_slice(&MAGIC);
    head[HEAD - 2] = VERSION;
    head[HEAD - 1] = message as u8;
    head
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const INTRODUCED: [u8; INTRODUCTION] = *b"rank 3 calls rank 0 over rail 1.";

    fn secret(byte: u8) -> Secret {
        Secret::from_bytes([byte; Secret::LENGTH])
    }

    fn answer(
        secret: &Secret,
        call: &[u8; CALL],
        nonce: u8,
    ) -> Result<(Listener, [u8; ANSWER]), Refused> {
        Listener::answer_with(secret, call, || Ok([nonce; NONCE]))
    }

    /// The three messages of a successful hello.
    fn messages(secret: &Secret, nonces: [u8; 2]) -> ([u8; CALL], [u8; ANSWER], [u8; PROOF]) {
        let (caller, call) = Caller::call_with(secret, INTRODUCED, [nonces[0]; NONCE]);
        let (listener, said) = answer(secret, &call, nonces[1]).unwrap();
        let proof = caller.check_answer(&said).unwrap();
        assert_eq!(listener.check_proof(&proof), Ok(INTRODUCED));
        (call, said, proof)
    }

    #[test]
    fn messages_are_short_and_show_nothing_of_the_secret() {
        assert!(CALL.max(ANSWER).max(PROOF) <= 128);
        let (call, said, proof) = messages(&secret(0xa5), [1, 2]);
        let sent = [&call[..], &said, &proof].concat();
        assert!(!sent.windows(4).any(|bytes| bytes == [0xa5; 4]));
        let (caller, _) = Caller::call(&secret(0xa5), INTRODUCED).unwrap();
        assert_eq!(
            format!("{caller:?}"),
            "Caller { transcript: Transcript(..) }"
        );
    }

    /// The code is HMAC-SHA-256 as RFC 2104 and FIPS 180-4 define it: the value was computed by
    /// Python's `hmac` over the same bytes.
    #[test]
    fn the_first_code_is_that_of_another_implementation() {
        let (_, call) = Caller::call_with(&secret(0x11), [0x33; INTRODUCTION], [0x22; NONCE]);
        let code: String = call[CALL - CODE..]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(
            code,
            "cab22d89f66eb089c3b440addadcb43b3112bdd8980231d36940aad7b3464a3d"
        );
    }

    #[test]
    fn each_hello_has_nonces_of_its_own() {
        let secret = secret(1);
        let (_, one) = Caller::call(&secret, INTRODUCED).unwrap();
        let (_, other) = Caller::call(&secret, INTRODUCED).unwrap();
        assert_ne!(one, other);
        let answers = [0; 2].map(|_| Listener::answer(&secret, &one).unwrap().1);
        assert_ne!(answers[0], answers[1]);
    }

    #[test]
    fn another_secret_is_refused_by_either_end() {
        let (ours, theirs) = (secret(1), secret(2));
        let (caller, call) = Caller::call(&ours, INTRODUCED).unwrap();
        assert_eq!(
            Listener::answer(&theirs, &call).unwrap_err(),
            Refused::Unproven
        );
        // A listener that accepts any CALL, and answers with a code of its own key.
        let (_, foreign) = Caller::call(&theirs, INTRODUCED).unwrap();
        let (_, said) = Listener::answer(&theirs, &foreign).unwrap();
        assert_eq!(caller.check_answer(&said), Err(Refused::Unproven));
    }

    #[test]
    fn a_changed_bit_anywhere_is_refused() {
        let secret = secret(9);
        let (call, said, proof) = messages(&secret, [1, 2]);
        let flipped = |at: usize, bytes: &mut [u8]| bytes[at / 8] ^= 1 << (at % 8);
        for at in 0..CALL * 8 {
            let mut changed = call;
            flipped(at, &mut changed);
            assert!(answer(&secret, &changed, 2).is_err(), "bit {at} of CALL");
        }
        for at in 0..ANSWER * 8 {
            let mut changed = said;
            flipped(at, &mut changed);
            let (caller, _) = Caller::call_with(&secret, INTRODUCED, [1; NONCE]);
            assert!(caller.check_answer(&changed).is_err(), "bit {at} of ANSWER");
        }
        for at in 0..PROOF * 8 {
            let mut changed = proof;
            flipped(at, &mut changed);
            let (listener, _) = answer(&secret, &call, 2).unwrap();
            assert!(listener.check_proof(&changed).is_err(), "bit {at} of PROOF");
        }
    }

    #[test]
    fn a_reflected_message_is_refused() {
        let secret = secret(9);
        let (call, said, proof) = messages(&secret, [1, 2]);
        // The caller receives the beginning of its own CALL, once with the head of a CALL and once
        // with that of an ANSWER.
        for number in [Message::Call, Message::Answer] {
            let (caller, call) = Caller::call_with(&secret, INTRODUCED, [1; NONCE]);
            let mut echo = [0; ANSWER];
            echo[..HEAD + NONCE].copy_from_slice(&call[..HEAD + NONCE]);
            echo[HEAD + NONCE..].copy_from_slice(&call[CALL - CODE..]);
            echo[HEAD - 1] = number as u8;
            assert!(caller.check_answer(&echo).is_err());
        }
        // The listener receives the code of its own ANSWER as a PROOF, then the code of CALL.
        for code in [&said[ANSWER - CODE..], &call[CALL - CODE..]] {
            let (listener, _) = answer(&secret, &call, 2).unwrap();
            let mut echo = proof;
            echo[HEAD..].copy_from_slice(code);
            assert_eq!(listener.check_proof(&echo), Err(Refused::Unproven));
        }
    }

    #[test]
    fn a_replayed_message_is_refused() {
        let secret = secret(9);
        let (call, said, proof) = messages(&secret, [1, 2]);
        // A repeated CALL gets an ANSWER with another nonce, so the first PROOF proves nothing to
        // this listener.
        let (listener, _) = answer(&secret, &call, 3).unwrap();
        assert_eq!(listener.check_proof(&proof), Err(Refused::Unproven));
        // An ANSWER to an earlier CALL does not answer this caller.
        let (caller, _) = Caller::call_with(&secret, INTRODUCED, [4; NONCE]);
        assert_eq!(caller.check_answer(&said), Err(Refused::Unproven));
        // Neither does an ANSWER to a CALL with the same nonce and another introduction.
        let (caller, _) = Caller::call_with(&secret, [0; INTRODUCTION], [1; NONCE]);
        assert_eq!(caller.check_answer(&said), Err(Refused::Unproven));
    }

    #[test]
    fn each_refusal_names_its_reason() {
        let secret = secret(9);
        let (call, ..) = messages(&secret, [1, 2]);
        let with = |at: usize, byte: u8| {
            let mut changed = call;
            changed[at] = byte;
            answer(&secret, &changed, 2).unwrap_err()
        };
        assert_eq!(with(0, b'G'), Refused::Stranger);
        assert_eq!(with(HEAD - 2, 2), Refused::Version(2));
        assert_eq!(with(HEAD - 1, Message::Answer as u8), Refused::OutOfTurn);
        assert_eq!(with(HEAD, 0), Refused::Unproven);
        assert!(Refused::Version(2).to_string().contains("version 2"));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_refused(call in proptest::array::uniform32(any::<[u8; 4]>())) {
            let secret = secret(9);
            let mut bytes = [0; CALL];
            bytes.copy_from_slice(&call.concat()[..CALL]);
            prop_assert!(Listener::answer(&secret, &bytes).is_err());
            bytes[..HEAD].copy_from_slice(&head_of(Message::Call));
            prop_assert_eq!(Listener::answer(&secret, &bytes).unwrap_err(), Refused::Unproven);
        }
    }
}
