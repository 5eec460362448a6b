//! Files of costs: how long the paths of long messages within a host take, as a run has learned it
//! or its user has written it.
//!
//! A file is TOML of a plain form, so that the library reads it without a parser of all TOML:
//!
//! ```
//! let table = knobs::CostTable::parse(
//!     "processor = \"A Processor\"\n\
//!      [[messages]]  # from 256 KiB on, while other messages wait behind them\n\
//!      from = \"256K\"\n\
//!      cores = \"far\"\n\
//!      others_wait = true\n\
//!      packets_ps_per_byte = 183\n\
//!      read_ps_per_byte = 96\n",
//! );
//! let table = table.unwrap();
//! let costs = table.costs(1 << 20, knobs::CoreDistance::Far, true).unwrap();
//! assert_eq!(costs.fastest(|_| true), Some(knobs::CopyPath::Read));
//! ```
//!
//! A line is blank, a comment, `[[messages]]`, or `key = value` with a string in double quotes, a
//! whole number, `true` or `false`.

use std::fmt::{self, Write as _};

use crate::nearest::nearest;
use crate::value::{Bytes, CoreDistance, KnobValue};

/// A path by which processors move a long message within a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyPath {
    /// Sender and receiver copy it together.
    CooperativeCopy,
    /// The receiver reads the sender's memory.
    Read,
    /// Packets through the ring.
    Packets,
}

impl CopyPath {
    /// All paths, in the order of their numbers.
    pub const ALL: [CopyPath; 3] = [CopyPath::CooperativeCopy, CopyPath::Read, CopyPath::Packets];

    fn key(self) -> &'static str {
        match self {
            CopyPath::CooperativeCopy => "cooperative_copy_ps_per_byte",
            CopyPath::Read => "read_ps_per_byte",
            CopyPath::Packets => "packets_ps_per_byte",
        }
    }
}

/// The costs of the paths of messages from a length on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyCosts {
    /// The least length. The costs hold up to the next greater length of the same situation.
    pub from: Bytes,
    /// The cache distance of the two ranks.
    pub cores: CoreDistance,
    /// Further long messages wait for the receiver behind this one.
    pub others_wait: bool,
    /// Picoseconds per byte of each path, by its number. None: not known.
    pub ps_per_byte: [Option<u32>; CopyPath::ALL.len()],
}

impl CopyCosts {
    /// The fastest of the known paths that `is_possible`.
    pub fn fastest(&self, is_possible: impl Fn(CopyPath) -> bool) -> Option<CopyPath> {
        let known = CopyPath::ALL.into_iter().zip(self.ps_per_byte);
        let known = known.filter_map(|(path, ps)| Some((path, ps?)));
        let possible = known.filter(|(path, _)| is_possible(*path));
        possible.min_by_key(|(_, ps)| *ps).map(|(path, _)| path)
    }

    fn situation(&self) -> (bool, bool, Bytes) {
        (
            self.cores == CoreDistance::Near,
            self.others_wait,
            self.from,
        )
    }
}

/// The contents of a file of costs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CostTable {
    processor: Option<String>,
    messages: Vec<CopyCosts>,
}

/// An error in a file of costs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostError {
    /// The line, from 1.
    pub line: usize,
    /// The reason.
    pub why: String,
}

impl fmt::Display for CostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

/// The slowest path that a file can describe, in picoseconds per byte.
const SLOWEST: u32 = 1_000_000_000;

/// The keys of a table of messages besides those of the paths.
const FROM: &str = "from";
const CORES: &str = "cores";
const OTHERS_WAIT: &str = "others_wait";
/// The key before the first table.
const PROCESSOR: &str = "processor";
/// The head of a table of messages.
const MESSAGES: &str = "[[messages]]";

/// The first lines of a file.
const HEAD: &str = "\
# Costs of the paths of long messages between ranks of one host, for FISHPLATE_COSTS=FILE.
# Each table holds for messages from a length on: between cores that share a cache (near) or do
# not (far), with or without other long messages behind them. The fastest possible path is taken.
";

impl CostTable {
    /// The longest file, in bytes.
    pub const LONGEST: u64 = 256 << 10;

    /// Costs that were learned on this processor.
    pub fn learned(processor: &str, messages: Vec<CopyCosts>) -> CostTable {
        let printable = |c: &char| !c.is_control();
        let mut table = CostTable {
            processor: Some(processor.chars().filter(printable).collect()),
            messages,
        };
        let costs = table.messages.iter_mut().flat_map(|of| &mut of.ps_per_byte);
        for ps in costs.flatten() {
            *ps = (*ps).clamp(1, SLOWEST);
        }
        let is_known = |of: &CopyCosts| of.ps_per_byte.iter().any(Option::is_some);
        table.messages.retain(is_known);
        table.messages.sort_by_key(CopyCosts::situation);
        table.messages.dedup_by_key(|of| of.situation());
        table
    }

    /// The costs of this table, and of `older` those of other situations.
    pub fn over(self, older: CostTable) -> CostTable {
        let mut messages = older.messages;
        let is_new = |of: &CopyCosts| {
            let mut own = self.messages.iter();
            own.all(|own| own.situation() != of.situation())
        };
        messages.retain(is_new);
        messages.extend(self.messages);
        messages.sort_by_key(CopyCosts::situation);
        CostTable {
            processor: self.processor.or(older.processor),
            messages,
        }
    }

    /// The processor on which the costs were learned.
    pub fn processor(&self) -> Option<&str> {
        self.processor.as_deref()
    }

    /// True if the table has no costs at all.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// The costs of a message of `len` bytes in this situation, if the table has some.
    pub fn costs(&self, len: usize, cores: CoreDistance, others_wait: bool) -> Option<&CopyCosts> {
        let fits = |of: &&CopyCosts| {
            of.cores == cores && of.others_wait == others_wait && of.from.get() <= len
        };
        let all = self.messages.iter().filter(fits);
        all.max_by_key(|of| of.from)
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    /// The first line that is wrong.
    pub fn parse(text: &str) -> Result<CostTable, CostError> {
        let mut table = CostTable::default();
        let mut open: Option<Draft> = None;
        let mut last = 1;
        for (number, line) in (1..).zip(text.lines()) {
            last = number;
            let wrong = |why| CostError { line: number, why };
            let line = without_comment(line);
            if line.is_empty() {
                continue;
            }
            if line == MESSAGES {
                if let Some(draft) = open.replace(Draft::at(number)) {
                    table.add(draft)?;
                }
                continue;
            }
            let (key, value) = assignment(line).map_err(wrong)?;
            match &mut open {
                Some(draft) => draft.set(key, value).map_err(wrong)?,
                None => table.set(key, value).map_err(wrong)?,
            }
        }
        if let Some(draft) = open {
            table.add(draft)?;
        }
        if table.is_empty() {
            return Err(CostError {
                line: last,
                why: format!("the file has no costs: expected at least one {MESSAGES}"),
            });
        }
        table.messages.sort_by_key(CopyCosts::situation);
        Ok(table)
    }

    fn set(&mut self, key: &str, value: Value) -> Result<(), String> {
        match (key, value) {
            (PROCESSOR, _) if self.processor.is_some() => Err(twice(key)),
            (PROCESSOR, Value::Text(name)) => {
                self.processor = Some(name);
                Ok(())
            }
            (PROCESSOR, _) => Err(expected(
                key,
                "a string in double quotes, with a backslash before each quote and backslash in it",
            )),
            _ => Err(format!(
                "'{key}' stands before the first {MESSAGES}: only {PROCESSOR} does"
            )),
        }
    }

    fn add(&mut self, draft: Draft) -> Result<(), CostError> {
        let line = draft.line;
        let costs = draft.finished().map_err(|why| CostError { line, why })?;
        let known = self.messages.iter();
        if known.clone().any(|of| of.situation() == costs.situation()) {
            let why = format!(
                "an earlier {MESSAGES} has the same {FROM}, {CORES} and {OTHERS_WAIT}: remove one"
            );
            return Err(CostError { line, why });
        }
        self.messages.push(costs);
        Ok(())
    }
}

/// The text of a file with these costs.
impl fmt::Display for CostTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HEAD)?;
        if let Some(name) = &self.processor {
            writeln!(f, "{PROCESSOR} = {}", quoted(name))?;
        }
        for of in &self.messages {
            let (from, cores) = (of.from.show(), of.cores.show());
            writeln!(
                f,
                "\n{MESSAGES}\n{FROM} = \"{from}\"\n{CORES} = \"{cores}\""
            )?;
            writeln!(f, "{OTHERS_WAIT} = {}", of.others_wait)?;
            for (path, ps) in CopyPath::ALL.into_iter().zip(of.ps_per_byte) {
                if let Some(ps) = ps {
                    writeln!(f, "{} = {ps}", path.key())?;
                }
            }
        }
        Ok(())
    }
}

/// The name of the processor in the text of `/proc/cpuinfo`, as files of costs have it.
pub fn processor_name(cpuinfo: &str) -> Option<&str> {
    cpuinfo.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        // The words of x86, and of some kernels of other processors.
        ["model name", "Processor", "cpu"]
            .contains(&name.trim())
            .then(|| value.trim())
    })
}

/// A value of TOML, of the kinds that a file of costs has.
enum Value {
    Text(String),
    Number(u64),
    Truth(bool),
    /// None of these.
    Other,
}

/// A table of messages that is being read.
struct Draft {
    line: usize,
    from: Option<Bytes>,
    cores: Option<CoreDistance>,
    others_wait: Option<bool>,
    ps_per_byte: [Option<u32>; CopyPath::ALL.len()],
}

impl Draft {
    fn at(line: usize) -> Draft {
        Draft {
            line,
            from: None,
            cores: None,
            others_wait: None,
            ps_per_byte: [None; CopyPath::ALL.len()],
        }
    }

    fn set(&mut self, key: &str, value: Value) -> Result<(), String> {
        match key {
            FROM => {
                let bytes = match value {
                    Value::Text(text) => Bytes::parse(&text),
                    Value::Number(count) => usize::try_from(count).ok().map(Bytes),
                    Value::Truth(_) | Value::Other => None,
                };
                put(&mut self.from, key, bytes, Bytes::EXPECTED)
            }
            CORES => {
                let cores = match value {
                    Value::Text(text) => CoreDistance::parse(&text),
                    _ => None,
                };
                put(&mut self.cores, key, cores, "\"near\" or \"far\"")
            }
            OTHERS_WAIT => {
                let truth = match value {
                    Value::Truth(truth) => Some(truth),
                    _ => None,
                };
                put(&mut self.others_wait, key, truth, "true or false")
            }
            _ => {
                let Some(path) = CopyPath::ALL.into_iter().find(|path| path.key() == key) else {
                    return Err(unknown(key));
                };
                let ps = match value {
                    Value::Number(ps) => u32::try_from(ps).ok(),
                    _ => None,
                };
                let ps = ps.filter(|ps| (1..=SLOWEST).contains(ps));
                let place = &mut self.ps_per_byte[path as usize];
                put(place, key, ps, "a whole number from 1 to 1000000000")
            }
        }
    }

    fn finished(self) -> Result<CopyCosts, String> {
        let missing = |key: &str| format!("this {MESSAGES} has no {key}");
        if self.ps_per_byte.iter().all(Option::is_none) {
            let keys = CopyPath::ALL.map(CopyPath::key).join(", ");
            return Err(format!(
                "this {MESSAGES} has no costs: expected at least one of {keys}"
            ));
        }
        Ok(CopyCosts {
            from: self.from.ok_or_else(|| missing(FROM))?,
            cores: self.cores.ok_or_else(|| missing(CORES))?,
            others_wait: self.others_wait.ok_or_else(|| missing(OTHERS_WAIT))?,
            ps_per_byte: self.ps_per_byte,
        })
    }
}

fn put<T>(place: &mut Option<T>, key: &str, value: Option<T>, valid: &str) -> Result<(), String> {
    if place.is_some() {
        return Err(twice(key));
    }
    *place = Some(value.ok_or_else(|| expected(key, valid))?);
    Ok(())
}

fn twice(key: &str) -> String {
    format!("'{key}' stands twice")
}

fn expected(key: &str, valid: &str) -> String {
    format!("'{key}': expected {valid}")
}

fn unknown(key: &str) -> String {
    let keys = [FROM, CORES, OTHERS_WAIT].into_iter();
    let keys: Vec<&str> = keys.chain(CopyPath::ALL.map(CopyPath::key)).collect();
    let valid = keys.join(", ");
    match nearest(key, keys.into_iter()) {
        Some(nearest) => format!("'{key}' is not known; did you mean {nearest}?"),
        None => format!("'{key}' is not known; valid are {valid}"),
    }
}

/// The line without the comment at its end, and without blanks around it.
fn without_comment(line: &str) -> &str {
    let (mut is_text, mut is_escaped) = (false, false);
    let comment = line.char_indices().find(|&(_, c)| {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_text => is_escaped = true,
            '"' => is_text = !is_text,
            _ => {}
        }
        c == '#' && !is_text
    });
    line[..comment.map_or(line.len(), |(at, _)| at)].trim()
}

/// Splits `key = value`.
fn assignment(line: &str) -> Result<(&str, Value), String> {
    let form = || {
        format!(
            "expected {MESSAGES}, or KEY = VALUE with a string in double quotes, a whole number, \
             true or false"
        )
    };
    let (key, value) = line.split_once('=').ok_or_else(form)?;
    let (key, value) = (key.trim(), value.trim());
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if key.is_empty() || !key.chars().all(is_bare) {
        return Err(form());
    }
    let inner = value
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    let text = || inner.and_then(unquoted).map(Value::Text);
    let number = || whole(value).map(Value::Number);
    let value = match value {
        "true" => Value::Truth(true),
        "false" => Value::Truth(false),
        _ => text().or_else(number).unwrap_or(Value::Other),
    };
    Ok((key, value))
}

/// A whole number, with underscores between digits as TOML permits them.
fn whole(text: &str) -> Option<u64> {
    let is_digit = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let valid = text.split('_').all(is_digit) && (text == "0" || !text.starts_with('0'));
    valid.then(|| text.replace('_', "").parse().ok())?
}

/// The text of a string without its quotes. `None`: a quote or backslash in it is not escaped, or
/// it has another escape or a control character.
fn unquoted(inner: &str) -> Option<String> {
    let mut text = String::new();
    let mut letters = inner.chars();
    while let Some(c) = letters.next() {
        text.push(match c {
            '\\' => letters.next().filter(|c| ['"', '\\'].contains(c))?,
            '"' => return None,
            c if c.is_control() => return None,
            c => c,
        });
    }
    Some(text)
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        if ['"', '\\'].contains(&c) {
            quoted.push('\\');
        }
        let _ = quoted.write_char(c);
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests;
