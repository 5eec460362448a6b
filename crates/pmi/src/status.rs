//! What a rank is doing: the answer to a report request.
//!
//! As text, one line for the operation and the rank's progress, one for each thing it waits for, one for each message
//! that arrived and that nobody asked for:
//!
//! ```text
//! op=MPI_Waitall progress=1200
//! waits from=3 tag=7 comm=MPI_COMM_WORLD
//! waits to=2 tag=0 comm=halo%20exchange
//! waits all comm=MPI_COMM_WORLD
//! unexpected from=1 tag=9 comm=MPI_COMM_WORLD bytes=64
//! ```
//!
//! `any` stands for a wildcard. Spaces, control characters and `%` in a name are written `%XX`.

use std::fmt;
use std::str::FromStr;

/// What a rank is doing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// The procedure that the program called: `MPI_Recv`.
    pub operation: String,
    /// Counts what the rank got done (packets sent and taken). Two equal answers mean that nothing happened between.
    pub progress: u64,
    /// What has to happen before the procedure returns.
    pub waits: Vec<WaitReason>,
    /// Messages that arrived and that nobody asked for.
    pub unexpected: Vec<UnexpectedMessage>,
}

/// One thing that a rank waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitReason {
    pub condition: WaitCondition,
    pub communicator: String,
}

/// Who has to do something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitCondition {
    /// A message from `peer`; None is a wildcard.
    From {
        peer: Option<usize>,
        tag: Option<i32>,
    },
    /// The message to `peer` to be taken.
    To { peer: usize, tag: i32 },
    /// All members, as in a collective.
    All,
}

/// A message that nobody asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnexpectedMessage {
    pub from: usize,
    pub tag: i32,
    pub communicator: String,
    pub bytes: usize,
}

impl Status {
    /// For people: `MPI_Recv from 3 tag 7 on MPI_COMM_WORLD`.
    pub fn sentence(&self) -> String {
        match &self.waits[..] {
            [] => self.operation.clone(),
            [one] => format!("{} {one:#}", self.operation),
            many => {
                let shown: Vec<String> = many
                    .iter()
                    .take(4)
                    .map(|wait| format!("{wait:#}"))
                    .collect();
                let more = if many.len() > 4 {
                    format!(", and {} more", many.len() - 4)
                } else {
                    String::new()
                };
                format!("{}: {}{more}", self.operation, shown.join(", "))
            }
        }
    }
}

impl UnexpectedMessage {
    /// For people: `64 bytes from 1 tag 9 on MPI_COMM_WORLD`.
    pub fn sentence(&self) -> String {
        format!(
            "{} bytes from {} tag {} on {}",
            self.bytes, self.from, self.tag, self.communicator
        )
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "op={} progress={}",
            escape(&self.operation),
            self.progress
        )?;
        for wait in &self.waits {
            write!(f, "\nwaits {wait}")?;
        }
        for message in &self.unexpected {
            let UnexpectedMessage {
                from,
                tag,
                communicator,
                bytes,
            } = message;
            write!(
                f,
                "\nunexpected from={from} tag={tag} comm={} bytes={bytes}",
                escape(communicator)
            )?;
        }
        Ok(())
    }
}

/// The wire form; the alternate form is for people.
impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let equals = if f.alternate() { ' ' } else { '=' };
        match self.condition {
            WaitCondition::From { peer, tag } => {
                write!(f, "from{equals}{} tag{equals}{} ", Any(peer), Any(tag))?
            }
            WaitCondition::To { peer, tag } => write!(f, "to{equals}{peer} tag{equals}{tag} ")?,
            WaitCondition::All if f.alternate() => {}
            WaitCondition::All => write!(f, "all ")?,
        }
        match f.alternate() {
            true => write!(f, "on {}", self.communicator),
            false => write!(f, "comm={}", escape(&self.communicator)),
        }
    }
}

/// A line of a status that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadStatus(pub String);

impl fmt::Display for BadStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a line of a status: {}", self.0)
    }
}

impl std::error::Error for BadStatus {}

impl FromStr for Status {
    type Err = BadStatus;

    fn from_str(text: &str) -> Result<Self, BadStatus> {
        let mut status = Status::default();
        for line in text.lines() {
            status
                .read(line)
                .ok_or_else(|| BadStatus(line.to_string()))?;
        }
        Ok(status)
    }
}

impl Status {
    fn read(&mut self, line: &str) -> Option<()> {
        let fields = Fields(line);
        match line.split(' ').next()? {
            "waits" => {
                let condition = if fields.get("from").is_some() {
                    WaitCondition::From {
                        peer: fields.number_or_any("from")?,
                        tag: fields.number_or_any("tag")?,
                    }
                } else if fields.get("to").is_some() {
                    WaitCondition::To {
                        peer: fields.number("to")?,
                        tag: fields.number("tag")?,
                    }
                } else {
                    WaitCondition::All
                };
                self.waits.push(WaitReason {
                    condition,
                    communicator: fields.text("comm")?,
                });
            }
            "unexpected" => self.unexpected.push(UnexpectedMessage {
                from: fields.number("from")?,
                tag: fields.number("tag")?,
                communicator: fields.text("comm")?,
                bytes: fields.number("bytes")?,
            }),
            _ => {
                self.operation = fields.text("op")?;
                self.progress = fields.number("progress")?;
            }
        }
        Some(())
    }
}

/// The `key=value` words of a line.
struct Fields<'a>(&'a str);

impl<'a> Fields<'a> {
    fn get(&self, key: &str) -> Option<&'a str> {
        self.0
            .split(' ')
            .find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    }

    fn text(&self, key: &str) -> Option<String> {
        unescape(self.get(key)?)
    }

    fn number<T: FromStr>(&self, key: &str) -> Option<T> {
        self.get(key)?.parse().ok()
    }

    fn number_or_any<T: FromStr>(&self, key: &str) -> Option<Option<T>> {
        match self.get(key)? {
            "any" => Some(None),
            text => text.parse().ok().map(Some),
        }
    }
}

/// A number, or `any`.
struct Any<T>(Option<T>);

impl<T: fmt::Display> fmt::Display for Any<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(value) => value.fmt(f),
            None => f.write_str("any"),
        }
    }
}

fn escape(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for c in name.chars() {
        if c == ' ' || c == '%' || c.is_control() {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                text.push_str(&format!("%{byte:02X}"));
            }
        } else {
            text.push(c);
        }
    }
    text
}

fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        bytes.push(u8::from_str_radix(rest.get(at + 1..at + 3)?, 16).ok()?);
        rest = &rest[at + 3..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes).ok()
}
