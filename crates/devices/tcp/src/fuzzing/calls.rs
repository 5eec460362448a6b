//! Calls: the bytes that a listener receives from callers, cut anywhere, until a queue pair takes
//! the connection. A caller may know the secret or not, repeat an earlier hello, stop amid a
//! message, and its bytes may change on the way.
//!
//! The promises, whatever comes:
//! - an introduction is believed only if every byte of the hello has arrived as a caller with the
//!   secret has sent it, and then it is that caller's;
//! - a caller that proves nothing is counted once;
//! - no more unproven connections are kept than the stated number.

use std::io::{ErrorKind, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use device::Address;
use fuzz_input::Script;
use secret::Secret;
use secret::hello::{ANSWER, CALL, Caller, PROOF};

use crate::calls::{Calls, MOST_UNPROVEN};
use crate::pair::Introduction;
use crate::wire;

/// The bytes of the job's secret.
const OURS: [u8; 32] = [1; 32];
/// The bytes of the secret of another job.
const THEIRS: [u8; 32] = [2; 32];
/// The greatest number of callers that one script has.
const CALLERS: u32 = 100;

/// Runs a script. Panics where a promise is broken.
pub fn calls(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let calls = Calls::open(at, Secret::from_bytes(OURS));
    let mut calls = calls.expect("this host has a port on its loopback interface");
    let (mut strangers, mut earlier, mut open) = (0, None, Vec::new());
    for number in 0..CALLERS {
        if script.is_over() {
            break;
        }
        let (stream, socket) = UnixStream::pair().expect("descriptors are left");
        stream.set_nonblocking(true).expect("a new socket");
        calls.admit(number, socket.into(), None, 0);
        let mut visit = Visit::new(stream, number, &earlier, &mut script);
        match visit.run(&mut calls, &mut script) {
            End::Believed(proof) => earlier = Some((visit.introduction, visit.call, proof)),
            End::Dropped => strangers += 1,
            End::Waits => {
                strangers += 1;
                open.push(visit.stream);
            }
        }
        assert!(calls.unproven().count() <= MOST_UNPROVEN);
        assert_eq!(calls.dropped() + calls.unproven().count() as u64, strangers);
    }
    calls.expire(u64::MAX, |_| false);
    assert_eq!((calls.dropped(), calls.unproven().count()), (strangers, 0));
    assert!(calls.all_settled());
}

/// The messages of a handshake that has succeeded, for a later caller to repeat.
type Hello = (Introduction, [u8; CALL], [u8; PROOF]);

/// The outcome, at the listener, of a caller's connection.
enum End {
    /// The listener has accepted the caller's proof, which was this.
    Believed([u8; PROOF]),
    /// The listener has dropped the caller.
    Dropped,
    /// The listener waits for the rest of a message.
    Waits,
}

/// One caller with its connection.
struct Visit {
    stream: UnixStream,
    number: u32,
    introduction: Introduction,
    /// The caller's part of the handshake. `None`: the caller repeats an earlier hello.
    caller: Option<Caller>,
    call: [u8; CALL],
    repeated: Option<[u8; PROOF]>,
    /// True if bytes have left that no caller with the secret has made for this connection.
    is_false: bool,
}

impl Visit {
    fn new(stream: UnixStream, number: u32, earlier: &Option<Hello>, script: &mut Script) -> Visit {
        if let Some((introduction, call, proof)) = earlier
            && script.is_one_in(4)
        {
            return Visit {
                stream,
                number,
                introduction: *introduction,
                caller: None,
                call: *call,
                repeated: Some(*proof),
                is_false: false,
            };
        }
        let is_false = script.is_one_in(4);
        let secret = Secret::from_bytes(if is_false { THEIRS } else { OURS });
        let introduction = Introduction {
            to: u32::from(script.byte()),
            from: Address {
                qp: u32::from(script.byte()),
                port: u128::MAX - u128::from(script.byte()),
            },
        };
        let begun = Caller::call(&secret, introduction.encode());
        let (caller, call) = begun.expect("the kernel gives random bytes");
        Visit {
            stream,
            number,
            introduction,
            caller: Some(caller),
            call,
            repeated: None,
            is_false,
        }
    }

    fn run(&mut self, calls: &mut Calls, script: &mut Script) -> End {
        let call = self.call;
        if let Some(end) = self.say(&call, calls, script) {
            return end;
        }
        let mut answer = [0; ANSWER];
        self.stream.read_exact(&mut answer).expect("an answer");
        assert!(!self.is_false, "a stranger was answered");
        let proof = match self.caller.take() {
            Some(caller) => caller
                .check_answer(&answer)
                .expect("the answer to this caller"),
            None => {
                // The listener has drawn another number for this connection.
                self.is_false = true;
                self.repeated.unwrap_or([0; PROOF])
            }
        };
        let end = self.say(&proof, calls, script);
        end.expect("a proof is believed, refused or incomplete")
    }

    /// Sends a message in two parts, perhaps changed or truncated. `None`: the listener has
    /// answered.
    fn say(&mut self, message: &[u8], calls: &mut Calls, script: &mut Script) -> Option<End> {
        let mut bytes = message.to_vec();
        if script.is_one_in(4) {
            let (at, mask) = (script.below(bytes.len()), script.byte());
            bytes[at] ^= mask;
            self.is_false |= mask != 0;
        }
        if script.is_one_in(8) {
            bytes.truncate(script.below(bytes.len()));
        }
        let (first, second) = bytes.split_at(script.below(bytes.len() + 1));
        for part in [first, second] {
            if !part.is_empty() {
                let sent = wire::send_bytes(self.stream.as_fd(), part);
                assert_eq!(sent.expect("the listener waits"), part.len());
            }
            let before = calls.dropped();
            let (heard, _) = calls.progress_hello(self.number);
            if let Some((introduction, socket)) = heard {
                assert!(!self.is_false, "a stranger was believed");
                assert_eq!(
                    message.len(),
                    PROOF,
                    "a caller was believed without a proof"
                );
                assert_eq!(introduction, self.introduction);
                calls.park(introduction, socket, 0);
                assert!(calls.unpark(&introduction).is_some());
                let mut proof = [0; PROOF];
                proof.copy_from_slice(message);
                return Some(End::Believed(proof));
            }
            if calls.dropped() > before {
                assert!(self.is_false, "a caller with the secret was dropped");
                return Some(End::Dropped);
            }
        }
        match bytes.len() < message.len() {
            true => {
                let answer = self.stream.read(&mut [0; ANSWER]);
                let why = answer.expect_err("half a message was answered");
                assert_eq!(why.kind(), ErrorKind::WouldBlock);
                Some(End::Waits)
            }
            false => None,
        }
    }
}
