//! The proof of the secret by both sides of a control connection, before either reads anything else
//! from the other: the hello of crate `secret`.
//!
//! The listening side polls all callers one after the other (`secret::admission`), so a silent one
//! delays no other.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use secret::Secret;
use secret::hello::{self, ANSWER};

/// The introduction with which every caller begins its first message.
const INTRODUCTION: [u8; 32] = *b"fishplate perf, control of plan\0";
/// The callers of a listening socket that have not proved the secret yet.
#[derive(Default)]
pub(super) struct Callers {
    callers: secret::admission::Callers,
}

impl Callers {
    /// Accepts new callers, and reads from all callers. Returns the first that has proved the
    /// secret, if one has. Reports the first stranger to the user.
    pub(super) fn accept(
        &mut self,
        socket: &TcpListener,
        secret: &Secret,
    ) -> Result<Option<TcpStream>> {
        let heard = self.callers.accept(socket, secret, Instant::now());
        let admitted = heard.context("cannot accept a connection")?;
        if let Some((from, why)) = self.callers.take_first_stranger() {
            eprintln!(
                "fishplate: perf: closed a connection from {from}: {why}; later ones are closed without a word"
            );
        }
        let Some(admitted) = admitted else {
            return Ok(None);
        };
        admitted.set_nonblocking(false)?;
        Ok(Some(admitted))
    }

    /// The number of callers that were rejected.
    #[cfg(test)]
    pub(super) fn strangers(&self) -> u64 {
        self.callers.strangers()
    }
}

/// Proves the secret as the calling side, on a new connection. Fails if the peer is silent for
/// `patience`.
pub(super) fn prove(stream: &mut TcpStream, secret: &Secret, patience: Duration) -> Result<()> {
    let (caller, call) = hello::Caller::call(secret, INTRODUCTION)?;
    stream.write_all(&call)?;
    let answer = answer(stream, patience)?;
    let proof = caller.check_answer(&answer)?;
    Ok(stream.write_all(&proof)?)
}

/// Waits for the answer of the listening side to the first message.
fn answer(stream: &mut TcpStream, patience: Duration) -> Result<[u8; ANSWER]> {
    let until = Instant::now() + patience;
    let (mut answer, mut len) = ([0; ANSWER], 0);
    while len < ANSWER {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(super::silent(patience));
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut answer[len..]) {
            Ok(0) => return Err(closed()),
            Ok(count) => len += count,
            Err(why) if why.kind() == ErrorKind::ConnectionReset => return Err(closed()),
            Err(why) if why.kind() == ErrorKind::Interrupted || super::silence(&why) => {}
            Err(why) => return Err(why.into()),
        }
    }
    Ok(answer)
}

fn closed() -> anyhow::Error {
    anyhow!(
        "it has closed the connection: the secrets of the two sides differ, or it is no fishplate perf of this version"
    )
}
