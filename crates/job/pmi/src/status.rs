//! The status of a rank: the operation it is in, what the operation waits for, and its unexpected
//! messages.
//!
//! Its text has one line for the operation and the progress, one for each reason of the wait, and
//! one for each unexpected message:
//!
//! ```text
//! op=MPI_Waitall progress=1200
//! waits from=3 tag=7 comm=MPI_COMM_WORLD
//! waits to=2 tag=0 comm=halo%20exchange
//! waits all comm=MPI_COMM_WORLD
//! waits user comm=
//! waits from=1 tag=3 comm=workers group=remote
//! unexpected from=1 tag=9 comm=MPI_COMM_WORLD bytes=64
//! ```
//!
//! `any` stands for a wildcard, `group=remote` for the remote group of an intercommunicator. A
//! space, control character or `%` in a name is written as `%XX`.

use std::fmt;
use std::str::FromStr;

/// The status of a rank: the reply to
/// [`Bootstrap::status_requested`](crate::Bootstrap::status_requested).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RankStatus {
    /// The procedure that the program called, such as `MPI_Recv`.
    pub operation: String,
    /// The number of calls of the progress function in which a packet moved. If two statuses have
    /// the same number, nothing has happened in between.
    pub progress: u64,
    /// The reasons why the procedure does not return yet.
    pub waits: Vec<WaitReason>,
    /// Messages that have arrived without a matching receive.
    pub unexpected: Vec<UnexpectedMessage>,
}

/// One event that a rank waits for, and its communicator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitReason {
    /// The kind of event that ends the wait.
    pub condition: WaitCondition,
    /// The name of the communicator of the operation.
    pub communicator: String,
    /// True if the communicator is an intercommunicator and the peer is in its remote group.
    pub is_remote: bool,
}

/// The kind of event that ends a rank's wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitCondition {
    /// The arrival of a message.
    From {
        /// The rank of the message's source; `None` for MPI_ANY_SOURCE.
        peer: Option<usize>,
        /// The tag of the message; `None` for MPI_ANY_TAG.
        tag: Option<i32>,
    },
    /// The matching of a message that this rank sends with a receive at its destination.
    To {
        /// The rank of the message's destination.
        peer: usize,
        /// The tag of the message.
        tag: i32,
    },
    /// The participation of all members of the communicator, as in a collective operation.
    All,
    /// The completion of a generalized request by the program, which needs no communicator.
    User,
}

/// A message that has arrived without a matching receive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnexpectedMessage {
    /// The rank of the message's source.
    pub from: usize,
    /// The tag of the message.
    pub tag: i32,
    /// The name of the message's communicator.
    pub communicator: String,
    /// True if the communicator is an intercommunicator and the source is in its remote group.
    pub is_remote: bool,
    /// The length of the message, in bytes.
    pub bytes: usize,
}

impl RankStatus {
    /// The status as a sentence: `MPI_Recv from 3 tag 7 on MPI_COMM_WORLD`.
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
    /// The message as a sentence: `64 bytes from 1 tag 9 on MPI_COMM_WORLD`.
    pub fn sentence(&self) -> String {
        format!(
            "{} bytes from {}{} tag {} on {}",
            self.bytes,
            self.from,
            in_sentence(self.is_remote),
            self.tag,
            self.communicator
        )
    }
}

impl fmt::Display for RankStatus {
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
                is_remote,
                bytes,
            } = message;
            write!(
                f,
                "\nunexpected from={from} tag={tag} comm={}{} bytes={bytes}",
                escape(communicator),
                in_line(*is_remote)
            )?;
        }
        Ok(())
    }
}

/// Writes the line of a status. The alternate form (`{:#}`) is a part of a sentence instead.
impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (equals, group) = match f.alternate() {
            true => (' ', in_sentence(self.is_remote)),
            false => ('=', ""),
        };
        match self.condition {
            WaitCondition::From { peer, tag } => write!(
                f,
                "from{equals}{}{group} tag{equals}{} ",
                Any(peer),
                Any(tag)
            )?,
            WaitCondition::To { peer, tag } => {
                write!(f, "to{equals}{peer}{group} tag{equals}{tag} ")?
            }
            WaitCondition::All if f.alternate() => {}
            WaitCondition::All => write!(f, "all ")?,
            WaitCondition::User if f.alternate() => {
                return f.write_str("for a generalised request (MPI_Grequest_complete)");
            }
            WaitCondition::User => f.write_str("user ")?,
        }
        match f.alternate() {
            true => write!(f, "on {}", self.communicator),
            false => {
                let group = in_line(self.is_remote);
                write!(f, "comm={}{group}", escape(&self.communicator))
            }
        }
    }
}

/// The part of a sentence, after a rank, that names its group.
fn in_sentence(is_remote: bool) -> &'static str {
    match is_remote {
        true => " of the remote group",
        false => "",
    }
}

/// The field of a status line that names a rank's group.
fn in_line(is_remote: bool) -> &'static str {
    match is_remote {
        true => " group=remote",
        false => "",
    }
}

/// The error of a text that is not a status. Contains the line that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRankStatus(pub String);

impl fmt::Display for BadRankStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a line of a status: {}", self.0)
    }
}

impl std::error::Error for BadRankStatus {}

impl FromStr for RankStatus {
    type Err = BadRankStatus;

    fn from_str(text: &str) -> Result<Self, BadRankStatus> {
        let mut status = RankStatus::default();
        for line in text.lines() {
            status
                .read(line)
                .ok_or_else(|| BadRankStatus(line.to_string()))?;
        }
        Ok(status)
    }
}

impl RankStatus {
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
                } else if line.split(' ').nth(1) == Some("user") {
                    WaitCondition::User
                } else {
                    WaitCondition::All
                };
                self.waits.push(WaitReason {
                    condition,
                    communicator: fields.text("comm")?,
                    is_remote: fields.is_remote()?,
                });
            }
            "unexpected" => self.unexpected.push(UnexpectedMessage {
                from: fields.number("from")?,
                tag: fields.number("tag")?,
                communicator: fields.text("comm")?,
                is_remote: fields.is_remote()?,
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

/// The `key=value` fields of a status line.
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

    fn is_remote(&self) -> Option<bool> {
        match self.get("group") {
            None => Some(false),
            Some("remote") => Some(true),
            Some(_) => None,
        }
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

/// A number in a status line, or `any` for a wildcard.
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
