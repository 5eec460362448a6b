//! The proof of the two sides of a control connection, before either reads a word of the other: the
//! hello of crate `secret`.
//!
//! The listening side hears all callers at once, so one that is silent keeps nobody waiting.
//!
//! Invariants: at most [`MOST_CALLERS`] connections wait, none for longer than [`PATIENCE`], and no
//! byte of a caller is read beyond its hello before the proof.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use secret::Secret;
use secret::hello::{self, ANSWER, CALL, PROOF};

/// The introduction of every caller.
const INTRODUCTION: [u8; 32] = *b"fishplate perf, control of plan\0";
/// The most callers that may be silent at once. The oldest leaves for a new one.
const MOST_CALLERS: usize = 64;
/// Time within which a caller proves itself.
const PATIENCE: Duration = Duration::from_secs(2);

/// The callers of a listening socket that have not proved themselves yet.
#[derive(Default)]
pub(super) struct Callers {
    waiting: VecDeque<Caller>,
    /// The callers that were sent away.
    pub(super) strangers: u64,
}

struct Caller {
    stream: TcpStream,
    from: SocketAddr,
    until: Instant,
    /// The bytes of the message that is due.
    arrived: Vec<u8>,
    /// The hello after its CALL.
    hello: Option<hello::Listener>,
}

impl Callers {
    /// Takes new callers, and hears all. Returns the first that has proved itself.
    pub(super) fn hear(
        &mut self,
        socket: &TcpListener,
        secret: &Secret,
    ) -> Result<Option<TcpStream>> {
        // A flood of callers ends some time too.
        for _ in 0..MOST_CALLERS {
            match socket.accept() {
                Ok((stream, from)) => self.add(stream, from)?,
                Err(why) if why.kind() == ErrorKind::WouldBlock => break,
                // The caller has gone again.
                Err(why) if why.kind() == ErrorKind::ConnectionAborted => {}
                Err(why) => return Err(why).context("cannot accept a connection"),
            }
        }
        for _ in 0..self.waiting.len() {
            let Some(mut caller) = self.waiting.pop_front() else {
                break;
            };
            match caller.step(secret) {
                Ok(true) => {
                    caller.stream.set_nonblocking(false)?;
                    return Ok(Some(caller.stream));
                }
                Ok(false) if Instant::now() < caller.until => self.waiting.push_back(caller),
                Ok(false) => {
                    let seconds = PATIENCE.as_secs();
                    self.sent_away(caller.from, &format!("it was silent for {seconds} s"));
                }
                Err(why) => self.sent_away(caller.from, &format!("{why:#}")),
            }
        }
        Ok(None)
    }

    fn add(&mut self, stream: TcpStream, from: SocketAddr) -> Result<()> {
        stream.set_nonblocking(true)?;
        if self.waiting.len() == MOST_CALLERS
            && let Some(oldest) = self.waiting.pop_front()
        {
            self.sent_away(oldest.from, "too many others have connected since");
        }
        self.waiting.push_back(Caller {
            stream,
            from,
            until: Instant::now() + PATIENCE,
            arrived: Vec::new(),
            hello: None,
        });
        Ok(())
    }

    /// Counts a stranger. The first is named.
    fn sent_away(&mut self, from: SocketAddr, why: &str) {
        self.strangers += 1;
        if self.strangers == 1 {
            eprintln!(
                "fishplate: perf: closed a connection from {from}: {why}; later ones are closed without a word"
            );
        }
    }
}

impl Caller {
    /// Hears what has arrived. True: the caller knows the secret.
    fn step(&mut self, secret: &Secret) -> Result<bool> {
        if self.hello.is_none() {
            let Some(call) = self.message::<CALL>()? else {
                return Ok(false);
            };
            let (hello, answer) = hello::Listener::answer(secret, &call)?;
            self.stream.write_all(&answer)?;
            self.hello = Some(hello);
        }
        let Some(proof) = self.message::<PROOF>()? else {
            return Ok(false);
        };
        let hello = self.hello.take().context("its greeting was over")?;
        hello.hear(&proof)?;
        Ok(true)
    }

    /// The message of this length, once it is whole.
    fn message<const LENGTH: usize>(&mut self) -> Result<Option<[u8; LENGTH]>> {
        let mut some = [0; LENGTH];
        while self.arrived.len() < LENGTH {
            let missing = LENGTH - self.arrived.len();
            match self.stream.read(&mut some[..missing]) {
                Ok(0) => bail!("it has closed its end"),
                Ok(count) => self.arrived.extend_from_slice(&some[..count]),
                Err(why) if why.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => return Err(why.into()),
            }
        }
        some.copy_from_slice(&self.arrived);
        self.arrived.clear();
        Ok(Some(some))
    }
}

/// The calling side's part, on a connection that was just made. A peer that is silent for
/// `patience` has failed.
pub(super) fn prove(stream: &mut TcpStream, secret: &Secret, patience: Duration) -> Result<()> {
    let (caller, call) = hello::Caller::call(secret, INTRODUCTION)?;
    stream.write_all(&call)?;
    let answer = answer(stream, patience)?;
    let proof = caller.hear(&answer)?;
    Ok(stream.write_all(&proof)?)
}

/// Waits for the listening side's answer.
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
