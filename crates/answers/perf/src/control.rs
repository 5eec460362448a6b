//! The control connection between the two processes of a benchmark: lines of JSON over TCP.
//!
//! The side that starts without a host listens; the other connects. Both first prove that they know
//! the secret of the benchmark (`admission`). Then they send their version and plan, and continue
//! only if both are equal.
//!
//! Invariant: every wait has a limit, no line is longer than [`LONGEST`], and a stranger can
//! neither send a line nor keep the other side waiting.

mod admission;

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use secret::Secret;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::plan::PerfPlan;
use admission::Callers;

/// The version of the protocol. It changes with every incompatible change.
const VERSION: u64 = 3;
const NAME: &str = "fishplate-perf";
/// The longest line, in bytes: room for the addresses of ten thousand queue pairs.
const LONGEST: usize = 1 << 20;
/// The time between two attempts to connect to the listening side.
const AGAIN: Duration = Duration::from_millis(50);
/// The time between two polls of the listening socket and of the callers.
const SOON: Duration = Duration::from_millis(5);

/// A message of the control connection that follows the greeting.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ControlMessage {
    /// A text of the benchmark for the other side.
    Words(String),
    /// A heartbeat, which has no other meaning.
    Alive,
    /// The sender has failed, for this reason.
    Failed(String),
}

/// The control connection to the other side.
pub struct ControlLink {
    stream: TcpStream,
    /// Bytes that have arrived on the control connection and that no caller has taken.
    arrived: Vec<u8>,
    /// The time after which a silent peer counts as failed.
    patience: Duration,
}

/// The conditions under which two sides accept each other: secret, plan and patience.
#[derive(Clone, Copy)]
pub struct Terms<'a> {
    /// The secret that both sides must know.
    pub secret: &'a Secret,
    /// The plan that both sides must have.
    pub plan: &'a PerfPlan,
    /// The time after which a silent peer counts as failed.
    pub patience: Duration,
}

/// A socket that waits for the other side to connect.
pub struct Listener {
    socket: TcpListener,
    callers: Callers,
}

impl Listener {
    /// Listens at the first of these addresses that is available. With port 0 the system chooses a
    /// port.
    pub fn new(places: &[SocketAddr]) -> Result<Listener> {
        let socket = TcpListener::bind(places).with_context(|| {
            let place = places.last().map_or("nowhere".into(), SocketAddr::to_string);
            format!("cannot listen at {place}; choose another port with --port, or another address with --listen")
        })?;
        socket.set_nonblocking(true)?;
        Ok(Listener {
            socket,
            callers: Callers::default(),
        })
    }

    /// The TCP port on which the socket listens.
    pub fn port(&self) -> Result<u16> {
        Ok(self.socket.local_addr()?.port())
    }

    /// Accepts the first connection of another side that knows the secret and has an equal plan,
    /// within `wait`. Other connections are closed.
    pub fn accept(&mut self, terms: &Terms, wait: Duration) -> Result<ControlLink> {
        let until = Instant::now() + wait;
        loop {
            match self.callers.accept(&self.socket, terms.secret)? {
                Some(stream) => {
                    let mut link = ControlLink::over(stream, terms.patience)?;
                    match link.greet(terms.plan) {
                        Err(Refused::Stranger(why)) => {
                            eprintln!(
                                "fishplate: perf: a connection ended before its plan: {why:#}"
                            );
                        }
                        Err(Refused::Different(why)) => return Err(why),
                        Ok(()) => return Ok(link),
                    }
                }
                None if Instant::now() >= until => bail!(
                    "no peer has connected within {}; start the other side with this machine's name",
                    seconds(wait)
                ),
                None => sleep(SOON),
            }
        }
    }
}

/// The reason why the other side was not accepted.
enum Refused {
    /// The peer does not use this protocol, or has closed the connection.
    Stranger(anyhow::Error),
    /// The other side has a different version or a different plan.
    Different(anyhow::Error),
}

impl ControlLink {
    /// Connects to the side that listens on `host` at one of these addresses, and retries for the
    /// time `wait`.
    pub fn connect(
        (host, all): (&str, &[SocketAddr]),
        terms: &Terms,
        wait: Duration,
    ) -> Result<ControlLink> {
        let mut stream = reach(host, all, wait)?;
        let port = || all.first().map_or(0, SocketAddr::port);
        let strange = || format!("{host}, TCP port {}, is not the other side", port());
        let limits = stream.set_write_timeout(Some(terms.patience));
        limits.with_context(strange)?;
        admission::prove(&mut stream, terms.secret, terms.patience).with_context(strange)?;
        let mut link = ControlLink::over(stream, terms.patience)?;
        match link.greet(terms.plan) {
            Ok(()) => Ok(link),
            Err(Refused::Stranger(why)) => Err(why).with_context(strange),
            Err(Refused::Different(why)) => Err(why),
        }
    }

    fn over(stream: TcpStream, patience: Duration) -> Result<ControlLink> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        Ok(ControlLink {
            stream,
            arrived: Vec::new(),
            patience,
        })
    }

    fn greet(&mut self, plan: &PerfPlan) -> Result<(), Refused> {
        let own = serde_json::to_value(plan).map_err(|why| Refused::Stranger(why.into()))?;
        let greeting = serde_json::json!({NAME: VERSION, "plan": own});
        self.write(&greeting.to_string())
            .map_err(Refused::Stranger)?;
        let line = self.line().map_err(Refused::Stranger)?;
        let said: Value = serde_json::from_str(&line)
            .map_err(|_| Refused::Stranger(anyhow!("it does not send JSON")))?;
        match said.get(NAME).and_then(Value::as_u64) {
            Some(VERSION) => {}
            Some(other) => {
                return Err(Refused::Different(anyhow!(
                    "the other side uses version {other} of the protocol, this one version {VERSION}; use the same fishplate on both"
                )));
            }
            None => {
                return Err(Refused::Stranger(anyhow!(
                    "its greeting is not that of fishplate perf"
                )));
            }
        }
        let theirs = said.get("plan").cloned().unwrap_or_default();
        match differences(&own, &theirs) {
            words if words.is_empty() => Ok(()),
            words => Err(Refused::Different(anyhow!(
                "the two sides were started with different options: {words}"
            ))),
        }
    }

    /// The addresses of this side and of the other side.
    pub fn addresses(&self) -> Result<(SocketAddr, SocketAddr)> {
        let known = || Ok((self.stream.local_addr()?, self.stream.peer_addr()?));
        known().map_err(|why: std::io::Error| anyhow!(why).context("the connection is closed"))
    }

    /// Sends a text to the other side.
    pub fn say(&mut self, words: &str) -> Result<()> {
        self.send(&ControlMessage::Words(words.into()))
    }

    /// Sends a heartbeat, so that the other side does not mistake silence for a failure.
    pub fn alive(&mut self) -> Result<()> {
        self.send(&ControlMessage::Alive)
    }

    /// Sends the reason of this side's failure, if the connection still works.
    pub fn failed(&mut self, why: &str) {
        self.send(&ControlMessage::Failed(why.into())).ok();
    }

    /// Waits for the next text of the other side.
    pub fn receive(&mut self) -> Result<String> {
        loop {
            let line = self.line()?;
            if let Some(words) = meaning(&line)? {
                return Ok(words);
            }
        }
    }

    /// The next text of the other side, if it has arrived. Never waits.
    pub fn heard(&mut self) -> Result<Option<String>> {
        // Read texts that have arrived before reporting that the other side has ended.
        let fetched = self.fetch();
        while let Some(line) = self.take()? {
            if let Some(words) = meaning(&line)? {
                return Ok(Some(words));
            }
        }
        fetched.map(|()| None)
    }

    /// An error if the other side has ended or failed. Texts that have arrived stay available.
    pub fn check(&mut self) -> Result<()> {
        let fetched = self.fetch();
        let whole = self
            .arrived
            .iter()
            .rposition(|&byte| byte == b'\n')
            .unwrap_or(0);
        for line in self.arrived[..whole].split(|&byte| byte == b'\n') {
            if let Ok(ControlMessage::Failed(why)) = serde_json::from_slice(line) {
                bail!("the other side failed: {why}");
            }
        }
        fetched
    }

    fn send(&mut self, line: &ControlMessage) -> Result<()> {
        self.write(&serde_json::to_string(line)?)
    }

    fn write(&mut self, line: &str) -> Result<()> {
        let line = format!("{line}\n");
        self.stream
            .write_all(line.as_bytes())
            .context("the other side has closed the connection")
    }

    /// Waits for the next line, at most for the longest silence of a peer.
    fn line(&mut self) -> Result<String> {
        let until = Instant::now() + self.patience;
        loop {
            if let Some(line) = self.take()? {
                return Ok(line);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(silent(self.patience));
            }
            self.stream.set_read_timeout(Some(left))?;
            match self.read() {
                Ok(()) => {}
                Err(why) if silence(&why) => return Err(silent(self.patience)),
                Err(why) => return Err(why).context("the other side has closed the connection"),
            }
        }
    }

    /// Reads the bytes that have arrived from the other side, without waiting.
    fn fetch(&mut self) -> Result<()> {
        self.stream.set_nonblocking(true)?;
        let read = self.read();
        self.stream.set_nonblocking(false)?;
        match read {
            Err(why) if !silence(&why) => {
                Err(why).context("the other side has closed the connection")
            }
            _ => Ok(()),
        }
    }

    fn read(&mut self) -> std::io::Result<()> {
        let mut some = [0; 4096];
        match self.stream.read(&mut some) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                self.arrived.extend_from_slice(&some[..count]);
                Ok(())
            }
            Err(why) if why.kind() == ErrorKind::Interrupted => Ok(()),
            Err(why) => Err(why),
        }
    }

    /// Removes and returns the first complete line that has arrived; `None` if none has.
    fn take(&mut self) -> Result<Option<String>> {
        let Some(end) = self.arrived.iter().position(|&byte| byte == b'\n') else {
            if self.arrived.len() > LONGEST {
                bail!("the other side sent a line of more than {LONGEST} bytes");
            }
            return Ok(None);
        };
        let line: Vec<u8> = self.arrived.drain(..=end).collect();
        String::from_utf8(line[..end].to_vec())
            .map(Some)
            .context("the other side does not send UTF-8")
    }
}

/// Connects to the first of these addresses of `host` that accepts, and retries for the time
/// `wait`.
fn reach(host: &str, all: &[SocketAddr], wait: Duration) -> Result<TcpStream> {
    let until = Instant::now() + wait;
    loop {
        let mut last = anyhow!("the host has no address");
        for address in all {
            let left = until.saturating_duration_since(Instant::now()).max(AGAIN);
            match TcpStream::connect_timeout(address, left) {
                Ok(stream) => return Ok(stream),
                Err(why) => last = why.into(),
            }
        }
        if Instant::now() >= until || all.is_empty() {
            let port = all.first().map_or(0, SocketAddr::port);
            return Err(last).with_context(|| {
                format!(
                    "cannot connect to {host}, TCP port {port}, within {}; start the same command there, without HOST",
                    seconds(wait)
                )
            });
        }
        sleep(AGAIN);
    }
}

fn silence(why: &std::io::Error) -> bool {
    matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

fn silent(patience: Duration) -> anyhow::Error {
    anyhow!("the other side has sent nothing for {}", seconds(patience))
}

/// The text in a line; `None` for a heartbeat. An error if the other side reports a failure.
fn meaning(line: &str) -> Result<Option<String>> {
    match serde_json::from_str(line).context("cannot read a message of the other side")? {
        ControlMessage::Words(words) => Ok(Some(words)),
        ControlMessage::Alive => Ok(None),
        ControlMessage::Failed(why) => bail!("the other side failed: {why}"),
    }
}

/// A text about the options that differ, with both values.
fn differences(own: &Value, theirs: &Value) -> String {
    let (Some(own), Some(other)) = (own.as_object(), theirs.as_object()) else {
        return "the other side sent no plan".into();
    };
    let show = |value: Option<&Value>| match value {
        None | Some(Value::Null) => "nothing".to_owned(),
        Some(Value::String(word)) => word.clone(),
        Some(value) => value.to_string(),
    };
    let keys = own
        .keys()
        .chain(other.keys().filter(|key| !own.contains_key(*key)));
    let words = keys
        .filter(|key| own.get(*key) != other.get(*key))
        .map(|key| {
            let option = if key == "benchmark" {
                "".to_owned()
            } else {
                format!("--{key} ")
            };
            format!(
                "{option}{} here, {} there",
                show(own.get(key)),
                show(other.get(key))
            )
        });
    words.collect::<Vec<_>>().join("; ")
}

fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests;
