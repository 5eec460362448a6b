//! Fuzz target: the hello by which two processes prove that they know the secret of their job, with
//! either end under attack. A message arrives as it was sent, with changed bytes, as another
//! message of this or an earlier hello, or is made up.
//!
//! The promise: an end believes the other if and only if each message has arrived as it was sent,
//! and both know one secret.

use secret::Secret;
use secret::hello::{ANSWER, CALL, Caller, Listener, PROOF};

/// The introduction of every caller.
const INTRODUCTION: [u8; 32] = *b"rank 3 calls rank 0 over rail 1.";

pub(crate) fn run(bytes: &[u8]) {
    let mut script = bytes.iter().copied();
    let secrets = [1, 2].map(|byte| Secret::from_bytes([byte; Secret::LENGTH]));
    let mut next = || usize::from(script.next().unwrap_or(0));
    let (ours, theirs) = (&secrets[0], &secrets[usize::from(next() % 4 == 3)]);
    let earlier = messages(ours);

    let (caller, call) = Caller::call(theirs, INTRODUCTION).expect("random bytes");
    let heard = attacked(call, &earlier, &mut next);
    let whole = heard == call && ours == theirs;
    // A repeated call is answered, and its caller cannot prove anything.
    let is_repeated = heard == earlier.0;
    let Ok((listener, answer)) = Listener::answer(ours, &heard) else {
        assert!(!whole && !is_repeated, "a caller was refused");
        return;
    };
    assert!(whole || is_repeated, "a stranger was answered");

    let heard = attacked(answer, &earlier, &mut next);
    let is_whole = whole && heard == answer;
    let Ok(proof) = caller.check_answer(&heard) else {
        assert!(!is_whole, "a listener was refused");
        return;
    };
    assert!(is_whole, "a stranger was believed to be a listener");

    let heard = attacked(proof, &earlier, &mut next);
    match listener.check_proof(&heard) {
        Ok(introduction) => {
            assert!(heard == proof, "a stranger was believed");
            assert_eq!(introduction, INTRODUCTION);
        }
        Err(_) => assert!(heard != proof, "a proof was refused"),
    }
}

/// The messages of a hello that succeeds.
fn messages(secret: &Secret) -> ([u8; CALL], [u8; ANSWER], [u8; PROOF]) {
    let (caller, call) = Caller::call(secret, INTRODUCTION).expect("random bytes");
    let (_, answer) = Listener::answer(secret, &call).expect("a call with the secret");
    let proof = caller.check_answer(&answer).expect("an answer with the secret");
    (call, answer, proof)
}

/// The message that arrives in the place of `sent`.
fn attacked<const LENGTH: usize>(
    sent: [u8; LENGTH],
    earlier: &([u8; CALL], [u8; ANSWER], [u8; PROOF]),
    next: &mut impl FnMut() -> usize,
) -> [u8; LENGTH] {
    let mut bytes = sent;
    let replace = |bytes: &mut [u8; LENGTH], with: &[u8]| {
        let len = LENGTH.min(with.len());
        bytes[..len].copy_from_slice(&with[..len]);
    };
    match next() % 8 {
        0..=2 => {}
        3 | 4 => {
            let at = next() % LENGTH;
            bytes[at] ^= next() as u8;
        }
        5 => replace(&mut bytes, [&earlier.0[..], &earlier.1, &earlier.2][next() % 3]),
        6 => {
            // Another version, another message, or both.
            bytes[6] = next() as u8;
            bytes[7] = next() as u8;
        }
        _ => {
            let from = next() % LENGTH;
            bytes[from..].iter_mut().for_each(|byte| *byte = next() as u8);
        }
    }
    bytes
}
