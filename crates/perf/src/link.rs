//! The two processes of a benchmark find each other and talk: lines of JSON over one TCP connection.
//!
//! Who is started without a host listens; the other connects. Both say first who they are and what they are about to
//! measure, and go on only if that is the same. What must always hold: nothing waits for ever, no line is longer than
//! [`LONGEST`], and nothing that a stranger says is taken for more than a line.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::plan::Plan;

/// Goes up whenever two versions would not understand each other.
const VERSION: u64 = 2;
const NAME: &str = "fishplate-perf";
/// Bytes of a line; addresses of ten thousand queue pairs fit.
const LONGEST: usize = 1 << 20;
/// Between two attempts to connect, or two looks whether somebody has.
const AGAIN: Duration = Duration::from_millis(50);

/// What is said after the greeting.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line {
    Words(String),
    /// Nothing new; who says so is at work.
    Alive,
    /// Who says so has given up, and why.
    Failed(String),
}

/// The connection to the other end.
pub struct Link {
    stream: TcpStream,
    /// What has come and has not been taken.
    here: Vec<u8>,
    /// How long the other end may be silent.
    patience: Duration,
}

/// Waits for the other end to connect.
pub struct Listener(TcpListener);

impl Listener {
    pub fn new(port: u16) -> Result<Listener> {
        // A socket of IPv6 takes connections of IPv4 too, where there is IPv6 at all.
        let all = [
            SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)),
            SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)),
        ];
        let socket = TcpListener::bind(&all[..]).with_context(|| {
            format!("cannot listen on TCP port {port}; name another with --port")
        })?;
        socket.set_nonblocking(true)?;
        Ok(Listener(socket))
    }

    pub fn port(&self) -> Result<u16> {
        Ok(self.0.local_addr()?.port())
    }

    /// The first to connect who has the same in mind. Who speaks something else is sent away.
    pub fn accept(&self, plan: &Plan, wait: Duration, patience: Duration) -> Result<Link> {
        let until = Instant::now() + wait;
        loop {
            match self.0.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(false)?;
                    let mut link = Link::over(stream, patience)?;
                    match link.greet(plan) {
                        Err(Refused::Stranger(why)) => {
                            eprintln!(
                                "fishplate perf: somebody connected who is no other end: {why:#}"
                            );
                        }
                        Err(Refused::Different(why)) => return Err(why),
                        Ok(()) => return Ok(link),
                    }
                }
                Err(why) if why.kind() == ErrorKind::WouldBlock => {
                    if Instant::now() >= until {
                        bail!(
                            "no other end has connected for {}; start it with this machine's name",
                            seconds(wait)
                        );
                    }
                    sleep(AGAIN);
                }
                Err(why) => return Err(why).context("cannot take a connection"),
            }
        }
    }
}

/// Why a greeting leads to nothing.
enum Refused {
    /// It is no greeting.
    Stranger(anyhow::Error),
    /// The other end is another version, or measures something else.
    Different(anyhow::Error),
}

impl Link {
    /// Connects to who listens there, or will listen before `wait` is over.
    pub fn connect(
        host: &str,
        port: u16,
        plan: &Plan,
        wait: Duration,
        patience: Duration,
    ) -> Result<Link> {
        let until = Instant::now() + wait;
        let all: Vec<SocketAddr> = (host, port)
            .to_socket_addrs()
            .with_context(|| format!("there is no host {host}"))?
            .collect();
        let stream = loop {
            let mut last = anyhow!("it has no address");
            let mut found = None;
            for address in &all {
                let left = until.saturating_duration_since(Instant::now()).max(AGAIN);
                match TcpStream::connect_timeout(address, left) {
                    Ok(stream) => {
                        found = Some(stream);
                        break;
                    }
                    Err(why) => last = why.into(),
                }
            }
            match found {
                Some(stream) => break stream,
                None if Instant::now() >= until || all.is_empty() => {
                    return Err(last).with_context(|| {
                        format!(
                            "cannot reach the other end at {host}, TCP port {port}, within {}; start it there with the same options and without a host",
                            seconds(wait)
                        )
                    });
                }
                None => sleep(AGAIN),
            }
        };
        let mut link = Link::over(stream, patience)?;
        match link.greet(plan) {
            Ok(()) => Ok(link),
            Err(Refused::Stranger(why)) => {
                Err(why).with_context(|| format!("{host}, TCP port {port}, is no other end"))
            }
            Err(Refused::Different(why)) => Err(why),
        }
    }

    fn over(stream: TcpStream, patience: Duration) -> Result<Link> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        Ok(Link {
            stream,
            here: Vec::new(),
            patience,
        })
    }

    fn greet(&mut self, plan: &Plan) -> Result<(), Refused> {
        let own = serde_json::to_value(plan).map_err(|why| Refused::Stranger(why.into()))?;
        let greeting = serde_json::json!({NAME: VERSION, "plan": own});
        self.write(&greeting.to_string())
            .map_err(Refused::Stranger)?;
        let line = self.line().map_err(Refused::Stranger)?;
        let said: Value = serde_json::from_str(&line)
            .map_err(|_| Refused::Stranger(anyhow!("it does not speak JSON")))?;
        match said.get(NAME).and_then(Value::as_u64) {
            Some(VERSION) => {}
            Some(other) => {
                return Err(Refused::Different(anyhow!(
                    "the other end speaks version {other} of this benchmark's language, this one {VERSION}; use the same fishplate on both"
                )));
            }
            None => {
                return Err(Refused::Stranger(anyhow!(
                    "it does not say that it is fishplate perf"
                )));
            }
        }
        let theirs = said.get("plan").cloned().unwrap_or_default();
        match differences(&own, &theirs) {
            words if words.is_empty() => Ok(()),
            words => Err(Refused::Different(anyhow!(
                "the two ends were started with different options: {words}"
            ))),
        }
    }

    pub fn say(&mut self, words: &str) -> Result<()> {
        self.send(&Line::Words(words.into()))
    }

    /// So that the other end does not take silence for death.
    pub fn alive(&mut self) -> Result<()> {
        self.send(&Line::Alive)
    }

    /// The last words, if they still get there.
    pub fn failed(&mut self, why: &str) {
        self.send(&Line::Failed(why.into())).ok();
    }

    /// What the other end says next.
    pub fn hear(&mut self) -> Result<String> {
        loop {
            let line = self.line()?;
            if let Some(words) = meaning(&line)? {
                return Ok(words);
            }
        }
    }

    /// What it has said, if it has.
    pub fn heard(&mut self) -> Result<Option<String>> {
        // Who has gone may have said something before.
        let fetched = self.fetch();
        while let Some(line) = self.take()? {
            if let Some(words) = meaning(&line)? {
                return Ok(Some(words));
            }
        }
        fetched.map(|()| None)
    }

    /// An error if the other end has gone or given up. What it has said besides stays to be heard.
    pub fn check(&mut self) -> Result<()> {
        let fetched = self.fetch();
        let whole = self
            .here
            .iter()
            .rposition(|&byte| byte == b'\n')
            .unwrap_or(0);
        for line in self.here[..whole].split(|&byte| byte == b'\n') {
            if let Ok(Line::Failed(why)) = serde_json::from_slice(line) {
                bail!("the other end gave up: {why}");
            }
        }
        fetched
    }

    fn send(&mut self, line: &Line) -> Result<()> {
        self.write(&serde_json::to_string(line)?)
    }

    fn write(&mut self, line: &str) -> Result<()> {
        let line = format!("{line}\n");
        self.stream
            .write_all(line.as_bytes())
            .context("the other end has gone")
    }

    /// The next line, however long it takes within the time of silence.
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
                Err(why) => return Err(why).context("the other end has gone"),
            }
        }
    }

    /// Takes in what has come, without waiting.
    fn fetch(&mut self) -> Result<()> {
        self.stream.set_nonblocking(true)?;
        let read = self.read();
        self.stream.set_nonblocking(false)?;
        match read {
            Err(why) if !silence(&why) => Err(why).context("the other end has gone"),
            _ => Ok(()),
        }
    }

    fn read(&mut self) -> std::io::Result<()> {
        let mut some = [0; 4096];
        match self.stream.read(&mut some) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                self.here.extend_from_slice(&some[..count]);
                Ok(())
            }
            Err(why) if why.kind() == ErrorKind::Interrupted => Ok(()),
            Err(why) => Err(why),
        }
    }

    /// A whole line of what has come.
    fn take(&mut self) -> Result<Option<String>> {
        let Some(end) = self.here.iter().position(|&byte| byte == b'\n') else {
            if self.here.len() > LONGEST {
                bail!("the other end says a line of more than {LONGEST} bytes");
            }
            return Ok(None);
        };
        let line: Vec<u8> = self.here.drain(..=end).collect();
        String::from_utf8(line[..end].to_vec())
            .map(Some)
            .context("the other end does not speak UTF-8")
    }
}

fn silence(why: &std::io::Error) -> bool {
    matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

fn silent(patience: Duration) -> anyhow::Error {
    anyhow!("the other end has said nothing for {}", seconds(patience))
}

/// Words, unless it is only a sign of life.
fn meaning(line: &str) -> Result<Option<String>> {
    match serde_json::from_str(line).context("the other end makes no sense")? {
        Line::Words(words) => Ok(Some(words)),
        Line::Alive => Ok(None),
        Line::Failed(why) => bail!("the other end gave up: {why}"),
    }
}

/// Which options differ, and how.
fn differences(own: &Value, theirs: &Value) -> String {
    let (Some(own), Some(other)) = (own.as_object(), theirs.as_object()) else {
        return "the other end does not say what it measures".into();
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
